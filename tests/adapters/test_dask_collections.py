"""dask collections on a real cluster: results equal those of dask's own scheduler."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from scaler_client import Client, SchedulerClusterCombo

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def both(client: Client) -> Callable[..., tuple[Any, Any]]:
    """Compute collections on the cluster and with dask's own scheduler."""

    def compute(*collections: Any) -> tuple[Any, Any]:
        return dask.compute(*collections, scheduler=client.dask_get), dask.compute(*collections, scheduler="sync")

    return compute


def arrays() -> dict[str, Any]:
    x = da.from_array(np.arange(600.0).reshape(30, 20), chunks=(10, 7))
    noise = da.random.default_rng(7).random((40, 30), chunks=(13, 11))
    return {
        "elementwise": (x + 1) * 2 - x.T.T,
        "mean of columns": x.mean(axis=0),
        "matrix product": x @ noise[:20, :],
        "slices": x[3:17:2, ::-1],
        "rechunked": x.rechunk((7, 20)).sum(axis=1),
        "overlap": da.map_overlap(lambda block: block * 2, x, depth=1, boundary="reflect"),
        "singular values": da.linalg.svd(noise.rechunk((13, 30)))[1],
        "histogram": da.histogram(noise, bins=5, range=(0, 1))[0],
        "random": noise,
    }


@pytest.mark.parametrize("name", arrays())
def test_arrays(name: str, both: Callable[..., Any]) -> None:
    (ours,), (theirs,) = both(arrays()[name])
    assert isinstance(ours, np.ndarray)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def frame() -> Any:
    data = pd.DataFrame({"key": list("abcab") * 12, "number": range(60), "weight": np.linspace(0, 1, 60)})
    return dd.from_pandas(data, npartitions=4)


def frames() -> dict[str, Callable[[Any], Any]]:
    return {
        "column": lambda f: f.number + 1,
        "filter": lambda f: f[f.number > 20].weight,
        "group": lambda f: f.groupby("key").agg({"number": "sum", "weight": "mean"}),
        "apply to groups": lambda f: f.groupby("key").number.apply(max, meta=("number", "int64")),
        "merge": lambda f: f.merge(f.groupby("key").number.max().to_frame(), left_on="key", right_index=True),
        "set index": lambda f: f.set_index("number"),
        "value counts": lambda f: f.key.value_counts(),
        "quantile": lambda f: f.weight.quantile(0.5),
        "rolling": lambda f: f.number.rolling(3).sum(),
        "drop duplicates": lambda f: f.key.drop_duplicates(),
    }


@pytest.mark.parametrize("name", frames())
@pytest.mark.parametrize("shuffle", ["tasks", "disk"])
def test_frames(name: str, shuffle: str, both: Callable[..., Any]) -> None:
    with dask.config.set({"dataframe.shuffle.method": shuffle}):
        (ours,), (theirs,) = both(frames()[name](frame()))
    assert type(ours) is type(theirs)
    if isinstance(theirs, (pd.Series, pd.DataFrame)):
        kind = pd.testing.assert_series_equal if isinstance(theirs, pd.Series) else pd.testing.assert_frame_equal
        kind(ours.sort_index(), theirs.sort_index())
    else:
        assert ours == theirs


def test_bags(both: Callable[..., Any]) -> None:
    bag = db.from_sequence(range(100), npartitions=7)
    by_rest = bag.groupby(lambda number: number % 5).map(lambda group: (group[0], sum(group[1])))
    collections = [
        bag.map(lambda number: number * 2).filter(lambda number: number % 3 == 0),
        bag.sum(),
        bag.fold(operator.add),
        bag.map(str).frequencies().topk(3, key=lambda pair: (pair[1], pair[0])),
        bag.random_sample(0.3, random_state=1),
        by_rest,
    ]
    ours, theirs = both(*collections)
    assert sorted(ours[-1]) == sorted(theirs[-1])
    assert ours[:-1] == theirs[:-1]


def test_delayed(both: Callable[..., Any]) -> None:
    @delayed
    def add(a: int, b: int = 10) -> int:
        return a + b

    @delayed(nout=2)
    def divide(a: int, b: int) -> tuple[int, int]:
        return divmod(a, b)

    quotient, rest = divide(add(1), 4)
    tree = delayed(sum)([add(i, b=quotient) for i in range(5)])
    mixed = delayed({"sum": tree, "rest": [rest, (rest, quotient)], "plain": 1})
    attribute = delayed(complex)(tree, rest).real
    ours, theirs = both(tree, mixed, attribute, [{"nested": tree}], "as it is")
    assert ours == theirs
    assert ours[1]["rest"] == [3, (3, 2)]


def test_collections_of_all_kinds_at_once(both: Callable[..., Any]) -> None:
    x = da.ones((4, 4), chunks=2)
    ours, theirs = both({"array": x.sum(), "bag": db.from_sequence([1, 2]).sum()}, [frame().number.sum(), delayed(3)])
    assert ours == theirs == ({"array": 16.0, "bag": 3}, [1770, 3])


def test_as_the_configured_scheduler(client: Client) -> None:
    with dask.config.set(scheduler=client.dask_get):
        assert da.arange(10, chunks=3).sum().compute() == 45


def test_persist_and_compute_again(client: Client) -> None:
    kept = (da.arange(10, chunks=3) + 1).persist(scheduler=client.dask_get)
    assert kept.sum().compute(scheduler=client.dask_get) == 55


def test_inside_a_task(client: Client) -> None:
    def total(client: Client, size: int) -> float:
        return float(da.ones(size, chunks=10).sum().compute(scheduler=client.dask_get))

    futures = [client.submit(total, client, size) for size in (50, 60, 70)]
    assert [future.result(60) for future in futures] == [50, 60, 70]


def test_a_dask_graph_inside_a_task_on_one_worker() -> None:
    def total(client: Client) -> int:
        return int(da.ones(50, chunks=5).sum().compute(scheduler=client.dask_get))

    with SchedulerClusterCombo(n_workers=1) as combo, Client(combo.get_address(), timeout_seconds=30) as client:
        assert client.submit(total, client).result(60) == 50


def times(numbers: list[int], scale: dict[str, Any], more: Any = None) -> Any:
    return sum(numbers) * scale["factor"], more


def test_futures_stand_for_their_results(client: Client) -> None:
    done, kept = client.submit(operator.add, 1, 2), client.options(keep=True).submit(list, range(4))
    (node,) = client.submit_graph({"a": (operator.neg, -10)}, ["a"])
    assert done.result(60) == 3
    lazy = delayed(times)(kept, {"factor": node}, more=({done}, [(done, client.submit(operator.neg, 7))]))
    for get in (client.dask_get, client.options(priority=2).dask_get):
        assert lazy.compute(scheduler=get) == (60, ({3}, [(3, -7)]))
    assert lazy.persist(scheduler=client.options(keep=True).dask_get).compute(scheduler=client.dask_get)[0] == 60
    open_future = client.submit(operator.neg, 5)
    assert dask.compute(*map(delayed, (done, kept, node, open_future)), scheduler=client.dask_get) == (
        3, [0, 1, 2, 3], 10, -5,
    )  # fmt: skip
    bag = db.from_sequence([done, node], npartitions=2).map(operator.add, open_future)
    assert bag.compute(scheduler=client.dask_get) == [-2, 5]


def test_a_failed_future_is_named(client: Client) -> None:
    failed = client.submit(operator.truediv, 1, 0)
    with pytest.raises(ZeroDivisionError) as raised:
        delayed(operator.add)(failed, 1).compute(scheduler=client.dask_get)
    assert f"(task truediv#{failed.task_id}, an input of node 'add-" in str(raised.value.__cause__)
