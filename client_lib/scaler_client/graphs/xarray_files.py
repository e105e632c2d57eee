"""The files that xarray writes by dask (`Dataset.to_netcdf`), prepared for writes by several processes.

xarray knows dask's own schedulers only. It takes `Client.dask_get` for dask's threads: all tasks write to a file that
the program has opened, and hold a `threading.Lock`. This module gives the file what xarray gives it under
dask.distributed: a lock with a name, and each write opens and closes the file.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

_LOCKS = "xarray.backends.locks"
_COMMON = "xarray.backends.common"


def file_classes() -> tuple[type, ...]:
    """Return the classes of xarray's files, and of the arrays in them. Empty: this program has not imported xarray."""
    found = [getattr(sys.modules.get(_COMMON), name, None) for name in ("BackendArray", "WritableCFDataStore")]
    return tuple([each for each in found if each is not None])


def share_file(value: Any) -> Any:
    """Let other processes write a file that this process has opened for writing; closes it here.

    Args:
        value: an instance of one of `file_classes()`.

    Returns:
        The `SerializableLock` of the writes to this file; None: the value is no file that is written.

    Raises:
        NotImplementedError: only one process can write files of this kind.
    """
    store = getattr(value, "datastore", value)
    lock = getattr(store, "lock", None)
    locks = getattr(lock, "locks", (lock,))  # of a CombinedLock
    shared = next((each for each in locks if _is_of_file(each)), None)
    own = next((each for each in locks if isinstance(each, type(threading.Lock()))), None)
    if shared is not None or own is None:
        return shared
    if not hasattr(store, "autoclose"):
        raise NotImplementedError(
            f"only one process can write a file by xarray's {type(store).__name__}: "
            "pass engine='netcdf4' or engine='h5netcdf' to to_netcdf, or compute with scheduler='threads'"
        )
    module: Any = sys.modules[_LOCKS]
    token = _token(store._filename)
    module.SerializableLock._locks.setdefault(token, own)  # so that threads of this process still hold the same lock
    shared = module.SerializableLock(token)
    store.close()
    store.autoclose = True
    store.lock = store._manager._lock = module.combine_locks([shared if each is own else each for each in locks])
    return shared


def _token(path: str) -> str:
    return f"{__name__} {path}"


def _is_of_file(lock: Any) -> bool:
    return str(getattr(lock, "token", "")).startswith(_token(""))
