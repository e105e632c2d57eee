"""Raises TaskStoppedError in the thread that runs a stopped task, and nowhere else.

In the main thread, a signal interrupts the task, also in sleeps and in system calls that block. The signal's handler
raises only while `session.running` is this task: then only the executor and the task's code run.

In other threads, the interpreter sets an asynchronous exception, which may be raised at any later point. The run loop
clears an exception that was not raised, when the task is over (`Interruption.finish`).

A task is interrupted only at a safe point (safe_points.py). The long-task watcher tries again every millisecond, or as
soon as it gets the GIL. If no safe point comes, the scheduler has the process killed after its grace time: for example,
a function of a C extension reaches none before it returns. The signal's handler sees where it raises. An asynchronous
exception may be raised later than it was set, so its traceback is examined when the task is over. A damaged process
ends and is replaced.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from scaler_client.nested.task_host import TaskStoppedError
from scaler_worker.task_rows import attempt_of
from scaler_worker.worker.interruption import TEXT, Interruption
from scaler_worker.worker.run_token import RunToken, Wakeup
from scaler_worker.worker.safe_points import Place, place_of, stack, was_raised_unsafely
from scaler_worker.worker.session import WorkerSession

BLOCKED_SECONDS = 0.05
"""A thread that stays at one instruction for this time is blocked there."""

SIGNAL_SECONDS = 0.02
"""The time until the next signal if the handler has not run. The signal may have come just before a system call, which
it did not interrupt."""


class _Discarded(BaseException):
    """Takes the place of an exception that must not be raised."""


class ThreadInterruption(Interruption):
    """Interrupts tasks by signals and asynchronous exceptions."""

    def __init__(self, session: WorkerSession, token: RunToken, wakeup: Wakeup) -> None:
        super().__init__(session, token, wakeup)
        self._main = 0
        """The thread that signals interrupt; 0: none."""
        self._raised: TaskStoppedError | None = None
        """The exception that the interpreter raised in the running task after `_set_exception`."""
        self._exception = _exception_class(self._on_raised)
        self._is_set = False
        """An exception was set for the running thread and was not raised yet, as far as is known."""
        self._is_signalled = False
        """A signal was sent to the main thread, and its handler has not ended."""
        self._next_signal = 0.0
        """When to send the next signal even if the handler has not ended."""
        self._seen: tuple[int, int] = (0, 0)
        """The id and the instruction of the frame in which the signal's handler last found the main thread in shared
        code.
        """
        self._seen_at = 0.0
        self._traced: FrameType | None = None
        """The frame of the main thread that is to be interrupted at its next line."""

    def use_signals(self) -> None:
        """Interrupt the calling thread by signals: the main thread, where tasks will run.

        Without signals nothing wakes a sleeping task.
        """
        if hasattr(signal, "pthread_kill"):
            signal.signal(signal.SIGUSR2, self._on_signal)
            self._main = threading.get_ident()

    def clear_exception(self) -> None:
        if not self._is_set:
            return
        self._is_set = False
        # Another exception takes its place and is raised here. Without another exception, Python before 3.13 would look
        # for one at every later check. Python 3.11 would never get past such a check at the start of a traced function.
        try:
            _set_exception(threading.get_ident(), _Discarded)
            while True:
                pass
        except _Discarded:
            pass

    def _has_damaged_process(self) -> bool:
        self._end_trace()
        raised, self._raised = self._raised, None
        return raised is not None and was_raised_unsafely(raised)

    def _is_in_import(self) -> bool:
        return place_of(stack(sys._getframe(1))) is Place.IMPORT

    def _interrupt(self, thread: int) -> None:
        if thread == self._main:
            self._signal()
        elif place_of(stack(sys._current_frames().get(thread))) is Place.SAFE:
            self._is_set = True
            _set_exception(thread, self._exception)
        elif self._is_set:
            _set_exception(thread, None)  # an exception that was set before must not be raised at this unsafe point

    def _signal(self) -> None:
        """Have the main thread check whether it may be interrupted.

        No signal is sent while the last one is pending or its handler runs: the handler would run inside itself.
        """
        now = time.monotonic()
        if now >= self._next_signal or not (self._is_signalled or self._traced):
            self._is_signalled = True
            self._next_signal = now + SIGNAL_SECONDS
            signal.pthread_kill(self._main, signal.SIGUSR2)

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        try:
            self._raise_if_safe(frame)
        finally:
            self._is_signalled = False

    def _raise_if_safe(self, frame: FrameType | None) -> None:
        running = self._session.running
        if running is None or self._token.holder != self._main:
            return
        name = attempt_of(running)
        # A task that is in `suspended` as well is just being suspended or resumed: `resume` raises the error.
        if name in self._due and name not in self._session.suspended and self._is_safe(frame):
            self._end_trace()
            self._due.discard(name)
            raise TaskStoppedError(TEXT)

    def _is_safe(self, frame: FrameType | None) -> bool:
        """Whether the main thread, which is about to execute this frame, may be interrupted now."""
        place = place_of(stack(frame))
        if place is Place.SAFE or frame is None:
            return place is Place.SAFE
        if place is Place.SHARED and self._is_blocked(frame):
            return True
        self._trace(frame)
        return False

    def _is_blocked(self, frame: FrameType) -> bool:
        # Signals are handled between instructions, and in system calls that block. If the instruction is the same after
        # BLOCKED_SECONDS, it is such a call, which may raise exceptions anyway.
        now, seen = time.monotonic(), (id(frame), frame.f_lasti)
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        return now - self._seen_at >= BLOCKED_SECONDS

    def _trace(self, frame: FrameType) -> None:
        """Interrupt the nearest safe caller of unsafe code at its next line.

        Signals alone may always find the task in unsafe code: the watcher gets the GIL mostly while such code waits
        in a system call. Calls are a little slower while the frame is traced.
        """
        if sys.gettrace() is None:
            caller = next((each for each in stack(frame) if place_of(stack(each)) is Place.SAFE), None)
            if caller is not None:
                caller.f_trace = self._on_line
                self._traced = caller
                sys.settrace(_trace_no_call)

    def _on_line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self._raise_if_safe(frame)
        if event != "return":
            return self._on_line
        self._end_trace()
        return None

    def _end_trace(self) -> None:
        traced, self._traced = self._traced, None
        if traced is not None:
            sys.settrace(None)
            traced.f_trace = None

    def _on_raised(self, raised: TaskStoppedError) -> None:
        """Note an exception that the interpreter raises in its thread. Before Python 3.12 this is called when the
        exception is caught."""
        running = self._session.running
        if running is not None and threading.get_ident() == self._token.holder:
            self._due.discard(attempt_of(running))
            self._raised = raised
            self._is_set = False


def _trace_no_call(_frame: FrameType, _event: str, _: object) -> None:
    """Do not trace called functions."""


def _exception_class(note: Callable[[TaskStoppedError], None]) -> type[TaskStoppedError]:
    """Make the class that the interpreter raises. Its instances are plain TaskStoppedErrors, which can be pickled.

    `note` is called with each instance.
    """

    def make(_: type[TaskStoppedError], *arguments: object) -> TaskStoppedError:
        # Python 3.10 passes the instance when it raises it again, because its class is not this one.
        if arguments and isinstance(arguments[0], TaskStoppedError):
            return arguments[0]
        made = TaskStoppedError(TEXT)
        note(made)
        return made

    return type("TaskStoppedError", (TaskStoppedError,), {"__new__": make})


def _set_exception(thread: int, kind: type[BaseException] | None) -> None:
    """Make a thread raise an exception of this class at its next instruction; None: cancel the exception."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind))
