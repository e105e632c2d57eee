"""Ends of attempts without a result: another attempt follows, or the task ends."""

from __future__ import annotations

from scaler_scheduler.core import effects
from scaler_scheduler.core.completion.gangs import Gangs
from scaler_scheduler.core.completion.graphs import Graphs
from scaler_scheduler.core.completion.task_end import (
    answer_task,
    close_task,
    deaths_text,
    detach,
    end_with_client,
    has_retries_left,
    time_limit_text,
)
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.state.records import GangTask, Task, Worker
from scaler_scheduler.core.state.transitions import (
    CANCEL,
    GIVE_UP,
    INTENT_ABANDON,
    INTENT_CANCEL,
    INTENT_FORCE,
    INTENT_TIME_LIMIT,
    NO_INTENT,
)


class AttemptEnd:
    """Decides whether another attempt follows an attempt without a result."""

    def __init__(self, core: CoreState, graphs: Graphs, gangs: Gangs) -> None:
        self._tables = core.tables
        self._outbox = core.outbox
        self._graphs = graphs
        self._gangs = gangs
        self._task_retries = core.limits.task_retries

    def has_retries_left(self, task: Task) -> bool:
        """Whether the task may run again after its failures."""
        return has_retries_left(task, self._task_retries)

    def detach(self, task: Task) -> None:
        """Take the task from its worker. The worker's later answers about it do not count."""
        detach(self._tables, task)

    def retry_or_end(
        self,
        task: Task,
        worker: Worker | None,
        outcome: int = effects.OUTCOME_VALUE,
        error: str = "",
        duration: int = 0,
    ) -> None:
        """End a task that has left its worker without a result and is WAITING, or let it wait again. Its intent
        decides.

        Args:
            task: the task.
            worker: the worker that it has left; None: no worker held it.
            outcome: the outcome of the attempt. OUTCOME_VALUE if the task was taken back.
            error: the error line of the attempt.
            duration: the run time of the attempt in nanoseconds.
        """
        if isinstance(task, GangTask) and task.gang is not None and worker is not None:
            self._gangs.end_without_result(task, worker, outcome, error=error, duration=duration)
            return
        intent, task.intent = task.intent, NO_INTENT
        if worker is not None:
            self._tables.history.record_returned(task, worker, outcome, duration, error)
        if intent == INTENT_ABANDON:
            task.transition(CANCEL)
            end_with_client(self._tables, task)
            close_task(self._tables, task)
            self._graphs.fail_readers(task, effects.OUTCOME_CANCELLED, b"")
        elif intent in (INTENT_CANCEL, INTENT_FORCE):
            task.transition(CANCEL)
            self.answer(task, effects.OUTCOME_CANCELLED, b"")
        elif intent == INTENT_TIME_LIMIT:
            task.transition(GIVE_UP)
            self.answer(task, effects.OUTCOME_TIMED_OUT, time_limit_text(task))
        elif not self.has_retries_left(task):
            task.transition(GIVE_UP)
            self.answer(task, effects.OUTCOME_WORKER_DIED, deaths_text(task))
        elif not self._graphs.requeue(task):
            task.transition(GIVE_UP)
            text = f"{task.name}: its inputs were dropped after its client had left"
            self.answer(task, effects.OUTCOME_INPUT_LOST, text.encode())

    def end_stopped(self, task: Task, traceback: bytes) -> None:
        """End a task that was stopped and has ended without a value. It has left its worker and its state is final.

        Args:
            task: the task.
            traceback: where the task was when it was stopped; empty: its worker has not said it.
        """
        if task.intent == INTENT_TIME_LIMIT:
            text = time_limit_text(task)
            self.answer(task, effects.OUTCOME_TIMED_OUT, b"\n".join((text, traceback)) if traceback else text)
        else:
            self.answer(task, effects.OUTCOME_CANCELLED, traceback)

    def answer(self, task: Task, outcome: int, payload: bytes) -> None:
        """Answer the client, and end the tasks that wait for this task."""
        answer_task(self._tables, self._outbox, task, outcome, payload)
        if task.is_node:
            self._graphs.fail_readers(task, outcome, payload)
