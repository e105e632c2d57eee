"""Which values several tasks may share, because no task can change them."""

from __future__ import annotations

import contextlib
import dis
import functools
import logging
import operator
import types
from collections.abc import Sequence
from enum import Enum
from typing import Any

from scaler_client.api.client import Client
from scaler_client.errors import SerializerError
from scaler_client.graphs.expressions import Expression
from scaler_client.pickling.cloudpickle_ext import GENERIC_CODE, CachedFunction, is_importable
from scaler_client.pickling.custom_serializer import RemoteCall
from scaler_client.pickling.retry_policy import RetryingFunction

LEAVES = frozenset({
    int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented),
})  # fmt: skip
"""Immutable built-in types without elements."""

LOADED_ONCE = (type, types.ModuleType, CachedFunction, logging.Logger, Client)
"""Types of what a worker loads once. What a task stores in a class or a module stays there, as in any process. A client
is a connection."""

_DESCRIPTORS = frozenset({
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
})  # fmt: skip
_GETTERS = frozenset({operator.itemgetter, operator.attrgetter, operator.methodcaller})
_BOUND = frozenset({types.BuiltinFunctionType, types.MethodWrapperType})

MAX_ELEMENTS = 32
"""A tuple with more elements counts as mutable: to look at all of them may take longer than to load it again."""

MAX_PARTS = 1000
"""A value of which more parts than this would have to be examined counts as mutable."""

_STORES = frozenset({"STORE_DEREF", "DELETE_DEREF"})


def is_immutable(value: Any) -> bool:
    """Return whether no task can change a value: functions, classes, modules, and what is made of them and of immutable
    values.

    A function is made of its closure and its defaults. Its globals are its module's.
    """
    if type(value) in LEAVES:
        return True
    parts = [value]
    functions: set[int] = set()
    for part in parts:  # the list grows
        if type(part) is types.FunctionType:
            if id(part) in functions:
                continue
            functions.add(id(part))
        held = _parts(part)
        if held is None or len(parts) + len(held) > MAX_PARTS:
            return False
        parts += held
    return True


def _parts(value: Any) -> Sequence[Any] | None:
    """Return the values on which it depends whether this one is immutable. None: it is mutable."""
    kind = type(value)
    if kind in LEAVES or kind in _DESCRIPTORS or isinstance(value, LOADED_ONCE):
        return ()
    if kind is types.FunctionType:
        return _parts_of_function(value)
    if kind is tuple or kind is frozenset:
        return tuple(value) if len(value) <= MAX_ELEMENTS else None
    if kind is types.MethodType:
        return value.__self__, value.__func__
    if kind in _BOUND:
        return (value.__self__,)
    if kind is functools.partial:
        return None if value.__dict__ else (value.func, *value.args, *value.keywords.values())
    if kind is RetryingFunction:
        return (value.fn,)
    if kind is Expression:
        return (*value.callables(), *value.keys())
    if kind is RemoteCall:
        try:
            return (value.function(),)
        except SerializerError:
            return ()  # each call raises it
    if kind in _GETTERS:
        parts: tuple[Any, ...] = value.__reduce__()
        return parts
    return () if isinstance(value, Enum) else None


def _parts_of_function(function: types.FunctionType) -> Sequence[Any] | None:
    closure, defaults, keyword_defaults = function.__closure__, function.__defaults__, function.__kwdefaults__
    if not (closure or defaults or keyword_defaults) or is_importable(function):
        return ()  # what a module defines belongs to the module
    if function.__code__ is GENERIC_CODE:
        return tuple(function.registry.values())  # type: ignore[attr-defined]
    parts = [*(defaults or ()), *(keyword_defaults or {}).values()]
    if closure:
        # Its code can reach it only by its closure: as a global, it is a part of the module.
        if function.__dict__.keys() - {"__wrapped__"} or _sets_closure(function.__code__):
            return None
        parts += cell_contents(function).values()
    return parts


def cell_contents(function: types.FunctionType) -> dict[int, Any]:
    """Return the values of a closure by position, without those that are not set yet."""
    found = {}
    for position, cell in enumerate(function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found[position] = cell.cell_contents
    return found


def _sets_closure(code: types.CodeType) -> bool:
    """Return whether the code, or a function inside it, assigns a variable of its closure (`nonlocal`)."""
    free = code.co_freevars
    if any(each.opname in _STORES and each.argval in free for each in dis.get_instructions(code)):
        return True
    return any(
        _sets_closure(each) for each in code.co_consts if type(each) is types.CodeType and {*free} & {*each.co_freevars}
    )
