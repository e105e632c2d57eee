"""Nodes of graphs that are more than one call: calls within calls, and containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Union


class CallPart(NamedTuple):
    fn: Callable[..., Any]
    arguments: tuple[Part, ...]


class ListPart(NamedTuple):
    items: tuple[Part, ...]


class TuplePart(NamedTuple):
    items: tuple[Part, ...]


class DictPart(NamedTuple):
    keys: tuple[Any, ...]
    values: tuple[Part, ...]


Part = Union[int, CallPart, ListPart, TuplePart, DictPart]
"""An int is the position of an argument."""


class Expression:
    """A function put together: its arguments are whatever is no call and no container that holds calls."""

    def __init__(self, part: Part, name: str) -> None:
        self.__qualname__ = name
        self._part = part

    def __call__(self, *args: Any) -> Any:
        return _value(self._part, args)

    def __reduce__(self) -> Any:
        return Expression, (self._part, self.__qualname__)


def identity(value: Any) -> Any:
    """What a node runs that is a container of others' values, or an object."""
    return value


def _value(part: Part, args: tuple[Any, ...]) -> Any:
    kind = type(part)
    if kind is int:
        return args[part]  # type: ignore[index]
    if kind is CallPart:
        return part.fn(*[_value(each, args) for each in part.arguments])  # type: ignore[union-attr]
    if kind is DictPart:
        return dict(zip(part.keys, [_value(each, args) for each in part.values]))  # type: ignore[union-attr]
    items = [_value(each, args) for each in part.items]  # type: ignore[union-attr]
    return items if kind is ListPart else tuple(items)
