"""`AsyncTaskFuture`: the asyncio future of a task, which completes in the thread of its event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ClientClosedError
from ..futures.profiling import NOT_DONE, ProfilingInfo
from ..futures.result_references import stand_in
from ..nested import slot_await, task_host
from ..pickling.references import STAND_INS, reduced
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
            msg: the message of the `asyncio.CancelledError`.

        Returns:
            False if the future is already done, else True.
        """
        if not super().cancel(msg):
            return False
        try:
            self._io_thread.cancel_many(lambda: [self._task.task_id], force=True)
        except ClientClosedError:
            pass  # the client was closed, which cancelled all its tasks
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
            super().cancel()
            return
        error = self._task.exception()
        if isinstance(error, StopIteration):  # asyncio futures reject it
            error = RuntimeError("the task raised StopIteration")
            error.__cause__ = self._task.exception()
        if error is None:
            self.set_result(self._task.result())
        else:
            self.set_exception(error)


STAND_INS[AsyncTaskFuture] = lambda future, io_thread: stand_in(future._task, io_thread)
