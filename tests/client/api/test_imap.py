"""`imap` and `imap_unordered`: iterators in and out, bounded both ways."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.gates import gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client


def divide_by(number: int) -> float:
    return 10 / number


def pairs(taken: list[int], count: int | None = None) -> Iterator[tuple[int]]:
    for number in itertools.count() if count is None else range(count):
        taken.append(number)
        yield (number,)


def test_results_come_in_order(running_client: Client) -> None:
    assert list(running_client.imap(abs, ((-n,) for n in range(5000)), buffer=300)) == list(range(5000))
    assert list(running_client.imap(abs, [])) == []


def test_an_endless_iterable_is_read_as_far_as_the_buffer(running_client: Client) -> None:
    taken: list[int] = []
    results = running_client.imap(abs, pairs(taken), buffer=8)
    assert len(taken) == 8
    for read in range(1, 60):
        assert next(results) == read - 1
        assert len(taken) <= read + 8
    results.close()  # type: ignore[attr-defined]


def test_unordered_results_come_as_they_are_there(running_client: Client) -> None:
    results = running_client.imap_unordered(wait_at_gate, [("slow",), ("a",), ("b",)])
    gates.open("a", "b")
    assert {next(results), next(results)} == {"a", "b"}
    gates.open("slow")
    assert list(results) == ["slow"]


def test_unordered_has_every_result_once(running_client: Client) -> None:
    assert sorted(running_client.imap_unordered(abs, ((n,) for n in range(5000)), buffer=100)) == list(range(5000))


@pytest.mark.parametrize("method", ["imap", "imap_unordered"])
def test_a_failed_call_ends_the_iterator(running_client: Client, method: str) -> None:
    results = getattr(running_client, method)(divide_by, [(5,), (0,), (2,)], buffer=1)
    assert next(results) == 2.0
    with pytest.raises(ZeroDivisionError) as raised:
        next(results)
    assert "of item 1 of map" in raised.value.__notes__
    assert list(results) == []


def test_results_before_a_failed_call_are_read(running_client: Client) -> None:
    results = running_client.imap(divide_by, [(number,) for number in range(500, -1, -1)])
    read = list(itertools.islice(results, 500))
    assert read == [10 / number for number in range(500, 0, -1)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_closing_the_iterator_cancels_the_rest(running: RunningScheduler, running_client: Client) -> None:
    results = running_client.imap(wait_at_gate, [(number,) for number in range(10)])
    wait_until(lambda: len(gates.passed) == 2 and len(running.names) == 10)
    results.close()  # type: ignore[attr-defined]
    wait_until(lambda: not running.waiting_tasks, what="the others are cancelled")


def test_deleting_an_asyncio_iterator_that_was_not_read_cancels_its_calls(running: RunningScheduler) -> None:
    async def body() -> None:
        async with AsyncClient(running.address, timeout_seconds=20) as client:
            results = client.imap(wait_at_gate, [(number,) for number in range(10)])
            await asyncio.to_thread(wait_until, lambda: len(gates.passed) == 2 and len(running.names) == 10)
            del results
            await asyncio.to_thread(wait_until, lambda: not running.waiting_tasks, what="the others are cancelled")

    asyncio.run(body())


def test_a_bad_item_raises_where_it_is_read(running_client: Client) -> None:
    items: Any = itertools.chain(((number,) for number in range(20)), [7])
    results = running_client.imap(abs, items, buffer=4)
    with pytest.raises(TypeError, match="item 20 is int"):
        list(results)


@pytest.mark.parametrize(("buffer", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_a_bad_buffer(running_client: Client, buffer: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="buffer"):
        running_client.imap(abs, [(1,)], buffer=buffer)


def test_with_asyncio(running: RunningScheduler) -> None:
    async def body() -> None:
        async with AsyncClient(running.address, timeout_seconds=20) as client:
            found = [value async for value in client.imap(abs, ((-n,) for n in range(1000)), buffer=50)]
            assert found == list(range(1000))
            unordered = [value async for value in client.imap_unordered(abs, ((n,) for n in range(1000)), buffer=50)]
            assert sorted(unordered) == list(range(1000))
            with pytest.raises(ZeroDivisionError):
                async for _ in client.imap(divide_by, [(1,), (0,)]):
                    pass
            with pytest.raises(ValueError, match="buffer"):
                client.imap(abs, [(1,)], buffer=0)

    asyncio.run(body())
