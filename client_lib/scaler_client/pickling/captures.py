"""The values that travel with a function that is pickled by value, and whether they have changed since.

A function of `__main__` travels with the globals that it names, its closure, defaults and attributes. The functions and
classes among these travel with their own values too. `submit` pickles the function once, and again if one of these
values was replaced. To see that, each submit compares their identities, which takes a few hundred ns
(benchmarks/submit_rate.py). Functions that are pickled by name have no captures and cost nothing.

Built-in containers, dataclass instances and SimpleNamespaces are compared by their elements, at any depth, up to 256
elements of each value. A larger container is compared by its length: pickling it at each submit would cost far more
than the submit. A change inside any other object is not seen.
"""

from __future__ import annotations

import dis
import functools
import types
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .cloudpickle_ext import CachedFunction, is_importable, is_pickled_by_value

_GLOBAL_INSTRUCTIONS = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"})
_CONTAINERS = frozenset({list, set, deque, bytearray, dict, OrderedDict, defaultdict, Counter})
_IMMUTABLE = frozenset({tuple, frozenset})
"""Containers that can't change, but whose elements may."""
_MAX_ELEMENTS = 256
"""At most this many elements of one value are compared, nested ones included. A bytearray has its own limit."""
_MAX_BYTES = 1024
_FIELDS = "__dataclass_fields__"

_ABSENT = object()

Owner = Callable[[], Any]
"""A weak reference to a function or class other than the root. A strong one could keep the root alive."""

Values = tuple[tuple[Any, Any], ...]
"""Names, or positions in a closure, with their values."""

References = tuple[tuple[Any, Callable[[], Any]], ...]
"""Names, or positions in a closure, with weak references to their values. Captures keep neither large objects nor the
root alive."""


class Captures:
    """The values that travel with one function or class, the root."""

    __slots__ = ("_closures", "_containers", "_functions", "_lengths", "_mappings", "_namespaces", "_parts")

    def __init__(self) -> None:
        self._namespaces: list[tuple[Owner | None, Values, References, tuple[str, ...]]] = []
        """The globals of functions, and the names that are not defined."""
        self._functions: list[tuple[Owner | None, Any, Any, Any, int]] = []
        """Of functions: code, defaults, keyword defaults, number of attributes."""
        self._closures: list[tuple[Owner | None, Values, References]] = []
        self._mappings: list[tuple[Owner | None, Values, References, int]] = []
        """The attributes of functions, classes and modules, and the number of attributes."""
        self._containers: list[tuple[Any, Any]] = []
        """Containers with copies. Their comparison goes no deeper while each element is the same object."""
        self._parts: list[tuple[Callable[[], Any], list[Any]]] = []
        """Containers and instances with their elements. Elements that may be large have weak references."""
        self._lengths: list[tuple[Any, int]] = []

    def are_unchanged(self, root: Any) -> bool:
        """Whether all values are the same as before."""
        try:
            # Each submit runs this, so the three loops over names are written out: a call would cost more than its work
            # (benchmarks/submit_rate.py).
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
            for reference, held_parts in self._parts:
                parts = _parts_of(reference())
                if len(parts) != len(held_parts):
                    return False
                for part, held in zip(parts, held_parts):
                    if type(held) is _Weak:
                        if (value := held()) is None or part is not value:
                            return False
                    elif part is not held:
                        return False
            for container, length in self._lengths:
                if len(container) != length:
                    return False
        except Exception:  # a name or function was deleted, or a comparison failed
            return False
        return True

    def add_namespace(self, owner: Owner | None, namespace: dict[str, Any], names: Iterable[str]) -> list[Any]:
        """Record globals by name; return the values of the defined ones."""
        # Copy it first, because another thread may change the namespace.
        found = {name: namespace.get(name, _ABSENT) for name in names}
        present = {name: value for name, value in found.items() if value is not _ABSENT}
        absent = tuple(name for name in names if name not in present)
        if present or absent:
            self._namespaces.append((owner, *self._held(present), absent))
        return list(present.values())

    def add_function(self, owner: Owner | None, function: types.FunctionType) -> list[Any]:
        """Record a function; return its defaults, the contents of its closure, and its attributes."""
        defaults, keyword_defaults, attributes = function.__defaults__, function.__kwdefaults__, function.__dict__
        self._functions.append((owner, function.__code__, defaults, keyword_defaults, len(attributes)))
        filled = [place for place, cell in enumerate(function.__closure__ or ()) if _is_filled(cell)]
        contents = {place: function.__closure__[place].cell_contents for place in filled}  # type: ignore[index]
        if contents:
            self._closures.append((owner, *self._held(contents)))
        given = *(defaults or ()), *(keyword_defaults or {}).values()
        return [*given, *contents.values(), *(self.add_mapping(owner, attributes) if attributes else ())]

    def add_mapping(self, owner: Owner | None, mapping: Any) -> list[Any]:
        """Record the attributes of a function, class or module; return them."""
        attributes = dict(mapping)
        count = len(attributes)
        attributes.pop("__builtins__", None)  # of a module; cloudpickle leaves it out, too
        self._mappings.append((owner, *self._held(attributes), count))
        return list(attributes.values())

    def add_container(self, root: Any) -> list[Any]:
        """Record a container and the containers in it, breadth first; return the other values in them."""
        others = []
        left = _MAX_ELEMENTS
        found = [root]
        seen = set()
        for value in found:  # the list grows
            if not _is_container(value):
                others.append(value)
            elif id(value) not in seen:
                seen.add(id(value))
                try:
                    parts = self._add_one(value, left)
                except RuntimeError:  # another thread changed the container
                    self._lengths.append((value, -1))
                    continue
                left -= _size_of(value) if parts else 0
                found += parts
        return others

    def _add_one(self, value: Any, most: int) -> Sequence[Any]:
        """Record one container; return its elements, or nothing if there are more than `most`."""
        kind = type(value)
        size = _size_of(value)
        if size > (_MAX_BYTES if kind is bytearray else most):
            if kind in _CONTAINERS:
                self._lengths.append((value, size))
            return ()
        if kind is bytearray:
            self._containers.append((value, value.copy()))
            return ()
        parts = _parts_of(value)
        if _is_immutable(value):
            return parts
        held = list(map(_weak, parts))
        if kind in _CONTAINERS and not any(type(each) is _Weak for each in held):
            self._containers.append((value, value.copy()))  # compared by C
        else:
            reference = _weak(value)
            self._parts.append((reference if type(reference) is _Weak else functools.partial(_itself, value), held))
        return parts

    def _held(self, named: dict[Any, Any]) -> tuple[Values, References]:
        values, references = [], []
        for name, value in named.items():
            try:
                references.append((name, weakref.ref(value)))
            except TypeError:  # of a built-in type
                values.append((name, value))
        return tuple(values), tuple(references)

    @property
    def is_empty(self) -> bool:
        """Whether no recorded value can change."""
        return not any(getattr(self, name) for name in self.__slots__ if name != "_closures")


def captures_of(root: Any) -> Captures | None:
    """Return the captures of a callable, as if it were pickled now.

    Returns:
        None: the callable is pickled by name, or no values travel with it.
    """
    captures = Captures()
    seen: dict[int, Any] = {}
    names: dict[int, tuple[Owner | None, dict[str, Any], set[str]]] = {}
    stack = [root]
    while stack or names:
        if not stack:  # now the globals of all functions found so far, together for each module
            for owner, namespace, wanted in names.values():
                stack += captures.add_namespace(owner, namespace, wanted)
            names.clear()
            continue
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        kind = type(value)
        if kind is types.FunctionType and not is_importable(value):
            owner = None if value is root else weakref.ref(value)
            _, _, wanted = names.setdefault(id(value.__globals__), (owner, value.__globals__, set()))
            wanted |= _global_names(value.__code__)
            stack += captures.add_function(owner, value)
        elif issubclass(kind, type) and not is_importable(value):
            stack += captures.add_mapping(None if value is root else weakref.ref(value), value.__dict__)
            stack += value.__bases__
        elif isinstance(value, functools.partial):
            stack += value.func, *value.args, *value.keywords.values()
        elif kind is CachedFunction and not is_importable(value):
            stack.append(value.__wrapped__)
        elif kind is staticmethod or kind is classmethod or kind is types.MethodType:
            stack.append(value.__func__)
        elif kind is property:
            stack += value.fget, value.fset, value.fdel
        elif kind is types.ModuleType and is_pickled_by_value(value.__name__):
            stack += captures.add_mapping(weakref.ref(value), value.__dict__)
        elif _is_container(value):
            stack += captures.add_container(value)
    return None if captures.is_empty else captures


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """Return the names of the globals that this code, or a function inside it, uses."""
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


class _Weak(weakref.ref[Any]):
    """A weak reference of the captures. Its type distinguishes it from weak references in the user's values."""

    __slots__ = ()


def _weak(value: Any) -> Any:
    """Return a weak reference to the value, or the value itself if it is a container or can't have one."""
    if type(value) in _CONTAINERS or _is_immutable(value):
        return value
    try:
        return _Weak(value)
    except TypeError:  # of a built-in type
        return value


def _itself(value: Any) -> Any:
    return value


def _is_immutable(value: Any) -> bool:
    """Whether the value is a container that can't change, though its elements may. A named tuple is one."""
    kind = type(value)
    return kind in _IMMUTABLE or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _is_container(value: Any) -> bool:
    kind = type(value)
    return kind in _CONTAINERS or kind is types.SimpleNamespace or hasattr(kind, _FIELDS) or _is_immutable(value)


def _size_of(value: Any) -> int:
    kind = type(value)
    if kind is types.SimpleNamespace:
        return len(vars(value))
    return len(getattr(kind, _FIELDS)) if hasattr(kind, _FIELDS) else len(value)


def _parts_of(value: Any) -> list[Any]:
    """Return the elements of a container, with the keys of a mapping, or the fields of an instance."""
    kind = type(value)
    if hasattr(kind, _FIELDS):
        return [getattr(value, name, _ABSENT) for name in getattr(kind, _FIELDS)]
    mapping = vars(value) if kind is types.SimpleNamespace else value
    return [*mapping, *mapping.values()] if isinstance(mapping, dict) else list(mapping)
