"""Files that xarray writes by `dask_get`: no two tasks write to one file at once, and each closes it."""

from __future__ import annotations

import pickle
import sys
import threading
import types
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.utils
import numpy
import pytest
from dask._task_spec import Task

from scaler_client import Client
from scaler_client.graphs.dask import BoundNodes, plain_graph
from scaler_client.graphs.dask_annotations import Options

VALUES = numpy.arange(16 * 6.0).reshape(16, 6)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("at_once", [True, False])
def test_xarray_writes_right_files(client: Client, tmp_path: Path, engine: str, at_once: bool) -> None:
    pytest.importorskip({"netcdf4": "netCDF4", "h5netcdf": "h5netcdf"}[engine])
    xarray = pytest.importorskip("xarray")
    chunks = da.from_array(VALUES, chunks=(2, 3))
    path = tmp_path / "data.nc"
    for mode, names in (("w", ("first", "second")), ("a", ("third",))):
        dataset = xarray.Dataset({name: (("x", "y"), chunks * len(name)) for name in names})
        if at_once:
            with dask.config.set(scheduler=client.dask_get):
                dataset.to_netcdf(path, mode=mode, engine=engine)
        else:
            dataset.to_netcdf(path, mode=mode, engine=engine, compute=False).compute(scheduler=client.dask_get)
    with xarray.open_dataset(path, engine=engine) as written:
        for name in ("first", "second", "third"):
            assert (written[name].values == VALUES * len(name)).all()


class Manager:
    """As xarray's CachingFileManager."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock


class Store:
    """As xarray's NetCDF4DataStore and H5NetCDFStore."""

    def __init__(self, lock: Any, path: str) -> None:
        self.lock = lock
        self.autoclose = False
        self.closed = 0
        self._filename = path
        self._manager = Manager(lock)

    def close(self) -> None:
        self.closed += 1


class OneProcessStore:
    """As xarray's ScipyDataStore."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock


class Array:
    """As the arrays of these stores."""

    def __init__(self, datastore: Any) -> None:
        self.datastore = datastore


class CombinedLock:
    def __init__(self, locks: Any) -> None:
        self.locks = tuple(locks)


@pytest.fixture
def xarray_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for xarray's modules, with the same kinds of locks."""
    common: Any = types.ModuleType("xarray.backends.common")
    common.BackendArray, common.WritableCFDataStore = Array, Store
    locks: Any = types.ModuleType("xarray.backends.locks")
    locks.SerializableLock, locks.combine_locks = dask.utils.SerializableLock, CombinedLock
    for module in (common, locks):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def write(*inputs: Any) -> None: ...


def limits_of(nodes: dict[str, Any]) -> dict[Any, set[str]]:
    options = Options(nodes)
    graph = plain_graph(nodes, set(nodes), options)
    return {key: set(options.of(key).get("limit", ())) for key in graph.calls}


@pytest.mark.usefixtures("xarray_modules")
def test_writes_to_one_file_have_one_limit() -> None:
    library = dask.utils.SerializableLock("HDF5")
    own = threading.Lock()
    store = Store(CombinedLock([library, own]), "/a.nc")
    reader = Store(CombinedLock([library]), "/read.nc")
    nodes = {
        "one": Task("one", write, Array(store)),
        "two": Task("two", write, Array(store)),
        "close": Task("close", write, store),
        "other": Task("other", write, Array(Store(threading.Lock(), "/b.nc"))),
        "read": Task("read", write, Array(reader)),
    }
    of = limits_of(nodes)
    assert len(of["one"]) == len(of["other"]) == 1
    assert of["one"] == of["two"] == of["close"] != of["other"]
    assert not of["read"] and not reader.autoclose and not reader.closed
    assert store.autoclose and store.closed == 1
    loaded = pickle.loads(pickle.dumps(BoundNodes((nodes["one"],), (), {})))  # without a lock of threads
    assert loaded._nodes[0].args[0].datastore.autoclose
    with own:
        assert [each.locked() for each in store.lock.locks] == [False, True]  # threads of the program share the lock


@pytest.mark.usefixtures("xarray_modules")
def test_a_file_of_one_process_says_so() -> None:
    with pytest.raises(NotImplementedError, match="engine='netcdf4'"):
        limits_of({"one": Task("one", write, Array(OneProcessStore(threading.Lock())))})
