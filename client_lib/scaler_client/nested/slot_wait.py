"""Waiting inside a task: for its own children it gives up its slot, so that they, or others, can run.

The scheduler is told on the connection by which the children were submitted, behind them: when it looks for something
to put into the slot, it knows of them. Outside of workers none of this is used, and costs one look at `nesting.host`
where a wait really blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from ..protocol.messages import TaskName
from . import task_host
from .task_host import RunningTask, TaskStoppedError


class SlotReporter(Protocol):
    """The client's I/O thread, as a waiting task sees it."""

    @property
    def is_nested(self) -> bool:
        """Whether it serves the tasks that this process runs as a worker."""

    def suspend(self, name: TaskName) -> None:
        """Tell the scheduler that this task gives up its slot."""

    def resume(self, name: TaskName) -> None:
        """Tell the scheduler that this task has its slot again."""


class Awaits:
    """The `await`s of one task, in the thread that runs it: while any is open, the slot is given up."""

    def __init__(self, io_thread: SlotReporter, task: RunningTask) -> None:
        self.io_thread = io_thread
        self.task = task
        self.thread = threading.get_ident()
        self.count = 0


_local = threading.local()


def open_awaits(name: TaskName | None = None) -> Awaits | None:
    """Those of the calling thread; where it is known to run a task, of this one alone."""
    awaits: Awaits | None = getattr(_local, "awaits", None)
    if awaits is None or not awaits.count or (name is not None and awaits.task.name != name):
        return None
    return awaits


def set_awaits(awaits: Awaits) -> None:
    """These are the calling thread's."""
    _local.awaits = awaits


def current_task(io_thread: SlotReporter) -> RunningTask | None:
    """The task that the calling thread runs, where this client's tasks are its children."""
    host = task_host.host
    if host is None or not io_thread.is_nested:
        return None
    task = host.current()
    if task is None:  # nor does the worker know one that has given up its slot, and yet goes on in an event loop
        awaits = open_awaits()
        if awaits is not None:
            task = awaits.task
    return task


def wait(io_thread: SlotReporter, latch: threading.Lock, timeout: float | None, is_done: Callable[[], bool]) -> None:
    """Acquire the latch, which the I/O thread releases; inside a task, without keeping its slot.

    Args:
        io_thread: whose answers are waited for.
        timeout: seconds after which it gives up; None never does.
        is_done: whether what is waited for is there.

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
    """A `threading.Event` for waiting inside a task. One thread waits, any thread sets."""

    def __init__(self, io_thread: SlotReporter) -> None:
        self._io_thread = io_thread
        self._lock = threading.Lock()
        self._is_set = False
        self._latch: threading.Lock | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            latch, self._latch = self._latch, None
        if latch is not None:
            latch.release()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was set before the timeout, in seconds, was over."""
        with self._lock:
            if self._is_set:
                return True
            latch = self._latch = threading.Lock()
            latch.acquire()
        try:
            wait(self._io_thread, latch, timeout, self.is_set)
        finally:
            with self._lock:
                self._latch = None
        return self._is_set


def make_event(io_thread: SlotReporter) -> threading.Event | Event:
    """An event that the calling thread is to wait for."""
    return threading.Event() if current_task(io_thread) is None else Event(io_thread)


class SlotWaiters(list[Any]):
    """A future's waiters, as the functions of concurrent.futures put them in, inside a worker."""

    def __init__(self, io_thread: SlotReporter) -> None:
        self._io_thread = io_thread

    def append(self, waiter: Any) -> None:
        # Whoever puts it in will wait for its event, and holds all futures' conditions: nobody else knows it yet.
        if type(getattr(waiter, "event", None)) is threading.Event and current_task(self._io_thread) is not None:
            waiter.event = Event(self._io_thread)
        super().append(waiter)
