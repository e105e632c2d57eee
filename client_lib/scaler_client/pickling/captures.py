"""What a function takes along when it is pickled by value, and whether that has changed since.

A function of `__main__` travels with the globals that it names, its closure, defaults and attributes, and so do the
functions and classes among these. `submit` pickles it once. So that it is pickled again when one of them has another
value, their identities are compared at each submit (`make bench`, submit: a few hundred ns; functions that are found by
name have no captures and cost nothing). Of small lists, dicts and sets of built-in types the contents are compared, of
others the length. What is changed in place in anything else is not seen.
"""

from __future__ import annotations

import copy
import dis
import functools
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .cloudpickle_ext import CachedFunction, is_found_elsewhere
from .serializer import is_plain

_GLOBAL_INSTRUCTIONS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"})
_CONTAINERS = frozenset({list, dict, set, bytearray})
_LONGEST_COPY = 1024
"""Bytes of a bytearray whose contents are compared; other containers are plain up to fewer elements."""

_ABSENT = object()

Owner = Callable[[], Any]
"""A weak reference to a function or class other than the root, which captures must not keep alive by way of it."""

Values = tuple[tuple[Any, Any], ...]
"""Names, or places in a closure, and what they stood for."""

References = tuple[tuple[Any, Callable[[], Any]], ...]
"""The same for objects that can be referred to weakly: large ones are not kept, nor is the root."""


class Captures:
    """Of one function or class, its root."""

    __slots__ = ("_closures", "_containers", "_functions", "_lengths", "_mappings", "_namespaces")

    def __init__(self) -> None:
        self._namespaces: list[tuple[Owner | None, Values, References, tuple[str, ...]]] = []
        """Functions' globals, and the names that are none."""
        self._functions: list[tuple[Owner | None, Any, Any, Any, int]] = []
        """Code, defaults, keyword defaults, number of attributes."""
        self._closures: list[tuple[Owner | None, Values, References]] = []
        self._mappings: list[tuple[Owner | None, Values, References, int]] = []
        """Attributes of functions and classes, and their number."""
        self._containers: list[tuple[Any, Any]] = []
        """Containers with copies of what they had."""
        self._lengths: list[tuple[Any, int]] = []

    def are_unchanged(self, root: Any) -> bool:
        """Whether everything is what it was."""
        try:
            # On the way of each submit, so the loops are written out: calls would cost more than what they do.
            for owner, values, references, absent in self._namespaces:
                namespace = (root if owner is None else owner()).__globals__
                for name, value in values:
                    if namespace[name] is not value:
                        return False
                for name, reference in references:
                    if (held := reference()) is None or namespace[name] is not held:
                        return False
                for name in absent:
                    if name in namespace:
                        return False
            for owner, code, defaults, keyword_defaults, attributes in self._functions:
                function = root if owner is None else owner()
                if (
                    function.__code__ is not code
                    or function.__defaults__ is not defaults
                    or function.__kwdefaults__ is not keyword_defaults
                    or len(function.__dict__) != attributes
                ):
                    return False
            for owner, values, references in self._closures:
                closure = (root if owner is None else owner()).__closure__
                for place, value in values:
                    if closure[place].cell_contents is not value:
                        return False
                for place, reference in references:
                    if (held := reference()) is None or closure[place].cell_contents is not held:
                        return False
            for owner, values, references, count in self._mappings:
                mapping = (root if owner is None else owner()).__dict__
                if len(mapping) != count:
                    return False
                for name, value in values:
                    if mapping[name] is not value:
                        return False
                for name, reference in references:
                    if (held := reference()) is None or mapping[name] is not held:
                        return False
            for container, content in self._containers:
                if container != content:
                    return False
            for container, length in self._lengths:
                if len(container) != length:
                    return False
        except Exception:  # a name or function is gone, or values that can't be compared
            return False
        return True

    def add_namespace(self, owner: Owner | None, namespace: dict[str, Any], names: Iterable[str]) -> list[Any]:
        """Globals by these names; returns the values of those that are there."""
        # Another thread may change it meanwhile.
        found = {name: namespace.get(name, _ABSENT) for name in names}
        present = {name: value for name, value in found.items() if value is not _ABSENT}
        absent = tuple(name for name in names if name not in present)
        if present or absent:
            self._namespaces.append((owner, *self._held(present), absent))
        return list(present.values())

    def add_function(self, owner: Owner | None, function: types.FunctionType) -> list[Any]:
        """Returns what it closes over, and its attributes."""
        defaults, keyword_defaults, attributes = function.__defaults__, function.__kwdefaults__, function.__dict__
        self._functions.append((owner, function.__code__, defaults, keyword_defaults, len(attributes)))
        self.watch_containers((*(defaults or ()), *(keyword_defaults or {}).values()))
        filled = [place for place, cell in enumerate(function.__closure__ or ()) if _is_filled(cell)]
        contents = {place: function.__closure__[place].cell_contents for place in filled}  # type: ignore[index]
        if contents:
            self._closures.append((owner, *self._held(contents)))
        return [*contents.values(), *(self.add_mapping(owner, attributes) if attributes else ())]

    def add_mapping(self, owner: Owner | None, mapping: Any) -> list[Any]:
        """The attributes of a function or class; returns them."""
        attributes = dict(mapping)
        self._mappings.append((owner, *self._held(attributes), len(attributes)))
        return list(attributes.values())

    def watch_containers(self, values: Iterable[Any]) -> None:
        """See whether those of these that are built-in containers change."""
        for value in values:
            if type(value) not in _CONTAINERS:
                continue
            try:
                if len(value) <= _LONGEST_COPY and is_plain(value):
                    self._containers.append((value, copy.deepcopy(value)))
                else:
                    self._lengths.append((value, len(value)))
            except RuntimeError:  # another thread has just changed it
                self._lengths.append((value, -1))

    def _held(self, named: dict[Any, Any]) -> tuple[Values, References]:
        values, references = [], []
        for name, value in named.items():
            try:
                references.append((name, weakref.ref(value)))
            except TypeError:  # of a built-in type
                values.append((name, value))
        self.watch_containers(named.values())
        return tuple(values), tuple(references)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can change."""
        return not (self._namespaces or self._functions or self._mappings or self._containers or self._lengths)


def captures_of(root: Any) -> Captures | None:
    """What this callable takes along if it is pickled now; None where it is found by name, or takes nothing along."""
    captures = Captures()
    seen: dict[int, Any] = {}
    names: dict[int, tuple[Owner | None, dict[str, Any], set[str]]] = {}
    stack = [root]
    while stack or names:
        if not stack:  # all functions that are known by now: those of one module are looked at together
            for owner, namespace, wanted in names.values():
                stack += captures.add_namespace(owner, namespace, wanted)
            names.clear()
            continue
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        kind = type(value)
        if kind is types.FunctionType and not is_found_elsewhere(value):
            owner = None if value is root else weakref.ref(value)
            _, _, wanted = names.setdefault(id(value.__globals__), (owner, value.__globals__, set()))
            wanted |= _global_names(value.__code__)
            stack += captures.add_function(owner, value)
        elif issubclass(kind, type) and not is_found_elsewhere(value):
            stack += captures.add_mapping(None if value is root else weakref.ref(value), value.__dict__)
            stack += value.__bases__
        elif isinstance(value, functools.partial):
            captures.watch_containers((*value.args, *value.keywords.values()))
            stack.append(value.func)
        elif kind is CachedFunction and not is_found_elsewhere(value):
            stack.append(value.__wrapped__)
        elif kind is staticmethod or kind is classmethod or kind is types.MethodType:
            stack.append(value.__func__)
        elif kind is property:
            stack += value.fget, value.fset, value.fdel
    return None if captures.is_empty else captures


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """The globals that this code, or a function within it, names."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname in _GLOBAL_INSTRUCTIONS}
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            names |= _global_names(constant)
    return frozenset(names)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # it raises
    except ValueError:
        return False
    return True
