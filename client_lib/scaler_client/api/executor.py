"""`Client.executor`: a cluster in the place of a `concurrent.futures.ProcessPoolExecutor`."""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

from ..errors import ClientClosedError, SchedulerLostError
from ..futures.future import TaskFuture
from ..io.io_thread import IoThread
from ..pickling.load_failures import add_note
from .wait import checked_timeout

P = ParamSpec("P")
T = TypeVar("T")


class CallSubmitter(Protocol):
    """A client, or a view of one, as its executors see it."""

    @property
    def _io_thread(self) -> IoThread: ...

    def _submit_call(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TaskFuture[T]: ...


class ClusterExecutor(concurrent.futures.Executor):
    """An executor whose calls run on a client's cluster; made by `Client.executor`.

    Shutting it down ends the executor alone: the client stays connected. Once the scheduler is lost it is broken, as an
    executor of the standard library is whose process has died; another one can be made when the scheduler is back.
    """

    def __init__(self, client: CallSubmitter) -> None:
        self._client = client
        self._io_thread = client._io_thread
        self._loss = self._io_thread.loss
        self._submit_lock = threading.RLock()  # pickling arguments runs foreign code
        self._is_shut_down = False
        # What is waited for at the end. Futures that nobody has kept leave it as soon as they are done.
        self._futures: weakref.WeakSet[TaskFuture[Any]] = weakref.WeakSet()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Have `fn(*args, **kwargs)` called on a worker.

        Raises:
            RuntimeError: the executor is shut down, or the client disconnected.
            concurrent.futures.BrokenExecutor: the scheduler was lost, as SchedulerLostError.
            TypeError: the function or an argument can't be pickled, or `fn` can't be called.
        """
        with self._submit_lock:
            if self._is_shut_down:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._io_thread.loss is not self._loss:
                raise SchedulerLostError(str(self._io_thread.loss))
            future = self._client._submit_call(fn, args, kwargs)
            self._futures.add(future)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """Call `fn` with the first items of all iterables, with the second ones, and so on.

        Args:
            timeout: seconds from this call on after which the iterator raises TimeoutError instead of waiting.
            chunksize: how many calls make one task.
            buffersize: how many tasks may be ahead of who reads; None: all.

        Returns:
            An iterator of the results, in order. What a call raised is raised when it comes to its place; what has not
            begun then, or when the iterator is closed, is cancelled.
        """
        _check_count("chunksize", chunksize)
        if buffersize is not None:
            _check_count("buffersize", buffersize)
        seconds = checked_timeout(timeout)
        deadline = None if seconds is None else time.monotonic() + seconds
        calls = zip(*iterables)
        if chunksize == 1:
            return self._results(itertools.starmap(functools.partial(self.submit, fn), calls), deadline, buffersize, 1)
        chunk_fn = functools.partial(_call_chunk, fn)
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        futures = (self.submit(chunk_fn, chunk) for chunk in chunks)
        return _flatten(self._results(futures, deadline, buffersize, chunksize))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. The client stays as it is.

        Args:
            wait: until all calls are over.
            cancel_futures: cancel those that have not begun.
        """
        with self._submit_lock:
            self._is_shut_down = True
            futures = [future for future in self._futures if not future.done()]
        if cancel_futures:
            self._cancel(futures)
        if wait:
            concurrent.futures.wait(futures)

    def _results(
        self, submitted: Iterator[TaskFuture[T]], deadline: float | None, buffersize: int | None, chunksize: int
    ) -> Iterator[T]:
        """Submits at once, as no generator would."""
        futures = deque(itertools.islice(submitted, buffersize))
        first = 0

        def next_result() -> T:
            nonlocal first
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                result = futures[0].result(remaining)
            except Exception as error:
                if futures[0].done() and not futures[0].cancelled():
                    items = f"item {first}" if chunksize == 1 else f"items {first} to {first + chunksize - 1}"
                    add_note(error, f"of {items} of map")
                raise
            first += chunksize
            futures.popleft()
            futures.extend(itertools.islice(submitted, 1))
            return result

        def results() -> Iterator[T]:
            try:
                while futures:
                    yield next_result()  # no name here: it would keep the result until the next one is asked for
            finally:
                self._cancel(futures)

        return results()

    def _cancel(self, futures: Iterable[TaskFuture[Any]]) -> None:
        open_futures = [future for future in futures if not future.done()]
        try:
            self._io_thread.cancel_many(lambda: [future.task_id for future in open_futures])
        except ClientClosedError:
            pass  # they are cancelled

    def __reduce__(self) -> Any:
        raise TypeError("an executor can't be pickled: pass its client to the task instead")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}{', shut down' if self._is_shut_down else ''}>"


def _call_chunk(fn: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> list[T]:
    """What one task of a `map` with chunks does."""
    return [fn(*arguments) for arguments in calls]


def _flatten(chunks: Iterator[list[T]]) -> Iterator[T]:
    for chunk in chunks:
        chunk.reverse()
        while chunk:
            yield chunk.pop()


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, not {value}")
