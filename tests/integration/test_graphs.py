"""Graphs as users submit them, against real processes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.integration.host_files import files_of
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client, SchedulerClusterCombo, TaskTimeoutError, WorkerDiedError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


def inc(x: int) -> int:
    return x + 1


def add(x: Any, y: Any) -> Any:
    return x + y


def minus(x: int, y: int) -> int:
    return x - y


def same(x: Any) -> Any:
    return x


def divide(x: int, y: int) -> float:
    return x / y


GRAPH = {"a": 2, "b": 2, "c": (inc, "a"), "d": (add, "a", "b"), "e": (minus, "d", "c")}


def noting(log: str, name: str, *_: Any) -> str:
    note(log, "ran", name)
    return name


def at_gate(log: str, name: str, gate: str, *_: Any) -> str:
    """Runs until a file is there."""
    note(log, "ran", name)
    while not os.path.exists(gate):
        time.sleep(0.002)
    return name


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """Not there yet. After the test it is: nothing waits on."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def ran(log: str) -> list[str]:
    return sorted(each.task for each in notes(log, "ran"))


# --------------------------------------------------------------------------------------------------- what a graph says


def test_the_issues_example(client: Client) -> None:
    assert client.get(GRAPH, keys=["e"]) == {"e": 1}
    (future,) = client.submit_graph(GRAPH, keys=["e"])
    assert isinstance(future, Future) and future.result(SECONDS) == 1
    assert client.get(GRAPH, keys=list(GRAPH)) == {"a": 2, "b": 2, "c": 3, "d": 4, "e": 1}


@pytest.mark.parametrize(
    ("graph", "values"),
    [
        ({"a": (inc, 1), "b": (add, "a", "a"), "c": (add, "b", "b")}, {"c": 8, "b": 4}),
        ({"a": None, "b": (same, "a"), "c": (same, "b"), "d": (repr, "c")}, {"a": None, "c": None, "d": "None"}),
        ({"a": 1, "b": "a", "c": "b", "d": (inc, "c"), "e": "d", "f": (inc, "e")}, {"c": 1, "e": 2, "f": 3}),
        ({("x", 0): (inc, 0), 7: (add, ("x", 0), 1), None: (same, 7)}, {("x", 0): 1, 7: 2, None: 2}),
        ({"a": (inc, 1), "b": (sum, ["a", (inc, "a"), (inc, (inc, "a"))])}, {"b": 9}),
        ({"a": (inc, 1), "b": (same, {"k": ["a", ("a", 5)]}), "c": ["a", "b"]}, {"c": [2, {"k": [2, (2, 5)]}]}),
        ({"text": "not a key", "b": (len, "text"), "c": (len, "no key")}, {"text": "not a key", "b": 9, "c": 6}),
        ({}, {}),
        (GRAPH, {}),
    ],
)  # fmt: skip
def test_what_nodes_are(client: Client, graph: dict[Any, Any], values: dict[Any, Any]) -> None:
    assert client.get(graph, list(values)) == values


def test_a_key_that_is_asked_for_twice(client: Client) -> None:
    futures = client.submit_graph(GRAPH, ["e", "a", "e"])
    assert [future.result(SECONDS) for future in futures] == [1, 2, 1]
    assert client.get(GRAPH, ["e", "e"]) == {"e": 1}


@pytest.mark.parametrize(
    ("graph", "keys", "error", "text"),
    [
        ({"a": (inc, "b"), "b": (inc, "a")}, ["a"], ValueError, "the graph has a cycle: 'a' -> 'b' -> 'a'"),
        ({"a": "b", "b": "a"}, ["a"], ValueError, "the graph has a cycle: 'a' -> 'b' -> 'a'"),
        ({"a": (inc, [("x", {"k": "a"})])}, ["a"], ValueError, "the graph has a cycle: 'a' -> 'a'"),
        (GRAPH, ["e", "y", "z"], ValueError, "the graph has no 'y', 'z'"),
        ([GRAPH], ["e"], TypeError, "a graph is a dict of keys and nodes, not list"),
        (GRAPH, "e", TypeError, "keys must be a list of a graph's keys, not 'e'"),
        (GRAPH, [["e"]], TypeError, r"\['e'\] can't be a graph's key: unhashable type: 'list'"),
    ],
)
@pytest.mark.parametrize("way", ["get", "submit_graph"])
def test_what_is_wrong_is_said_before_anything_runs(
    client: Client, tmp_path: Path, way: str, graph: Any, keys: Any, error: type[Exception], text: str
) -> None:
    log = str(tmp_path / "log")
    if isinstance(graph, dict) and isinstance(keys, list) and "e" not in keys[:1]:
        graph, keys = {**graph, "first": (partial(noting, log, "first"),)}, ["first", *keys]
    with pytest.raises(error, match=text):
        getattr(client, way)(graph, keys)
    assert client.submit(inc, 1).result(SECONDS) == 2
    assert not notes(log)


def test_only_what_is_asked_for_runs_and_each_node_once(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    graph: dict[str, Any] = {"root": (partial(noting, log, "root"),)}
    graph.update({f"leaf{i}": (partial(noting, log, f"leaf{i}"), "root") for i in range(10)})
    graph["all"] = (partial(noting, log, "all"), [f"leaf{i}" for i in range(10)])
    assert client.get(graph, ["leaf3", "leaf7"]) == {"leaf3": "leaf3", "leaf7": "leaf7"}
    assert ran(log) == ["leaf3", "leaf7", "root"]


def test_a_graph_of_many_kinds(client: Client) -> None:
    """Nodes at random, some of which fail: each value is what Python says, and what fails has read what failed."""
    chance = random.Random(4)
    names = [f"node {i}" for i in range(800)]
    graph: dict[str, Any] = {names[0]: 1, names[1]: None, names[2]: "text"}
    expected: dict[str, Any] = dict(graph)
    for i in range(3, 600):
        drawn = chance.choices(names[max(0, i - 40) : i], k=2)
        first, second = (key if isinstance(expected[key], int) else names[0] for key in drawn)
        kind = chance.random()
        key = names[i]
        if kind < 0.1:
            graph[key], expected[key] = first, expected[first]
        elif kind < 0.15:
            graph[key], expected[key] = (divide, first, "none"), TypeError
        elif kind < 0.4:
            graph[key], expected[key] = (sum, [first, (inc, second)]), expected[first] + expected[second] + 1
        else:
            graph[key], expected[key] = (minus, first, second), expected[first] - expected[second]
    for i in range(600, 800):  # some read what has failed
        read = chance.choices(names[:i], k=2)
        values = tuple(expected[each] for each in read)
        graph[names[i]] = (lambda *values: values, *read)
        expected[names[i]] = TypeError if TypeError in values else values
    keys = chance.sample(names, len(names))
    for key, future in zip(keys, client.submit_graph(graph, keys)):
        if expected[key] is TypeError:
            assert isinstance(future.exception(SECONDS), TypeError), key
        else:
            assert future.result(SECONDS) == expected[key], key


def test_options_hold_for_all_nodes(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def fails_twice(x: int) -> int:
        note(log, "ran", "fails")
        if len(notes(log)) < 3:
            raise OSError("again")
        return x

    view = client.options(retry_on=OSError, retries=5, name="mine", profiling=True)
    (future,) = view.submit_graph({"a": (fails_twice, 1), "b": (inc, "a")}, ["b"])
    assert future.result(SECONDS) == 2 and len(notes(log)) == 3
    assert future.profiling_info().peak_memory > 0
    slow = client.options(timeout=0.1)
    with pytest.raises(TaskTimeoutError):
        slow.get({"a": (time.sleep, 60), "b": (same, "a")}, ["b"])


def test_a_graph_of_many_nodes(client: Client) -> None:
    count = 20_000
    graph: dict[int, Any] = {0: (int,), **{key: (inc, key // 2) for key in range(1, count)}}
    assert client.get(graph, [count - 1, 1]) == {count - 1: count.bit_length(), 1: 1}
    chain: dict[int, Any] = {0: (int,), **{key: (inc, key - 1) for key in range(1, 2000)}}
    assert client.get(chain, [1999]) == {1999: 1999}


# ----------------------------------------------------------------------------------------------- failing and cancelling


def test_a_failing_node_fails_exactly_what_depends_on_it(client: Client) -> None:
    graph = {
        "good": (inc, 1), "bad": (divide, 1, 0), "after": (inc, "bad"), "late": (add, "after", "good"),
        "beside": (inc, "good"), "alias": "late", "in list": (sum, ["good", "bad"]),
    }  # fmt: skip
    futures = dict(zip(graph, client.submit_graph(graph, list(graph))))
    assert futures["good"].result(SECONDS) == 2 and futures["beside"].result(SECONDS) == 3
    for key in ("bad", "after", "late", "alias", "in list"):
        error = futures[key].exception(SECONDS)
        assert type(error) is ZeroDivisionError and "divide" in str(error.__cause__), key
    with pytest.raises(ZeroDivisionError):
        client.get(graph, ["beside", "late"])
    assert client.get(graph, ["beside"]) == {"beside": 3}


def test_cancelling_a_target_cancels_what_only_it_needs(client: Client, tmp_path: Path, gate: Path) -> None:
    log = str(tmp_path / "log")
    holding = [client.submit(partial(at_gate, log, f"hold{i}", str(gate))) for i in range(2)]
    wait_until(lambda: len(notes(log)) == 2)
    graph = {
        "shared": (partial(noting, log, "shared"),),
        "mine": (partial(noting, log, "mine"), "shared"), "x": (partial(noting, log, "x"), "mine"),
        "yours": (partial(noting, log, "yours"), "shared"), "y": (partial(noting, log, "y"), "yours"),
    }  # fmt: skip
    x, y = client.submit_graph(graph, ["x", "y"])
    assert x.cancel() and x.cancelled() and not y.done()
    gate.touch()
    assert y.result(SECONDS) == "y"
    assert [each.result(SECONDS) for each in holding] == ["hold0", "hold1"]
    assert ran(log) == ["hold0", "hold1", "shared", "y", "yours"]
    with pytest.raises(CancelledError):
        x.result()


def test_stopping_a_target_that_runs(client: Client, tmp_path: Path, gate: Path) -> None:
    log = str(tmp_path / "log")
    graph = {
        "a": (partial(noting, log, "a"),),
        "x": (partial(at_gate, log, "x", str(gate)), "a"),
        "y": (same, "a"),
    }
    x, y = client.submit_graph(graph, ["x", "y"])
    wait_until(lambda: "x" in ran(log))
    assert not x.cancel() and x.cancel(force=True)
    assert y.result(SECONDS) == "a"


def test_clear_cancels_graphs(client: Client, tmp_path: Path, gate: Path) -> None:
    log = str(tmp_path / "log")
    graph: dict[str, Any] = {"root": (partial(at_gate, log, "root", str(gate)),)}
    graph.update({f"leaf{i}": (partial(noting, log, "leaf"), "root") for i in range(20)})
    futures = client.submit_graph(graph, [f"leaf{i}" for i in range(20)])
    wait_until(lambda: ran(log) == ["root"])
    client.clear()
    assert all(future.cancelled() for future in futures)
    gate.touch()
    assert client.get(GRAPH, ["e"]) == {"e": 1}
    assert ran(log) == ["root"]


# ------------------------------------------------------------------------------------------------------ where values go


def test_values_between_nodes_never_come_to_the_client_and_are_freed(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2) as host:
        with Client(daemon.address, heartbeat_interval_seconds=0.2) as client:
            got: list[int] = []
            taken = client._connection._session.tasks.take

            def take(message: Any) -> None:
                got.extend(map(len, message.payloads))
                taken(message)

            client._connection._session.tasks.take = take  # type: ignore[method-assign]
            megabytes = 1 << 20
            graph: dict[str, Any] = {f"part{i}": (numpy.full, megabytes // 8, i) for i in range(8)}
            graph.update({f"sum{i}": (add, f"part{i}", f"part{i - 1}") for i in range(1, 8)})
            graph["total"] = (lambda parts: int(sum(part.sum() for part in parts)), [f"sum{i}" for i in range(1, 8)])
            assert client.get(graph, ["total"]) == {"total": 49 * megabytes // 8}
            assert len(got) == 16 and sum(got) < 1000
            wait_until(lambda: not files_of(host), what="the host has forgotten all of it")
            # A kept result goes as well when it is its target's that reads it.
            large, total = client.submit_graph({**graph, "more": (add, "total", 1)}, ["sum1", "more"])
            assert total.result(SECONDS) == 49 * megabytes // 8 + 1 and large.result(SECONDS).nbytes == megabytes
            wait_until(lambda: not files_of(host))


# --------------------------------------------------------------------------------------------------------- what dies


def dies_once(log: str, value: Any) -> Any:
    note(log, "ran", "dies")
    if len(notes(log)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def dies(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_node_that_kills_its_worker(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    graph = {"a": (inc, 1), "b": (dies_once, log, "a"), "c": (add, "a", "b"), "d": (inc, "c")}
    assert client.get(graph, ["d", "b"]) == {"d": 5, "b": 2}
    assert len(notes(log)) == 2
    bad, after, good = client.submit_graph({"a": (inc, 1), "b": (dies, "a"), "c": (same, "b")}, ["b", "c", "a"])
    assert good.result(SECONDS) == 2
    for future in (bad, after):
        assert isinstance(future.exception(SECONDS), WorkerDiedError)


def wide(log: str, gate: str, width: int = 12) -> dict[Any, Any]:
    """Large values, half of which are made before the gate opens."""
    graph: dict[Any, Any] = {"base": (numpy.arange, 50_000)}
    graph.update({("made", i): (add, "base", i) for i in range(width)})
    graph.update({("read", i): (partial(at_gate, log, str(i), gate), ("made", i)) for i in range(width)})
    graph.update({("sum", i): (lambda array, _: int(array.sum()), ("made", i), ("read", i)) for i in range(width)})
    graph["total"] = (sum, [("sum", i) for i in range(width)])
    return graph


TOTAL = 12 * sum(range(50_000)) + 50_000 * sum(range(12))


def test_a_worker_that_is_killed_in_the_midst_of_a_graph(
    combo: SchedulerClusterCombo, tmp_path: Path, gate: Path
) -> None:
    log = str(tmp_path / "log")
    with Client(combo) as client:
        total, one = client.submit_graph(wide(log, str(gate)), ["total", ("sum", 3)])
        wait_until(lambda: len(notes(log)) == 2)
        for each in notes(log):
            os.kill(each.pid, signal.SIGKILL)
        wait_until(lambda: len(notes(log)) == 4, what="other workers")
        gate.touch()
        assert total.result(SECONDS) == TOTAL
        assert one.result(SECONDS) == sum(range(50_000)) + 150_000


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_scheduler_that_is_started_anew_in_the_midst_of_a_graph(tmp_path: Path, gate: Path, way: str) -> None:
    log = str(tmp_path / "log")
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN) as host:
        with Client(daemon.now.address, heartbeat_interval_seconds=0.2) as client:
            ref = client.send_object(numpy.arange(100_000))
            graph = {**wide(log, str(gate)), "object": (lambda array, _: int(array.sum()), ref, "total")}
            total, answered, of_object = client.submit_graph(graph, ["total", ("made", 1), "object"])
            assert answered.result(SECONDS)[0] == 1
            wait_until(lambda: len(notes(log)) == 2)
            daemon.kill() if way == "kill" else daemon.stop()
            daemon.start(daemon.now.address)
            with monitor(daemon.now.monitor_address) as watch:
                wait_until(lambda: watch.next().waiting > 0, what="the graph is there again")
            gate.touch()
            assert total.result(SECONDS) == TOTAL
            assert of_object.result(SECONDS) == sum(range(100_000))
            assert client.submit(len, ref).result(SECONDS) == 100_000
            del ref, of_object, graph
            wait_until(lambda: not files_of(host))


def test_a_scheduler_that_is_killed_again_and_again(tmp_path: Path) -> None:
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address, heartbeat_interval_seconds=0.2) as client:
            count = 30_000
            graph: dict[int, Any] = {0: (int,), **{key: (inc, key // 3) for key in range(1, count)}}
            targets = list(range(count - 500, count))
            expected = {0: 0}
            for key in range(1, count):
                expected[key] = expected[key // 3] + 1
            futures = client.submit_graph(graph, targets)
            for _ in range(3):
                with monitor(daemon.now.monitor_address) as watch:
                    wait_until(lambda: watch.next().resolved or futures[-1].done(), what="results")
                daemon.kill()
                daemon.start(daemon.now.address)
            assert [future.result(SECONDS) for future in futures] == [expected[key] for key in targets]


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


def test_leaving_a_graph_in_an_event_loop_cancels_it(combo: SchedulerClusterCombo, tmp_path: Path, gate: Path) -> None:
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
            gate.touch()
            assert await client.get(GRAPH, ["e"]) == {"e": 1}
            assert ran(log) == ["root"]

    asyncio.run(main())


# --------------------------------------------------------------------------------------------------------- serializers


class Tagged:
    """A serializer as an object; what it makes is not a pickle by itself."""

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
        assert client.map(lambda x, y: sum(x) + y, [(ref, i) for i in range(3)]) == [6, 7, 8]
        bad, good = client.submit_graph({"a": (divide, 1, 0), "b": (same, "a"), "c": (inc, 1)}, ["b", "c"])
        assert isinstance(bad.exception(SECONDS), ZeroDivisionError) and good.result(SECONDS) == 2

        def parent(client: Client) -> Any:
            return client.get(GRAPH, ["e"]), client.submit(sum, client.send_object([4, 5])).result()

        assert client.submit(parent, client).result(SECONDS) == ({"e": 1}, 9)
