"""How a task ends, or waits again, after it has left its worker."""

from typing import Optional

from scaler_scheduler.core import effects
from scaler_scheduler.core.completion.closing import answer, close, note_client_left
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.dispatch.outbox import Outbox
from scaler_scheduler.core.state.records import ABANDON, CANCEL, FORCE, NO_WISH, TIME_LIMIT, Task, Worker
from scaler_scheduler.core.state.tables import Tables
from scaler_scheduler.core.state.transitions import CANCEL as CANCEL_ACTION
from scaler_scheduler.core.state.transitions import GIVE_UP


class Endings:
    def __init__(
        self, tables: Tables, dispatcher: Dispatcher, outbox: Outbox, graphs: Graphs, task_retries: int
    ) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._graphs = graphs
        self._task_retries = task_retries

    def has_retries_left(self, task: Task) -> bool:
        limit = task.options.retries
        return task.failures <= (self._task_retries if limit < 0 else limit)

    def leave_worker(self, task: Task) -> None:
        """Its worker holds it no longer; what that worker still had to answer or to be told about it is void."""
        assert task.worker is not None
        task.worker.release(task)
        self._tables.timers.cancel(task)
        task.is_retracting = task.is_stopping = False
        self._tables.counts.dispatched -= 1

    def settle_returned(
        self,
        task: Task,
        worker: Optional[Worker],
        outcome: int = effects.OUTCOME_VALUE,
        error: str = "",
        duration: int = 0,
    ) -> None:
        """The task has left its worker without a result and is in state WAITING: what now follows from its wish.

        Args:
            worker: None where the task was on none.
            outcome: of the attempt, with the line that says of what it failed, and the nanoseconds that it took; a
                value where it was taken back.
        """
        wish, task.wish = task.wish, NO_WISH
        if worker is not None:
            self._tables.history.returned(task, worker, outcome, duration, error)
        if wish == ABANDON:
            task.move(CANCEL_ACTION)
            note_client_left(self._tables, task)
            close(self._tables, task)
            self._graphs.failed(task, effects.OUTCOME_CANCELLED, b"")
        elif wish in (CANCEL, FORCE):
            task.move(CANCEL_ACTION)
            self._answer(task, effects.OUTCOME_CANCELLED, b"")
        elif wish == TIME_LIMIT:
            task.move(GIVE_UP)
            self._answer(task, effects.OUTCOME_TIMED_OUT, time_limit_text(task))
        elif not self.has_retries_left(task):
            task.move(GIVE_UP)
            self._answer(task, effects.OUTCOME_WORKER_DIED, deaths_text(task))
        elif not self._graphs.wait_again(task):
            task.move(GIVE_UP)
            text = f"{task.name}: what it reads was dropped while its client was gone"
            self._answer(task, effects.OUTCOME_INPUT_LOST, text.encode())

    def settle_stopped(self, task: Task) -> None:
        """A task that was told to stop has ended without a value; it has left its worker and its state is final."""
        if task.wish == TIME_LIMIT:
            self._answer(task, effects.OUTCOME_TIMED_OUT, time_limit_text(task))
        else:
            self._answer(task, effects.OUTCOME_CANCELLED, b"")

    def _answer(self, task: Task, outcome: int, payload: bytes) -> None:
        """Tell the client; the task is gone."""
        answer(self._tables, self._outbox, task, outcome, payload)
        if task.is_node:
            self._graphs.failed(task, outcome, payload)


def deaths_text(task: Task) -> bytes:
    deaths = task.deaths or []
    if task.failures == 1 == len(deaths):
        return f"{task.name}#{task.id}: the worker died in its only attempt: {deaths[0]}".encode()
    of = f"each of {task.failures}" if len(deaths) == task.failures else f"{len(deaths)} of {task.failures}"
    return f"{task.name}#{task.id}: the worker died in {of} attempts: {'; '.join(deaths)}".encode()


def time_limit_text(task: Task) -> bytes:
    return f"{task.name}#{task.id}: stopped after its time limit of {task.options.timeout_seconds:g} s".encode()
