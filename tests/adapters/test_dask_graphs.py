"""dask graphs on a real cluster: kinds of nodes, shapes of keys, errors, which nodes run."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import namedtuple
from operator import add, mul
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle
import numpy
import pytest
from dask._task_spec import Alias, DataNode, Dict, List, Set, Task, TaskRef, Tuple
from dask.local import get_sync

from scaler_client import Client, ClientClosedError, ResultPickleError, SchedulerClusterCombo
from scaler_client.commands.install_hints import install_hint
from scaler_client.graphs.dask import dask_get, plain_graph
from scaler_client.graphs.dask_annotations import Options

cloudpickle.register_pickle_by_value(sys.modules[__name__])

Point = namedtuple("Point", "x y")


def increment(number: int) -> int:
    return number + 1


def total(*numbers: Any) -> Any:
    return sum(numbers)


def fail(text: str) -> NoReturn:
    raise LookupError(text)


def same(value: Any) -> Any:
    return value


TUPLES: dict[Any, Any] = {
    "a": 2,
    "b": (increment, "a"),
    "c": (add, (mul, "a", "b"), (increment, (increment, "b"))),
    ("block", 0): (total, "a", ("block", 1)),
    ("block", 1): (sum, ["a", "b", 3]),
    "alias": "c",
    "alias of an alias": "alias",
    "list": ["a", ["b", "c"], 5],
    "None": None,
    "of None": (same, "None"),
    "word": "no key",
    "of a point": (same, Point(1, 2)),
    "twice": (add, "b", "b"),
    b"bytes": (increment, 7),
    8: (increment, 9),
    1.5: (increment, 8),
    "empty": (total,),
    "object": object,
}

NODES: dict[Any, Any] = {
    "x": DataNode("x", 1),
    "y": Task("y", increment, TaskRef("x")),
    "z": Task("z", total, TaskRef("x"), Alias("y"), Task(None, increment, TaskRef("y"))),
    "keywords": Task("keywords", dict, one=TaskRef("x"), two=List(TaskRef("y"), 5)),
    "name": Alias("name", "z"),
    "list": List(TaskRef("x"), List(TaskRef("y"), 3)),
    "tuple": Tuple(TaskRef("x"), "x"),
    "set": Set(TaskRef("x"), TaskRef("y")),
    "dict": Dict({"k": TaskRef("z"), "l": Dict({"m": TaskRef("y")})}),
    "legacy": (add, "y", "z"),
    ("block", 0, 1): Task(("block", 0, 1), sum, List(TaskRef("x"), TaskRef("y"))),
}


@pytest.mark.parametrize("dsk", [TUPLES, NODES], ids=["tuples", "nodes"])
def test_every_kind_of_node(dsk: dict[Any, Any], client: Client) -> None:
    keys = list(dsk)
    assert client.dask_get(dsk, keys) == get_sync(dsk, keys)
    for key in keys:
        assert client.dask_get(dsk, key) == get_sync(dsk, key)


@pytest.mark.parametrize(
    "keys", ["b", ["b"], ["a", "b"], [["a", ["b"]], [], "c", ["a"]], [], ("block", 1), [("block", 0)]]
)
def test_keys_of_any_shape(keys: Any, client: Client) -> None:
    ours = client.dask_get(TUPLES, keys)
    assert ours == get_sync(TUPLES, keys)
    assert type(ours) is (tuple if isinstance(keys, list) else int)


def test_the_exception_of_a_node_is_raised(client: Client) -> None:
    dsk = {"a": (fail, "went wrong"), "b": (increment, "a"), "c": (increment, 1)}
    with pytest.raises(LookupError, match=r"^'?went wrong'?(\n|$)") as ours:
        client.dask_get(dsk, ["c", "b"])
    assert "in fail" in str(ours.value.__cause__)
    assert client.dask_get(dsk, "c") == 2


def test_only_needed_nodes_run(client: Client, tmp_path: Path) -> None:
    dsk = {"a": 1, "b": (increment, "a"), "c": (fail, "not needed"), "d": (Path.touch, tmp_path / "touched")}
    assert client.dask_get(dsk, ["b", "a"]) == (2, 1)
    assert not (tmp_path / "touched").exists()


def test_each_node_runs_once(client: Client, tmp_path: Path) -> None:
    def note(folder: Path) -> int:
        with open(folder / "runs", "a") as file:
            file.write("x")
        return 5

    readers = {("reader", i): (add, "once", i) for i in range(10)}
    dsk = {"once": (note, tmp_path), **readers, "alias": "once"}
    assert client.dask_get(dsk, [list(readers), "once", "alias"]) == (tuple(range(5, 15)), 5, 5)
    assert (tmp_path / "runs").read_text() == "x"


def test_values_are_not_mistaken_for_keys(client: Client) -> None:
    dsk = {"a": {"b": 1}, "b": (same, "a"), "c": [], "d": (same, "c"), "e": (len, {"a": "a"})}
    assert client.dask_get(dsk, ["b", "d", "e"]) == get_sync(dsk, ["b", "d", "e"])


@pytest.mark.parametrize(
    ("dsk", "keys", "kind", "text"),
    [
        ([("a", 1)], "a", TypeError, "needs a dask graph, not a list"),
        (None, "a", TypeError, "needs a dask graph, not a NoneType"),
        ({"a": 1}, "b", KeyError, "'b'"),
        ({"a": 1}, ["a", ["b"]], KeyError, "'b'"),
        ({"a": Task("a", increment, TaskRef("gone"))}, "a", ValueError, "no key 'gone', which 'a' needs"),
        ({"a": Alias("a", "gone")}, "a", ValueError, "no key 'gone', which 'a' needs"),
        ({"a": (increment, "b"), "b": (increment, "a")}, "a", RuntimeError, "Cycle detected"),
        ({"a": "b", "b": "a"}, "a", RuntimeError, "Cycle detected"),
    ],
)
def test_bad_graphs_and_keys(dsk: Any, keys: Any, kind: type[Exception], text: str, client: Client) -> None:
    with pytest.raises(kind, match=text):
        client.dask_get(dsk, keys)


def test_a_node_that_cannot_be_pickled(client: Client) -> None:
    with pytest.raises(TypeError, match="can't be pickled"):
        client.dask_get({"a": 1, "b": (same, threading.Lock())}, ["a", "b"])


def test_a_failure_cancels_waiting_nodes(client: Client, tmp_path: Path) -> None:
    def late(folder: Path, number: int) -> None:
        time.sleep(0.05)
        (folder / str(number)).touch()

    dsk: dict[Any, Any] = {"bad": (fail, "at once"), **{("late", i): (late, tmp_path, i) for i in range(200)}}
    with pytest.raises(LookupError):
        client.dask_get(dsk, list(dsk))
    assert client.submit(increment, 1).result(30) == 2  # after all tasks that could still run
    assert len(list(tmp_path.iterdir())) < 200


def test_a_client_that_disconnects_meanwhile(combo: SchedulerClusterCombo) -> None:
    def leave(_: Any) -> None:
        client.disconnect()

    with Client(combo.get_address(), timeout_seconds=30) as client:
        client.submit(increment, 1).add_done_callback(leave)
        with pytest.raises(ClientClosedError):
            client.dask_get({"long": (time.sleep, 60)}, "long")


def test_large_literals_are_shared_and_small_ones_are_not(client: Client) -> None:
    def is_shared(array: Any) -> bool:
        return not array.flags.writeable

    large, small = numpy.zeros(100_000), numpy.zeros(10)
    dsk = {
        "large": large,
        "small": small,
        "a": (is_shared, "large"),
        "b": (is_shared, "large"),
        "c": (is_shared, "small"),
    }
    assert client.dask_get(dsk, ["a", "b", "c"]) == (True, True, False)
    assert client.dask_get(dsk, "large") is large


def test_tasks_are_named_after_their_dask_keys(client: Client) -> None:
    key = ("load-0123456789abcdef0123456789abcdef", 3)
    with pytest.raises(ResultPickleError, match=r"\bload\b"):
        client.dask_get({key: (threading.Lock,)}, key)


def test_chains_become_one_call() -> None:
    dsk = {"a": 1, "b": (increment, "a"), "c": (increment, "b"), "d": (increment, "c"), "e": (increment, "c"), "f": "e"}
    graph = plain_graph(dsk, {"d", "f"}, Options(dsk))
    assert graph.resolved == {"d": "d", "f": "e"} and set(graph.targets) == {"d", "e"}
    assert set(graph.calls) == {"c", "d", "e"} and graph.literals == {"a": 1}
    chain = graph.calls["c"]
    assert [node.key for node in chain.nodes] == ["b", "c"] and chain.inputs == ("a",)
    assert graph.calls["d"].inputs == ("c",)
    # A target is not merged into its reader.
    assert set(plain_graph(dsk, {"b", "d", "e"}, Options(dsk)).calls) == {"b", "c", "d", "e"}


@pytest.mark.parametrize("call", ["get", "submit_graph"])
def test_get_points_to_dask_get_for_dask_graphs(call: str, client: Client) -> None:
    with pytest.raises(TypeError, match=r"pass it to client.dask_get"):
        getattr(client, call)(NODES, ["y"])


def test_a_dask_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask._task_spec", None)
    with pytest.raises(ImportError, match=re.escape(f"dask_get needs dask 2024.12 or newer: {install_hint('dask')}")):
        dask_get(None, {"a": 1}, ["a"])  # type: ignore[arg-type]
