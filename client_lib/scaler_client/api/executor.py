"""`ClusterExecutor`: a `concurrent.futures.Executor` whose calls run on a cluster."""

from __future__ import annotations

import concurrent.futures
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from ..errors import ClientClosedError, SchedulerLostError
from ..futures.future import TaskFuture
from ..io.io_thread import IoThread
from ..nested import slot_wait
from ..session.map_feed import MapFeed
from .map import checked_count, iterate_map
from .map_run import MapPlan
from .wait import checked_timeout

P = ParamSpec("P")
T = TypeVar("T")


class CallSubmitter(Protocol):
    """The part of a client, or of a view, that an executor uses."""

    @property
    def _io_thread(self) -> IoThread: ...

    def _submit_call(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TaskFuture[T]: ...

    def _map_plan(
        self, fn: Callable[..., T], iterable: Iterable[Any], progress: bool, row_calls: int | None = None
    ) -> MapPlan[T]: ...


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
        # The futures and maps that `shutdown` waits for. The client holds them until they are done.
        self._futures: weakref.WeakSet[TaskFuture[Any]] = weakref.WeakSet()
        self._feeds: weakref.WeakSet[MapFeed] = weakref.WeakSet()

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
            self._check_open()
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

        All calls are submitted now, unless `buffersize` is given. Submitted calls run even if nobody reads the results.
        If the iterator is closed after its first result was read, or if it raises, calls that have not begun are
        cancelled.

        Args:
            fn: the function.
            iterables: the iterables; the shortest one ends the map.
            timeout: seconds after this call. When they are over, the iterator raises `TimeoutError` instead of waiting.
                None: no limit.
            chunksize: how many calls a worker gets together. The default, 1, means as many calls as run in a few
                milliseconds.
            buffersize: how many calls may be submitted before their results are read; None: all.

        Returns:
            An iterator of the results, in order. If a call failed, the iterator raises its exception in place of its
            result. With `options(keep=True)` of the client, it yields a `KeptFuture` for each result.

        Raises:
            TypeError: `chunksize`, `buffersize` or `timeout` has a wrong type, the function or an argument cannot be
                pickled, or `fn` is not callable.
            ValueError: `chunksize` or `buffersize` is below 1.
            RuntimeError: the executor is shut down, or the client is disconnected.
        """
        checked_count("chunksize", chunksize)
        if buffersize is not None:
            checked_count("buffersize", buffersize)
        seconds = checked_timeout(timeout)
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._submit_lock:
            self._check_open()
            plan = self._client._map_plan(fn, zip(*iterables), False, None if chunksize == 1 else chunksize)
            run, results = iterate_map(self._io_thread, plan, buffersize, runs_all=True, deadline=deadline)
            self._feeds.add(run.feed)
        return results

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls. The client stays connected.

        Args:
            wait: whether to wait until all calls are done.
            cancel_futures: whether to cancel calls that have not begun.
        """
        with self._submit_lock:
            self._is_shut_down = True
            futures = [future for future in self._futures if not future.done()]
            feeds = list(self._feeds)
        if cancel_futures:
            self._cancel(lambda: [future.task_id for future in futures])
            for feed in feeds:
                self._cancel(feed.open_ids)
        if wait:
            concurrent.futures.wait(futures)
            for feed in feeds:
                self._wait_until_idle(feed)

    def _check_open(self) -> None:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self._io_thread.loss is not self._loss:
            raise SchedulerLostError(str(self._io_thread.loss))

    def _cancel(self, ids: Callable[[], Sequence[int]]) -> None:
        try:
            self._io_thread.cancel_many(ids)
        except ClientClosedError:
            pass  # closing the client has cancelled them

    def _wait_until_idle(self, feed: MapFeed) -> None:
        """Wait until no call of a map is waiting or in flight."""
        idle = slot_wait.Event(self._io_thread)
        try:
            self._io_thread.call_soon(lambda _: feed.when_idle(idle.set))
        except ClientClosedError:
            return  # closing the client has ended the calls
        idle.wait()

    def __reduce__(self) -> Any:
        raise TypeError("an executor can't be pickled: pass its client to the task instead")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}{', shut down' if self._is_shut_down else ''}>"
