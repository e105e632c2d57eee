"""The tasks of a client that have no answer yet, and the sinks that take their answers."""

from __future__ import annotations

from operator import attrgetter, itemgetter

from ..futures.kept_results import KeptResult
from ..futures.open_graphs import MAX_RECOVERIES, SUCCESS_OUTCOMES
from ..pickling.references import Call, CallWithInputs, Reference, input_failure, read_result
from ..protocol.messages import Outcome, Payload, Resolved, TaskAttempt
from .result_sinks import BLOCK_BITS, GraphSink, ResultSink, SingleSink

_INPUT_LOST = Outcome.INPUT_LOST.value


class OpenTasks:
    """Finds the sink of a task id. A graph takes one entry per block of 2 ** BLOCK_BITS ids."""

    def __init__(self) -> None:
        self.single: dict[int, SingleSink] = {}
        """Sinks of single tasks by id, in the order of submission."""
        self._graphs: dict[int, GraphSink] = {}
        """Sinks of graphs, by their ids without the last BLOCK_BITS bits. A graph may have several entries."""
        self._broken_singles: dict[int, None] = {}
        """Tasks that must be submitted again, because a kept result that they read was lost."""
        self._recoveries: dict[int, int] = {}
        """How often each of them was submitted again."""
        self._broken: dict[GraphSink, None] = {}
        """Graphs that have lost results of their nodes, so that open targets must be submitted again."""

    def __bool__(self) -> bool:
        return bool(self.single or self._graphs)

    def add_graph(self, sink: GraphSink) -> None:
        """Add a graph, whose tasks have their ids."""
        for key in _keys_of(sink):
            self._graphs[key] = sink

    def graphs(self) -> list[GraphSink]:
        """Return the open graphs, by ascending ids."""
        return list(dict.fromkeys(self._graphs.values()))

    def ids(self) -> list[int]:
        """Return the ids of all tasks whose results are wanted, ascending. Of graphs these are the targets."""
        ids = list(self.single)
        for sink in self.graphs():
            ids += sink.open_ids()
        return sorted(ids)

    def ids_to_resubmit(self) -> list[int]:
        """Return the ids of all tasks whose results are wanted, and of the graph nodes that these read, ascending."""
        ids = list(self.single)
        for graph in self.graphs():
            ids += graph.needed_ids()
        return sorted(ids)

    @property
    def is_empty(self) -> bool:
        """Whether no task is open."""
        return not self.single and not self._graphs

    def count(self) -> int:
        """Return the number of tasks whose results are wanted. Any thread may call this."""
        sinks = dict.fromkeys(list(self._graphs.values()))
        return len(self.single) + sum(len(sink.open_ids()) for sink in sinks)

    def ids_made_again(self) -> set[int]:
        """Return the ids of the open tasks that make kept results again."""
        return {task_id for task_id, sink in self.single.items() if isinstance(sink, KeptResult)}

    def child_ids(self, parent: TaskAttempt | None) -> list[int]:
        """Return the ids of the open tasks that one task has submitted.

        Args:
            parent: the task; None: the tasks that were submitted outside of tasks.
        """
        ids = [task_id for task_id, sink in self.single.items() if sink.parent == parent]
        for sink in self.graphs():
            if sink.parent == parent:
                ids += sink.open_ids()
        return ids

    def is_known(self, task_id: int) -> bool:
        """Whether the id belongs to an open task, or to a graph with open tasks."""
        return task_id in self.single or task_id >> BLOCK_BITS in self._graphs

    def sink(self, task_id: int) -> ResultSink:
        """Return the sink of a known task.

        Raises:
            KeyError: the task is not known.
        """
        return self.single.get(task_id) or self._graphs[task_id >> BLOCK_BITS]

    def graph(self, task_id: int) -> GraphSink | None:
        """Return the graph that a task belongs to; None: it belongs to none."""
        return self._graphs.get(task_id >> BLOCK_BITS)

    def parent(self, task_id: int) -> TaskAttempt | None:
        """Return the task that has submitted this task; None: no task has submitted it, or it has ended."""
        return self.sink(task_id).parent if self.is_known(task_id) else None

    def cancel_node(self, task_id: int) -> list[int]:
        """Return the tasks that need not be sent when an unsent task is cancelled: the task itself, and some tasks of
        its graph.
        """
        graph = self._graphs.get(task_id >> BLOCK_BITS)
        return [task_id] if graph is None else graph.cancel_node(task_id)

    def start(self, ids: list[int]) -> None:
        """Tell the sinks that workers have begun these tasks."""
        for task_id in ids:
            sink = self.single.get(task_id)
            if sink is not None:
                sink.start()
            elif task_id >> BLOCK_BITS in self._graphs:
                self._graphs[task_id >> BLOCK_BITS].start(task_id)

    def resolve_all(self, message: Resolved) -> None:
        """Give each sink its answer. Answers of unknown tasks are ignored."""
        if message.cpu_times:
            self._set_measurements(message)
        # One row costs a single lookup: `sink` is not called (benchmarks/submit_rate.py).
        pop = self.single.pop
        graphs = self._graphs
        failed: dict[GraphSink, list[tuple[int, int, Payload]]] = {}
        failed_singles: list[tuple[int, int, Payload]] = []
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            if outcome and task_id in self.single:
                failed_singles.append((task_id, outcome, answer))
                continue
            sink = pop(task_id, None)
            if sink is not None:
                sink.resolve(task_id, outcome, answer)
                continue
            graph = graphs.get(task_id >> BLOCK_BITS)
            if graph is None:
                continue
            if outcome not in SUCCESS_OUTCOMES:
                failed.setdefault(graph, []).append((task_id, outcome, answer))
            elif graph.resolve(task_id, outcome, answer):
                self._drop_graph(graph)
        if failed_singles or failed:
            self._fail_all(failed_singles, failed)

    def _fail_all(
        self, singles: list[tuple[int, int, Payload]], graphs: dict[GraphSink, list[tuple[int, int, Payload]]]
    ) -> None:
        """Give single tasks and graphs their failures: inputs before their readers, which have higher ids."""
        singles.sort(key=itemgetter(0), reverse=True)
        for graph in sorted(graphs, key=attrgetter("first")):
            while singles and singles[-1][0] < graph.first:
                self._fail_single(*singles.pop())
            self._fail_nodes(graph, graphs[graph])
        while singles:
            self._fail_single(*singles.pop())

    def _fail_single(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Give a task its failure. If it has failed with a task whose result it reads, its error names that task."""
        sink = self.single.pop(task_id, None)
        if sink is None:  # a message may answer a task twice
            return
        call = sink.row(task_id)[1]
        cause = input_failure(call.inputs, outcome, answer) if isinstance(call, CallWithInputs) else None
        if cause is None and outcome == _INPUT_LOST and self._can_resubmit(task_id, call):
            self.single[task_id] = sink
            self._broken_singles[task_id] = None
        elif cause is None:
            sink.resolve(task_id, outcome, answer)
        else:
            sink.fail_input(task_id, cause)

    def _can_resubmit(self, task_id: int, call: Call) -> bool:
        """Return whether a task that could not read an input may be submitted again: a kept result can be made again.

        If this does not help several times, the missing input is something else.
        """
        if not isinstance(call, CallWithInputs) or not any(map(self._comes_again, call.inputs)):
            return False
        self._recoveries[task_id] = self._recoveries.get(task_id, 0) + 1
        return self._recoveries[task_id] <= MAX_RECOVERIES

    def _comes_again(self, each: Reference | int) -> bool:
        """Return whether a task reads a kept result, or the result of a task that is submitted again."""
        stored = read_result(each)
        if stored is None or stored.failure is not None:
            return False
        is_broken = stored.producer is not None and stored.producer.task_id in self._broken_singles
        return is_broken or isinstance(stored, KeptResult)

    def pop_broken_singles(self) -> list[int]:
        """Return the tasks that must be submitted again, ascending."""
        if self._recoveries:
            self._recoveries = {each: count for each, count in self._recoveries.items() if each in self.single}
        if not self._broken_singles:
            return []
        broken, self._broken_singles = sorted(self._broken_singles), {}
        return [task_id for task_id in broken if task_id in self.single]

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """Give one task an answer of the client's own."""
        self.resolve_all(Resolved([task_id], [outcome], [answer]))

    def pop_broken_graphs(self) -> list[GraphSink]:
        """Return the graphs with open targets that must be submitted again, each once."""
        if not self._broken:
            return []
        broken, self._broken = list(self._broken), {}
        return broken

    def fail(self, error: BaseException) -> list[int]:
        """End all tasks with this error; return the ids of those whose results were wanted."""
        ids = self.ids()
        for task_id in ids:
            self.sink(task_id).fail(task_id, error)
        self.single.clear()
        self._graphs.clear()
        return ids

    def _fail_nodes(self, graph: GraphSink, answers: list[tuple[int, int, Payload]]) -> None:
        """Give a graph its failures.

        All are recorded first, because a task may precede the task that caused its failure.
        """
        graph.record_failures(answers)
        for task_id, outcome, answer in answers:
            if outcome == _INPUT_LOST and graph.can_resubmit(task_id):
                self._broken[graph] = None
            elif graph.resolve(task_id, outcome, answer):
                self._drop_graph(graph)

    def _drop_graph(self, graph: GraphSink) -> None:
        for each in _keys_of(graph):
            del self._graphs[each]

    def _set_measurements(self, message: Resolved) -> None:
        for row, peak in enumerate(message.peaks):
            task_id = message.ids[row]
            measurements = message.durations[row], message.cpu_times[row], peak
            sink = self.single.get(task_id) if peak else None
            graph = self._graphs.get(task_id >> BLOCK_BITS) if peak else None
            if sink is not None:
                sink.set_measurements(*measurements)
            elif graph is not None:
                graph.set_measurements(task_id, *measurements)


def _keys_of(graph: GraphSink) -> range:
    return range(graph.first >> BLOCK_BITS, (graph.first + graph.count - 1 >> BLOCK_BITS) + 1)
