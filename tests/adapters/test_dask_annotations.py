"""dask's annotations are options of the tasks: groups of equal options, resources, limits, errors."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.bag
import pytest
from dask.highlevelgraph import HighLevelGraph

from scaler_client import Client, KeptFuture, SchedulerClusterCombo, current_task
from scaler_client.errors import TaskRefusedError
from scaler_client.graphs.dask_annotations import Options, groups_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=2, resources={"gpu": 2}, limits={"db": 1}) as combo:
        yield combo


def held(*read: Any) -> list[Any]:
    """The resources of this task and its cpus, behind those of the tasks that it reads."""
    task = current_task()
    assert task is not None
    return [*(each for one in read for each in one), (len(task.resources.get("gpu", ())), task.cpus)]  # type: ignore[arg-type]


def annotated(graph: dict[Any, Any], **annotations: dict[Any, dict[str, Any]]) -> HighLevelGraph:
    """A graph in which each key is a layer with its annotations, as of older dask."""
    layers = {key: {key: node} for key, node in graph.items()}
    dependencies = {key: {each for each in node[1:] if each in graph} for key, node in graph.items()}
    found = HighLevelGraph(layers, dependencies)
    for key, each in annotations.items():
        found.layers[key].annotations = each
    return found


def test_groups_are_behind_those_that_they_read() -> None:
    graph = annotated(dict.fromkeys("abcde", (held,)), b={"priority": 1}, d={"priority": 1}, e={"workers": "x"})
    options = Options(graph)
    assert options.of("b") == {"priority": 1} and options.of("a") == options.of("e") == {}
    inputs = {"a": (), "b": (), "c": ("a",), "d": ("c", "b"), "e": ("d", "a", "literal")}
    assert groups_of(inputs, options) == [["b"], ["a", "c"], ["d"], ["e"]]
    assert not Options({"a": 1}) and not Options(annotated({"a": (held,)}, a={"workers": "x"}))


def test_tasks_get_what_their_annotations_ask_for(client: Client) -> None:
    graph = {"a": (held,), "b": (held, "a"), "c": (held, "b", "a"), "d": (held, "c")}
    wanted = [(0, 1), (1, 2), (0, 1), (0, 1), (2, 1)]
    hlg = annotated(graph, b={"resources": {"gpu": 0.5}, "cpus": 2}, d={"resources": {"gpu": 2}, "limit": "db"})
    assert client.dask_get(hlg, "d") == wanted
    assert client.dask_get(hlg, ["a", "d", ["b"]]) == ([(0, 1)], wanted, (wanted[:2],))
    assert client.options(resources={"gpu": 1}).dask_get(hlg, "a") == [(1, 1)]


def test_annotations_of_delayed_calls_and_arrays(client: Client) -> None:
    with dask.annotate(resources={"gpu": 2}):
        two = dask.delayed(held)()
    one = dask.delayed(held)(two)
    assert dask.compute(one, two, scheduler=client.dask_get) == ([(2, 1), (0, 1)], [(2, 1)])
    with dask.annotate(resources={"gpu": 1}, priority=2):
        ones = da.ones((100, 100), chunks=(50, 50)).map_blocks(lambda block: block + held()[0][0], dtype=float)
    with dask.config.set({"optimization.fuse.active": False}):  # dask's fusion drops annotations
        assert ones.sum().compute(scheduler=client.dask_get) == 20_000


def test_results_may_be_kept(client: Client) -> None:
    hlg = annotated({"a": (held,), "b": (held, "a")}, b={"resources": {"gpu": 1}})
    kept = client.options(keep=True).dask_get(hlg, "b")
    assert isinstance(kept, KeptFuture) and kept.result() == [(0, 1), (1, 1)]


def fail(*read: Any) -> None:
    raise LookupError("went wrong")


def test_the_first_failure_is_raised(client: Client) -> None:
    graph = {"a": (fail,), "b": (held, "a"), "c": (held, "b")}
    with pytest.raises(LookupError, match="went wrong"):
        client.dask_get(annotated(graph, b={"resources": {"gpu": 1}}), "c")


def fail_twice(folder: Path, *_read: Any) -> int:
    runs = len(list(folder.iterdir()))
    (folder / str(runs)).touch()
    if runs < 2:
        raise KeyError(runs)
    return runs


@pytest.mark.parametrize(
    ("annotations", "runs"),
    [
        ({"retries": 5}, 3),  # as in dask: after any exception
        ({"retries": 1}, 2),
        ({"retries": 5, "retry_on": OSError}, 1),
        ({"retry_on": (LookupError, OSError)}, 3),
    ],
)
def test_retries_after_exceptions(client: Client, tmp_path: Path, annotations: Any, runs: int) -> None:
    with dask.annotate(**annotations):
        value = dask.delayed(fail_twice)(tmp_path)
    view = client.options(retry_on=ZeroDivisionError)
    if runs == 3:
        assert value.compute(scheduler=view.dask_get) == 2
    else:
        with pytest.raises(KeyError):
            value.compute(scheduler=view.dask_get)
    assert len(list(tmp_path.iterdir())) == runs


@pytest.mark.parametrize(
    ("keywords", "runs"),
    [({"retries": 5}, 3), ({"retries": 1, "num_workers": 2}, 2), ({"retries": 5, "retry_on": OSError}, 1), ({}, 1)],
)
def test_retries_as_a_keyword_of_compute(client: Client, tmp_path: Path, keywords: Any, runs: int) -> None:
    value = dask.delayed(fail_twice)(tmp_path)
    if runs == 3:
        assert value.compute(scheduler=client.dask_get, **keywords) == 2
    else:
        with pytest.raises(KeyError):
            value.compute(scheduler=client.dask_get, **keywords)
    assert len(list(tmp_path.iterdir())) == runs


def test_an_annotation_goes_before_a_keyword(client: Client, tmp_path: Path) -> None:
    with dask.annotate(retries=0), pytest.raises(KeyError):
        dask.delayed(fail_twice)(tmp_path).compute(scheduler=client.dask_get, retries=5)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_bag_keeps_its_annotations_without_optimization(client: Client, tmp_path: Path) -> None:
    with dask.annotate(retries=5):
        bag = dask.bag.from_sequence([tmp_path]).map(fail_twice)
    assert bag.compute(scheduler=client.dask_get, optimize_graph=False) == [2]


def test_an_unknown_keyword_is_logged_once(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        value = dask.delayed(abs)(-1).compute(scheduler=client.dask_get, retrys_=3, num_workers=2, pool=None)
        assert value == 1
    assert [record.getMessage() for record in caplog.records if "keyword" in record.getMessage()] == [
        "dask's keyword 'retrys_' has no effect; supported keywords: capabilities, cpus, limit, priority, "
        "resources, retries, retry_on, timeout"
    ]


def test_an_annotation_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    graph = annotated({"a": (held,), "b": (held,)}, a={"retrys": 3}, b={"retrys": 4, "priority": 1})
    assert Options(graph).of("b") == Options(graph).of("b") == {"priority": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "dask's annotation 'retrys' has no effect; supported annotations: capabilities, cpus, limit, priority, "
        "resources, retries, retry_on, timeout"
    ]


@pytest.mark.parametrize(
    ("annotations", "error", "text"),
    [
        ({"resources": {"gpu": -1}}, ValueError, "the amount of gpu must be above 0 .* not -1"),
        ({"cpus": math.nan}, ValueError, "nan is no amount of cpus"),
        ({"priority": 1.5}, TypeError, "priority must be a whole number, not 1.5"),
        ({"limit": "dbx"}, TaskRefusedError, "the limit 'dbx' is not defined .*; defined: db"),
    ],
)
def test_wrong_annotations(client: Client, annotations: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        client.dask_get(annotated({"a": (held,), "b": (held, "a")}, b=annotations), "b")
