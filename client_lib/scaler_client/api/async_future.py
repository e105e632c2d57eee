"""`AsyncTaskFuture` and `AsyncKeptFuture`: futures of tasks, which complete in the thread of their event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import ClientClosedError
from ..futures.future import error_for_loop
from ..futures.kept_results import KeptFuture, fetch_values
from ..futures.profiling import NOT_DONE, ProfilingInfo
from ..nested import slot_await, task_host
from ..pickling.references import STAND_INS, InputCollector, ObjectRef, reduced
from .event_loop import call_in_loop

if TYPE_CHECKING:
    from ..futures.future import TaskFuture
    from ..io.io_thread import IoThread

T = TypeVar("T")


class CompletionQueue:
    """Passes finished tasks to an event loop, in batches, because each call from another thread wakes the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done_futures: deque[AsyncTaskFuture[Any]] = deque()
        self._is_scheduled = False

    def put(self, future: AsyncTaskFuture[Any]) -> None:
        """Add a future whose task is done. Any thread may call this."""
        # The future is appended before the flag is read; `_deliver` clears the flag before it takes futures.
        self._done_futures.append(future)
        if not self._is_scheduled:
            self._is_scheduled = True
            call_in_loop(self.loop, self._deliver)

    def _deliver(self) -> None:
        self._is_scheduled = False
        for _ in range(len(self._done_futures)):
            self._done_futures.popleft()._complete()


class AsyncTaskFuture(asyncio.Future[T]):
    """The future of a task in an event loop. `AsyncClient.submit` makes it.

    It is an `asyncio.Future`: use it in `await`, `asyncio.gather` or `asyncio.wait_for`. Cancelling the future, or the
    coroutine that awaits it, stops the task. Inside a task, `await` gives up the task's slot.
    """

    def __init__(self, io_thread: IoThread, task: TaskFuture[T], completions: CompletionQueue) -> None:
        super().__init__(loop=completions.loop)
        self._io_thread = io_thread
        self._task = task
        self._completions = completions
        task.add_done_callback(self._task_ended)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the future, and stop its task. Does not wait until the task is stopped.

        Args:
            msg: the message of the `asyncio.CancelledError`; None: a text that names the task.

        Returns:
            False if the future is already done, else True.
        """
        if not super().cancel(self._task._cancellation if msg is None else msg):
            return False
        self._stop_task()
        return True

    def profiling_info(self) -> ProfilingInfo:
        """Return what the worker measured. Does not wait: await the future first.

        Returns:
            The durations and the peak memory of the last attempt.

        Raises:
            ValueError: the task is not done, was submitted without profiling, or ended without a worker's answer.
            asyncio.CancelledError: the task was cancelled.
        """
        if not self.done():
            raise ValueError(NOT_DONE)
        if self.cancelled():
            raise asyncio.CancelledError()
        return self._task.profiling_info()

    def __await__(self) -> Generator[Any, None, T]:
        if task_host.host is None or self.done():
            return super().__await__()
        return slot_await.await_without_slot(self._io_thread, self)

    __iter__ = __await__

    def __reduce__(self) -> Any:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._task!r}>"

    def _repr_html_(self) -> str:
        return self._task._repr_html_()

    def _stop_task(self) -> None:
        try:
            self._io_thread.cancel_many(lambda: [self._task.task_id], force=True)
        except ClientClosedError:
            pass  # the client was closed, which cancelled all its tasks

    def _value(self) -> T:
        """Return the result of the task, which has ended without an exception."""
        return self._task.result()

    def _task_ended(self, task: Any) -> None:
        """Called in the client's callback thread, so that large results are not unpickled in the loop's thread."""
        if not task.cancelled():
            task.exception()
        self._completions.put(self)

    def _complete(self) -> None:
        """Take over the outcome of the task. Called in the loop's thread."""
        if self.done():
            return
        if self._task.cancelled():
            super().cancel(self._task._cancellation)
            return
        error = self._task.exception()
        if error is None:
            self.set_result(self._value())
        else:
            self.set_exception(error_for_loop(error))


def _stand_in(future: AsyncTaskFuture[Any] | AsyncKeptFuture[Any], collector: InputCollector) -> ObjectRef | bytes:
    return STAND_INS[type(future._task)](future._task, collector)


STAND_INS[AsyncTaskFuture] = _stand_in


class _Ended(AsyncTaskFuture[Any]):
    """Completes when a kept result exists, without its value."""

    def _value(self) -> None:
        return None


class _Fetched(AsyncTaskFuture[T]):
    """Completes when the value of a kept result has come."""

    def _stop_task(self) -> None:
        """Do nothing: the task has ended, or runs again, which other readers may need."""


@dataclass(frozen=True)
class _Callback:
    """Calls a function with a future. Two with the same parts are equal, so that one can be removed."""

    future: AsyncKeptFuture[Any]
    fn: Callable[[Any], object]

    def __call__(self, _: object) -> None:
        self.fn(self.future)


class AsyncKeptFuture(Generic[T]):
    """The future of a task whose result stays on its host: `AsyncClient.options(keep=True)` makes it.

    The future is done when the result exists. `await` brings the value. A task that gets the future as an argument
    reads the result on its host, and not through the client. The result is freed when the future and all tasks that
    read the result are gone. If the result is lost with its host, its task runs again when the value is needed.

    It is not an `asyncio.Future`, because an `asyncio.Future` has its value when it is done. `asyncio.gather` and
    `asyncio.wait_for` await it. `asyncio.wait` waits until it is done, from Python 3.11 on. Cancelling the future, or
    the coroutine that awaits it, stops the task.
    """

    def __init__(self, io_thread: IoThread, task: KeptFuture[T], completions: CompletionQueue) -> None:
        self._io_thread = io_thread
        self._task = task
        self._completions = completions
        self._ended = _Ended(io_thread, task, completions)
        if task.done():
            self._ended._complete()

    @property
    def size(self) -> int | None:
        """The size of the result in bytes; None: there is no result (yet)."""
        return self._task.size

    @property
    def location(self) -> str | None:
        """The name of the host that has the result, or had it last. "scheduler": the scheduler itself has it, because
        it is small. None: there is no result (yet)."""
        return self._task.location

    def done(self) -> bool:
        """Return whether the result exists, or the task has failed or was cancelled."""
        return self._ended.done()

    def cancelled(self) -> bool:
        """Return whether the task was cancelled."""
        return self._ended.cancelled()

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the future, and stop its task. Does not wait until the task is stopped.

        Args:
            msg: the message of the `asyncio.CancelledError`; None: a text that names the task.

        Returns:
            False if the future is already done, else True.
        """
        return self._ended.cancel(msg)

    def exception(self) -> BaseException | None:
        """Return the exception of the task; None if the result exists. Does not wait.

        Raises:
            asyncio.InvalidStateError: the task is not done.
            asyncio.CancelledError: the task was cancelled.
        """
        return self._ended.exception()

    def add_done_callback(self, fn: Callable[[AsyncKeptFuture[T]], object], *, context: Context | None = None) -> None:
        """Call `fn(future)` in the event loop when the future is done; soon if it is done already.

        Args:
            fn: the callback. Its argument is this future.
            context: the context in which it runs; None: the current one.
        """
        self._ended.add_done_callback(_Callback(self, fn), context=context)

    def remove_done_callback(self, fn: Callable[[AsyncKeptFuture[T]], object]) -> int:
        """Remove a callback.

        Args:
            fn: the callback.

        Returns:
            The number of removed callbacks.
        """
        return self._ended.remove_done_callback(_Callback(self, fn))

    def profiling_info(self) -> ProfilingInfo:
        """Return what the worker measured. Does not wait: wait until the future is done first.

        Returns:
            The durations and the peak memory of the last attempt.

        Raises:
            ValueError: the task is not done, was submitted without profiling, or ended without a worker's answer.
            asyncio.CancelledError: the task was cancelled.
        """
        return self._ended.profiling_info()

    def __await__(self) -> Generator[Any, None, T]:
        try:
            yield from self._ended.__await__()
            (value,) = fetch_values([self._task])
            result: T = yield from _Fetched(self._io_thread, value, self._completions).__await__()
            return result
        finally:
            self = value = None  # type: ignore[assignment]  # breaks the cycle of exception, traceback and frame

    def __reduce__(self) -> Any:
        return reduced(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._task!r}>"

    def _repr_html_(self) -> str:
        return self._task._repr_html_()


STAND_INS[AsyncKeptFuture] = _stand_in


def async_future(
    io_thread: IoThread, task: TaskFuture[T], completions: CompletionQueue
) -> AsyncTaskFuture[T] | AsyncKeptFuture[T]:
    """Return the future of a task in an event loop."""
    if isinstance(task, KeptFuture):
        return AsyncKeptFuture(io_thread, task, completions)
    return AsyncTaskFuture(io_thread, task, completions)


def fetch_together(futures: list[Any]) -> None:
    """Fetch the values of the kept results among these futures, from all hosts at once."""
    fetch_values([future._task for future in futures if isinstance(future, AsyncKeptFuture)])
