"""Tasks that the scheduler does not take, as the client would go beyond one of its limits: they fail at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import TaskRefusedError
from ..protocol.messages import Error, Message, Resolved
from .backlog import Backlog
from .cancels import cancel_messages
from .frame_limit import failed
from .open_tasks import OpenTasks

if TYPE_CHECKING:
    from .result_sinks import GraphSink
    from .submit_batch import SubmitBatch


class RejectedTasks:
    """Of a client.

    Args:
        resolved: called with the failures of the tasks.
        is_named: whether a task's function is one that workers offer by name.
    """

    def __init__(
        self,
        tasks: OpenTasks,
        backlog: Backlog,
        rows: SubmitBatch,
        resolved: Callable[[Resolved], None],
        is_named: Callable[[int], bool],
    ) -> None:
        self._tasks = tasks
        self._backlog = backlog
        self._rows = rows
        self._resolved = resolved
        self._is_named = is_named

    def take(self, message: Error, address: str) -> list[Message]:
        """Fail the tasks that the scheduler at this address names, and all of the graphs that they are of.

        Returns what to tell it.
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
        told = [each for graph in graphs for each in self._withdraw(graph, error)]
        self._rows.last_function = None  # the next task tells of it again, as there may be room by then
        return told

    def _withdraw(self, graph: GraphSink, error: TaskRefusedError) -> list[Message]:
        """None of it is sent any more; what was is to end."""
        for function in graph.functions():
            function.sent_in_join = 0
        sent = []
        for task_id in range(graph.first, graph.first + graph.count):
            if self._backlog.has_sent(task_id):
                sent.append(task_id)
            else:
                self._backlog.drop(task_id)
        self._fail(graph.open_ids(), error)
        return cancel_messages(sent, force=True)

    def _fail(self, ids: list[int], error: TaskRefusedError) -> None:
        named = list(filter(self._is_named, ids))
        others = sorted({*ids}.difference(named)) if named else ids
        for each in (named, others):
            if each:
                self._resolved(failed(each, error, each is named))
