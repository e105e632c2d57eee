"""`client.executor()` behaves like the standard library's executors; most tests run one of those too."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import operator
import pickle
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from typing import Any

import pytest
from tests.client.gates import gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import wait_until

from scaler_client import Client, ClientClosedError, ClusterExecutor, SchedulerLostError, TaskFuture

SECONDS = 20.0


@pytest.fixture(params=["standard", "cluster"])
def executor(request: pytest.FixtureRequest, running_client: Client) -> Iterator[Executor]:
    """An executor with two workers."""
    instance = ThreadPoolExecutor(2) if request.param == "standard" else running_client.executor()
    yield instance
    gates.close_down()
    instance.shutdown(cancel_futures=True)


def keywords(**given: Any) -> dict[str, Any]:
    return given


def divide_by(x: int) -> float:
    return 10 / x


# --------------------------------------------------------------------------------------------------------------- submit


def test_submit(executor: Executor) -> None:
    future = executor.submit(pow, 2, 5)
    assert isinstance(future, concurrent.futures.Future)
    assert future.result(SECONDS) == 32


def test_all_keywords_go_to_the_function(executor: Executor) -> None:
    given = {"fn": 1, "self": 2, "profiling": 3, "args": 4}
    assert executor.submit(keywords, **given).result(SECONDS) == given


def test_a_function_that_is_not_callable_raises(running_client: Client) -> None:
    with pytest.raises(TypeError, match="not callable"):
        running_client.executor().submit(3)  # type: ignore[arg-type]


def test_pickling_an_executor_raises(running_client: Client) -> None:
    executor = running_client.executor()
    executor.submit(abs, 1).result(SECONDS)
    with pytest.raises(TypeError, match="^an executor can't be pickled: pass its client"):
        pickle.dumps(executor)


def test_options_of_a_view_apply(running: RunningScheduler, running_client: Client) -> None:
    with running_client.options(priority=4).executor() as executor:
        assert list(executor.map(abs, [-1, -2])) == [1, 2]
    assert {batch["priority"] for batch in running.options} == {4}


def test_in_an_event_loop(executor: Executor) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(executor, operator.neg, i) for i in range(20))))

    assert asyncio.run(main()) == [-i for i in range(20)]


def test_stop_iteration_in_an_event_loop(running_client: Client) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="the task raised StopIteration"):
            await loop.run_in_executor(running_client.executor(), next, iter([]))

    asyncio.run(asyncio.wait_for(main(), SECONDS))


# ------------------------------------------------------------------------------------------------------------------ map


@pytest.mark.parametrize("chunksize", [1, 3, 100])
@pytest.mark.parametrize("iterables", [[range(10)], [range(7), range(5)], [[]], [iter("ab"), "xyz", (1, 2, 3)]])
def test_map_equals_the_builtin_map(running_client: Client, iterables: Any, chunksize: int) -> None:
    kept = [list(each) for each in iterables]
    expected = list(map(lambda *given: given, *kept))
    assert list(running_client.executor().map(lambda *given: given, *kept, chunksize=chunksize)) == expected


def test_a_chunk_size_is_the_number_of_calls_of_a_row(running: RunningScheduler, running_client: Client) -> None:
    assert sum(running_client.executor().map(abs, range(100), chunksize=10)) == sum(range(100))
    assert {options["calls"] for options in running.options} == {10} and running.names == ["abs"] * 10


def test_map_submits_eagerly_and_yields_lazily(executor: Executor) -> None:
    results = executor.map(wait_at_gate, ["a", "b", "c"])
    wait_until(lambda: sorted(gates.passed) == ["a", "b"])
    gates.open("a")
    assert next(results) == "a"
    wait_until(lambda: "c" in gates.passed)
    gates.open("c", "b")
    assert list(results) == ["b", "c"]


class Large:
    def __init__(self, number: int) -> None:
        self.number = number


def is_empty(kept: weakref.WeakSet[Large]) -> bool:
    gc.collect()
    return not kept


def test_map_does_not_keep_results_that_were_read(executor: Executor) -> None:
    for result in executor.map(Large, [1, 2]):
        kept = weakref.WeakSet([result])
        del result
        wait_until(functools.partial(is_empty, kept), what="the result is freed")


def test_map_with_a_timeout(running: RunningScheduler, executor: Executor) -> None:
    gates.open("open")
    results = executor.map(wait_at_gate, ["open", "shut", "never", "ever"], timeout=1)
    assert next(results) == "open"
    wait_until(lambda: len(running.names) in (0, 4))
    with pytest.raises(concurrent.futures.TimeoutError):
        next(results)
    assert list(results) == []
    wait_until(lambda: not running.waiting_tasks, what="the other is cancelled")
    gates.open("shut", "never")
    assert executor.submit(wait_at_gate, "open").result(SECONDS) == "open"
    assert "ever" not in gates.passed, "what had not begun is cancelled"


def test_a_result_that_has_arrived_is_in_time(running_client: Client) -> None:
    executor = running_client.executor()
    results = executor.map(abs, [-1], timeout=0)
    executor.shutdown()
    assert list(results) == [1]


def test_map_raises_in_the_place_of_the_failed_call(executor: Executor) -> None:
    results = executor.map(divide_by, [5, 0, 2])
    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


def test_closing_the_iterator_cancels_waiting_calls(running: RunningScheduler, executor: Executor) -> None:
    results = executor.map(wait_at_gate, range(10))
    wait_until(lambda: sorted(gates.passed) == [0, 1])
    gates.open(0, 1, 2)
    assert next(results) == 0
    wait_until(lambda: len(gates.passed) == 5 and len(running.names) in (0, 10))
    results.close()  # type: ignore[attr-defined]
    wait_until(lambda: not running.waiting_tasks, what="the others are cancelled")
    gates.open(*range(10))
    executor.submit(abs, 1).result(SECONDS)
    assert len(gates.passed) == 5


def waits_for_dropped(executor: Executor, numbers: list[int], chunksize: int) -> None:
    """Map without keeping the iterator."""
    executor.map(wait_at_gate, numbers, chunksize=chunksize)


@pytest.mark.parametrize("chunksize", [1, 3])
def test_calls_run_if_nobody_reads_the_results(executor: Executor, chunksize: int) -> None:
    gates.open(*range(50))
    with executor:
        waits_for_dropped(executor, list(range(50)), chunksize)
        gc.collect()
    assert sorted(gates.passed) == list(range(50))


@pytest.mark.parametrize("chunksize", [1, 3])
def test_calls_run_if_one_fails_whose_result_nobody_reads(executor: Executor, chunksize: int) -> None:
    def wait_unless_seven(number: int) -> None:
        if number == 7:
            raise KeyError(number)
        wait_at_gate(number)

    gates.open(*range(50))
    with executor:
        results = executor.map(wait_unless_seven, range(50), chunksize=chunksize)
        executor.shutdown()
    assert sorted(gates.passed) == [number for number in range(50) if number != 7]
    for _ in range(7):
        next(results)
    with pytest.raises(KeyError):
        next(results)


def test_a_buffer_runs_if_nobody_reads_the_results(running: RunningScheduler, running_client: Client) -> None:
    gates.open(*range(10))
    with running_client.executor() as executor:
        executor.map(wait_at_gate, range(10), buffersize=4)
        gc.collect()
    assert sorted(gates.passed) == [0, 1, 2, 3]
    assert not running.waiting_tasks


def test_a_map_that_shutdown_has_cut_is_not_taken_for_a_whole_one(running_client: Client) -> None:
    executor = running_client.executor()
    gates.open(*range(10))
    results = executor.map(wait_at_gate, range(10), buffersize=4)
    assert next(results) == 0
    wait_until(lambda: len(gates.passed) >= 4)
    executor.shutdown(cancel_futures=True)
    with pytest.raises(concurrent.futures.CancelledError):
        list(results)


def test_buffersize_limits_the_submitted_tasks(running: RunningScheduler, running_client: Client) -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(6):
            taken.append(number)
            yield number

    results = running_client.executor().map(abs, numbers(), buffersize=2)
    assert taken == [0, 1]
    assert next(results) == 0 and taken == [0, 1, 2]
    assert list(results) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"chunksize": 0}, ValueError),
        ({"chunksize": -1}, ValueError),
        ({"chunksize": 1.5}, TypeError),
        ({"buffersize": 0}, ValueError),
        ({"timeout": "1"}, TypeError),
    ],
)
def test_bad_arguments_of_map(running_client: Client, arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        running_client.executor().map(abs, [1], **arguments)


# ------------------------------------------------------------------------------------------------------------- shutdown


def test_submit_after_shutdown_raises(executor: Executor) -> None:
    executor.shutdown()
    executor.shutdown(wait=False)
    uses: list[Callable[[], object]] = [lambda: executor.submit(abs, 1), lambda: executor.map(abs, [1])]
    for use in uses:
        with pytest.raises(RuntimeError, match="after shutdown"):
            use()


def test_shutdown_leaves_the_client_connected(running_client: Client) -> None:
    executor = running_client.executor()
    with executor:
        future = executor.submit(abs, -3)
    assert future.done() and "shut down" in repr(executor)
    assert running_client.submit(abs, -4).result(SECONDS) == 4
    assert running_client.executor().submit(abs, -5).result(SECONDS) == 5


def test_shutdown_waits(executor: Executor) -> None:
    future = executor.submit(wait_at_gate, "slow")
    future.add_done_callback(lambda _: gates.passed.append("done"))
    executor.shutdown(wait=False)
    assert not future.done()
    gates.open("slow")
    executor.shutdown()
    assert future.done()


def test_shutdown_can_cancel_waiting_calls(executor: Executor) -> None:
    futures = [executor.submit(wait_at_gate, key) for key in range(5)]
    wait_until(lambda: sorted(gates.passed) == [0, 1])
    executor.shutdown(wait=False, cancel_futures=True)
    wait_until(lambda: all(future.cancelled() for future in futures[2:]))
    gates.open(0, 1)
    executor.shutdown()
    assert [future.result() for future in futures[:2]] == [0, 1]


def test_shutdown_waits_for_futures_without_references(running_client: Client) -> None:
    with running_client.executor() as executor:
        executor.submit(wait_at_gate, "no reference")
        wait_until(lambda: gates.passed == ["no reference"])
        gates.open("no reference")
        ended = executor.submit(abs, 1)
    assert ended.done()


def test_done_futures_are_not_kept(running_client: Client) -> None:
    executor = running_client.executor()
    executor.submit(abs, 1).result(SECONDS)
    wait_until(lambda: not executor._futures)


# ------------------------------------------------------------------------------------------------------------- breaking


def test_an_executor_of_a_disconnected_client_raises(running_client: Client) -> None:
    executor = running_client.executor()
    future = executor.submit(wait_at_gate, "never")
    running_client.disconnect()
    with pytest.raises(ClientClosedError, match="disconnected") as raised:
        executor.submit(abs, 1)
    assert isinstance(raised.value, RuntimeError)
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()


def test_a_lost_scheduler_breaks_the_executor(running: RunningScheduler) -> None:
    with Client(running.address, timeout_seconds=0.5, heartbeat_interval_seconds=0.1) as client:
        executor = client.executor()
        future = executor.submit(wait_at_gate, "never")
        wait_until(lambda: gates.passed)
        running.close()
        for use in (lambda: future.result(SECONDS), lambda: executor.submit(abs, 1)):
            with pytest.raises(BrokenExecutor, match="no scheduler at") as raised:
                use()
            assert isinstance(raised.value, SchedulerLostError)
        executor.shutdown()
        again = RunningScheduler(running.address, incarnation=6)
        try:
            assert client.executor().submit(abs, -1).result(SECONDS) == 1
        finally:
            client.disconnect()
            again.close()


def test_it_is_a_standard_executor(running_client: Client) -> None:
    executor = running_client.executor()
    assert isinstance(executor, Executor) and isinstance(executor, ClusterExecutor)
    assert isinstance(executor.submit(functools.partial(pow, 2), 3), TaskFuture)
    assert running_client.address in repr(executor)
