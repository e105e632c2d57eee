"""dask's locks are locks of the cluster. Only the calls that use a lock hold it; one lock does not block another."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy
from dask._task_spec import Task, TaskRef
from dask.utils import SerializableLock
from tests.adapters.conftest import WORKERS

from scaler_client import Client
from scaler_client.graphs.dask import plain_graph
from scaler_client.graphs.dask_annotations import Options

cloudpickle.register_pickle_by_value(sys.modules[__name__])

WRITES = 100


class Target:
    """An array in a folder. It counts its writes in a file, by reading and writing it again: writes that overlap lose
    counts."""

    def __init__(self, folder: Path, shape: tuple[int, ...]) -> None:
        self.count = folder / "count"
        self.count.write_text("0")
        self.shape = shape
        self.dtype = numpy.dtype(float)

    def __setitem__(self, place: Any, chunk: Any) -> None:
        assert (chunk == 2).all()
        for _ in range(WRITES):
            text = self.count.read_text()
            self.count.write_text(str(int(text or -10_000_000) + 1))


def meet(block: Any, folder: Path) -> Any:
    """Wait until another process computes a block."""
    (folder / f"process-{os.getpid()}").touch()
    deadline = time.monotonic() + 30
    while len(list(folder.glob("process-*"))) < WORKERS:
        assert time.monotonic() < deadline, "no other worker computes a block"
        time.sleep(0.01)
    return block + 1


def test_a_store_writes_one_chunk_at_once_and_computes_several(client: Client, tmp_path: Path) -> None:
    ones = da.ones((8, 8), chunks=2)
    target = Target(tmp_path, ones.shape)
    da.store(ones.map_blocks(meet, tmp_path, dtype=float), target, lock=True, scheduler=client.dask_get)
    assert int(target.count.read_text()) == 16 * WRITES


def test_a_lock_holds_in_several_computes_at_once(client: Client, tmp_path: Path) -> None:
    lock = SerializableLock("test of several computes")
    target = Target(tmp_path, (4, 4))
    stores = [da.store(da.full((4, 4), 2.0, chunks=1), target, lock=lock, compute=False)]
    stores.append(da.store(da.ones((4, 4), chunks=1) + 1, target, lock=SerializableLock(lock.token), compute=False))
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda store: store.compute(scheduler=client.dask_get), stores))
    assert int(target.count.read_text()) == 32 * WRITES


def limits(*read: Any, lock: Any = None) -> tuple[str, ...]:
    return ()


def test_only_calls_with_a_lock_have_its_limit() -> None:
    first, second = SerializableLock("a"), SerializableLock("b")
    dsk = {
        "plain": (limits,),
        "one": Task("one", limits, TaskRef("plain"), lock=first),
        "both": Task("both", limits, TaskRef("one"), {"in": [first, second]}),
        "data": second,
        "by key": (limits, "data"),
        "reader": (limits, "one", "both", "by key"),
    }
    options = Options(dsk, ["db"])
    graph = plain_graph(dsk, {"reader"}, options)
    of = {key: set(options.of(key).get("limit", ())) - {"db"} for key in graph.calls}
    assert all("db" in options.of(key)["limit"] for key in of if of[key])  # the view's own limits still hold
    assert not of["plain"] and not of["reader"] and len(of["one"]) == len(of["by key"]) == 1
    assert of["one"] != of["by key"] and of["both"] == of["one"] | of["by key"]
    again = Options({})
    plain_graph({"x": (limits, SerializableLock("a"))}, {"x"}, again)
    assert set(again.of("x")["limit"]) == of["one"]


def test_annotations_hold_for_both_parts_of_a_fused_call() -> None:
    with dask.annotate(priority=3):
        written = da.store(da.ones(4, chunks=2) + 1, numpy.zeros(4), lock=SerializableLock("c"), compute=False)
    (written,) = dask.optimize(written)
    dsk = written.__dask_graph__()
    keys = set(written.__dask_keys__())
    options = Options(dsk)
    graph = plain_graph(dsk, keys, options)
    with_locks = [key for key in graph.calls if "limit" in options.of(key)]
    assert len(with_locks) == 2
    for key in with_locks:
        (before,) = graph.calls[key].inputs
        assert options.of(before).get("priority") == options.of(key).get("priority")
