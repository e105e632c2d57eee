"""Functions for nodes of more than one call: nested calls, and containers with calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

    def callables(self) -> list[Callable[..., Any]]:
        """Return the callable of each call. Calls may have the same one."""
        return [part.fn for part in _parts(self._part) if isinstance(part, CallPart)]

    def keys(self) -> list[Any]:
        """Return the keys of all dicts."""
        return [key for part in _parts(self._part) if isinstance(part, DictPart) for key in part.keys]

    def with_callables(self, callables: Sequence[Callable[..., Any]]) -> Expression:
        """Return the expression with other callables.

        Args:
            callables: one for each call, in the order of `callables`.
        """
        return Expression(_with_callables(self._part, iter(callables)), self.__qualname__)


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


def _parts(part: Part) -> Iterator[Part]:
    """Return the part and all parts inside it."""
    yield part
    if not isinstance(part, int):
        for each in _operands(part):
            yield from _parts(each)


def _operands(part: CallPart | ListPart | TuplePart | DictPart) -> tuple[Part, ...]:
    if isinstance(part, CallPart):
        return part.arguments
    return part.values if isinstance(part, DictPart) else part.items


def _with_callables(part: Part, callables: Iterator[Callable[..., Any]]) -> Part:
    if isinstance(part, int):
        return part
    if isinstance(part, CallPart):
        fn = next(callables)
        return CallPart(fn, tuple([_with_callables(each, callables) for each in part.arguments]))
    operands = tuple([_with_callables(each, callables) for each in _operands(part)])
    return DictPart(part.keys, operands) if isinstance(part, DictPart) else type(part)(operands)
