"""What users do wrong with kept results and with futures as arguments, with real processes: one clear error each."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import Command, Monitor, cluster, monitor, scheduler
from tests.integration.test_host_results import object_files
from tests.waiting import wait_until

from scaler_client import (
    AsyncClient,
    Client,
    ClientClosedError,
    KeptFuture,
    ObjectNotFoundError,
    ResultPickleError,
    TaskTimeoutError,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60

DYING_CLIENT = """
import os, sys
from scaler_client import Client
client = Client(sys.argv[1])
keep = client.options(keep=True)
kept = [keep.submit(bytes, 10), keep.submit(bytearray, 1 << 20)]
client.wait(kept)
print("there", flush=True)
sys.stdin.read()
"""


class Place:
    """A scheduler and a cluster with two workers."""

    def __init__(self, address: str, host: Command, watch: Monitor) -> None:
        self.address = address
        self.host = host
        self.watch = watch

    def is_empty(self) -> bool:
        return not self.watch.next().objects and not object_files([self.host])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kept")
    with (
        scheduler(folder, "--client-timeout-seconds", "5") as daemon,
        cluster(folder, daemon.address, 2) as host,
        monitor(daemon.monitor_address) as watch,
    ):
        wait_until(lambda: watch.next().workers == 2, what="the workers are there")
        yield Place(daemon.address, host, watch)


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with Client(place.address, timeout_seconds=SECONDS) as client:
        yield client


def add(*numbers: int) -> int:
    return sum(numbers)


def make_lock(_: Any = None) -> Any:
    return threading.Lock()


def wait_for(path: str) -> int:
    while not Path(path).exists():
        time.sleep(0.005)
    return 1


def touch(path: str, _: Any) -> None:
    Path(path).touch()


needs_memory_files = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")


@needs_memory_files
def test_a_result_that_is_not_read_is_freed_with_its_last_future(client: Client, place: Place) -> None:
    keep = client.options(keep=True)
    futures = [keep.submit(bytes, 10), keep.submit(bytearray, 1 << 20)]
    client.wait(futures)
    again = list(futures)
    wait_until(lambda: place.watch.next().objects == 2 and len(object_files([place.host])) == 1)
    del futures
    assert len(object_files([place.host])) == 1
    del again
    wait_until(place.is_empty, what="both are freed, without another call")


@needs_memory_files
def test_the_results_of_a_client_that_has_died_are_freed(place: Place) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DYING_CLIENT, place.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"there\n"
            wait_until(lambda: place.watch.next().objects == 2 and len(object_files([place.host])) == 1)
        finally:
            process.kill()
    wait_until(place.is_empty, what="the results of the killed client are freed")


def test_a_kept_result_of_a_client_that_is_disconnected(place: Place) -> None:
    with Client(place.address) as client:
        keep = client.options(keep=True)
        read, unread = keep.submit(add, 1, 2), keep.submit(add, 3, 4)
        assert read.result(SECONDS) == 3
        client.wait([unread], SECONDS)
    assert unread.done() and unread.exception() is None
    assert read.result() == 3, "its value is here"
    calls: list[Callable[[], Any]] = [unread.result, lambda: client.gather([read, unread])]
    for call in calls:
        with pytest.raises(
            ClientClosedError, match=rf"can't bring the result of add#{unread.task_id}: the client is d"
        ):
            call()
    wait_until(place.is_empty, what="the results are freed")


def test_an_awaited_result_of_a_client_that_is_disconnected(place: Place) -> None:
    async def main() -> None:
        async with AsyncClient(place.address) as client:
            kept: Any = client.options(keep=True).submit(add, 1, 2)
            async for _ in client.as_completed([kept]):
                pass
        with pytest.raises(ClientClosedError, match="can't bring the result of add#0: the client is disconnected"):
            await kept

    asyncio.run(main())


def test_a_future_of_another_client_as_an_argument(client: Client, place: Place) -> None:
    with Client(place.address) as other:
        kept, plain = other.options(keep=True).submit(add, 1), other.submit(add, 2)
        cancelled = other.submit(time.sleep, 600)
        other.wait([kept, plain])
        for future in (kept, plain):
            with pytest.raises(ValueError, match=r"the result of add belongs to another client: pass its result\(\)"):
                client.submit(add, future)
    calls: list[Callable[[Any], Any]] = [
        lambda future: client.submit(add, future),
        lambda future: client.map(add, [(future,)]),
        lambda future: client.options(keep=True).map(add, [(future,)]),
        lambda future: list(client.imap(add, [(future,)])),
        lambda future: client.executor().submit(add, [future]),
        lambda future: list(client.executor().map(add, [future])),
        lambda future: client.submit_gang(add, future, size=2),
        lambda future: client.get({"a": (add, future)}, ["a"]),
        lambda future: client.get({"a": future}, ["a"]),
        lambda future: client.submit_graph({"a": [{"k": future}]}, ["a"]),
    ]
    closed = r"the result of \w+ belongs to a client that is closed \(the client is disconnected\): "
    for call in calls:
        for lost in (kept, cancelled):
            with pytest.raises(ValueError, match=f"{closed}submit its task with this one"):
                call(lost)
        with pytest.raises(ValueError, match=rf"{closed}pass its result\(\)"):
            call(plain)
    with pytest.raises(ClientClosedError, match="the client is disconnected"):
        other.submit(add, plain)


def test_a_cleared_result_as_an_argument(client: Client) -> None:
    kept = client.options(keep=True).submit(add, 1)
    client.wait([kept], SECONDS)
    client.clear()
    with pytest.raises(ObjectNotFoundError, match="the result of add is not kept any more"):
        client.submit(add, kept)
    with pytest.raises(ObjectNotFoundError, match="the result of add is not kept any more"):
        client.get({"a": kept}, ["a"])


@pytest.mark.parametrize("keeps", [False, True])
def test_a_future_that_is_cancelled_while_its_reader_is_sent(client: Client, keeps: bool) -> None:
    view = client.options(keep=keeps)
    was_cancelled = set()
    for pause in [0.0, 0.0, 0.0005, 0.001, 0.003] * 20:
        read = view.submit(add, 1)
        reader = client.submit(add, read, 1)
        time.sleep(pause)  # no wait for a condition: the cancel meets the reader at any place
        was_cancelled.add(read.cancel())
        if read.cancelled():
            with pytest.raises(CancelledError):
                reader.result(SECONDS)
        else:
            assert (read.result(SECONDS), reader.result(SECONDS)) == (1, 2)
    assert was_cancelled == {True, False}


@pytest.mark.parametrize("keeps", [False, True])
def test_a_task_that_waits_for_its_own_reader_ends_with_its_time_limit(
    client: Client, tmp_path: Path, keeps: bool
) -> None:
    """No task can have its own future. But it may wait for what its reader does."""
    path = str(tmp_path / "there")
    waiting = client.options(keep=keeps, timeout=0.3).submit(wait_for, path)
    reader = client.submit(touch, path, waiting)
    assert waiting.exception(SECONDS) is not None
    for future in (waiting, reader):
        with pytest.raises(
            TaskTimeoutError, match=rf"wait_for#{waiting.task_id}: stopped after its time limit of 0.3 s"
        ):
            future.result(SECONDS)
    assert not Path(path).exists()


def test_a_callback_that_waits_for_a_reader_of_its_future(client: Client) -> None:
    values: list[int] = []
    future = client.options(keep=True).submit(add, 1)
    future.add_done_callback(lambda done: values.append(client.submit(add, done, 1).result(SECONDS)))
    wait_until(lambda: values == [2])


def test_values_that_cannot_be_pickled(client: Client) -> None:
    keep = client.options(keep=True)
    lost: KeptFuture[Any] = keep.submit(make_lock)  # type: ignore[assignment]
    reader = keep.submit(make_lock, lost)
    text = "the result of make_lock, of type _thread.lock, can't be pickled"
    for future in (lost, reader):
        with pytest.raises(ResultPickleError, match=text) as error:
            future.result(SECONDS)
    assert f"of task make_lock#{lost.task_id}, an input of make_lock#{reader.task_id}" in error.value.__notes__
    assert (lost.size, lost.location) == (None, None) and isinstance(lost.exception(), ResultPickleError)
    with pytest.raises(ResultPickleError, match=text) as error:
        keep.map(make_lock, [(1,), (2,)])
    assert {"of item 0 of map", "of item 1 of map"} & set(error.value.__notes__)  # the one that failed first
    with pytest.raises(TypeError, match="argument 0 of type _thread.lock can't be pickled"):
        keep.submit(add, threading.Lock())
    with pytest.raises(TypeError, match="item 1: argument 0 of type _thread.lock can't be pickled"):
        keep.map(add, [(1,), (threading.Lock(),)])
