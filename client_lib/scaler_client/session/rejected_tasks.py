"""Tasks that fail without a worker: the scheduler rejects them at one of its limits, or they can't be sent."""

from __future__ import annotations

from ..errors import TaskRefusedError
from ..protocol.messages import Error, Message, Resolved
from .cancels import Cancels, cancel_messages
from .frame_limit import failure_answer
from .open_tasks import OpenTasks
from .result_sinks import GraphSink
from .submit_batch import SubmitBatch


class RejectedTasks:
    """Fails tasks of one client without a worker."""

    def __init__(self, tasks: OpenTasks, cancels: Cancels, batch: SubmitBatch) -> None:
        self._tasks = tasks
        self._cancels = cancels
        self._batch = batch

    def is_named(self, task_id: int) -> bool:
        """Whether the task is open and calls a function that workers offer by name."""
        return self._tasks.is_known(task_id) and self._tasks.sink(task_id).row(task_id)[0].named_function is not None

    def resolve(self, answer: Resolved) -> None:
        """Give open tasks an answer that the client made itself."""
        if self._tasks.is_known(answer.ids[0]):
            self._tasks.resolve_all(answer)
            self._cancels.answer(answer.ids)

    def reject(self, message: Error, address: str) -> list[Message]:
        """Fail the tasks that the scheduler does not accept, and with each of them its whole graph.

        Args:
            message: names the rejected tasks and the limit.
            address: the scheduler's address, for the error text.

        Returns:
            The messages to send: they cancel what the scheduler has of these graphs.
        """
        error = TaskRefusedError(f"the scheduler at {address} refuses the task: {message.text}")
        graphs: dict[GraphSink, None] = {}
        ids = []
        for task_id in filter(self._tasks.is_known, message.tasks):
            graph = self._tasks.graph(task_id)
            if graph is not None:
                graphs[graph] = None
                continue
            self._tasks.sink(task_id).row(task_id)[0].sent_in_join = 0
            ids.append(task_id)
        self._fail(ids, error)
        cancels = [each for graph in graphs for each in self._reject_graph(graph, error)]
        self._batch.last_function = None  # the next task sends its function again: the scheduler may have room by then
        return cancels

    def _reject_graph(self, graph: GraphSink, error: TaskRefusedError) -> list[Message]:
        """Drop the graph's unsent tasks; return the messages that cancel the others."""
        for function in graph.functions():
            function.sent_in_join = 0
        backlog = self._batch.backlog
        sent = []
        for task_id in range(graph.first, graph.first + graph.count):
            if backlog.has_sent(task_id):
                sent.append(task_id)
            else:
                backlog.drop(task_id)
        self._fail(graph.open_ids(), error)
        return cancel_messages(sent, force=True)

    def _fail(self, ids: list[int], error: TaskRefusedError) -> None:
        named = list(filter(self.is_named, ids))
        others = sorted({*ids}.difference(named)) if named else ids
        for each in (named, others):
            if each:
                self.resolve(failure_answer(each, error, each is named))
