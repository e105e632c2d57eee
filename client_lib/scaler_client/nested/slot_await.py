"""`await future` inside a task: the slot is given up while the event loop has at least one of them open.

The loop's thread goes on meanwhile with what other coroutines have to do, which should be little: another task may be
at work in the same process. Nothing wakes a loop when its task is stopped, so it looks for that now and then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from .slot_wait import Awaits, SlotReporter, current_task, keep_awaits, open_awaits
from .task_host import RunningTask, TaskStoppedError

T = TypeVar("T")

LOOK_SECONDS = 0.1

Gate = asyncio.Future  # what the coroutine waits at


class LoopAwaits(Awaits):
    def __init__(self, io_thread: SlotReporter, task: RunningTask) -> None:
        super().__init__(io_thread, task)
        self._loop = asyncio.get_running_loop()
        self._gates: list[Gate[Any]] = []
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, answer: asyncio.Future[Any]) -> Gate[Any]:
        """One more; the first gives up the slot."""
        if not self.count:
            try:
                self.io_thread.suspend(self.task.name)
                self.task.suspend()
            except BaseException:
                self.io_thread.resume(self.task.name)
                raise
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)
        self.count += 1
        gate = self._loop.create_future()
        self._gates.append(gate)
        answer.add_done_callback(lambda _: _pass_on(answer, gate))
        gate.add_done_callback(lambda _: answer.cancel() if gate.cancelled() else None)
        return gate

    def leave(self, gate: Gate[Any]) -> None:
        """One less; the last takes the slot again. Raises TaskStoppedError."""
        # A coroutine that was left unfinished may be closed by any thread's garbage collection, which can't take the
        # slot for the task: it then stays suspended.
        if self.thread != threading.get_ident():
            return
        self._gates.remove(gate)
        self.count -= 1
        if self.count:
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            self.task.resume()
        finally:
            self.io_thread.resume(self.task.name)

    def _look(self) -> None:
        if self._is_stopped():
            self._timer = None
            for gate in self._gates:
                if not gate.done():
                    gate.set_exception(TaskStoppedError("the task was stopped while it waited"))
        else:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def _is_stopped(self) -> bool:
        latch = threading.Lock()
        self.task.wait(latch, 0.0)
        return not latch.locked()  # nothing but the task's being stopped keeps it from a free latch


def _pass_on(answer: asyncio.Future[Any], gate: Gate[Any]) -> None:
    if gate.done():
        return
    if answer.cancelled():
        gate.cancel()
    elif answer.exception() is not None:
        gate.set_exception(answer.exception())  # type: ignore[arg-type]
    else:
        gate.set_result(answer.result())


def awaiting(io_thread: SlotReporter, answer: asyncio.Future[Any]) -> Generator[Any, None, Any]:
    """`await answer`, which one of this client's futures ends, with the slot of the calling task given up."""
    task = current_task(io_thread)
    if task is None:
        return (yield from asyncio.Future.__await__(answer))  # not its own, which may have come here
    awaits = open_awaits(task.name)
    if not isinstance(awaits, LoopAwaits):
        awaits = LoopAwaits(io_thread, task)
        keep_awaits(awaits)
    gate = awaits.enter(answer)
    try:
        return (yield from gate.__await__())
    finally:
        awaits.leave(gate)


class OutOfSlot(Generic[T]):
    """`await`s a future of the event loop, which this client's futures end, with the calling task's slot given up."""

    def __init__(self, io_thread: SlotReporter, answer: asyncio.Future[T]) -> None:
        self._io_thread = io_thread
        self._answer = answer

    def __await__(self) -> Generator[Any, None, T]:
        return awaiting(self._io_thread, self._answer)
