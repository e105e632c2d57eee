"""cloudpickle, which pickles what only this program has by value, with what it leaves out.

It names functions behind `functools.lru_cache`, also those of `__main__` and of other functions, which no
worker has.
"""

from __future__ import annotations

import functools
import io
import sys
from collections import ChainMap
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import cloudpickle

PROTOCOL = 5
CachedFunction: type = type(functools.lru_cache(len))


BY_VALUE_MODULES: set[str] = cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES
"""Names of the modules that the user has registered to be pickled by value. The set itself, not the copy that
`list_registry_pickle_by_value` makes: it is compared at each submit."""


def dumps(value: Any, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """The value as a pickle. Raises whatever pickling raises."""
    with io.BytesIO() as file:
        Pickler(file, protocol=PROTOCOL, buffer_callback=buffer_callback).dump(value)
        return file.getvalue()


def _reduce_cached(function: Any) -> Any:
    if is_importable(function):
        return function.__reduce__()
    return _cached, (function.__wrapped__, function.cache_parameters())


def is_importable(function: Any) -> bool:
    """Whether a worker that imports the module of this function or class finds it there by its name."""
    name = function.__module__ or "__main__"
    if not isinstance(name, str):
        return False
    if name == "__main__" or name.startswith("__main__.") or is_pickled_by_value(name):
        return False
    try:
        found: bool = attrgetter(function.__qualname__)(sys.modules[name]) is function
    except Exception:  # there is no such module or name, or the module's own `__getattr__` fails
        return False
    return found


def is_pickled_by_value(name: str) -> bool:
    """Whether the module of this name, or a package that it is in, is pickled by value."""
    return any(name == module or name.startswith(module + ".") for module in tuple(BY_VALUE_MODULES))


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    """The same function with a cache of its own, an empty one."""
    cached: Callable[..., Any] = functools.lru_cache(**parameters)(function)
    return cached


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    _tables = cloudpickle.Pickler.dispatch_table.maps
    dispatch_table = ChainMap({**_tables[0], CachedFunction: _reduce_cached}, *_tables[1:])
