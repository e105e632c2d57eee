"""Tasks that read the result of a failed task fail as it did, and their errors name it, however they were submitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest
from tests.client.graph_stand_ins import SessionClient
from tests.client.running_scheduler import RunningScheduler

from scaler_client import AsyncClient, Client, TaskTimeoutError, WorkerDiedError
from scaler_client.errors import RemoteTraceback
from scaler_client.futures.future import TaskFuture
from scaler_client.pickling.serializer import dump_exception
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome

SECONDS = 20

ERRORS: dict[int, tuple[type[BaseException], bytes]] = {
    Outcome.EXCEPTION: (KeyError, dump_exception(KeyError("no such trade"), "remote frames\n")),
    Outcome.TIMED_OUT: (TaskTimeoutError, b"it ran for longer than 1 s"),
    Outcome.WORKER_DIED: (WorkerDiedError, b"signal 9"),
    Outcome.CANCELLED: (CancelledError, b""),
}


def fail() -> int:
    raise AssertionError("the scheduler runs nothing")


def add(*numbers: int) -> int:
    return sum(numbers)


class FailingScheduler(RunningScheduler):
    """Fails each task without inputs with `outcome`. It has lost the inputs of all others."""

    outcome = Outcome.EXCEPTION

    def _submit(self, peer: bytes, body: dict[str, Any]) -> None:
        ids = body["ids"]
        counts = body.get("inputCounts") or [0]
        for task_id, count in zip(ids, counts * (len(ids) // len(counts)), strict=True):
            outcome = Outcome.INPUT_LOST if count else self.outcome
            payload = b"" if count else ERRORS[outcome][1]
            sizes = [len(payload)]
            self._say(peer, "resolved", ids=[task_id], outcomes=[int(outcome)], sizes=sizes, payload=payload)


@pytest.fixture(params=ERRORS, ids=lambda outcome: Outcome(outcome).name)
def failing(request: pytest.FixtureRequest) -> Iterator[FailingScheduler]:
    scheduler = FailingScheduler()
    scheduler.outcome = request.param
    yield scheduler
    scheduler.close()


def check(scheduler: FailingScheduler, error: BaseException, origin: TaskFuture[Any]) -> None:
    """Check that a reader's error is of the origin's type, and that a note and the cause name the origin."""
    assert type(error) is ERRORS[scheduler.outcome][0]
    name = f"task fail#{origin.task_id}, an input of "
    assert any(name in note for note in error.__notes__), error.__notes__
    assert name in str(error.__cause__)
    if scheduler.outcome != Outcome.CANCELLED:
        assert f"of task fail#{origin.task_id}" in error.__notes__
        assert isinstance(error.__cause__, RemoteTraceback)


WAYS: dict[str, Callable[[Client, Any], Any]] = {
    "submit": lambda client, origin: client.submit(add, origin).result(SECONDS),
    "a keyword, in a container": lambda client, origin: client.submit(add, 1, k=[{origin}]).result(SECONDS),
    "the exception": lambda client, origin: raise_exception(client.submit(add, origin)),
    "a reader of a reader": lambda client, origin: client.submit(add, client.submit(add, origin)).result(SECONDS),
    "a reader of a reader that was read": lambda client, origin: read_then_reader(client, origin).result(SECONDS),
    "keep": lambda client, origin: client.options(keep=True).submit(add, origin).result(SECONDS),
    "a view": lambda client, origin: client.options(priority=2, name="mine").submit(add, origin).result(SECONDS),
    "map": lambda client, origin: client.map(add, [(origin,), (origin,)]),
    "map of a view": lambda client, origin: client.options(name="mine").map(add, [(origin,)]),
    "map that keeps": lambda client, origin: client.options(keep=True).map(add, [(origin,)]),
    "imap": lambda client, origin: list(client.imap(add, [(origin,)])),
    "imap_unordered": lambda client, origin: list(client.imap_unordered(add, [(origin,)])),
    "executor().submit": lambda client, origin: client.executor().submit(add, origin).result(SECONDS),
    "executor().map": lambda client, origin: list(client.executor().map(add, [origin])),
    "executor().map with chunks": lambda client, origin: list(client.executor().map(add, [origin] * 4, chunksize=2)),
    "get": lambda client, origin: client.get({"a": (add, origin), "b": (add, "a")}, ["b"]),
    "get of a literal": lambda client, origin: client.get({"a": [origin]}, ["a"]),
    "get of an alias": lambda client, origin: client.get({"a": origin}, ["a"]),
    "submit_graph": lambda client, origin: client.submit_graph({"a": (add, origin)}, ["a"])[0].result(SECONDS),
    "a graph that keeps": lambda client, origin: keep_graph(client, origin)[0].result(SECONDS),
    "a reader of a graph": lambda client, origin: client.submit(add, *graph_of(client, origin)).result(SECONDS),
    "submit_gang": lambda client, origin: client.submit_gang(add, origin, size=2).result(SECONDS),
}


def raise_exception(future: TaskFuture[Any]) -> None:
    error = future.exception(SECONDS)
    assert error is not None
    raise error


def read_then_reader(client: Client, origin: TaskFuture[Any]) -> TaskFuture[Any]:
    first = client.submit(add, origin)
    with pytest.raises((Exception, CancelledError)):
        first.result(SECONDS)
    return client.submit(add, first)


def graph_of(client: Client, origin: TaskFuture[Any]) -> list[TaskFuture[Any]]:
    return client.submit_graph({"a": (add, origin), "b": (add, "a")}, ["b"])


def keep_graph(client: Client, origin: TaskFuture[Any]) -> list[TaskFuture[Any]]:
    return client.options(keep=True).submit_graph({"a": (add, origin)}, ["a"])


@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
def test_errors_name_the_failed_input(failing: FailingScheduler, is_read: bool) -> None:
    with Client(failing.address, timeout_seconds=SECONDS) as client:
        for name, read in WAYS.items():
            origin = client.submit(fail)
            client.wait([origin], SECONDS)
            if is_read and failing.outcome != Outcome.CANCELLED:
                assert origin.exception() is not None
            with pytest.raises((Exception, CancelledError)) as raised:
                read(client, origin)
            try:
                check(failing, raised.value, origin)
            except AssertionError as error:
                raise AssertionError(f"{name}: {raised.value!r}") from error


def test_errors_of_asyncio_name_the_failed_input(failing: FailingScheduler) -> None:
    async def collect(client: AsyncClient, origin: Any) -> list[Any]:
        return [each async for each in client.imap(add, [(origin,)])]

    async def read_all() -> None:
        async with AsyncClient(failing.address, timeout_seconds=SECONDS) as client:
            origin = client.submit(fail)
            await asyncio.wait([origin])
            reads: dict[str, Callable[[], Any]] = {
                "submit": lambda: client.submit(add, origin),
                "keep": lambda: client.options(keep=True).submit(add, origin),
                "map": lambda: client.map(add, [(origin,)]),
                "imap": lambda: collect(client, origin),
                "get": lambda: client.get({"a": (add, origin)}, ["a"]),
            }
            for name, read in reads.items():
                with pytest.raises((Exception, CancelledError, asyncio.CancelledError)) as raised:
                    await read()
                if isinstance(raised.value, asyncio.CancelledError):  # asyncio makes it, without a cause
                    assert failing.outcome == Outcome.CANCELLED and name in ("submit", "keep")
                    assert f"task fail#{origin._task.task_id}, an input of add#" in str(raised.value)
                else:
                    check(failing, raised.value, origin._task)

    asyncio.run(read_all())


def test_a_cancelled_task_without_failed_inputs_names_none() -> None:
    client = SessionClient()
    (future,) = client.submit_graph({"a": (add, 1)}, ["a"])
    client.session.handle(messages.Resolved([future.task_id], [Outcome.CANCELLED], [b""]), 0.0)
    with pytest.raises(CancelledError) as raised:
        future.result(0)
    assert raised.value.__cause__ is None and not hasattr(raised.value, "__notes__")


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_graph_and_its_readers_fail_in_one_message(is_reversed: bool) -> None:
    client = SessionClient()
    (origin,) = client.submit_graph({"a": (fail,)}, ["a"])
    (reader,) = client.submit_graph({"b": (add, origin)}, ["b"])
    single: TaskFuture[int] = TaskFuture(client._io_thread, client._function(add), client._dump_call((origin,), {}))
    single.task_id = client.session.submit(single, *single.row(-1))
    client.session.pop_outgoing()
    ids = [origin.task_id, reader.task_id, single.task_id]
    if is_reversed:
        ids.reverse()
    client.session.handle(messages.Resolved(ids, [Outcome.WORKER_DIED] * 3, [b"signal 9"] * 3), 0.0)
    for future, name in ((single, f"add#{single.task_id}"), (reader, "node 'b' of the graph")):
        error = future.exception(0)
        assert f"of task fail#{origin.task_id}, an input of {name}" in error.__notes__  # type: ignore[union-attr]
