"""Further ways to wait inside a task, beside `result` and `map`: each gives up the slot once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.gates import gates, wait_at_gate
from tests.client.nested.stand_ins import FakeHost, FakeTask, hosted
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client
from scaler_client.io import nested_connections

KEYS = ("a", "b", "c")
ONCE = ["suspend", "resume"]


@pytest.fixture
def task(running: RunningScheduler) -> Iterator[FakeTask]:
    """A task that this thread runs as a worker of the scheduler. Gates open when it gives up its slot."""
    task = FakeTask(depth=3, name=(7, 3, 1))
    with hosted(FakeHost(task, running.address, 44)):
        task.when_suspended(lambda: gates.open(*KEYS))
        yield task
    for connection in set(nested_connections._connections.values()):
        connection.io_thread.close("the test is over")
    nested_connections._connections.clear()


def with_executor(client: Client) -> object:
    with client.executor() as executor:
        futures = [executor.submit(wait_at_gate, key) for key in KEYS]
    assert all(future.done() for future in futures)
    return [future.result() for future in futures]


def with_wait(client: Client) -> object:
    done, others = client.wait([client.submit(wait_at_gate, key) for key in KEYS])
    assert not others
    return sorted(future.result() for future in done)


def with_progress(client: Client) -> object:
    return client.map(wait_at_gate, [(key,) for key in KEYS], progress=True)


WAYS: dict[str, Callable[[Client], object]] = {
    "gather": lambda client: client.gather([client.submit(wait_at_gate, key) for key in KEYS]),
    "wait": with_wait,
    "executor": with_executor,
    "a map with a bar": with_progress,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_wait_gives_up_the_slot_once(task: FakeTask, way: str) -> None:
    assert WAYS[way](Client()) == list(KEYS)
    assert task.calls[:2] == ONCE and task.calls == ONCE * (len(task.calls) // 2)


async def by_await(client: AsyncClient) -> list[Any]:
    return [await client.submit(wait_at_gate, key) for key in KEYS]


async def by_as_completed(client: AsyncClient) -> list[Any]:
    return sorted(
        [await future async for future in client.as_completed([client.submit(wait_at_gate, key) for key in KEYS])]
    )


ASYNC_WAYS: dict[str, Callable[[AsyncClient], Any]] = {
    "await": by_await,
    "gather": lambda client: client.gather([client.submit(wait_at_gate, key) for key in KEYS]),
    "map": lambda client: client.map(wait_at_gate, [(key,) for key in KEYS]),
    "as_completed": by_as_completed,
}


@pytest.mark.parametrize("way", ASYNC_WAYS)
def test_each_way_to_wait_in_an_event_loop(running: RunningScheduler, task: FakeTask, way: str) -> None:
    async def main() -> object:
        async with AsyncClient() as client:
            return await ASYNC_WAYS[way](client)

    assert asyncio.run(main()) == list(KEYS)
    assert task.calls[:2] == ONCE and task.calls == ONCE * (len(task.calls) // 2)
    assert {batch["depth"] for batch in running.options} == {4}


def test_clear_cancels_only_the_children_of_the_task(running: RunningScheduler, task: FakeTask) -> None:
    client = Client()
    children = [client.submit(wait_at_gate, f"child {number}") for number in range(3)]
    wait_until(lambda: len(gates.passed) == 2)
    task.name = (7, 4, 1)
    other = client.submit(wait_at_gate, "a")
    client.clear()
    assert other.cancelled() and not any(child.done() for child in children)
    task.name = (7, 3, 1)
    client.clear()
    assert [child.cancelled() for child in children] == [False, False, True]
