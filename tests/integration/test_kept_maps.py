"""Kept results of maps and of `AsyncClient`, with real processes."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import pytest
from tests.integration.commands import Monitor, cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import AsyncClient, AsyncKeptFuture, Client, KeptFuture

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Monitor]]:
    """The address of a scheduler with two workers, and what it publishes."""
    folder = tmp_path_factory.mktemp("kept")
    with scheduler(folder) as daemon, cluster(folder, daemon.address, 2), monitor(daemon.monitor_address) as watch:
        wait_until(lambda: watch.next().workers == 2, what="the workers are there")
        yield daemon.address, watch


@pytest.fixture
def client(watched: tuple[str, Monitor]) -> Iterator[Client]:
    with Client(watched[0], timeout_seconds=SECONDS) as client:
        yield client
        gc.collect()  # pytest's record of a failure has the frames of the failed map
        wait_until(lambda: not watched[1].next().objects, what="the scheduler has no objects")


def numbers(count: int) -> list[int]:
    return list(range(count))


def fail(log: str, number: int) -> int:
    if number == 3:
        raise ValueError(f"no {number}")
    note(log, str(number))
    return number


def wait_for(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.005)
    return path


def never() -> NoReturn:
    while True:
        time.sleep(0.01)


def kept(futures: Any) -> list[KeptFuture[Any]]:
    listed = list(futures)
    assert all(type(each) is KeptFuture and each.done() and each.size for each in listed)
    return listed


def test_maps_give_futures(client: Client) -> None:
    keep = client.options(keep=True)
    lists = kept(keep.map(numbers, [(count,) for count in range(50)]))
    assert client.map(len, [(each,) for each in lists]) == list(range(50))
    assert client.gather(lists) == [numbers(count) for count in range(50)]
    assert client.gather(kept(keep.map(sum, [(each,) for each in lists[:4]], progress=True))) == [0, 0, 1, 3]
    assert client.gather(kept(keep.imap(abs, ((-each,) for each in range(30)), buffer=4))) == list(range(30))
    found = client.gather(kept(keep.imap_unordered(abs, ((-each,) for each in range(30)), buffer=4)))
    assert sorted(found) == list(range(30))
    with keep.executor() as executor:
        assert client.gather(kept(executor.map(pow, [2, 3], [4, 2], chunksize=2))) == [16, 9]


def test_each_result_is_freed_with_its_future(client: Client, watched: tuple[str, Monitor]) -> None:
    futures = client.options(keep=True).map(numbers, [(count,) for count in range(10)])
    wait_until(lambda: watched[1].next().objects == 10, what="each result is there")
    del futures[3:]
    wait_until(lambda: watched[1].next().objects == 3, what="the others are freed")


def test_a_call_that_fails_ends_the_map(client: Client, tmp_path: Path) -> None:
    keep, log = client.options(keep=True), str(tmp_path / "log")
    with pytest.raises(ValueError, match="no 3") as error:
        keep.map(fail, [(log, each) for each in range(10)])
    assert error.value.__notes__[-1] == "of item 3 of map"
    log = str(tmp_path / "log of imap")
    results = keep.imap(fail, [(log, each) for each in range(10)], buffer=1)
    assert [next(results).result() for _ in range(3)] == [0, 1, 2]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="no 3"):
        next(results)
    assert not notes(log, "4"), "nothing behind the failed call is called"


def test_asyncio(watched: tuple[str, Monitor], tmp_path: Path) -> None:
    there = str(tmp_path / "there")

    async def main() -> None:
        async with AsyncClient(watched[0], timeout_seconds=SECONDS) as client:
            keep = client.options(keep=True)
            waiting: Any = keep.submit(wait_for, there)
            assert not waiting.done() and waiting.size is None and not asyncio.isfuture(waiting)
            done: list[Any] = []
            waiting.add_done_callback(done.append)
            waiting.add_done_callback(never)
            assert waiting.remove_done_callback(never) == 1
            Path(there).touch()
            assert [each async for each in client.as_completed([waiting])] == done == [waiting]
            if sys.version_info >= (3, 11):
                assert await asyncio.wait([waiting]) == ({waiting}, set())
            assert waiting.exception() is None and waiting.size and waiting.location == "client"
            assert await waiting == await asyncio.wait_for(waiting, SECONDS) == there

            lists: list[Any] = await keep.map(numbers, [(count,) for count in range(20)])
            assert all(type(each) is AsyncKeptFuture and each.done() for each in lists)
            assert await client.gather(lists) == [numbers(count) for count in range(20)]
            assert await client.submit(len, lists[7]) == 7
            lists = [each async for each in keep.imap(numbers, [(1,), (2,)])]
            assert await asyncio.gather(*lists) == [[0], [0, 1]]
            graph = {"one": (numbers, 3), "two": (sum, "one")}
            (two,) = keep.submit_graph(graph, ["two"])
            assert await two == await (await keep.get(graph, ["two"]))["two"] == 3
            assert "AsyncKeptFuture" in repr(two) and "kept" in two._repr_html_()

            failed = keep.submit(fail, there, 3)
            with pytest.raises(ValueError, match="no 3"):
                await client.gather([failed, keep.submit(abs, -1)])
            with pytest.raises(ValueError, match="no 3"):
                await keep.map(fail, [(there, 3)])
            endless = keep.submit(never)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(endless, 0.01)
            assert endless.cancelled() and endless.done()
            with pytest.raises(asyncio.CancelledError):
                await endless
            del waiting, done, lists, two, failed, endless

    asyncio.run(main())
    wait_until(lambda: not watched[1].next().objects, what="the scheduler has no objects")


async def add(address: str, keep_number: int) -> int:
    async with AsyncClient(address) as client:
        one: Any = client.options(keep=True).submit(abs, -keep_number)
        return await one + await client.submit(abs, one)


def add_in_loop(address: str, number: int) -> int:
    return asyncio.run(add(address, number))


def test_asyncio_in_a_task(client: Client, watched: tuple[str, Monitor]) -> None:
    assert client.map(add_in_loop, [(watched[0], each) for each in range(6)]) == [0, 2, 4, 6, 8, 10]
