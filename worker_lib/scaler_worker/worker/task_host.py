"""Suspends and resumes tasks that wait for their children: the worker as a nested client sees it.

scaler_client.nested.task_host has the protocol. A suspended task stays in its thread, which waits. Another thread runs
the queued tasks.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from scaler_client.protocol.messages import FLAG_CALLS, FLAG_STREAM_OUTPUT, Output, TaskAttempt
from scaler_worker.output.task_output import TaskOutput
from scaler_worker.task_rows import Row, attempt_of, booking_of, depth_of, flags_of, priority_of
from scaler_worker.worker.executor import thread_row
from scaler_worker.worker.gang_place import GangPlace
from scaler_worker.worker.runner import Runner, TaskSlot
from scaler_worker.worker.running_task import Suspension

CHECK_SECONDS = 0.25
CHECKS_PER_SECOND = 100
"""How often a suspended task checks whether it is stopped: every CHECK_SECONDS, but all suspended tasks of a worker
together at most CHECKS_PER_SECOND times. Only its latch ends a thread's wait. Usually a stop releases the latch at
once, because the children are stopped too."""


@dataclass(frozen=True)
class WorkerIdentity:
    """The data about the worker that its nested client sends to the scheduler."""

    address: str
    """The scheduler's."""
    keys: str
    """The folder of the worker's keys; empty: it has none."""
    incarnation: int
    environment: str = ""
    """The name of its environment; empty: none."""


class WorkerTaskHost:
    """The `TaskHost` of this process."""

    def __init__(self, worker: WorkerIdentity, slot: TaskSlot, runner: Runner, output: TaskOutput) -> None:
        self.address = worker.address
        self.keys = worker.keys
        self.worker = worker.incarnation
        self.environment = worker.environment
        self._slot = slot
        self._session = slot.session
        self._interruption = slot.interruption
        self._runner = runner
        self._output = output
        self._current: SuspendableTask | None = None

    def current(self) -> SuspendableTask | None:
        """The task that the calling thread runs; None if it runs none."""
        if threading.get_ident() != self._slot.token.holder:
            return None
        row = self._session.running
        if row is None:
            return None
        task = self._current
        if task is None or task.row is not row:
            task = self._current = SuspendableTask(self, row)
            self._slot.wakeup.is_set = True  # the run loop ends its children with it
        elif task.has_calls:
            left = thread_row.calls_left()
            if left != task.calls_left:  # another call of the row: the children of the one before end with it
                task.calls_left = left
                self._interruption.stop_children(task.name)
        return task

    def gang_of(self, row: Row) -> GangPlace | None:
        """The place of a running task in its gang; None: it is no member of one."""
        return self._runner.gangs.get(attempt_of(row))

    def leave_processes(self) -> None:
        self._slot.task.leave_processes()
        self._slot.wakeup.is_set = True

    def forward_output(self, parents: list[TaskAttempt], output: Output) -> None:
        self._output.forward(parents, output)

    def suspend(self, task: SuspendableTask) -> Suspension:
        # A stop that comes before `session.suspend` leaves the task as it was. If a signal handler of the task raises
        # an exception after that, the run loop cleans up at the task's end.
        self._slot.wakeup.set()
        with self._slot.connection.lock:
            if self._interruption.is_due(task.name):
                self._interruption.clear_exception()
            self._session.suspend()
        if task.gang is not None:
            task.gang.restore_variables()
        suspension = self._slot.task.suspend(task.row)
        if not self._slot.token.release():
            try:
                self._runner.start_thread()
            except RuntimeError:  # the system has no more threads: this task keeps the slot
                self._continue(task, suspension)
                raise
        return suspension

    def resume(self, task: SuspendableTask, suspension: Suspension) -> None:
        raised = self._slot.token.reacquire()
        self._continue(task, suspension)
        if raised is not None:
            raise raised

    def wait(self, task: SuspendableTask, latch: threading.Lock, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._interruption.is_due(task.name):
            seconds = max(CHECK_SECONDS, len(self._session.suspended) / CHECKS_PER_SECOND)
            if deadline is not None:
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            if latch.acquire(timeout=seconds) or (deadline is not None and time.monotonic() >= deadline):
                return

    def _continue(self, task: SuspendableTask, suspension: Suspension) -> None:
        row = self._session.suspended.get(task.name, task.row)  # it may have released its resources
        self._slot.task.resume(row, suspension)
        if task.gang is not None:
            task.gang.set_variables()
        self._current = task
        # The wakeup makes the run loop see, at the task's end, how long the task was suspended, and yield to the first
        # thread.
        self._slot.wakeup.set()
        self._slot.watcher.wake()
        with self._slot.connection.lock:
            self._session.resume(task.name)  # last: from here on the task can be interrupted
            self._interruption.raise_if_due(task.name)


class SuspendableTask:
    """The `RunningTask` of scaler_client.nested.task_host. Made when a nested client first asks for it."""

    def __init__(self, host: WorkerTaskHost, row: Row) -> None:
        self.row = row
        self.name: TaskAttempt = attempt_of(row)
        self.depth = depth_of(row)
        self.priority = priority_of(row)
        self.stream_output = bool(flags_of(row) & FLAG_STREAM_OUTPUT)
        self.booking = booking_of(row)
        self.gang = host.gang_of(row)
        self.has_calls = bool(flags_of(row) & FLAG_CALLS)
        self.calls_left = thread_row.calls_left() if self.has_calls else 0
        """Of a row of several calls: which call it is."""
        self._host = host
        self._suspension: Suspension | None = None

    def suspend(self) -> None:
        self._suspension = self._host.suspend(self)

    def resume(self) -> None:
        suspension, self._suspension = self._suspension, None
        assert suspension is not None
        self._host.resume(self, suspension)

    def wait(self, latch: threading.Lock, timeout: float | None) -> None:
        self._host.wait(self, latch, timeout)
