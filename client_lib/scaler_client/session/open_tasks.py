"""The tasks of a client that have no answer yet, and who waits for them."""

from __future__ import annotations

from ..futures.open_graphs import SUCCESS_OUTCOMES
from ..protocol.messages import Outcome, Payload, Resolved, TaskName
from .result_sinks import CHUNK_BITS, ChunkSink, GraphSink, ResultSink, SingleSink

_INPUT_LOST = Outcome.INPUT_LOST.value


class OpenTasks:
    def __init__(self) -> None:
        self.single: dict[int, SingleSink] = {}
        """Who waits for which single task, in the order of submission."""
        self.chunks: dict[int, ChunkSink] = {}
        """Who waits for the tasks of a chunk, by their ids without the last CHUNK_BITS bits."""
        self._graphs: dict[int, GraphSink] = {}
        """The same for tasks of graphs, each of which has the entries of all its ids."""
        self._broken: dict[GraphSink, None] = {}
        """Graphs that have lost results of their nodes, and targets that are to be submitted again."""

    def add_graph(self, sink: GraphSink) -> None:
        """Tasks that read one another's results, which have their ids."""
        for key in _keys_of(sink):
            self._graphs[key] = sink

    def graphs(self) -> list[GraphSink]:
        """By their ids, ascending."""
        return list(dict.fromkeys(self._graphs.values()))

    def ids(self) -> list[int]:
        """All whose results are waited for, ascending: of graphs, none but the targets."""
        ids = list(self.single)
        for sink in (*self.chunks.values(), *self.graphs()):
            ids += sink.open_ids()
        return sorted(ids)

    def ids_to_resubmit(self) -> list[int]:
        """The same, and what those read."""
        ids = list(self.single)
        for sink in self.chunks.values():
            ids += sink.open_ids()
        for graph in self.graphs():
            ids += graph.needed_ids()
        return sorted(ids)

    def count(self) -> int:
        """How many there are. Called by any thread."""
        sinks = (*list(self.chunks.values()), *dict.fromkeys(list(self._graphs.values())))
        return len(self.single) + sum(len(sink.open_ids()) for sink in sinks)

    def child_ids(self, parent: TaskName | None) -> list[int]:
        """Those that this task has submitted; None: those that no task has."""
        ids = [task_id for task_id, sink in self.single.items() if sink.parent == parent]
        for sink in (*self.chunks.values(), *self.graphs()):
            if sink.parent == parent:
                ids += sink.open_ids()
        return ids

    def is_known(self, task_id: int) -> bool:
        """Whether the id is of an open task, or of a chunk or graph that has open tasks."""
        key = task_id >> CHUNK_BITS
        return task_id in self.single or key in self.chunks or key in self._graphs

    def sink(self, task_id: int) -> ResultSink:
        """Who waits for this task. Raises KeyError when nobody does."""
        key = task_id >> CHUNK_BITS
        return self.single.get(task_id) or self.chunks.get(key) or self._graphs[key]

    def graph(self, task_id: int) -> GraphSink | None:
        """The same, where it is a task of a graph."""
        return self._graphs.get(task_id >> CHUNK_BITS)

    def parent(self, task_id: int) -> TaskName | None:
        """The task that has submitted this one; None where none has, or it is over."""
        return self.sink(task_id).parent if self.is_known(task_id) else None

    def cancel_node(self, task_id: int) -> list[int]:
        """What need not be sent either, none of which has been: ids of this task, which is cancelled, and of others."""
        graph = self._graphs.get(task_id >> CHUNK_BITS)
        return [task_id] if graph is None else graph.cancel_node(task_id)

    def start(self, ids: list[int]) -> None:
        """Workers run these."""
        for task_id in ids:
            sink = self.single.get(task_id)
            if sink is not None:
                sink.start()
            elif task_id >> CHUNK_BITS in self._graphs:
                self._graphs[task_id >> CHUNK_BITS].start(task_id)

    def take(self, message: Resolved) -> None:
        """Give each sink its answer; what nobody waits for is passed over."""
        if message.cpu_times:
            self._tell_measurements(message)
        pop = self.single.pop
        chunks = self.chunks
        graphs = self._graphs
        failed: dict[GraphSink, list[tuple[int, int, Payload]]] = {}
        for task_id, outcome, answer in zip(message.ids, message.outcomes, message.payloads):
            sink = pop(task_id, None)
            if sink is not None:
                sink.resolve(task_id, outcome, answer)
                continue
            key = task_id >> CHUNK_BITS
            chunk = chunks.get(key)
            if chunk is not None:
                if chunk.resolve(task_id, outcome, answer):
                    del chunks[key]
                continue
            graph = graphs.get(key)
            if graph is None:
                continue
            if outcome not in SUCCESS_OUTCOMES:
                failed.setdefault(graph, []).append((task_id, outcome, answer))
            elif graph.resolve(task_id, outcome, answer):
                self._drop_graph(graph)
        for graph, answers in failed.items():
            self._fail_nodes(graph, answers)

    def _fail_nodes(self, graph: GraphSink, answers: list[tuple[int, int, Payload]]) -> None:
        """Give a graph these answers. What has failed may stand behind what fails with it: so all are noted first."""
        graph.record_failures(answers)
        for task_id, outcome, answer in answers:
            if outcome == _INPUT_LOST and graph.can_resubmit(task_id):
                self._broken[graph] = None
            elif graph.resolve(task_id, outcome, answer):
                self._drop_graph(graph)

    def _drop_graph(self, graph: GraphSink) -> None:
        for each in _keys_of(graph):
            del self._graphs[each]

    def pop_broken_graphs(self) -> list[GraphSink]:
        """Those of whose open targets some have to be submitted again."""
        if not self._broken:
            return []
        broken, self._broken = list(self._broken), {}
        return broken

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> None:
        """The same for one task, with an answer of the client's own."""
        self.take(Resolved([task_id], [outcome], [answer]))

    def fail(self, error: BaseException) -> list[int]:
        """End all with this error; returns their ids."""
        ids = self.ids()
        for task_id in ids:
            self.sink(task_id).fail(task_id, error)
        self.single.clear()
        self.chunks.clear()
        self._graphs.clear()
        return ids

    def _tell_measurements(self, message: Resolved) -> None:
        for row, peak in enumerate(message.peaks):
            task_id = message.ids[row]
            cost = message.durations[row], message.cpu_times[row], peak
            sink = self.single.get(task_id) if peak else None
            graph = self._graphs.get(task_id >> CHUNK_BITS) if peak else None
            if sink is not None:
                sink.measured(*cost)
            elif graph is not None:
                graph.measured(task_id, *cost)


def _keys_of(graph: GraphSink) -> range:
    return range(graph.first >> CHUNK_BITS, (graph.first + graph.count - 1 >> CHUNK_BITS) + 1)
