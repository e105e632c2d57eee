"""Waiting for many futures: the implementation of `Client.wait`, `as_completed` and `gather`.

The functions take any futures of `concurrent.futures`. An error names the item that is not a future.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from ..futures.future import TaskFuture
from ..futures.kept_results import KeptFuture, fetch_values
from ..nested import task_host

T = TypeVar("T")

SINGLE_WAIT_SECONDS = 0.1
"""How long `gather` waits for a single future. Waiting for many at once costs ten times as much for each future."""

_RETURN_WHEN = (
    concurrent.futures.ALL_COMPLETED,
    concurrent.futures.FIRST_COMPLETED,
    concurrent.futures.FIRST_EXCEPTION,
)


def as_completed(futures: Iterable[Future[T]], timeout: float | None) -> Iterator[Future[T]]:
    """Yield the futures in the order in which they are done."""
    listed: list[Any] = checked_futures(futures, Future)
    seconds = checked_timeout(timeout)
    if _are_tasks(listed):
        return _tasks_as_completed(dict.fromkeys(listed), seconds)
    return concurrent.futures.as_completed(listed, seconds)


def _are_tasks(futures: list[Any]) -> bool:
    """Return whether all futures are of tasks, and this process is no worker.

    In a worker the waiters of the standard library give up the slot of a task (`slot_wait.SlotWaiters`).
    """
    return task_host.host is None and all(issubclass(kind, TaskFuture) for kind in set(map(type, futures)))


def _tasks_as_completed(pending: dict[TaskFuture[T], None], timeout: float | None) -> Iterator[TaskFuture[T]]:
    """Yield futures of tasks in the order in which they are done.

    The futures put themselves into a queue. The function of the standard library locks all futures several times, which
    costs ten times as much (benchmarks/submit_rate.py).
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    total = len(pending)
    done: queue.SimpleQueue[TaskFuture[T]] = queue.SimpleQueue()
    put = done.put  # one object, so that `unwatch` finds it
    try:
        for future in pending:
            future.watch(put)
        while pending:
            try:
                if deadline is None:
                    ready = [done.get()]
                else:
                    ready = [done.get(timeout=max(0.0, deadline - time.monotonic()))]
            except queue.Empty:
                text = f"{len(pending)} (of {total}) futures unfinished"
                raise concurrent.futures.TimeoutError(text) from None
            if ready[0] in pending:  # it may be in the queue twice
                del pending[ready[0]]
                yield ready.pop()  # no reference stays here: the caller may drop the future
    finally:
        for future in pending:
            future.unwatch(put)


def wait(
    futures: Iterable[Future[T]], timeout: float | None, return_when: str
) -> tuple[set[Future[T]], set[Future[T]]]:
    """Wait, and return the futures that are done, and the others."""
    if return_when not in _RETURN_WHEN:
        raise ValueError(f"return_when must be one of {', '.join(_RETURN_WHEN)}, not {return_when!r}")
    listed: list[Any] = checked_futures(futures, Future)
    seconds = checked_timeout(timeout)
    if _are_tasks(listed):
        return _wait_for_tasks(set(listed), seconds, return_when)
    done, others = concurrent.futures.wait(listed, seconds, return_when)
    return done, others


def _wait_for_tasks(
    futures: set[TaskFuture[T]], timeout: float | None, return_when: str
) -> tuple[set[Future[T]], set[Future[T]]]:
    """Wait for futures of tasks.

    The function of the standard library holds the conditions of all futures meanwhile. A signal handler that runs then,
    and waits for another task, would wait for ever: the I/O thread needs the conditions to finish any future.
    """

    def is_enough(future: TaskFuture[T]) -> bool:
        """Return whether the wait is over when this future is done."""
        if return_when != concurrent.futures.FIRST_EXCEPTION:
            return return_when == concurrent.futures.FIRST_COMPLETED
        return not future.cancelled() and future.exception() is not None

    pending = dict.fromkeys(future for future in futures if not future.done())
    if not any(is_enough(future) for future in futures if future not in pending):
        with contextlib.suppress(concurrent.futures.TimeoutError):
            for future in _tasks_as_completed(pending, timeout):
                if is_enough(future):
                    break
    done: set[Future[T]] = {future for future in futures if future.done()}
    return done, {future for future in futures if future not in done}


def gather(futures: Iterable[Future[T]]) -> list[T]:
    """Return the results in order. Raises the exception of the first future that fails, as soon as it fails."""
    listed: list[Future[T]] = checked_futures(futures, Future)
    fetch_values([future for future in listed if isinstance(future, KeptFuture)])
    results = []
    try:
        for position in range(len(listed)):
            if not _is_done_soon(listed[position]):
                _wait_for_first_failure(listed[position:])
            results.append(listed[position].result())
        return results
    finally:
        del futures, listed  # breaks the reference cycle of exception, traceback, frame and future


def _is_done_soon(future: Future[Any]) -> bool:
    if task_host.host is not None:
        return future.done()  # a task gives up its slot once for all futures, not once for each
    try:
        future.exception(SINGLE_WAIT_SECONDS)
    except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        pass
    return future.done()


def _wait_for_first_failure(futures: list[Future[Any]]) -> None:
    """Wait until all futures are done. Raises the exception of the first one that fails."""
    done, others = wait(futures, None, concurrent.futures.FIRST_EXCEPTION)
    failed = [future for future in futures if future in done and not future.cancelled()] if others else []
    del futures, done, others
    while failed:
        failed.pop(0).result()


def checked_futures(futures: Iterable[Any], kind: type | tuple[type, ...]) -> list[Any]:
    """Return the futures as a list.

    Raises:
        TypeError: `futures` is not iterable, or an item is of none of these kinds; the text names it.
    """
    if not isinstance(futures, Iterable):
        raise TypeError(f"futures must be an iterable of futures, not {futures!r}")
    listed = list(futures)
    for position, future in enumerate(listed):
        if not isinstance(future, kind):
            raise TypeError(f"item {position} of futures is not a future but {type(future).__name__}: {future!r}")
    return listed


def checked_timeout(timeout: Any) -> float | None:
    """Return the timeout in seconds.

    Raises:
        TypeError: the timeout is not a number.
    """
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
    return None if timeout is None else float(timeout)
