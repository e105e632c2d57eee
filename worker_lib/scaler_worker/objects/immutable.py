"""Which values several tasks may share, because no task can change them."""

from __future__ import annotations

import functools
import operator
import types
from enum import Enum
from typing import Any

from scaler_client.errors import SerializerError
from scaler_client.pickling.cloudpickle_ext import CachedFunction
from scaler_client.pickling.custom_serializer import RemoteCall
from scaler_client.pickling.retry_policy import RetryingFunction

LEAVES = frozenset({
    int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), type(NotImplemented),
})  # fmt: skip
"""Immutable built-in types without elements."""

CODE = (types.FunctionType, type, types.ModuleType, CachedFunction)
"""Types of what a worker loads once. What a task stores in a function, a class or a module stays there, as in any
process."""

_DESCRIPTORS = frozenset({
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
})  # fmt: skip
_GETTERS = frozenset({operator.itemgetter, operator.attrgetter, operator.methodcaller})
_BOUND = frozenset({types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType})

MAX_ELEMENTS = 32
"""A tuple with more elements counts as mutable: to look at all of them may take longer than to load it again."""


def is_immutable(value: Any) -> bool:
    """Return whether no task can change a value: functions, classes, modules, and what is made of them and of immutable
    values."""
    kind = type(value)
    if kind in LEAVES or kind in _DESCRIPTORS or isinstance(value, CODE):
        return True
    if kind is tuple or kind is frozenset:
        return len(value) <= MAX_ELEMENTS and all(map(is_immutable, value))
    if kind in _BOUND:
        return is_immutable(value.__self__)
    if kind is functools.partial:
        parts = (value.func, value.args, *value.keywords.values())
        return not value.__dict__ and all(map(is_immutable, parts))
    if kind is RetryingFunction:
        return is_immutable(value.fn)
    if kind is RemoteCall:
        try:
            return is_immutable(value.function())
        except SerializerError:
            return True  # each call raises it
    if kind in _GETTERS:
        return all(map(is_immutable, value.__reduce__()))
    return isinstance(value, Enum)
