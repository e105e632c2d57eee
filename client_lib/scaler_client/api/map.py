"""`Client.map`, `imap` and `executor().map`: many calls of one function, without a future for each."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ..nested import slot_wait
from ..pickling.call_rows import MAX_CALLS
from .event_loop import LoopEvent
from .map_run import FIRST_CALLS, MapPlan, MapRun
from .progress import REFRESH_SECONDS, progress_bar

if TYPE_CHECKING:
    from ..io.io_thread import IoThread

T = TypeVar("T")

BUFFER_STEPS = 4
"""The parts in which a buffer is filled again. Not for each result: a row of one call costs as much as hundreds."""

_FIRST_ANSWER_SECONDS = 0.005
"""How long `executor().map`, which submits everything at once, waits to learn the run time."""


def run_map(io_thread: IoThread, plan: MapPlan[T]) -> list[T]:
    """Submit one call for each tuple of arguments, and return the results in order.

    Raises:
        BaseException: the exception of the first call that failed; the other calls are cancelled.
    """
    changed = slot_wait.Event(io_thread)
    # A waiting task gives up its slot, and needs it again to update the bar. Ten times a second would be too often.
    poll_seconds = REFRESH_SECONDS if plan.progress and plan.parent is None else None
    results: list[T] = []
    with progress_bar(plan.progress, plan.iterable) as bar:
        run = MapRun(io_thread, plan, changed, True, bar)
        try:
            for must_wait in run.submit():
                if must_wait:
                    changed.wait(poll_seconds)
            while not run.is_over:
                changed.clear()
                values = run.poll()
                if values is None:
                    changed.wait(poll_seconds)
                    run.show()
                else:
                    results += values
            run.show()
            return results
        except BaseException:
            run.cancel_rest()
            raise


def iterate_map(
    io_thread: IoThread,
    plan: MapPlan[T],
    buffer: int | None,
    *,
    is_ordered: bool = True,
    runs_all: bool = False,
    deadline: float | None = None,
) -> tuple[MapRun[T], Iterator[T]]:
    """Submit the first calls, and return an iterator of the results, which submits the others.

    Args:
        io_thread: the I/O thread that the calls are handed to.
        plan: the arguments of the map.
        buffer: the most calls that were submitted and whose results were not read; None: all.
        is_ordered: whether the results come in the order of the arguments. Else they come as they are there.
        runs_all: whether the submitted calls run even if the iterator is dropped before its first result is read, or if
            another call fails that nobody reads, as in the executors of the standard library.
        deadline: when the iterator raises `TimeoutError` instead of waiting, by `time.monotonic`; None: never.
    """
    changed = slot_wait.Event(io_thread)
    run: MapRun[T] = MapRun(io_thread, plan, changed, fails_fast=False, runs_all=runs_all)
    if not is_ordered:
        run.feed.ready = deque()
    try:
        submit_buffer(run, buffer, 0)
        if buffer is None:
            _submit_all(run, changed)
    except BaseException:
        run.cancel_rest()
        raise
    results = _results(run, result_parts(run, buffer, is_ordered), changed, deadline, runs_all)
    if not runs_all:
        next(results)  # closing a generator that has not begun does nothing, and would not cancel the calls
    return run, results


def result_parts(run: MapRun[T], buffer: int | None, is_ordered: bool) -> Iterator[list[T] | None]:
    """Yield lists of results, and None where the caller should wait for `changed`. Hand further calls over.

    Args:
        run: the map. Its first calls were handed over.
        buffer: the most calls that were submitted and whose results were not read; None: all.
        is_ordered: whether the results come in the order of the arguments.
    """
    read = 0
    poll = run.poll if is_ordered else run.poll_any
    while not run.is_over or run.feed.ready:
        run.feed.changed.clear()
        values = poll()
        if values is None or buffer is None:
            yield values
            continue
        step = max(1, buffer // BUFFER_STEPS)
        values.reverse()
        while values:
            part = values[: -step - 1 : -1]
            del values[-step:]
            count = len(part)
            submit_buffer(run, buffer, read + 1)  # the caller is about to read the first of these
            yield part
            read += count  # it wants more, so it has read all of them


def _results(
    run: MapRun[T], parts: Iterator[list[T] | None], changed: Any, deadline: float | None, runs_all: bool
) -> Iterator[T]:
    try:
        if not runs_all:
            yield None  # type: ignore[misc]  # for `iterate_map`
        for values in parts:
            if values is None:
                remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not changed.wait(remaining) and remaining == 0.0:
                    raise FutureTimeoutError
                continue
            values.reverse()
            while values:
                yield values.pop()  # a local name would keep the result alive until the next one is requested
    finally:
        run.cancel_rest()


def start_async_results(run: MapRun[T], parts: Iterator[list[T] | None], changed: LoopEvent) -> AsyncGenerator[T, None]:
    """Return an iterator of a map's results for an event loop.

    The iterator has begun: closing or deleting a generator that has not begun does nothing, and would not cancel the
    calls.

    Args:
        run: the map.
        parts: its results, by `result_parts`.
        changed: the event of the map.
    """
    results = _async_results(run, parts, changed)
    with suppress(StopIteration):  # so ends a step that gives a value
        results.__anext__().send(None)
    return results


async def _async_results(
    run: MapRun[T], parts: Iterator[list[T] | None], changed: LoopEvent
) -> AsyncGenerator[T, None]:
    try:
        yield None  # type: ignore[misc]  # for `start_async_results`
        for values in parts:
            if values is None:
                await changed.wait()
                continue
            values.reverse()
            while values:
                yield values.pop()
    except asyncio.CancelledError:
        run.cancel_rest(force=True)
        raise
    finally:
        run.cancel_rest()


def submit_buffer(run: MapRun[Any], buffer: int | None, read: int) -> None:
    """Hand calls over until the buffer is full.

    Args:
        run: the map.
        buffer: the most calls that were submitted and whose results were not read; None: all were handed over.
        read: the number of results that were read.
    """
    if buffer is not None:
        while not run.has_all and buffer - (run.count - read) >= max(1, min(buffer // BUFFER_STEPS, MAX_CALLS)):
            run.submit_some(buffer - (run.count - read))


def _submit_all(run: MapRun[Any], changed: Any) -> None:
    """Hand all calls over at once."""
    if run.is_adaptive:
        while not run.has_all and run.count < FIRST_CALLS:
            run.submit_some(FIRST_CALLS)
        if not run.has_all and run.await_run_time():
            changed.wait(_FIRST_ANSWER_SECONDS)
    while not run.has_all:
        run.submit_some(MAX_CALLS)


def check_one_iterable(client: str, others: tuple[Any, ...], instead: str) -> None:
    """Reject several iterables, which the built-in `map` takes.

    Args:
        client: the name of the client's class.
        others: the iterables after the first one.
        instead: the code to suggest.

    Raises:
        TypeError: `others` is not empty.
    """
    if others:
        raise TypeError(
            f"{client}.map() takes one iterable, of tuples of arguments, but {1 + len(others)} were given: "
            f"for several iterables use {instead}"
        )


def checked_count(name: str, value: Any) -> int:
    """Check a number that is at least 1.

    Raises:
        TypeError: the value is no whole number.
        ValueError: it is below 1.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, not {value}")
    return value
