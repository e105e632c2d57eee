"""Functions for nodes of more than one call: nested calls, and containers with calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


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


Part = int | CallPart | ListPart | TuplePart | DictPart
"""A part of an expression; an int is the position of an argument."""


class Expression:
    """The function of a node with nested calls. Its arguments are the values at the leaves of the expression."""

    def __init__(self, part: Part, name: str) -> None:
        self.__qualname__ = name
        self._part = part

    def __call__(self, *args: Any) -> Any:
        return _value(self._part, args)

    def __reduce__(self) -> Any:
        return Expression, (self._part, self.__qualname__)

    def constants(self) -> Iterator[Any]:
        """The callables of all calls, and the keys of dicts: the values that calls of the expression share."""
        return _constants(self._part)

    def with_callables(self, replaced: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Expression:
        """Return the expression with another callable for each call: what `replaced` returns for the call's own."""
        return Expression(_with_callables(self._part, replaced), self.__qualname__)


def identity(value: Any) -> Any:
    """Return the value: the function of nodes that are containers or objects."""
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


def _constants(part: Part) -> Iterator[Any]:
    if isinstance(part, int):
        return
    if isinstance(part, CallPart):
        yield part.fn
    elif isinstance(part, DictPart):
        yield from part.keys
    for each in part[-1]:
        yield from _constants(each)


def _with_callables(part: Part, replaced: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Part:
    if isinstance(part, int):
        return part
    below = tuple(_with_callables(each, replaced) for each in part[-1])
    if isinstance(part, CallPart):
        return CallPart(replaced(part.fn), below)
    return DictPart(part.keys, below) if isinstance(part, DictPart) else type(part)(below)
