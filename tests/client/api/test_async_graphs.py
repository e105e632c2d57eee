"""Objects, graphs and shutdown of AsyncClient, with a fake scheduler."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.client.scheduler_stand_in import NEVER, WAIT_SECONDS, FakeScheduler

from scaler_client import (
    AsyncClient,
    AsyncTaskFuture,
    ClientClosedError,
    ObjectNotFoundError,
    ObjectRef,
    ProtectedSchedulerError,
)
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol.messages import Keep, Outcome

"""Seconds between heartbeats: no heartbeat causes a message in these tests."""


def inc(x: int) -> int:
    return x + 1


def add(x: int, y: int) -> int:
    return x + y


GRAPH = {"a": (inc, 1), "b": (inc, "a"), "c": (add, "a", "b")}


class Slow:
    """An object whose pickling waits for the test."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __reduce__(self) -> Any:
        assert self.may_go_on.wait(WAIT_SECONDS)
        return int, ()


def run(scheduler: FakeScheduler, body: Callable[[AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        async with AsyncClient(scheduler.address, heartbeat_interval_seconds=NEVER) as client:
            return await asyncio.wait_for(body(client), 2 * WAIT_SECONDS)

    return asyncio.run(main())


async def receive(scheduler: FakeScheduler, kind: str) -> dict[str, Any]:
    return await asyncio.to_thread(scheduler.receive, kind)


async def run_ready() -> None:
    """Let the loop run everything that is ready."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_object_and_a_task_that_reads_it(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        ref = await client.send_object("numbers", [1, 2])
        assert isinstance(ref, ObjectRef) and ref.name == "numbers"
        assert (await client.send_object([3], name="x")).name == "x"
        future = client.submit(sum, ref)
        assert (await receive(scheduler, "object"))["name"] == "numbers"
        submitted = await receive(scheduler, "submit")
        assert submitted["inputs"] == [0]
        with with_inputs([[1, 2]].__getitem__):
            assert loads(submitted["payload"]) == ([1, 2],)
        scheduler.resolve(submitted["ids"], dumps(3))
        assert await future == 3
        await client.clear()
        with pytest.raises(ObjectNotFoundError, match="'numbers'"):
            client.submit(sum, ref)
        with pytest.raises(TypeError, match="name must be a string, not 3"):
            await client.send_object(3, [1])  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="lock can't be pickled"):
            await client.send_object(threading.Lock())

    run(scheduler, body)


def test_pickling_an_object_does_not_block_the_loop(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        slow = Slow()
        sending = asyncio.ensure_future(client.send_object(slow))
        await run_ready()
        assert not sending.done()
        slow.may_go_on.set()
        assert pickle.loads((await sending)._stored.frames[0]) == 0

    run(scheduler, body)


def test_get(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        getting = asyncio.ensure_future(client.get(GRAPH, ["c", "b", "c"]))
        submitted = await receive(scheduler, "submit")
        first = submitted["ids"][0]
        assert list(submitted["keep"]) == [Keep.YES, Keep.BOTH, Keep.NO]
        scheduler.resolve([first], outcome=Outcome.KEPT)
        scheduler.resolve([first + 1], dumps(3))
        scheduler.resolve([first + 2], dumps(5))
        assert await getting == {"c": 5, "b": 3}
        assert await client.get({"a": 1, "b": "a"}, ["b", "a"]) == {"b": 1, "a": 1}
        assert await client.get({}, []) == {}

    run(scheduler, body)


def test_bad_graphs_raise(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        for wrong, keys, error, text in (
            ([1], ["a"], TypeError, "a graph must be a dict"),
            (GRAPH, "c", TypeError, "keys must be a list"),
            (GRAPH, ["no"], ValueError, "the graph has no 'no'"),
            ({"a": (inc, "b"), "b": (inc, "a")}, ["a"], ValueError, "cycle: 'a' -> 'b' -> 'a'"),
        ):
            with pytest.raises(error, match=text):
                await client.get(wrong, keys)  # type: ignore[arg-type]
            with pytest.raises(error, match=text):
                client.submit_graph(wrong, keys)  # type: ignore[arg-type]

    run(scheduler, body)


def test_analysing_a_graph_does_not_block_the_loop(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        slow = Slow()
        getting = asyncio.ensure_future(client.get({"a": (inc, slow)}, ["a"]))
        await run_ready()
        assert not getting.done()
        slow.may_go_on.set()
        submitted = await receive(scheduler, "submit")
        scheduler.resolve(submitted["ids"], dumps(1))
        assert await getting == {"a": 1}

    run(scheduler, body)


def test_a_failure_in_get_cancels_the_other_nodes(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        getting = asyncio.ensure_future(client.get({**GRAPH, "d": (inc, 1)}, ["c", "d"]))
        submitted = await receive(scheduler, "submit")
        failed = pickle.dumps((ZeroDivisionError("no"), "frames\n"))
        scheduler.resolve([submitted["ids"][3]], failed, outcome=Outcome.EXCEPTION)
        with pytest.raises(ZeroDivisionError):
            await getting
        assert (await receive(scheduler, "cancel"))["ids"] == [submitted["ids"][2]]

    run(scheduler, body)


def test_cancelling_the_coroutine_cancels_its_graph(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        getting = asyncio.ensure_future(client.get(GRAPH, ["c", "b"]))
        submitted = await receive(scheduler, "submit")
        getting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await getting
        assert (await receive(scheduler, "cancel"))["ids"] == submitted["ids"][1:]

    run(scheduler, body)


def test_disconnect_ends_get(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        getting = asyncio.ensure_future(client.get(GRAPH, ["c"]))
        await receive(scheduler, "submit")
        await client.disconnect()
        with pytest.raises(ClientClosedError):
            await getting
        for call in (client.get(GRAPH, ["c"]), client.send_object([1]), client.shutdown()):
            with pytest.raises(ClientClosedError):
                await call

    run(scheduler, body)


def test_futures_of_a_graph(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        futures = client.submit_graph({**GRAPH, "two": 2}, ["c", "two", "b", "c"])
        c, two, b, again = futures
        assert all(isinstance(each, AsyncTaskFuture) for each in futures) and again is c
        assert await two == 2
        submitted = await receive(scheduler, "submit")
        assert c.cancel()
        cancelled = await receive(scheduler, "cancel")
        assert cancelled["ids"] == [submitted["ids"][2]] and cancelled["force"] == [1]
        scheduler.resolve([submitted["ids"][1]], dumps(3))
        assert await b == 3

    run(scheduler, body)


def test_graphs_have_the_options_of_a_view(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        client.options(priority=4).submit_graph(GRAPH, ["c"])
        assert (await receive(scheduler, "submit"))["options"]["priority"] == 4

    run(scheduler, body)


def test_graph_backend_of_an_async_client(scheduler: FakeScheduler) -> None:
    with pytest.raises(ValueError, match="^graph_backend must be one of python, graphblas, not 'dask'$"):
        AsyncClient(scheduler.address, graph_backend="dask")
    client = AsyncClient(scheduler.address, graph_backend="python")

    async def main() -> None:
        async with client:
            assert client._connected._options.graph_backend == "python"

    asyncio.run(main())


def test_shutdown(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        future = client.submit(inc, 1)
        ending = asyncio.ensure_future(client.shutdown())
        await receive(scheduler, "shutdown")
        assert not ending.done()
        scheduler.say("goodbye", reason="a client has asked for it")
        await ending
        with pytest.raises(asyncio.CancelledError):
            await future
        with pytest.raises(ClientClosedError):
            client.submit(inc, 1)

    run(scheduler, body)


def test_shutdown_of_a_protected_scheduler(scheduler: FakeScheduler) -> None:
    async def body(client: AsyncClient) -> None:
        ending = asyncio.ensure_future(client.shutdown())
        await receive(scheduler, "shutdown")
        scheduler.say("error", text="protected: clients may not end this scheduler")
        with pytest.raises(ProtectedSchedulerError, match="^protected: clients may not end this scheduler$"):
            await ending
        client.submit(inc, 1)
        assert (await receive(scheduler, "submit"))["ids"]

    run(scheduler, body)


def test_a_client_that_is_not_connected_raises(scheduler: FakeScheduler) -> None:
    client = AsyncClient(scheduler.address)
    with pytest.raises(RuntimeError, match="not connected"):
        client.submit_graph(GRAPH, ["c"])
    for call in (client.get(GRAPH, ["c"]), client.send_object([1]), client.shutdown()):
        with pytest.raises(RuntimeError, match="not connected"):
            asyncio.run(call)
