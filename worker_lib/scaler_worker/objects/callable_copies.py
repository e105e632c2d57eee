"""A copy of a callable for each call, if the callable has state.

A call may change the callable itself: a bound method changes its object, a partial or a closure may hold a list. So
each call gets a copy of what the client has sent. Functions without state, classes and modules are shared. They are
loaded once, also if they travel by value: a copy of an object of `__main__` costs about as much as the object's
attributes. A copy of a function with state has its own closure and defaults, and shares its code and its globals.
"""

from __future__ import annotations

import functools
import io
import pickle
import types
from collections.abc import Callable
from typing import Any

from scaler_client.graphs.expressions import Expression
from scaler_client.pickling import cloudpickle_ext
from scaler_client.pickling.retry_policy import RetryingFunction, RetryOn
from scaler_client.protocol.messages import Payload
from scaler_worker.objects.immutable import LOADED_ONCE, cell_contents, is_immutable

_SHARED_BYTES = 1024
"""Text and bytes of at least this length are shared by the copies."""


def with_own_state(fn: Callable[..., Any], payload: Payload) -> Callable[..., Any]:
    """Return a callable of which each call has its own state, if this one has any.

    A node of a graph may have several calls. Then each of these calls has its own state.

    Args:
        fn: the loaded callable. It was not called yet.
        payload: its pickle.
    """
    if is_immutable(fn):
        return fn
    expression = _function_of(fn)
    if type(expression) is not Expression or not all(map(is_immutable, expression.keys())):
        return CallableCopies(fn, payload)
    callables = [
        each if is_immutable(each) else _copying_call(each, payload, number)
        for number, each in enumerate(expression.callables())
    ]
    own = expression.with_callables(callables)
    return RetryingFunction(own, fn.retry_on, fn.leaves_processes) if type(fn) is RetryingFunction else own


def _copying_call(fn: Callable[..., Any], payload: Payload, number: int) -> Callable[..., Any]:
    """Return a function that calls a copy of the callable of one call in a node.

    Args:
        fn: the callable. It was not called yet.
        payload: the pickle of the node's function.
        number: the number of the call in the node.
    """
    template = _template_of(fn)
    if template is not None:
        return functools.partial(_call_copy, template)
    return functools.partial(_call_loaded, payload, number)


def _call_copy(template: _Template, /, *args: Any) -> Any:
    return template.copy()(*args)


def _call_loaded(payload: Payload, number: int, /, *args: Any) -> Any:
    """Call the callable as the client has sent it: it can't be pickled on the worker."""
    return _function_of(pickle.loads(payload)).callables()[number](*args)


def _function_of(fn: Any) -> Any:
    """Return the function that a loaded callable calls with the options of its task."""
    return fn.fn if type(fn) is RetryingFunction else fn


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
        if _is_made_of_function(first):
            # All copies share the globals that were loaded with the first one, so it must not be called before.
            self._template = _template_of(first)
            self._first = None if self._template is not None else first
        self.retry_on: RetryOn = first.retry_on if type(first) is RetryingFunction else ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._copy()(*args, **kwargs)

    def _copy(self) -> Callable[..., Any]:
        copy, self._first = self._first, None
        if copy is not None:
            return copy
        if self._template is None:
            # Not before the second call: many callables with state are sent for a single call.
            self._template = _template_of(pickle.loads(self._payload)) or _Template(self._payload, [])
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


def _template_of(pristine: Any) -> _Template | None:
    """Return the template of a callable that was not called yet.

    Returns:
        None: it can't be pickled on the worker. Its copies are made of what the client has sent.
    """
    try:
        with io.BytesIO() as file:
            pickler = _Pickler(file)
            pickler.dump(pristine)
            return _Template(file.getvalue(), pickler.parts)
    except Exception:
        return None


def _is_made_of_function(value: Any) -> bool:
    while isinstance(value, (functools.partial, RetryingFunction)):
        value = value.func if isinstance(value, functools.partial) else value.fn
    return type(value) is types.FunctionType


class _Pristine:
    """A function whose state is copied. The copies take everything else from it."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function


def _reduce_function(function: types.FunctionType) -> Any:
    # The state is no argument of the maker: it may refer to the function.
    state = function.__defaults__, function.__kwdefaults__, function.__dict__, cell_contents(function)
    return _copy_function, (_Pristine(function),), state, None, None, _set_state


def _copy_function(pristine: _Pristine) -> types.FunctionType:
    function = pristine.function
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    functools.update_wrapper(copy, function, updated=())
    return copy


def _set_state(function: types.FunctionType, state: tuple[Any, Any, dict[str, Any], dict[int, Any]]) -> None:
    function.__defaults__, function.__kwdefaults__, attributes, contents = state
    function.__dict__.clear()
    function.__dict__.update(attributes)
    for position, value in contents.items():
        function.__closure__[position].cell_contents = value  # type: ignore[index]


class _Pickler(cloudpickle_ext.Pickler):
    """Writes shared parts as their positions in `parts`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=cloudpickle_ext.PROTOCOL)
        self.parts: list[Any] = []
        self._positions: dict[int, int] = {}

    def reducer_override(self, value: Any) -> Any:
        if type(value) is types.FunctionType:
            return _reduce_function(value)
        return super().reducer_override(value)

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
    if kind is types.FunctionType or kind is types.BuiltinFunctionType:
        return is_immutable(value)
    return kind is _Pristine or isinstance(value, LOADED_ONCE)
