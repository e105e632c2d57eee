"""Graphs of tasks, with real processes."""

from __future__ import annotations

import random
import time
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from tests.integration.commands import cluster, scheduler
from tests.integration.executions import note, notes
from tests.integration.graph_parts import GRAPH, SECONDS, add, at_gate, divide, inc, minus, noting, ran, same
from tests.integration.host_files import files_of
from tests.waiting import wait_until

from scaler_client import Client, TaskTimeoutError

# --------------------------------------------------------------------------------------------------- what a graph says


def test_a_small_graph(client: Client) -> None:
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
def test_kinds_of_nodes(client: Client, graph: dict[Any, Any], values: dict[Any, Any]) -> None:
    assert client.get(graph, list(values)) == values


def test_a_key_that_is_requested_twice(client: Client) -> None:
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
        ([GRAPH], ["e"], TypeError, "a graph must be a dict of keys and nodes, not list"),
        (GRAPH, "e", TypeError, "keys must be a list of a graph's keys, not 'e'"),
        (GRAPH, [["e"]], TypeError, r"\['e'\] can't be a graph's key: unhashable type: 'list'"),
    ],
)
@pytest.mark.parametrize("way", ["get", "submit_graph"])
def test_bad_graphs_raise_before_any_node_runs(
    client: Client, tmp_path: Path, way: str, graph: Any, keys: Any, error: type[Exception], text: str
) -> None:
    log = str(tmp_path / "log")
    if isinstance(graph, dict) and isinstance(keys, list) and "e" not in keys[:1]:
        graph, keys = {**graph, "first": (partial(noting, log, "first"),)}, ["first", *keys]
    with pytest.raises(error, match=text):
        getattr(client, way)(graph, keys)
    assert client.submit(inc, 1).result(SECONDS) == 2
    assert not notes(log)


def test_only_needed_nodes_run_and_each_once(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    graph: dict[str, Any] = {"root": (partial(noting, log, "root"),)}
    graph.update({f"leaf{i}": (partial(noting, log, f"leaf{i}"), "root") for i in range(10)})
    graph["all"] = (partial(noting, log, "all"), [f"leaf{i}" for i in range(10)])
    assert client.get(graph, ["leaf3", "leaf7"]) == {"leaf3": "leaf3", "leaf7": "leaf7"}
    assert ran(log) == ["leaf3", "leaf7", "root"]


def test_a_graph_of_many_kinds(client: Client) -> None:
    """Random nodes, some of which fail: values equal those of Python, and only readers of failed nodes fail."""
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
    for i in range(600, 800):  # some read failed nodes
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


def test_options_apply_to_all_nodes(client: Client, tmp_path: Path) -> None:
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


def test_a_failed_node_fails_only_its_readers(client: Client) -> None:
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


def test_cancelling_a_target_cancels_nodes_that_only_it_needs(client: Client, tmp_path: Path, gate: Path) -> None:
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


def test_stopping_a_running_target(client: Client, tmp_path: Path, gate: Path) -> None:
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


def test_intermediate_values_stay_on_hosts_and_are_freed(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2) as host:
        with Client(daemon.address, heartbeat_interval_seconds=0.2) as client:
            got: list[int] = []
            resolve_all = client._connection._session.tasks.resolve_all

            def record(message: Any) -> None:
                got.extend(map(len, message.payloads))
                resolve_all(message)

            client._connection._session.tasks.resolve_all = record  # type: ignore[method-assign]
            megabytes = 1 << 20
            graph: dict[str, Any] = {f"part{i}": (numpy.full, megabytes // 8, i) for i in range(8)}
            graph.update({f"sum{i}": (add, f"part{i}", f"part{i - 1}") for i in range(1, 8)})
            graph["total"] = (lambda parts: int(sum(part.sum() for part in parts)), [f"sum{i}" for i in range(1, 8)])
            assert client.get(graph, ["total"]) == {"total": 49 * megabytes // 8}
            assert len(got) == 16 and sum(got) < 1000
            wait_until(lambda: not files_of(host), what="the host has freed all results")
            # A kept result is freed too if its only reader is a target.
            large, total = client.submit_graph({**graph, "more": (add, "total", 1)}, ["sum1", "more"])
            assert total.result(SECONDS) == 49 * megabytes // 8 + 1 and large.result(SECONDS).nbytes == megabytes
            wait_until(lambda: not files_of(host))
