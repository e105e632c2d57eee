"""Graphs inside tasks, in event loops, and with custom serializers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.graph_parts import GRAPH, SECONDS, add, at_gate, divide, inc, noting, ran, same

from scaler_client import AsyncClient, Client, SchedulerClusterCombo

cloudpickle.register_pickle_by_value(sys.modules[__name__])


# ----------------------------------------------------------------------------------------- inside tasks, in event loops


def test_a_graph_inside_a_task(client: Client) -> None:
    def parent(inner: Client | None, x: int) -> Any:
        graph = {"x": x, "y": (inc, "x"), "z": (sum, ["x", "y"])}
        if inner is not None:
            return inner.get(graph, ["z", "y"])
        with Client() as own:
            return {key: future.result() for key, future in zip("zy", own.submit_graph(graph, ["z", "y"]))}

    futures = [client.submit(parent, client if x % 2 else None, x) for x in range(12)]
    assert [future.result(SECONDS) for future in futures] == [{"z": 2 * x + 1, "y": x + 1} for x in range(12)]


def test_graphs_within_graphs(client: Client) -> None:
    def fibonacci(n: int) -> int:
        if n < 2:
            return n
        graph = {"a": (fibonacci, n - 1), "b": (fibonacci, n - 2), "c": (add, "a", "b")}
        value: int = Client().get(graph, ["c"])["c"]
        return value

    assert client.get({f"f{n}": (fibonacci, n) for n in range(8)}, ["f7", "f6"]) == {"f7": 13, "f6": 8}


@pytest.mark.parametrize("where", ["here", "in a task"])
def test_a_graph_in_an_event_loop(combo: SchedulerClusterCombo, client: Client, where: str) -> None:
    def program(address: str | None) -> Any:
        async def main() -> Any:
            async with AsyncClient(address) as client:
                turns = 0

                async def others() -> None:
                    nonlocal turns
                    while True:
                        turns += 1
                        await asyncio.sleep(0.001)

                other = asyncio.ensure_future(others())
                ref = await client.send_object("numbers", list(range(1000)))
                graph = {**GRAPH, "f": (time.sleep, 0.1), "g": (sum, ref), "h": (lambda *_: 0, "f", "g")}
                got = await client.get(graph, ["e", "g", "h"])
                waited = turns
                d, bad, g = client.submit_graph({**graph, "bad": (divide, 1, 0)}, ["d", "bad", "g"])
                found = [await d, await g]
                try:
                    await bad
                except ZeroDivisionError:
                    found.append("bad")
                other.cancel()
                return got, waited > 10, found

        return asyncio.run(main())

    expected = ({"e": 1, "g": 499500, "h": 0}, True, [4, 499500, "bad"])
    if where == "here":
        assert program(combo.get_address()) == expected
    else:
        futures = [client.submit(program, None) for _ in range(4)]
        assert [future.result(SECONDS) for future in futures] == [expected] * 4


def test_cancelling_a_coroutine_cancels_its_graph(combo: SchedulerClusterCombo, tmp_path: Path, gate: Path) -> None:
    log = str(tmp_path / "log")

    async def main() -> None:
        async with AsyncClient(combo) as client:
            graph = {
                "root": (partial(at_gate, log, "root", str(gate)),),
                "leaf": (partial(noting, log, "leaf"), "root"),
            }
            values = asyncio.ensure_future(client.get(graph, ["leaf"]))
            while not ran(log):
                await asyncio.sleep(0.01)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(values, 0.01)
            # Its answer comes after the cancel, which does not wait. From then on "leaf" cannot begin.
            assert await client.get(GRAPH, ["e"]) == {"e": 1}
            gate.touch()
            assert await client.get(GRAPH, ["e"]) == {"e": 1}
            assert ran(log) == ["root"]

    asyncio.run(main())


# --------------------------------------------------------------------------------------------------------- serializers


class Tagged:
    """A serializer that is an object. Its bytes are no plain pickle."""

    def serialize(self, obj: Any) -> bytes:
        if obj == "can't leave":
            raise ValueError("not this one")
        return b"tagged" + bytes(cloudpickle.dumps(obj))

    def deserialize(self, payload: bytes) -> Any:
        assert payload.startswith(b"tagged")
        return cloudpickle.loads(payload[6:])


class Static:
    serialize: Callable[[Any], bytes] = staticmethod(lambda obj: b"static" + cloudpickle.dumps(obj))
    deserialize: Callable[[bytes], Any] = staticmethod(lambda payload: cloudpickle.loads(payload[6:]))


@pytest.mark.parametrize("serializer", [Static, Tagged()])
def test_a_serializer_with_graphs_and_objects(combo: SchedulerClusterCombo, serializer: Any) -> None:
    with Client(combo, serializer=serializer) as client:
        assert client.get(GRAPH, ["e"]) == {"e": 1}
        ref = client.send_object([1, 2, 3])
        graph = {
            "ref": ref, "sum": (sum, "ref"), "deep": (lambda d: sum(d["k"][0]), {"k": [ref]}), "list": ["sum", "deep"],
            "calls": (add, (inc, "sum"), (len, ref)), "none": None, "read": (same, "none"), "alias": "calls",
        }  # fmt: skip
        assert client.get(graph, list(graph)[1:]) == {
            "sum": 6, "deep": 6, "list": [6, 6], "calls": 10, "none": None, "read": None, "alias": 10,
        }  # fmt: skip
        assert client.submit(sum, ref).result(SECONDS) == 6
        assert client.submit(lambda *, x: sum(x), x=ref).result(SECONDS) == 6
        open_future, kept = client.submit(inc, 1), client.options(keep=True).submit(inc, 2)
        for future, value in ((open_future, 2), (kept, 3)):
            assert client.submit(same, [future, {"k": (ref, future)}]).result(SECONDS) == [
                value, {"k": ([1, 2, 3], value)},
            ]  # fmt: skip
            assert client.map(add, [(future, 1)]) == [value + 1]
            assert client.options(keep=True).submit(same, [future]).result(SECONDS) == [value]
            assert client.submit_gang(same, {"k": future}, size=2).result(SECONDS) == [{"k": value}] * 2
        assert client.map(lambda x, y: sum(x) + y, [(ref, i) for i in range(3)]) == [6, 7, 8]
        bad, good = client.submit_graph({"a": (divide, 1, 0), "b": (same, "a"), "c": (inc, 1)}, ["b", "c"])
        assert isinstance(bad.exception(SECONDS), ZeroDivisionError) and good.result(SECONDS) == 2

        def parent(client: Client) -> Any:
            return client.get(GRAPH, ["e"]), client.submit(sum, client.send_object([4, 5])).result()

        assert client.submit(parent, client).result(SECONDS) == ({"e": 1}, 9)
