"""Decides which tasks to interrupt, and cleans up after them. thread_interruption.py raises the error in them.

A stop sets the wakeup. The run loop sees it as soon as `session.running` is empty again, and calls `finish`.
"""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from traceback import StackSummary

from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import TaskAttempt
from scaler_worker.task_rows import attempt_of
from scaler_worker.worker.error_text import task_stack
from scaler_worker.worker.run_token import RunToken, Wakeup
from scaler_worker.worker.session import WorkerSession

TEXT = "the task was stopped"

_log = logging.getLogger(__name__)


class Interruption(ABC):
    """The stopped tasks of one worker. Subclasses raise the error."""

    def __init__(self, session: WorkerSession, token: RunToken, wakeup: Wakeup) -> None:
        self._session = session
        self._token = token
        self._wakeup = wakeup
        self._stopped: dict[TaskAttempt, StackSummary] = {}
        """Stopped tasks that run or are suspended, with the place where each was. Each is interrupted once: its cleanup
        is not interrupted again."""
        self._due: set[TaskAttempt] = set()
        """Stopped tasks in which the error was not raised yet, as far as is known."""
        self.is_process_damaged = False
        """A task was interrupted at an unsafe point: this process must not run another task."""

    def stop(self, names: Iterable[TaskAttempt]) -> None:
        """Interrupt these tasks, if they run or are suspended. The connection's lock is held."""
        for name in names:
            if name in self._stopped:
                continue
            self._stopped[name] = StackSummary()
            self._due.add(name)
            # This sets the wakeup and then reads `running`; the run loop clears `running` and then reads the wakeup. So
            # if the task still runs here, the run loop comes to `finish`, and waits there for the connection's lock.
            self._wakeup.set()
            if self._is_running(name):
                self._stopped[name] = task_stack(sys._current_frames().get(self._token.holder))
                self._interrupt(self._token.holder)
            elif name not in self._session.suspended:
                self._discard(name)
                continue
            self.stop_children(name)

    def retry(self) -> None:
        """Try again to interrupt the running task, because it may have reached a safe point. The connection's lock is
        held."""
        if self.is_pending:
            self._interrupt(self._token.holder)

    @property
    def is_pending(self) -> bool:
        """Whether the running task is stopped and was not interrupted yet."""
        return bool(self._due) and self._is_running(*self._due)

    def is_due(self, name: TaskAttempt) -> bool:
        """Whether the task is stopped and the error was not raised in it yet."""
        return name in self._due

    def finish(self, name: TaskAttempt) -> StackSummary | None:
        """Called by the thread that has finished this task. Nothing interrupts the task from now on. The connection's
        lock is held.

        Returns:
            Where the task was when it was stopped; None: it was not stopped. A stopped task has no value, also if it
            has caught the error and returned one.
        """
        place = self._stopped.get(name)
        if place is not None:
            self.clear_exception()
            if self._has_damaged_process():
                self._mark_damaged(name)
            self._discard(name)
        self.stop_children(name)
        return place

    def raise_if_due(self, name: TaskAttempt) -> None:
        """Raise the error that was delayed while the task was suspended. The connection's lock is held.

        Raises:
            TaskStoppedError: the task was stopped.
        """
        if name in self._due:
            self._due.discard(name)
            self._stopped[name] = task_stack(sys._getframe())
            if self._is_in_import():
                self._mark_damaged(name)
            raise TaskStoppedError(TEXT)

    @abstractmethod
    def clear_exception(self) -> None:
        """Remove an exception that was set for the calling thread but not raised yet. The connection's lock is held."""

    @abstractmethod
    def _interrupt(self, thread: int) -> None:
        """Have this thread, which runs a stopped task, raise the error if it is at a safe point."""

    @abstractmethod
    def _has_damaged_process(self) -> bool:
        """Whether the error was raised at an unsafe point of the task that the calling thread has finished."""

    @abstractmethod
    def _is_in_import(self) -> bool:
        """Whether the calling thread is importing a module."""

    def stop_children(self, name: TaskAttempt) -> None:
        """Stop the open tasks that this task has submitted. Does not wait."""
        if task_host.stop_children is not None:
            task_host.stop_children(name)

    def _mark_damaged(self, name: TaskAttempt) -> None:
        if not self.is_process_damaged:
            self.is_process_damaged = True
            self._wakeup.set()
            _log.info("task %d/%d was stopped in an import or with a lock held: this worker ends", *name[:2])

    def _discard(self, name: TaskAttempt) -> None:
        self._stopped.pop(name, None)
        self._due.discard(name)

    def _is_running(self, *names: TaskAttempt) -> bool:
        running = self._session.running
        return running is not None and attempt_of(running) in names
