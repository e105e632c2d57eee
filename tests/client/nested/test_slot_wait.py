"""Each way of waiting inside a task gives up its slot, if and only if the wait blocks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from typing import Any

import pytest
from tests.client.nested.stand_ins import PATIENCE_SECONDS, FakeHost, FakeTask, NestedIoThread, hosted
from tests.client.stand_ins import FakeIoThread, end_with_exception, end_with_value, in_threads, pending, with_value

from scaler_client.api.map import run_map
from scaler_client.api.map_run import MapPlan
from scaler_client.futures.future import TaskFuture
from scaler_client.nested import task_host
from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling.call_rows import CallBlock, pack_answer
from scaler_client.pickling.functions import Function
from scaler_client.pickling.serializer import dump_call
from scaler_client.protocol.messages import Outcome
from scaler_client.session.map_feed import MapFeed, MapFeeds
from scaler_client.session.result_sinks import SingleSink

NAME = (7, 3, 1)
ONCE = [("suspended", NAME), "suspend", "resume", ("resumed", NAME)]
"""The reports and calls of one wait, in order."""


@pytest.fixture
def task() -> Iterator[FakeTask]:
    task = FakeTask(name=NAME)
    with hosted(FakeHost(task)):
        yield task
    assert not task.is_suspended.is_set()


def child(task: FakeTask) -> TaskFuture[Any]:
    return pending(NestedIoThread(task))


WAYS: dict[str, Callable[[TaskFuture[Any]], Any]] = {
    "result": lambda future: future.result(),
    "result with a timeout": lambda future: future.result(PATIENCE_SECONDS),
    "exception": lambda future: future.exception(),
    "wait": lambda future: wait([future]),
    "wait for the first": lambda future: wait([future, pending()], return_when=FIRST_COMPLETED),
    "wait beside others": lambda future: wait([concurrent.futures.Future(), future], return_when=FIRST_COMPLETED),
    "as_completed": lambda future: list(as_completed([future, with_value(3)])),
    "await": lambda future: asyncio.run(awaited(future)),
}


async def awaited(future: TaskFuture[Any]) -> Any:
    return await future


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_waiting_gives_up_the_slot(task: FakeTask, way: str) -> None:
    future = child(task)
    task.when_suspended(lambda: end_with_value(future, 5))
    WAYS[way](future)
    assert task.calls == ONCE
    assert future.result() == 5
    assert task.calls == ONCE


@pytest.mark.parametrize("way", WAYS)
def test_a_done_future_does_not_give_up_the_slot(task: FakeTask, way: str) -> None:
    future = child(task)
    end_with_value(future, 5)
    WAYS[way](future)
    assert task.calls == []


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_of_zero_does_not_give_up_the_slot(task: FakeTask, timeout: float) -> None:
    with pytest.raises(concurrent.futures.TimeoutError):
        child(task).result(timeout)
    assert wait([child(task)], timeout=timeout).done == set()
    assert task.calls == []


def test_a_wait_that_times_out(task: FakeTask) -> None:
    with pytest.raises(concurrent.futures.TimeoutError):
        child(task).result(0.001)
    assert wait([child(task)], timeout=0.001).done == set()
    assert task.calls == ONCE * 2


def test_a_task_that_raised(task: FakeTask) -> None:
    future = child(task)
    task.when_suspended(lambda: end_with_exception(future, ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        future.result()
    assert task.calls == ONCE


def test_a_child_that_is_cancelled_during_the_wait(task: FakeTask) -> None:
    future = child(task)
    task.when_suspended(future.cancel)
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert task.calls == ONCE


@pytest.mark.parametrize("way", ["result", "exception", "wait", "wait for the first", "as_completed", "await"])
def test_a_task_that_is_stopped_during_the_wait(task: FakeTask, way: str) -> None:
    future = child(task)
    task.when_suspended(task.stop)
    with pytest.raises(TaskStoppedError):
        WAYS[way](future)
    assert task.calls == ONCE


def test_a_suspend_that_raises(task: FakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> None:
        raise TaskStoppedError("just now")

    monkeypatch.setattr(task, "suspend", stopped)
    for way in ("result", "await"):
        with pytest.raises(TaskStoppedError):
            WAYS[way](child(task))
    assert task.calls == [("suspended", NAME), ("resumed", NAME)] * 2


def test_threads_started_by_a_task_do_not_give_up_its_slot(task: FakeTask) -> None:
    future = child(task)

    def run(number: int) -> Any:
        if number == 0:
            end_with_value(future, 5)
        wait([future])
        return future.result()

    assert in_threads(4, run) == [5] * 4
    assert task.calls == []


def test_futures_of_another_scheduler_do_not_give_up_the_slot(task: FakeTask) -> None:
    future = pending(FakeIoThread())
    threading.Thread(target=end_with_value, args=(future, 5), daemon=True).start()
    wait([future])
    assert future.result() == 5 and task.calls == []


def test_standard_waiters_are_unchanged_outside_workers() -> None:
    assert task_host.host is None
    assert type(pending()._waiters) is list


# ---------------------------------------------------------------------------------------------------------------- await


def test_many_awaits_give_up_the_slot_once(task: FakeTask) -> None:
    futures = [child(task) for _ in range(3)]

    async def main() -> list[int]:
        return list(await asyncio.gather(*futures))

    task.when_suspended(lambda: [end_with_value(future, number) for number, future in enumerate(futures)])
    assert asyncio.run(main()) == [0, 1, 2]
    assert task.calls == ONCE


def test_the_slot_is_taken_when_the_last_await_ends(task: FakeTask) -> None:
    first, second = child(task), child(task)

    async def main() -> None:
        other = asyncio.ensure_future(awaited(second))
        await first
        assert task.is_suspended.is_set(), "the other one waits still"
        end_with_value(second, 2)
        assert await other == 2
        assert not task.is_suspended.is_set()
        third = child(task)
        task.when_suspended(lambda: end_with_value(third, 3))
        assert await third == 3

    task.when_suspended(lambda: end_with_value(first, 1))
    asyncio.run(main())
    assert task.calls == ONCE * 2


def test_a_cancelled_await(task: FakeTask) -> None:
    future = child(task)

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(awaited(future), 0.001)

    asyncio.run(main())
    assert future.cancelled() and task.calls == ONCE


def test_a_blocking_wait_while_an_await_is_open(task: FakeTask) -> None:
    awaited_one, blocking = child(task), child(task)

    async def main() -> int:
        other = asyncio.ensure_future(awaited(awaited_one))
        await asyncio.sleep(0)
        result = blocking.result() + (await other)
        assert isinstance(result, int)
        return result

    def end() -> None:
        end_with_value(blocking, 1)
        end_with_value(awaited_one, 2)

    task.when_suspended(end)
    assert asyncio.run(main()) == 3
    assert task.calls == ONCE


@pytest.mark.parametrize("way", ["result", "wait", "as_completed"])
def test_a_blocking_wait_of_a_stopped_task_while_an_await_is_open(task: FakeTask, way: str) -> None:
    future = child(task)

    async def main() -> None:
        other = asyncio.ensure_future(awaited(future))
        await asyncio.sleep(0)
        task.stop()
        with pytest.raises(TaskStoppedError):
            WAYS[way](child(task))
        end_with_value(future, 1)
        with pytest.raises(TaskStoppedError):
            await other

    asyncio.run(main())
    assert task.calls == ONCE


def test_a_coroutine_that_another_thread_closes(task: FakeTask) -> None:
    task.name = name = (7, 4, 1)
    future = child(task)
    loop = asyncio.new_event_loop()
    unfinished = [awaited(future)]

    async def begin() -> None:
        unfinished[0].send(None)

    loop.run_until_complete(begin())
    thread = threading.Thread(target=lambda: (unfinished.clear(), gc.collect()))
    thread.start()
    thread.join()
    loop.close()
    assert task.calls == [("suspended", name), "suspend"]
    task.when_suspended(lambda: end_with_value(future, 4))
    assert future.result() == 4, "the task is suspended, and stays so"
    task.is_suspended.clear()


# ------------------------------------------------------------------------------------------------------------------ map


class MapIoThread(NestedIoThread):
    """An I/O thread that keeps the rows of a map for the test."""

    def __init__(self, task: FakeTask) -> None:
        super().__init__(task)
        self.feeds = MapFeeds()
        self.rows: list[SingleSink] = []
        self.cancelled = 0

    def submit_calls(self, feed: MapFeed, blocks: list[CallBlock], is_last: bool) -> None:
        feed.add(self, blocks, is_last)

    def submit_with_options(self, sink: SingleSink, _function: Function, _payload: Any) -> int:
        self.rows.append(sink)
        return len(self.rows)

    def cancel_many(self, ids: Callable[[], Any], force: bool = False) -> None:
        self.cancelled += len(ids())


def plan() -> MapPlan[int]:
    return MapPlan(Function(1, "f", b""), dump_call, [(1,), (2,)], None, None)


def test_map_gives_up_the_slot(task: FakeTask) -> None:
    io_thread = MapIoThread(task)

    def answer() -> None:
        for number, row in enumerate(list(io_thread.rows)):
            row.resolve(number, Outcome.VALUE, pack_answer([number * 2], None, 1000))

    task.when_suspended(answer)
    assert run_map(io_thread, plan()) == [0, 2]  # type: ignore[arg-type]
    assert task.calls == ONCE


def test_a_stopped_task_cancels_the_tasks_of_its_map(task: FakeTask) -> None:
    io_thread = MapIoThread(task)
    task.when_suspended(task.stop)
    with pytest.raises(TaskStoppedError):
        run_map(io_thread, plan())  # type: ignore[arg-type]
    assert io_thread.cancelled == 2 and task.calls == ONCE


def test_a_forked_child_runs_no_task(task: FakeTask) -> None:
    child_process = os.fork()
    if not child_process:
        os._exit(0 if task_host.host is None else 1)
    assert os.waitpid(child_process, 0)[1] == 0
    assert task_host.host is not None
