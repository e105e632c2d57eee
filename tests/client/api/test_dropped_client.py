"""A client that is dropped without `disconnect` leaves the scheduler, as soon as nothing needs it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.gates import gates, wait_at_gate
from tests.client.running_scheduler import RunningScheduler
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.io.io_thread import IoThread

SECONDS = 20.0


@pytest.fixture
def no_collection() -> Iterator[None]:
    """The last reference counts, not the next garbage collection."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gates.close_down()


def is_over(io_thread: IoThread) -> bool:
    return io_thread.is_closed and not io_thread._thread.is_alive()


@pytest.mark.usefixtures("no_collection")
def test_it_leaves_with_its_last_reference(running: RunningScheduler) -> None:
    client: Any = Client(running.address)
    io_thread = client._io_thread
    assert client.submit(abs, -1).result(SECONDS) == 1
    assert client.map(abs, [(-1,), (-2,)]) == [1, 2]
    assert client.gather([client.submit(abs, -1)]) == [1]
    view, executor = client.options(priority=3), client.executor()
    died = weakref.ref(client)
    del client
    assert died() is not None  # the executor has it
    del executor
    assert died() is None
    assert view.submit(abs, -2).result(SECONDS) == 2
    del view
    wait_until(lambda: is_over(io_thread), what="the I/O thread ends")
    assert io_thread.close_reason == "the program has dropped the client"


@pytest.mark.usefixtures("no_collection")
def test_its_open_tasks_end_first(running: RunningScheduler) -> None:
    called: list[Any] = []
    client: Any = Client(running.address)
    io_thread = client._io_thread
    futures = [client.submit(wait_at_gate, number) for number in range(5)]
    futures[4].add_done_callback(called.append)
    del client
    wait_until(lambda: len(gates.passed) == 2)
    assert not io_thread.is_closed
    gates.open(*range(5))
    assert [future.result(SECONDS) for future in futures] == list(range(5))
    wait_until(lambda: is_over(io_thread), what="the I/O thread ends")
    wait_until(lambda: called == [futures[4]])


@pytest.mark.usefixtures("no_collection")
def test_an_iterator_keeps_it(running: RunningScheduler) -> None:
    results = iter(Client(running.address).imap(abs, ((-number,) for number in range(100)), buffer=5))
    assert list(results) == list(range(100))
    assert Client(running.address).submit(abs, -1).result(SECONDS) == 1


@pytest.mark.usefixtures("no_collection")
def test_a_kept_result_keeps_it(running: RunningScheduler) -> None:
    client: Any = Client(running.address)
    io_thread = client._io_thread
    kept = client.options(keep=True).submit(wait_at_gate, 1)
    del client
    gates.open(1)
    wait_until(kept.done)
    assert not io_thread.is_closed
    del kept
    wait_until(lambda: is_over(io_thread), what="the I/O thread ends")


def test_disconnect_is_still_enough(running: RunningScheduler) -> None:
    with Client(running.address) as client:
        io_thread = client._io_thread
    assert is_over(io_thread)
    del client
    assert io_thread.close_reason == "the client is disconnected"
