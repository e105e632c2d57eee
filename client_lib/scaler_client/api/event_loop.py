"""Connects an event loop with other threads: events, calls into the loop, blocking calls in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from ..futures.future import error_for_loop
from ..nested import slot_await

if TYPE_CHECKING:
    from ..io.io_thread import IoThread

T = TypeVar("T")


class LoopEvent:
    """An event that any thread sets and one coroutine waits for. A task gives up its slot while it waits."""

    def __init__(self, io_thread: IoThread) -> None:
        self._io_thread = io_thread
        self._loop = asyncio.get_running_loop()
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Set the event. Any thread may call this."""
        call_in_loop(self._loop, self.set_in_loop)

    def set_in_loop(self) -> None:
        """Set the event, in the loop's thread."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """Clear the event. Only the loop's thread may call this."""
        self._is_set = False

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until the event is set, at most this many seconds."""
        if self._is_set:
            return
        waiter = self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self.set_in_loop)
        try:
            await slot_await.SlotFreeAwait(self._io_thread, waiter)
        finally:
            if timer is not None:
                timer.cancel()


def call_in_loop(loop: asyncio.AbstractEventLoop, call: Any) -> None:
    """Call a function in the loop's thread, unless the loop is closed."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        pass  # the loop is closed: no coroutine waits


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a blocking function in a new thread.

    The loop's own thread pool is not used, because the end of the loop waits for it.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error_for_loop(error))
        else:
            future.set_result(result)

    threading.Thread(target=run, name="scaler-client-blocking-call", daemon=True).start()
    return future
