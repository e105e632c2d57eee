"""Clients inside a worker process, which share one connection to each scheduler."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.nested.stand_ins import FakeHost, FakeTask, hosted
from tests.client.scheduler_stand_in import WAIT_SECONDS, FakeScheduler
from tests.client.stand_ins import in_threads

from scaler_client import Client, ClientClosedError
from scaler_client.commands.addresses import ADDRESS_VARIABLE
from scaler_client.io import nested_connections
from scaler_client.pickling.call_rows import pack_answer
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol.messages import Outcome

WORKER = 44


@pytest.fixture
def task(scheduler: FakeScheduler) -> Iterator[FakeTask]:
    """A task that this thread runs as a worker of the scheduler."""
    task = FakeTask(depth=3, priority=9, name=(7, 3, 1))
    with hosted(FakeHost(task, scheduler.address, WORKER)):
        yield task
    for connection in set(nested_connections._connections.values()):
        connection.io_thread.close("the test is over")
    nested_connections._connections.clear()


def square(x: int) -> int:
    return x * x


def other_name(address: str) -> str:
    """Another address of the same scheduler, as another host may know it."""
    return address.replace("127.0.0.1", "localhost")


def test_a_client_without_an_address_uses_the_workers_scheduler(
    scheduler: FakeScheduler, task: FakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, "tcp://127.0.0.1:1")
    client = Client()
    assert client.address == scheduler.address
    assert scheduler.hellos[0]["worker"] == WORKER


@pytest.mark.parametrize("name", [lambda address: address, other_name])
def test_all_clients_of_the_process_share_one_connection(scheduler: FakeScheduler, task: FakeTask, name: Any) -> None:
    clients = [Client(), Client(name(scheduler.address)), Client(), Client(name(scheduler.address))]
    clients += in_threads(4, lambda _: Client(timeout_seconds=7))
    assert len({client._io_thread for client in clients}) == 1
    assert {hello["incarnation"] for hello in scheduler.hellos if hello["worker"]} == {
        hello["incarnation"] for hello in scheduler.hellos[:1]
    }
    clients[1].submit(square, 1)
    assert scheduler.receive("submit")["options"]["depth"] == 4


def test_children_have_a_greater_depth_and_the_priority_of_their_parent(
    scheduler: FakeScheduler, task: FakeTask
) -> None:
    client = Client()
    client.submit(square, 1)
    client.options(priority=-2, retries=1).submit(square, 1)
    client.submit(square, 1, profiling=True)
    asked = [scheduler.receive("submit")["options"] for _ in range(3)]
    assert [(each["depth"], each["priority"]) for each in asked] == [(4, 9), (4, -2), (4, 9)]
    assert [(each["retries"], each["profiling"]) for each in asked] == [(-1, False), (1, False), (-1, True)]


def test_threads_started_by_a_task_submit_no_children(scheduler: FakeScheduler, task: FakeTask) -> None:
    client = Client()
    in_threads(1, lambda _: client.submit(square, 1))
    assert "options" not in scheduler.receive("submit")


def test_a_wait_is_reported_after_the_children(scheduler: FakeScheduler, task: FakeTask) -> None:
    client = Client()
    future = client.submit(square, 3)

    def answer() -> None:
        assert scheduler.receive_until("suspended")[-2:] == ["submit", "suspended"]
        scheduler.resolve([future.task_id], dumps(9))

    task.when_suspended(answer)
    assert future.result() == 9
    resumed = scheduler.receive("resumed")
    assert (resumed["clients"], resumed["ids"], resumed["attempts"]) == ([7], [3], [1])
    assert task.calls == ["suspend", "resume"]


def test_a_coroutine_submits_children_while_others_wait(scheduler: FakeScheduler, task: FakeTask) -> None:
    client = Client()

    async def child() -> int:
        return await client.submit(square, 3)

    async def main() -> list[int]:
        return list(await asyncio.gather(child(), child()))

    def answer() -> None:
        answered = 0
        while answered < 2:
            submitted = scheduler.receive("submit")
            assert submitted["options"]["depth"] == 4
            scheduler.resolve(submitted["ids"], dumps(9))
            answered += len(submitted["ids"])

    task.when_suspended(answer)
    assert asyncio.run(main()) == [9, 9]
    assert task.calls == ["suspend", "resume"]


def test_a_map_of_children(scheduler: FakeScheduler, task: FakeTask) -> None:
    def answer() -> None:
        submitted = scheduler.receive("submit")
        assert submitted["options"]["depth"] == 4
        scheduler.resolve(submitted["ids"], pack_answer([5], None, 1000))

    task.when_suspended(answer)
    assert Client().map(square, [(1,), (2,)]) == [5, 5]
    assert task.calls == ["suspend", "resume"]


def test_cancel_gives_up_the_slot_while_it_waits(scheduler: FakeScheduler, task: FakeTask) -> None:
    """The cancelled task may be suspended in this process, and need the slot to end."""
    future = Client().submit(square, 1)
    ids = scheduler.receive("submit")["ids"]

    def answer() -> None:
        assert scheduler.receive("cancel")["force"] == [1]
        scheduler.resolve(ids, b"", Outcome.CANCELLED)

    task.when_suspended(answer)
    assert future.cancel(force=True)
    assert task.calls == ["suspend", "resume"]


def test_disconnect_ends_only_this_client(scheduler: FakeScheduler, task: FakeTask) -> None:
    with Client() as client:
        view = client.options(priority=1)
        future = client.submit(square, 1)
    for ended in (client, view):
        with pytest.raises(ClientClosedError, match="disconnected"):
            ended.submit(square, 1)
        with pytest.raises(ClientClosedError, match="disconnected"):
            ended.map(square, [(1,)])
    scheduler.resolve(scheduler.receive("submit")["ids"], dumps(1))
    assert future.result(WAIT_SECONDS) == 1
    Client().submit(square, 1)
    assert len(scheduler.hellos) == 1


class Plain:
    """A custom serializer."""

    @staticmethod
    def serialize(obj: object) -> bytes:
        return pickle.dumps(obj)

    @staticmethod
    def deserialize(payload: bytes) -> object:
        return pickle.loads(payload)


def test_clients_with_serializers_share_the_connection(scheduler: FakeScheduler, task: FakeTask) -> None:
    numbers = []
    for serializer in (None, Plain, Plain, Plain(), None):
        Client(serializer=serializer).submit(square, 1)
        numbers += scheduler.receive("submit")["functions"]
    assert numbers == [1, 2, 2, 3, 1]


# ------------------------------------------------------------------------------------------------------ passed to tasks


@pytest.mark.parametrize("name", [lambda address: address, other_name])
def test_an_unpickled_client_shares_the_connection(scheduler: FakeScheduler, name: Any) -> None:
    task = FakeTask(depth=0, priority=0)
    with Client(name(scheduler.address)) as outside:
        pickled = pickle.dumps(outside.options(priority=4))
        with hosted(FakeHost(task, scheduler.address, WORKER)):
            for _ in range(3):
                pickle.loads(pickled).submit(square, 1)
                assert scheduler.receive("submit")["options"]["priority"] == 4
            # One task passes the client to the next.
            again = pickle.loads(pickle.dumps(pickle.loads(pickled)))
            assert again._io_thread is Client()._io_thread and again.address == scheduler.address
            again._io_thread.close("the test is over")
            nested_connections._connections.clear()
    assert [hello["worker"] for hello in scheduler.hellos] == [0, WORKER]


def test_an_unpickled_client_of_another_scheduler(scheduler: FakeScheduler, task: FakeTask) -> None:
    other = FakeScheduler(incarnation=77)
    try:
        first, second = Client(other.address), Client(other.address)
        assert first._io_thread is second._io_thread and first._io_thread is not Client()._io_thread
        assert [hello["worker"] for hello in other.hellos] == [0]
        future = first.submit(square, 1)
        submitted = other.receive("submit")
        assert "options" not in submitted, "tasks of another scheduler are no children"
        other.resolve(submitted["ids"], dumps(1))
        assert future.result(WAIT_SECONDS) == 1
        assert task.calls == []
        first._io_thread.close("the test is over")
    finally:
        other.close()


def test_a_client_in_a_closure(scheduler: FakeScheduler, task: FakeTask) -> None:
    client = Client()
    client.submit(lambda: client.submit(square, 1))
    scheduler.receive("function")
    shipped = loads(scheduler.payloads[0])
    shipped()
    scheduler.receive("submit")
    assert scheduler.receive("submit")["options"]["depth"] == 4
    assert len(scheduler.hellos) == 1


def test_a_closed_connection_is_replaced(scheduler: FakeScheduler, task: FakeTask) -> None:
    for connections in (1, 2):
        client = Client()
        client.submit(square, 1)
        scheduler.receive("submit")
        assert len(scheduler.hellos) == connections
        client._io_thread.close("something failed")


def test_no_scheduler_for_the_nested_client(task: FakeTask) -> None:
    with hosted(FakeHost(task, "tcp://127.0.0.1:1")):
        with pytest.raises(ConnectionError, match="tcp://127.0.0.1:1 within 0.01"):
            Client(timeout_seconds=0.01)


def test_a_refused_nested_client(task: FakeTask) -> None:
    refusing = FakeScheduler(refuses=True)
    try:
        with hosted(FakeHost(task, refusing.address)):
            with pytest.raises(ConnectionError, match="refuses this client"):
                Client()
    finally:
        refusing.close()


def test_a_client_in_a_forked_child_raises(
    scheduler: FakeScheduler, task: FakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    client = Client()
    future = client.submit(square, 1)
    child = os.fork()
    if not child:
        seen = []
        for use in (lambda: client.submit(square, 1), future.result, Client):
            try:
                use()
            except (ClientClosedError, ValueError) as error:
                seen.append(type(error))
        os._exit(0 if seen == [ClientClosedError, ClientClosedError, ValueError] else 1)
    assert os.waitpid(child, 0)[1] == 0
    client.submit(square, 1)
    assert len(scheduler.hellos) == 1
