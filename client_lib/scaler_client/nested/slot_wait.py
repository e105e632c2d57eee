"""Waiting in a thread of a task: the task gives up its slot, so that its children or other tasks can run.

The client reports the free slot over the connection that submitted the children, after the children. So the scheduler
knows the children when it fills the slot. Outside of workers this module costs one check of `task_host.host` for each
wait that blocks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ..protocol.messages import TaskAttempt
from . import task_host
from .task_host import RunningTask, TaskStoppedError


class SlotReporter(Protocol):
    """The part of the client's I/O thread that a waiting task uses."""

    @property
    def is_nested(self) -> bool:
        """Whether the client belongs to the tasks of this worker process."""

    def suspend(self, name: TaskAttempt) -> None:
        """Report to the scheduler that the task gives up its slot."""

    def resume(self, name: TaskAttempt) -> None:
        """Report to the scheduler that the task has its slot again."""


class Awaits:
    """The open `await`s of a task, in the thread that runs it. The slot is given up while `count` is above 0."""

    def __init__(self, io_thread: SlotReporter, task: RunningTask) -> None:
        self.io_thread = io_thread
        self.task = task
        self.thread = threading.get_ident()
        self.count = 0


_local = threading.local()


def open_awaits(name: TaskAttempt | None = None) -> Awaits | None:
    """Return the open awaits of the calling thread, if there are any; with a name, only those of this task."""
    awaits: Awaits | None = getattr(_local, "awaits", None)
    if awaits is None or not awaits.count or (name is not None and awaits.task.name != name):
        return None
    return awaits


def set_awaits(awaits: Awaits) -> None:
    """Set the awaits of the calling thread."""
    _local.awaits = awaits


def current_task(io_thread: SlotReporter) -> RunningTask | None:
    """Return the task that the calling thread runs; None if tasks of this client would not be children of that task."""
    host = task_host.host
    if host is None or not io_thread.is_nested:
        return None
    task = host.current()
    if task is None:  # the worker does not count a task that gave up its slot while its event loop continues
        awaits = open_awaits()
        if awaits is not None:
            task = awaits.task
    return task


def wait(io_thread: SlotReporter, latch: threading.Lock, timeout: float | None, is_done: Callable[[], bool]) -> None:
    """Wait until the I/O thread releases a latch. A task gives up its slot meanwhile.

    Args:
        io_thread: the I/O thread.
        latch: a lock that is held.
        timeout: how many seconds to wait; None: no limit.
        is_done: returns whether the awaited event has happened.

    Raises:
        TaskStoppedError: the task was stopped.
    """
    task = current_task(io_thread)
    if task is None or (timeout is not None and timeout <= 0):
        latch.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
    elif open_awaits(task.name) is not None:
        task.wait(latch, timeout)
        if timeout is None and not is_done():
            raise TaskStoppedError("the task was stopped while it waited")
    else:
        try:
            io_thread.suspend(task.name)
            task.suspend()
            try:
                task.wait(latch, timeout)
            finally:
                task.resume()
        finally:
            io_thread.resume(task.name)


class Event:
    """A `threading.Event` whose `wait` gives up the slot of a task. One thread waits; any thread sets.

    It has no lock, unlike `threading.Event`: a signal handler that waits for the I/O thread may run in the waiting
    thread at any instruction, while the I/O thread sets the event.
    """

    def __init__(self, io_thread: SlotReporter) -> None:
        self._io_thread = io_thread
        self._is_set = False
        self._latch: threading.Lock | None = None

    def is_set(self) -> bool:
        """Return whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Set the event. Any thread may call this."""
        self._is_set = True
        latch = self._latch
        if latch is not None:
            with contextlib.suppress(RuntimeError):  # it is released already
                latch.release()

    def clear(self) -> None:
        """Clear the event."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, at most `timeout` seconds; returns whether it is set."""
        latch = threading.Lock()
        latch.acquire()
        self._latch = latch
        if not self._is_set:  # read after the latch is there: `set` does the reverse
            wait(self._io_thread, latch, timeout, self.is_set)
        return self._is_set


class SlotWaiters(list[Any]):
    """The list of a future's waiters inside a worker, which the functions of concurrent.futures append to."""

    def __init__(self, io_thread: SlotReporter) -> None:
        self._io_thread = io_thread

    def append(self, waiter: Any) -> None:
        # The calling thread will wait for the event. It holds the conditions of all its futures, so no other thread
        # uses the waiter yet, and its event can be replaced.
        if type(getattr(waiter, "event", None)) is threading.Event and current_task(self._io_thread) is not None:
            waiter.event = Event(self._io_thread)
        super().append(waiter)
