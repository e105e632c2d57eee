"""TaskFuture with concurrent.futures and asyncio, also in races with the thread that finishes it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, as_completed, wait
from typing import Any

import pytest
from tests.client.stand_ins import (
    FakeIoThread,
    cancelled,
    end_cancelled,
    end_with_exception,
    end_with_value,
    in_threads,
    pending,
    running,
    with_exception,
    with_value,
)

from scaler_client.api import wait as client_wait

ROUNDS = 4000
HAMMER_SECONDS = 1.0
FEWEST_ROUNDS = 20


@pytest.fixture
def fast_thread_switches() -> Iterator[None]:
    """Switch threads at nearly every instruction, which provokes races."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def call_in_thread(end: Callable[[], Any]) -> threading.Thread:
    """Call a function in another thread, which has already started."""
    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    return thread


# ----------------------------------------------------------------------------------------------------------------- wait


def test_wait_for_done_futures() -> None:
    futures = [with_value(), with_exception(OSError()), cancelled()]
    done, not_done = wait(futures, timeout=10)
    assert (done, not_done) == (set(futures), set())


def test_wait_all_completed() -> None:
    futures = [pending() for _ in range(3)]

    def end() -> None:
        end_with_value(futures[2])
        end_cancelled(futures[0])
        end_with_exception(futures[1], OSError())

    call_in_thread(end)
    assert wait(futures, timeout=20, return_when=ALL_COMPLETED) == (set(futures), set())


def test_wait_first_completed() -> None:
    first, other = pending(), pending()
    call_in_thread(lambda: end_with_value(first))
    done, not_done = wait([first, other, running()], timeout=20, return_when=FIRST_COMPLETED)
    assert done == {first} and other in not_done


def test_wait_first_completed_with_a_done_future() -> None:
    over, other = cancelled(), pending()
    assert wait([over, other], timeout=20, return_when=FIRST_COMPLETED) == ({over}, {other})


def test_wait_first_exception() -> None:
    good, bad, other = pending(), pending(), pending()

    def end() -> None:
        end_with_value(good)
        end_with_exception(bad, ValueError())

    call_in_thread(end)
    assert wait([good, bad, other], timeout=20, return_when=FIRST_EXCEPTION) == ({good, bad}, {other})


def test_wait_first_exception_with_a_failed_future() -> None:
    bad, other = with_exception(ValueError()), pending()
    assert wait([bad, other], timeout=20, return_when=FIRST_EXCEPTION) == ({bad}, {other})


def test_wait_first_exception_when_none_raises() -> None:
    futures = [pending(), cancelled()]
    call_in_thread(lambda: end_with_value(futures[0]))
    assert wait(futures, timeout=20, return_when=FIRST_EXCEPTION) == (set(futures), set())


def test_wait_that_times_out() -> None:
    over, other = with_value(), pending()
    assert wait([over, other], timeout=0.01) == ({over}, {other})
    assert wait([], timeout=0) == (set(), set())


def test_wait_with_futures_of_another_executor() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        ours, theirs = pending(), executor.submit(int, "7")
        call_in_thread(lambda: end_with_value(ours))
        done, _ = wait([ours, theirs], timeout=20)
        assert done == {ours, theirs}


# --------------------------------------------------------------------------------------------------------- as_completed


BOTH = pytest.mark.parametrize("as_completed", [as_completed, client_wait.as_completed])
"""The function of the standard library, and the client's own."""


@BOTH
def test_as_completed_yields_each_future_once(as_completed: Any) -> None:
    over, first, second = with_value(), pending(), pending()

    def end() -> None:
        end_with_exception(first, OSError())
        end_cancelled(second)

    iterator = as_completed([over, first, second, over], timeout=20)
    assert next(iterator) is over
    call_in_thread(end)
    rest = list(iterator)
    assert set(rest) == {first, second} and len(rest) == 2


@BOTH
def test_as_completed_times_out(as_completed: Any) -> None:
    over = with_value()
    iterator = as_completed([over, pending()], timeout=0.01)
    assert next(iterator) is over
    with pytest.raises(concurrent.futures.TimeoutError, match=r"1 \(of 2\) futures unfinished"):
        next(iterator)


def test_as_completed_leaves_nothing_in_the_futures() -> None:
    over, other = with_value(), pending()
    iterator = client_wait.as_completed([over, other], None)
    assert next(iterator) is over
    assert other._watchers
    iterator.close()  # type: ignore[attr-defined]
    assert not other._watchers


# -------------------------------------------------------------------------------------------------------------- asyncio


def test_await() -> None:
    async def main() -> list[Any]:
        futures = [pending() for _ in range(3)]
        call_in_thread(lambda: [end_with_value(future, number) for number, future in enumerate(futures)])
        return [await futures[0], *await asyncio.gather(*map(asyncio.wrap_future, futures[1:]))]

    assert asyncio.run(main()) == [0, 1, 2]


def test_await_of_done_futures() -> None:
    async def main() -> None:
        assert await with_value(5) == 5
        with pytest.raises(ZeroDivisionError):
            await with_exception(ZeroDivisionError())
        with pytest.raises(asyncio.CancelledError):
            await cancelled()

    asyncio.run(main())


class OwnStop(StopIteration):
    """asyncio refuses only StopIteration itself. It takes the value of this one for a result."""


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("kind", [StopIteration, OwnStop])
def test_await_of_a_task_that_raises_stop_iteration(kind: type[StopIteration], is_done: bool) -> None:
    async def main() -> None:
        for wait_for in (lambda future: future, asyncio.wrap_future):
            future = pending()
            if is_done:
                end_with_exception(future, kind(5))
            awaited = asyncio.ensure_future(_result_of(wait_for(future)))
            await asyncio.sleep(0)
            if not is_done:
                end_with_exception(future, kind(5))
            with pytest.raises(RuntimeError, match=f"the task raised {kind.__name__}") as caught:
                await asyncio.wait_for(awaited, 20)
            assert type(caught.value.__cause__) is kind and caught.value.__cause__.value == 5
            assert type(future.exception()) is kind

    asyncio.run(main())


async def _result_of(awaitable: Any) -> Any:
    return await awaitable


def test_a_timeout_of_asyncio_cancels_the_task() -> None:
    async def main() -> Any:
        future = pending()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(future), 0.01)
        return future

    assert asyncio.run(main()).cancelled()


def test_a_refused_cancel_leaves_the_task_running() -> None:
    async def main() -> None:
        future = pending(FakeIoThread(grants_cancel=False))
        wrapped = asyncio.wrap_future(future)
        wrapped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wrapped
        end_with_value(future, 3)
        assert future.result(0) == 3

    asyncio.run(main())


# ---------------------------------------------------------------------------------------------------------------- races


def run_rounds(one_round: Callable[[], None]) -> None:
    """Run many rounds; a slow machine runs at least a few."""
    deadline = time.monotonic() + HAMMER_SECONDS
    for number in range(ROUNDS):
        one_round()
        if number >= FEWEST_ROUNDS and time.monotonic() > deadline:
            return


class Finisher:
    """A thread that finishes futures one by one, as the I/O thread does."""

    def __init__(self) -> None:
        self._work: list[Any] = []
        self._given = threading.Semaphore(0)
        self._thread = call_in_thread(self._run)

    def end(self, futures: list[Any], how: Callable[[Any], None] = end_with_value) -> None:
        self._work.append((futures, how))
        self._given.release()

    def close(self) -> None:
        self.end([])
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._given.acquire()
            futures, how = self._work.pop(0)
            if not futures:
                return
            for future in futures:
                how(future)


@pytest.fixture
def finisher() -> Iterator[Finisher]:
    finisher = Finisher()
    yield finisher
    finisher.close()


@pytest.mark.usefixtures("fast_thread_switches")
@pytest.mark.parametrize("how", [end_with_value, end_cancelled, lambda future: future.fail(0, OSError())])
def test_wait_races_with_finishing(finisher: Finisher, how: Callable[[Any], None]) -> None:
    def one_round() -> None:
        futures = [pending() for _ in range(8)]
        finisher.end(futures, how)
        done, not_done = wait(futures, timeout=10)
        assert (len(done), len(not_done)) == (8, 0)

    run_rounds(one_round)


@pytest.mark.usefixtures("fast_thread_switches")
@BOTH
def test_as_completed_races_with_finishing(finisher: Finisher, as_completed: Any) -> None:
    def one_round() -> None:
        futures = [pending() for _ in range(8)]
        finisher.end(futures)
        yielded = list(as_completed(futures, timeout=10))
        assert len(yielded) == 8 and set(yielded) == set(futures)

    run_rounds(one_round)


@pytest.mark.usefixtures("fast_thread_switches")
def test_result_races_with_finishing(finisher: Finisher) -> None:
    def one_round() -> None:
        future = pending()
        finisher.end([future])
        assert future.result(10) == 42

    run_rounds(one_round)


@pytest.mark.usefixtures("fast_thread_switches")
def test_callbacks_race_with_finishing(finisher: Finisher) -> None:
    def one_round() -> None:
        future = pending()
        called: list[int] = []
        both = threading.Semaphore(0)

        def note(number: int) -> None:
            called.append(number)
            both.release()

        finisher.end([future])
        future.add_done_callback(lambda _: note(1))
        future.add_done_callback(lambda _: note(2))
        assert both.acquire(timeout=10) and both.acquire(timeout=10)
        assert sorted(called) == [1, 2] and not both.acquire(blocking=False)

    run_rounds(one_round)


@pytest.mark.usefixtures("fast_thread_switches")
def test_several_ways_of_waiting_race_with_finishing(finisher: Finisher) -> None:
    def one_round() -> None:
        futures = [pending() for _ in range(6)]
        ways: list[Callable[[], int]] = [
            lambda: len(wait(futures, timeout=10).done),
            lambda: len(list(as_completed(futures, timeout=10))),
            lambda: len(list(client_wait.as_completed(futures, timeout=10))),
            lambda: len([future.result(10) for future in reversed(futures)]),
            lambda: len(wait(futures, timeout=10, return_when=FIRST_EXCEPTION).done),
        ]

        def run(number: int) -> int:
            if number == len(ways):
                finisher.end(futures)
                return 6
            return ways[number]()

        assert in_threads(len(ways) + 1, run) == [6] * 6

    run_rounds(one_round)


@pytest.mark.usefixtures("fast_thread_switches")
def test_a_waiter_that_times_out_beside_other_waiters(finisher: Finisher) -> None:
    def one_round() -> None:
        future = pending()

        def run(number: int) -> Any:
            if number == 0:
                finisher.end([future])
            try:
                return future.result(0 if number % 2 else 10)
            except concurrent.futures.TimeoutError:
                return "gave up"

        assert set(in_threads(6, run)) <= {42, "gave up"}

    run_rounds(one_round)
