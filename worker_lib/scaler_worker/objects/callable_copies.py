"""A copy of a callable for each call, if the callable has state.

A call may change the callable itself: a bound method changes its object, a partial may hold a list. So each call gets a
copy of what the client has sent. Functions, classes and modules are shared. They are loaded once, also if they travel
by value: a copy of an object of `__main__` costs about as much as the object's attributes.
"""

from __future__ import annotations

import io
import pickle
import types
from collections.abc import Callable
from typing import Any

from scaler_client.pickling import cloudpickle_ext
from scaler_client.pickling.retry_policy import RetryingFunction, RetryOn
from scaler_client.protocol.messages import Payload
from scaler_worker.objects.immutable import CODE, is_immutable

_SHARED_BYTES = 1024
"""Text and bytes of at least this length are shared by the copies."""


class CallableCopies:
    """A callable with state. A call of it calls a copy.

    Args:
        first: the loaded callable, for the first call.
        payload: its pickle.
    """

    def __init__(self, first: Callable[..., Any], payload: Payload) -> None:
        self._first: Callable[..., Any] | None = first
        self._payload = payload
        self._template: _Template | None = None
        self.retry_on: RetryOn = first.retry_on if type(first) is RetryingFunction else ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._copy()(*args, **kwargs)

    def _copy(self) -> Callable[..., Any]:
        copy, self._first = self._first, None
        if copy is not None:
            return copy
        if self._template is None:
            # Not before the second call: many callables with state are sent for a single call.
            self._template = _template_of(self._payload)
        fresh: Callable[..., Any] = self._template.copy()
        return fresh


class _Template:
    """A pickle of a callable without its shared parts, and these parts."""

    def __init__(self, data: Payload, parts: list[Any]) -> None:
        self._data = data
        self._parts = parts

    def copy(self) -> Any:
        if not self._parts:
            return pickle.loads(self._data)
        with io.BytesIO(self._data) as file:
            return _Unpickler(file, self._parts).load()


def _template_of(payload: Payload) -> _Template:
    """Return the template of a pickled callable.

    An object that can't be pickled on the worker has no template: its copies are made of what the client has sent.
    """
    pristine = pickle.loads(payload)
    try:
        with io.BytesIO() as file:
            pickler = _Pickler(file)
            pickler.dump(pristine)
            return _Template(file.getvalue(), pickler.parts)
    except Exception:
        return _Template(payload, [])


class _Pickler(cloudpickle_ext.Pickler):
    """Writes shared parts as their positions in `parts`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=cloudpickle_ext.PROTOCOL)
        self.parts: list[Any] = []
        self._positions: dict[int, int] = {}

    def persistent_id(self, value: Any) -> int | None:
        if not _is_shared(value):
            return None
        position = self._positions.get(id(value))
        if position is None:
            position = self._positions[id(value)] = len(self.parts)
            self.parts.append(value)
        return position


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parts: list[Any]) -> None:
        super().__init__(file)
        self._parts = parts

    def persistent_load(self, position: Any) -> Any:
        return self._parts[position]


def _is_shared(value: Any) -> bool:
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) >= _SHARED_BYTES
    return isinstance(value, CODE) or (kind is types.BuiltinFunctionType and is_immutable(value.__self__))
