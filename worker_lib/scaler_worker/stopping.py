"""Interrupting a task: TaskStoppedError raised in the thread that runs it, and nowhere else.

A task of the process' main thread is interrupted by a signal, which also gets it out of sleeping and waiting in the
system; its handler raises while `session.running` is that very task, which is while nothing but the executor and the
task's own code are at work. Other threads get an exception set by the interpreter, which may come out anywhere later:
the run loop, which finds the bell rung as soon as `session.running` is empty again, has it cleared before it goes on.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterable
from types import FrameType

from scaler_client import nesting
from scaler_client.messages import TaskName
from scaler_client.nesting import TaskStoppedError
from scaler_worker.baton import Baton
from scaler_worker.bell import Bell
from scaler_worker.rows import name_of
from scaler_worker.session import WorkerSession

TEXT = "the task was stopped"


class Stopping:
    def __init__(self, session: WorkerSession, baton: Baton, bell: Bell) -> None:
        self._session = session
        self._baton = baton
        self._bell = bell
        self._stopped: set[TaskName] = set()
        """Tasks that run or are suspended. They are interrupted once: what they do about it is not hit again."""
        self._due: set[TaskName] = set()
        """Those in which the error has not been raised yet, as far as is known."""
        self._main = 0
        """The thread that signals interrupt; 0: there is none."""

    def use_signals(self) -> None:
        """Called by the main thread, where tasks will run. Without it nothing wakes a task that sleeps."""
        if hasattr(signal, "pthread_kill"):
            signal.signal(signal.SIGUSR2, self._on_signal)
            self._main = threading.get_ident()

    def stop(self, names: Iterable[TaskName]) -> None:
        """Interrupt these tasks, if they run or are suspended. The connection's lock is held."""
        for name in names:
            if name in self._stopped:
                continue
            self._stopped.add(name)
            self._due.add(name)
            # The bell first, then a look at what runs; the run loop does it the other way round. So when this still
            # sees the task running, the loop comes to `settle`, and waits there until the exception is set.
            self._bell.ring()
            if self._is_running(name):
                self._interrupt(self._baton.holder)
            elif name not in self._session.suspended:
                self._forget(name)
                continue
            _stop_children(name)

    def insist(self) -> None:
        """Now and then while a task runs: a signal that came just before a system call has not interrupted that."""
        if self._due and self._baton.holder == self._main and self._is_running(*self._due):
            self._interrupt(self._main)

    def is_due(self, name: TaskName) -> bool:
        """Whether the task is stopped and the error has yet to be raised in it."""
        return name in self._due

    def settle(self, name: TaskName) -> None:
        """The calling thread is done with this task: from now on nothing hits it. The connection's lock is held."""
        if name in self._stopped:
            self.spare_thread()
            self._forget(name)
            _stop_children(name)  # those that it has submitted since

    def spare_thread(self) -> None:
        """Take back an exception that has not come out yet in the calling thread. The connection's lock is held."""
        _set_exception(threading.get_ident(), None)

    def check(self, name: TaskName) -> None:
        """Raise what was held back while the task was suspended. The connection's lock is held.

        Raises:
            TaskStoppedError: it was stopped.
        """
        if name in self._due:
            self._due.discard(name)
            raise TaskStoppedError(TEXT)

    def _forget(self, name: TaskName) -> None:
        self._stopped.discard(name)
        self._due.discard(name)

    def _is_running(self, *names: TaskName) -> bool:
        running = self._session.running
        return running is not None and name_of(running) in names

    def _interrupt(self, thread: int) -> None:
        if thread == self._main:
            signal.pthread_kill(thread, signal.SIGUSR2)
        else:
            _set_exception(thread, TaskStoppedError)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        running = self._session.running
        if running is None or self._baton.holder != self._main:
            return
        name = name_of(running)
        # In both: it is just being suspended or resumed, and raising it is left to `resume`.
        if name in self._due and name not in self._session.suspended:
            self._due.discard(name)
            raise TaskStoppedError(TEXT)


def _stop_children(name: TaskName) -> None:
    if nesting.stop_children is not None:
        nesting.stop_children(name)


def _set_exception(thread: int, kind: type[BaseException] | None) -> None:
    """Have the thread raise it at its next instruction; None: have it raise nothing."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind))
