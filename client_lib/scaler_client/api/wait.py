"""Waiting for many futures: the implementation of `Client.wait`, `as_completed` and `gather`.

The functions take any futures of `concurrent.futures`. An error names the item that is not a future.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

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
    return concurrent.futures.as_completed(checked_futures(futures, Future), checked_timeout(timeout))


def wait(
    futures: Iterable[Future[T]], timeout: float | None, return_when: str
) -> tuple[set[Future[T]], set[Future[T]]]:
    """Wait; returns the futures that are done, and the others."""
    if return_when not in _RETURN_WHEN:
        raise ValueError(f"return_when must be one of {', '.join(_RETURN_WHEN)}, not {return_when!r}")
    done, others = concurrent.futures.wait(checked_futures(futures, Future), checked_timeout(timeout), return_when)
    return done, others


def gather(futures: Iterable[Future[T]]) -> list[T]:
    """Return the results in order. Raises the exception of the first future that fails, as soon as it fails."""
    listed: list[Future[T]] = checked_futures(futures, Future)
    results = []
    for position, future in enumerate(listed):
        if not _is_done_soon(future):
            _wait_for_first_failure(listed[position:])
        results.append(future.result())
    return results


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
    done, others = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
    if others:
        for future in futures:
            if future in done and not future.cancelled():
                future.result()


def checked_futures(futures: Iterable[Any], kind: type) -> list[Any]:
    """Return the futures as a list.

    Raises:
        TypeError: `futures` is not iterable, or an item is not of this kind; the text names it.
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
