"""Waiting in the event loop of a task: the task gives up its slot while at least one `await future` is open.

Meanwhile the loop runs its other coroutines. They should do little, because another task may run in the same process.
Nothing wakes the loop when its task is stopped, so the loop checks for a stop regularly.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from .slot_wait import Awaits, SlotReporter, current_task, open_awaits, set_awaits
from .task_host import RunningTask, TaskStoppedError

T = TypeVar("T")

STOP_CHECK_SECONDS = 0.1

Waiter = asyncio.Future  # the future that the coroutine waits for


class LoopAwaits(Awaits):
    """The open `await`s of a task in its event loop."""

    def __init__(self, io_thread: SlotReporter, task: RunningTask) -> None:
        super().__init__(io_thread, task)
        self._loop = asyncio.get_running_loop()
        self._waiters: list[Waiter[Any]] = []
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, future: asyncio.Future[Any]) -> Waiter[Any]:
        """Open one await. The first one gives up the slot."""
        if not self.count:
            try:
                self.io_thread.suspend(self.task.name)
                self.task.suspend()
            except BaseException:
                self.io_thread.resume(self.task.name)
                raise
            self._timer = self._loop.call_later(STOP_CHECK_SECONDS, self._check_stopped)
        self.count += 1
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        future.add_done_callback(lambda _: _copy_outcome(future, waiter))
        waiter.add_done_callback(lambda _: future.cancel() if waiter.cancelled() else None)
        return waiter

    def leave(self, waiter: Waiter[Any]) -> None:
        """Close one await. The last one waits until the task has a slot again.

        Raises:
            TaskStoppedError: the task was stopped.
        """
        # The garbage collection of any thread may close an unfinished coroutine. That thread cannot take the slot for
        # the task, so the task stays suspended.
        if self.thread != threading.get_ident():
            return
        self._waiters.remove(waiter)
        self.count -= 1
        if self.count:
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.task.resume()
        finally:
            self.io_thread.resume(self.task.name)

    def _check_stopped(self) -> None:
        if self._is_stopped():
            self._timer = None
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_exception(TaskStoppedError("the task was stopped while it waited"))
        else:
            self._timer = self._loop.call_later(STOP_CHECK_SECONDS, self._check_stopped)

    def _is_stopped(self) -> bool:
        latch = threading.Lock()
        self.task.wait(latch, 0.0)
        return not latch.locked()  # only a stopped task does not acquire a free latch


def _copy_outcome(future: asyncio.Future[Any], waiter: Waiter[Any]) -> None:
    if waiter.done():
        return
    if future.cancelled():
        waiter.cancel()
    elif future.exception() is not None:
        waiter.set_exception(future.exception())  # type: ignore[arg-type]
    else:
        waiter.set_result(future.result())


def await_without_slot(io_thread: SlotReporter, future: asyncio.Future[Any]) -> Generator[Any, None, Any]:
    """Await a future that a future of this client completes. Until then the calling task gives up its slot."""
    task = current_task(io_thread)
    if task is None:
        try:
            return (yield from asyncio.Future.__await__(future))  # future.__await__ may call this function
        finally:
            del future  # breaks the reference cycle of exception, traceback, frame and future
    awaits = open_awaits(task.name)
    if not isinstance(awaits, LoopAwaits):
        awaits = LoopAwaits(io_thread, task)
        set_awaits(awaits)
    waiter = awaits.enter(future)
    try:
        return (yield from waiter.__await__())
    finally:
        awaits.leave(waiter)
        del future, waiter  # as above


class SlotFreeAwait(Generic[T]):
    """An awaitable for a future that futures of this client complete; the calling task gives up its slot."""

    def __init__(self, io_thread: SlotReporter, future: asyncio.Future[T]) -> None:
        self._io_thread = io_thread
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return await_without_slot(self._io_thread, self._future)
