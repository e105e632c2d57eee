"""Waiting for many futures: what `Client.wait`, `as_completed` and `gather` do.

They take any futures of `concurrent.futures`, and say which item is none.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from ..nested import task_host

T = TypeVar("T")

SINGLE_WAIT_SECONDS = 0.1
"""How long `gather` waits for one future alone: waiting for many at once costs ten times as much a future."""

_RETURN_WHEN = (
    concurrent.futures.ALL_COMPLETED,
    concurrent.futures.FIRST_COMPLETED,
    concurrent.futures.FIRST_EXCEPTION,
)


def as_completed(futures: Iterable[Future[T]], timeout: float | None) -> Iterator[Future[T]]:
    """The futures in the order in which they end."""
    return concurrent.futures.as_completed(checked_futures(futures, Future), checked_timeout(timeout))


def wait(
    futures: Iterable[Future[T]], timeout: float | None, return_when: str
) -> tuple[set[Future[T]], set[Future[T]]]:
    """Those that have ended, and the others."""
    if return_when not in _RETURN_WHEN:
        raise ValueError(f"return_when must be one of {', '.join(_RETURN_WHEN)}, not {return_when!r}")
    done, others = concurrent.futures.wait(checked_futures(futures, Future), checked_timeout(timeout), return_when)
    return done, others


def gather(futures: Iterable[Future[T]]) -> list[T]:
    """Their results, in their order; what the first one that fails has raised is raised as soon as that is known."""
    listed: list[Future[T]] = checked_futures(futures, Future)
    results = []
    for position, future in enumerate(listed):
        if not _is_done_soon(future):
            _wait_for_first_failure(listed[position:])
        results.append(future.result())
    return results


def _is_done_soon(future: Future[Any]) -> bool:
    if task_host.host is not None:
        return future.done()  # a task gives up its slot once for all of them
    try:
        future.exception(SINGLE_WAIT_SECONDS)
    except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        pass
    return future.done()


def _wait_for_first_failure(futures: list[Future[Any]]) -> None:
    """Until one has failed, which is raised, or all have ended."""
    done, others = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
    if others:
        for future in futures:
            if future in done and not future.cancelled():
                future.result()


def checked_futures(futures: Iterable[Any], kind: type) -> list[Any]:
    """The futures as a list.

    Raises:
        TypeError: they can't be gone through, or one is of another kind; the text names it.
    """
    if not isinstance(futures, Iterable):
        raise TypeError(f"futures must be an iterable of futures, not {futures!r}")
    listed = list(futures)
    for position, future in enumerate(listed):
        if not isinstance(future, kind):
            raise TypeError(f"item {position} of futures is no future but {type(future).__name__}: {future!r}")
    return listed


def checked_timeout(timeout: Any) -> float | None:
    """Raises TypeError where it is no number of seconds."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
    return None if timeout is None else float(timeout)
