"""cloudpickle with support for cached functions, and with the names of source files.

cloudpickle pickles functions of `__main__` and nested functions by value, because workers cannot import them. But it
pickles a function with `functools.lru_cache` by name in any case, and no worker finds it. Since version 3.1.3 it also
leaves out the source file's name, without which a traceback shows no lines of the source.
"""

from __future__ import annotations

import functools
import io
import sys
from collections import ChainMap
from collections.abc import Callable
from operator import attrgetter
from types import CodeType
from typing import Any

import cloudpickle

PROTOCOL = 5
CachedFunction: type = type(functools.lru_cache(len))


_tables = cloudpickle.Pickler.dispatch_table.maps
_cloudpickle_code: Callable[[CodeType], tuple[Any, ...]] = cloudpickle.Pickler.dispatch_table[CodeType]
_NO_FILE = "<dynamic-code>"
"""cloudpickle's text in place of a source file's name."""

BY_VALUE_MODULES: set[str] = cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES
"""The names of the modules that the user has registered to be pickled by value. This is cloudpickle's own set, not the
copy of `list_registry_pickle_by_value`, because it is compared at each submit."""


def dumps(value: Any, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """Return the value's pickle.

    Args:
        buffer_callback: takes out-of-band buffers, as in `pickle.Pickler`.

    Raises:
        Exception: any error of the pickling.
    """
    with io.BytesIO() as file:
        Pickler(file, protocol=PROTOCOL, buffer_callback=buffer_callback).dump(value)
        return file.getvalue()


def _reduce_cached(function: Any) -> Any:
    if is_importable(function):
        return function.__reduce__()
    return _cached, (function.__wrapped__, function.cache_parameters())


def _reduce_code(code: CodeType) -> Any:
    build, arguments = _cloudpickle_code(code)
    return build, tuple([code.co_filename if each == _NO_FILE else each for each in arguments])


def is_importable(function: Any) -> bool:
    """Whether a worker that imports the module of this function or class finds it there by name."""
    name = function.__module__ or "__main__"
    if not isinstance(name, str):
        return False
    if name == "__main__" or name.startswith("__main__.") or is_pickled_by_value(name):
        return False
    try:
        found: bool = attrgetter(function.__qualname__)(sys.modules[name]) is function
    except Exception:  # no such module or name, or an error in the module's `__getattr__`
        return False
    return found


def is_pickled_by_value(name: str) -> bool:
    """Whether the user has registered this module, or a package around it, to be pickled by value."""
    return any(name == module or name.startswith(module + ".") for module in tuple(BY_VALUE_MODULES))


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    """Return the function with a new, empty cache."""
    cached: Callable[..., Any] = functools.lru_cache(**parameters)(function)
    return cached


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """cloudpickle's pickler with support for cached functions, and with the names of source files."""

    dispatch_table = ChainMap({**_tables[0], CachedFunction: _reduce_cached, CodeType: _reduce_code}, *_tables[1:])
