"""dask's `persist` with results that stay on their hosts."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from scaler_client import Client, KeptFuture, ObjectRef

dask_array = pytest.importorskip("dask.array")


def kept_in(collection: Any) -> list[KeptFuture[Any]]:
    """The results that a persisted collection consists of."""
    return [getattr(node, "value", node) for node in dict(collection.__dask_graph__()).values()]


def test_a_persisted_array_is_read_where_it_is(client: Client) -> None:
    keep = client.options(keep=True)
    array = dask_array.arange(4000, chunks=1000) * 2
    persisted = array.persist(scheduler=keep.dask_get)
    kept = kept_in(persisted)
    assert len(kept) == 4 and all(type(each) is KeptFuture for each in kept)
    assert (persisted + 1).sum().compute(scheduler=client.dask_get) == 2 * sum(range(4000)) + 4000
    assert all(each._value is None for each in kept), "no value came to the client"
    assert (persisted.compute(scheduler=client.dask_get) == array.compute(scheduler=client.dask_get)).all()
    again = (persisted * 2).persist(scheduler=keep.dask_get)
    del persisted, kept
    assert again.max().compute(scheduler=client.dask_get) == 3999 * 4


def test_a_persisted_frame_of_several_operations_is_read_where_it_is(client: Client) -> None:
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    keep = client.options(keep=True)
    frame = frames.from_pandas(pandas.DataFrame({"k": [1, 2] * 50, "x": range(100)}), npartitions=4)
    persisted = frame.assign(z=1)[frame.x > 9].persist(scheduler=keep.dask_get)
    assert persisted.z.sum().compute(scheduler=client.dask_get) == 90
    assert persisted.groupby("k").x.sum().compute(scheduler=client.dask_get).sum() == sum(range(10, 100))


def test_the_parts_of_a_persisted_frame_stay_until_it_is_dropped(client: Client) -> None:
    """If a host is lost, the tasks of the frame run again, and read these parts."""
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = frames.from_pandas(pandas.DataFrame({"x": range(100_000)}), npartitions=2)
    persisted = frame.map_partitions(lambda part: part * 2).persist(scheduler=client.options(keep=True).dask_get)
    kept = [each for each in kept_in(persisted) if isinstance(each, KeptFuture)]
    client.wait(kept)
    del frame
    gc.collect()
    assert client.submit(len, kept[0]).result() == 50_000  # everything that was to be forgotten was sent before
    inputs = [each for future in kept for each in future.stored.payload.inputs]
    assert [each.stored.is_gone for each in inputs if isinstance(each, ObjectRef)] == [False, False]


def test_a_future_is_an_argument_of_a_method_of_a_frame(client: Client) -> None:
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    factor = client.submit(int, "3")
    frame = frames.from_pandas(pandas.DataFrame({"x": range(10)}), npartitions=2)
    product = frame.map_partitions(lambda part, number: part.x * number, factor, meta=("x", "i8"))
    assert product.sum().compute(scheduler=client.dask_get) == 3 * sum(range(10))
