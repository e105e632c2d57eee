"""`ClusterExecutor`: a `concurrent.futures.Executor` whose calls run on a cluster."""

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
    """The part of a client, or of a view, that an executor uses."""

    @property
    def _io_thread(self) -> IoThread: ...

    def _submit_call(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TaskFuture[T]: ...


class ClusterExecutor(concurrent.futures.Executor):
    """A `concurrent.futures.Executor` whose calls run on a client's cluster. `Client.executor` makes it.

    Shutting the executor down leaves the client connected. If the scheduler is lost, the executor is broken, like a
    `ProcessPoolExecutor` whose process died. When the scheduler is back, make another executor.

    Example:
        ```python
        with client.executor() as executor:
            print(list(executor.map(abs, [-1, -2])))  # [1, 2]
        ```
    """

    def __init__(self, client: CallSubmitter) -> None:
        self._client = client
        self._io_thread = client._io_thread
        self._loss = self._io_thread.loss
        self._submit_lock = threading.RLock()  # reentrant: pickling arguments runs user code, which may submit
        self._is_shut_down = False
        # The futures that `shutdown` waits for. Weak: a future that no one keeps is dropped when it is done.
        self._futures: weakref.WeakSet[TaskFuture[Any]] = weakref.WeakSet()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Call `fn(*args, **kwargs)` on a worker. Returns at once.

        Args:
            fn: the function.
            args: the positional arguments.
            kwargs: the keyword arguments.

        Returns:
            The future of the task.

        Raises:
            RuntimeError: the executor is shut down, or the client is disconnected.
            SchedulerLostError: the scheduler was lost. It is a `concurrent.futures.BrokenExecutor`.
            TypeError: the function or an argument cannot be pickled, or `fn` is not callable.
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
        """Call `fn` with the first items of all iterables, then with the second items, and so on.

        Tasks are submitted in this call. If a call fails, or if the iterator is closed, tasks that have not begun are
        cancelled.

        Args:
            fn: the function.
            iterables: the iterables; the shortest one ends the map.
            timeout: seconds from this call until the iterator raises `TimeoutError` instead of waiting; None: no limit.
            chunksize: how many calls make one task.
            buffersize: how many tasks may be submitted before their results are read; None: all.

        Returns:
            An iterator of the results, in order. It raises the exception of a call at the place of its result.

        Raises:
            TypeError: `chunksize`, `buffersize` or `timeout` has a wrong type; or as for `submit`.
            ValueError: `chunksize` or `buffersize` is below 1.
            RuntimeError: the executor is shut down, or the client is disconnected.
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
        """Accept no more calls. The client stays connected.

        Args:
            wait: whether to wait until all calls are done.
            cancel_futures: whether to cancel calls that have not begun.
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
        """Submit now, which a generator would put off, and return an iterator of the results."""
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
                    yield next_result()  # a local name would keep the result alive until the next one is requested
            finally:
                self._cancel(futures)

        return results()

    def _cancel(self, futures: Iterable[TaskFuture[Any]]) -> None:
        open_futures = [future for future in futures if not future.done()]
        try:
            self._io_thread.cancel_many(lambda: [future.task_id for future in open_futures])
        except ClientClosedError:
            pass  # closing the client has cancelled them

    def __reduce__(self) -> Any:
        raise TypeError("an executor can't be pickled: pass its client to the task instead")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}{', shut down' if self._is_shut_down else ''}>"


def _call_chunk(fn: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> list[T]:
    """Run the calls of one task of a `map` with chunks, on the worker."""
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
