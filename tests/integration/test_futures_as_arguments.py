"""Futures among the arguments of calls, with real processes."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import pytest
from tests.integration.commands import cluster
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client, SchedulerClusterCombo, named

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=2) as combo:
        yield combo


@pytest.fixture
def client(combo: SchedulerClusterCombo) -> Iterator[Client]:
    with Client(combo.address, timeout_seconds=SECONDS) as client:
        yield client


@dataclasses.dataclass
class Trade:
    price: Any
    parts: list[Any]


def add(*numbers: int) -> int:
    return sum(numbers)


def same(value: Any) -> Any:
    return value


def fail(_: Any = None) -> NoReturn:
    raise KeyError("no such trade")


def wait_for(path: str, value: Any) -> Any:
    """Return the value when the file is there."""
    while not Path(path).exists():
        threading.Event().wait(0.005)
    return value


def test_at_any_depth_open_and_done(client: Client, tmp_path: Path) -> None:
    done = client.submit(add, 1, 2)
    assert done.result(SECONDS) == 3
    unread = client.submit(add, 2, 2)
    client.wait([unread], SECONDS)
    there = str(tmp_path / "there")
    later = client.submit(wait_for, there, 5)
    nested = client.submit(same, [done, {"k": (later, {unread})}, Trade(later, [done, 7])])
    Path(there).touch()
    assert nested.result(SECONDS) == [3, {"k": (5, {4})}, Trade(5, [3, 7])]
    assert client.submit(add, later, done, unread).result(SECONDS) == 12


def test_in_every_way_to_submit(client: Client) -> None:
    one, two = client.submit(add, 1), client.submit(add, 2)
    assert client.map(add, [(one, each) for each in (1, two, 3)]) == [2, 3, 4]
    assert list(client.imap(add, [(one, two), (two, two)])) == [3, 4]
    assert list(client.executor().map(add, [one, 5], [two, one])) == [3, 6]
    assert client.options(priority=3, name="named").submit(add, one, y := two).result(SECONDS) == 3 and y is two
    graph = {"a": (add, one, "b"), "b": (add, two, 1), "c": [one, {"k": two}], "d": one}
    assert client.get(graph, ["a", "c", "d"]) == {"a": 4, "c": [1, {"k": 2}], "d": 1}
    target = client.submit_graph({"x": (add, 4, 5), "y": (add, "x", 1)}, ["x", "y"])
    assert client.submit(add, *target).result(SECONDS) == 19


def test_chains_and_trees(client: Client) -> None:
    last = client.submit(add, 0)
    for _ in range(300):
        last = client.submit(add, last, 1)
    level = [client.submit(same, each) for each in range(128)]
    while len(level) > 1:
        level = [client.submit(add, one, two) for one, two in zip(level[::2], level[1::2])]
    assert (last.result(SECONDS), level[0].result(SECONDS)) == (300, sum(range(128)))


def test_readers_fail_and_are_cancelled_with_their_inputs(client: Client, tmp_path: Path) -> None:
    origin = client.submit(fail)
    readers = [client.submit(add, origin, 1)]
    readers.append(client.submit(add, readers[0]))
    assert origin.exception(SECONDS) is not None
    readers.append(client.submit(add, origin))
    for reader in readers:
        error = reader.exception(SECONDS)
        assert isinstance(error, KeyError) and error.args == ("no such trade",)
        assert f"fail#{origin.task_id}, an input of add#{reader.task_id}" in str(error.__cause__)
    for read in (
        lambda: client.map(add, [(1,), (origin,)]),
        lambda: list(client.options(keep=True).imap(add, [(1,), (origin,)])),
        lambda: list(client.executor().map(add, [origin])),
        lambda: client.get({"a": (add, origin, 1), "b": (add, "a")}, ["b"]),
        lambda: client.submit_gang(add, origin, size=2).result(SECONDS),
    ):
        with pytest.raises(KeyError) as raised:
            read()
        assert f"fail#{origin.task_id}, an input of " in str(raised.value.__cause__)
    there = str(tmp_path / "there")
    busy = [client.submit(wait_for, there, 0) for _ in range(2)]
    wait_until(lambda: all(each.running() for each in busy), what="running tasks")  # a task that is read goes first
    waiting = client.submit(add, 1)
    follower, other = client.submit(add, waiting), client.submit(add, waiting, 5)
    assert follower.cancel() and not waiting.done()
    assert waiting.cancel()
    Path(there).touch()
    assert client.gather(busy) == [0, 0]
    with pytest.raises(CancelledError) as cancelled:
        other.result(SECONDS)
    assert f"task add#{waiting.task_id}, an input of add#{other.task_id}" in str(cancelled.value.__cause__)


def test_a_reader_names_its_input_that_was_stopped(client: Client) -> None:
    waiting = client.submit(wait_for, "/nowhere", 0)
    readers = [client.submit(add, waiting, 5), client.submit(sum, [waiting])]
    wait_until(waiting.running, what="the task runs")
    waiting.cancel(force=True)
    for reader in readers:
        with pytest.raises(CancelledError) as cancelled:
            reader.result(SECONDS)
        name = f"task wait_for#{waiting.task_id}, an input of {reader._task_name()}#{reader.task_id}, was cancelled"
        assert str(cancelled.value) == str(cancelled.value.__cause__) == name
        assert "in wait_for" in str(cancelled.value.__cause__.__cause__), "where it was"


def test_what_cannot_be_an_argument(client: Client, combo: SchedulerClusterCombo) -> None:
    future = client.submit(add, 1)
    with Client(combo.address) as second, pytest.raises(ValueError, match="belongs to another client"):
        second.submit(add, future)
    with pytest.raises(TypeError, match=r"a future is for the arguments of .*; elsewhere pass its result\(\)"):
        client.send_object([future])
    with pytest.raises(TypeError, match="can't be pickled: a future is for the arguments"):
        client.submit(lambda: future)
    with pytest.raises(TypeError, match=r"the result of price, a function by name, can't be an argument"):
        client.submit(add, client.submit(named("price", codec="json"), 1))


def test_a_new_scheduler_gets_the_inputs_again(tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    with (
        restarts(tmp_path) as started,
        cluster(tmp_path, started.now.address, 1, *OFTEN),
        Client(started.now.address, timeout_seconds=SECONDS) as client,
    ):
        done = client.submit(add, 1)
        assert done.result(SECONDS) == 1
        running = client.submit(wait_for, there, 10)
        reader = client.submit(add, running, done)
        last = client.submit(add, reader, done)
        started.kill()
        started.start(started.now.address)
        Path(there).touch()
        assert last.result(SECONDS) == 12


def test_futures_of_asyncio(combo: SchedulerClusterCombo) -> None:
    async def chain() -> list[int]:
        async with AsyncClient(combo.address) as client:
            one = client.submit(add, 1)
            two = client.submit(add, one, one)
            return [await client.submit(add, two, await one), *await client.map(add, [(one, two)])]

    assert asyncio.run(chain()) == [3, 3]


def parent(address: str, number: int) -> int:
    with Client(address) as client:
        child = client.submit(add, number, 1)
        return client.submit(add, child, child).result()


def failing_parent(address: str) -> str:
    with Client(address) as client:
        child = client.submit(fail)
        with pytest.raises(KeyError) as raised:
            client.map(add, [(child,)])
        return str(raised.value.__cause__)


def test_a_failed_task_of_a_task(client: Client, combo: SchedulerClusterCombo) -> None:
    assert "(task fail#0, an input of add#1)" in client.submit(failing_parent, combo.address).result(SECONDS)


def test_futures_of_a_task(client: Client, combo: SchedulerClusterCombo) -> None:
    three = client.submit(add, 1, 2)
    assert client.submit(parent, combo.address, three).result(SECONDS) == 8


def test_tasks_read_what_the_task_returned_whatever_the_program_does_with_the_value(client: Client) -> None:
    """Whether the reader is submitted before the result is read or after it, and whatever its size."""
    for size in (1, 100_000):
        task = client.submit(same, [0] * size)
        graph, literal = client.submit_graph({"a": (same, [0] * size), "b": [0] * size}, ["a", "b"])
        kept = client.options(keep=True).submit(same, [0] * size)
        for future in (task, graph, literal, kept):
            early = client.submit(sum, future)
            value = future.result(SECONDS)
            value[0] = 17
            late = client.submit(sum, future)
            assert [each.result(SECONDS) for each in (early, late)] == [0, 0], future
            assert client.map(sum, [(future,), (future,)]) == [0, 0]
            assert client.get({"s": (sum, future)}, ["s"]) == {"s": 0}
            assert future.result(SECONDS)[0] == 17  # the same object, as futures of the standard library give


def test_tasks_of_an_event_loop_read_what_the_task_returned(combo: SchedulerClusterCombo) -> None:
    async def run() -> None:
        async with AsyncClient(combo.address, timeout_seconds=SECONDS) as client:
            future = client.submit(same, [0, 0])
            (await future).append(17)
            assert await client.submit(sum, future) == 0

    asyncio.run(run())
