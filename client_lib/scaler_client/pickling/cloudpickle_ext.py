"""cloudpickle with support for more of what a program defines in `__main__`, and with the names of source files.

cloudpickle pickles functions and classes of `__main__` by value, because workers cannot import them. But it pickles
these by name in any case, and no worker finds them: a function with `functools.lru_cache`, `NewType`, `ParamSpec`,
`TypeVarTuple`, `type` statements, and what typing_extensions has in their place. It cannot pickle generic functions
(`singledispatch`), weak references, functions that a context manager decorates and, before Python 3.12,
`cached_property`. A class with `__slots__` loses them. Since version 3.1.3 it also leaves out the source file's name,
without which a traceback shows no lines of the source.

It makes a class as a `class` statement does, which calls `__init_subclass__` and the metaclass without their keywords.
And when an object comes back, it overwrites the attributes of the program's own class. Here neither happens.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import io
import sys
import threading
import types
import typing
import weakref
from collections import ChainMap
from collections.abc import Callable
from operator import attrgetter
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import cloudpickle

from . import exception_state

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


def global_names(function: FunctionType) -> list[str]:
    """Return the names of the globals that travel with a function that is pickled by value."""
    return list(cloudpickle.cloudpickle._extract_code_globals(function.__code__))


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


# ------------------------------------------------------------------------------------------------------ kinds of types


def _is_named(value: Any) -> bool:
    """Whether a worker that imports the module of this type finds it there by name."""
    module = getattr(value, "__module__", None) or "__main__"
    if module == "__main__" or is_pickled_by_value(module):
        return False
    return getattr(sys.modules.get(module), value.__name__, None) is value


def _reduce_type(value: Any) -> Any:
    """Reduce a NewType, a ParamSpec, a TypeVarTuple or a TypeVar, or the TypeAliasType of typing_extensions.

    In one process, the same one is loaded only once.
    """
    if _is_named(value):
        return getattr, (sys.modules[value.__module__], value.__name__)
    kind, parts = type(value), getattr(value, "__constraints__", ())
    if hasattr(value, "__supertype__"):
        arguments: dict[str, Any] = {"tp": value.__supertype__}
    elif hasattr(value, "__value__"):
        arguments = {"value": value.__value__, "type_params": value.__type_params__}
    else:
        extensions = sys.modules.get("typing_extensions")
        if hasattr(value, "__default__") and not hasattr(kind, "__default__"):
            kind = getattr(extensions, kind.__name__)  # it has made an object of typing's class
        no_defaults = [getattr(module, "NoDefault", None) for module in (typing, extensions)]
        names = "bound", "covariant", "contravariant", "default", "infer_variance"
        found = ((name, getattr(value, f"__{name}__", None)) for name in names)
        arguments = {name: each for name, each in found if each and not any(each is no for no in no_defaults)}
    tracker = cloudpickle.cloudpickle._get_or_create_tracker_id(value)
    return _make_type, (kind, (value.__name__, *parts), arguments, value.__module__, tracker)


def _make_type(kind: type, parts: tuple[Any, ...], arguments: dict[str, Any], module: str, tracker: str) -> Any:
    made: Any = kind(*parts, **arguments)
    object.__setattr__(made, "__module__", module)  # a TypeAliasType of typing_extensions refuses to be changed
    return cloudpickle.cloudpickle._lookup_class_or_track(tracker, made)


def _reduce_alias(alias: Any) -> Any:
    """Reduce what a `type` statement defines."""
    if _is_named(alias):
        return getattr, (sys.modules[alias.__module__], alias.__name__)
    if alias.__type_params__:
        kind: Callable[..., Any] = type(alias)
        return functools.partial(kind, type_params=alias.__type_params__), (alias.__name__, alias.__value__)
    _, holder = _aliases.setdefault(id(alias), (alias, [alias.__value__]))
    return _make_alias, (alias.__name__, alias.__module__, holder)


_aliases: dict[int, tuple[Any, list[Any]]] = {}
"""The aliases that were pickled, and lists that hold their values. A value may name its alias: the pickle of the same
list ends there."""


def _make_alias(name: str, module: str, holder: list[Any]) -> Any:
    names: dict[str, Any] = {"__name__": module, "holder": holder}
    exec(f"type {name} = holder[0]", names)  # evaluated when it is needed: older Pythons lack the statement
    return names[name]


_NAMES = ("NewType", "ParamSpec", "TypeVar", "TypeVarTuple")
_TYPES = tuple(kind for name in _NAMES if isinstance(kind := getattr(typing, name, None), type))


class _Reducers(ChainMap[Any, Any]):
    """The reducers by type. Types of typing_extensions are found by name, because it is not imported here."""

    def __missing__(self, kind: Any) -> Any:
        if kind.__module__ == "typing_extensions" and kind.__name__ in (*_NAMES, "TypeAliasType"):
            return _reduce_type
        raise KeyError(kind)


def _reduce_cached_property(value: Any) -> Any:
    return _make_cached_property, (value.func, value.attrname, value.__doc__)


def _make_cached_property(func: Callable[..., Any], name: str | None, text: str | None) -> Any:
    made: Any = functools.cached_property(func)
    made.attrname, made.__doc__ = name, text
    return made


# ------------------------------------------------------------------------------------------------------------- classes

_tracker = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
_cloudpickle_class: Callable[..., type] = cloudpickle.cloudpickle._make_skeleton_class
_hooks_lock = threading.Lock()

_loaded: weakref.WeakSet[type] = weakref.WeakSet()
"""The classes that were made here of a pickle. All other classes are of this program: no pickle changes them."""


def _reduce_class(kind: type) -> Any:
    reduced = cloudpickle.cloudpickle._class_reduce(kind)
    if type(reduced) is not tuple or len(reduced) != 6:
        return reduced
    maker, arguments, *others = reduced
    if vars(kind).get("__slots__"):
        arguments = (*arguments[:3], {**arguments[3], "__slots__": kind.__slots__}, *arguments[4:])  # type: ignore[attr-defined]
    return _make_class, (maker, arguments), *others[:-1], _set_class


def _make_class(maker: Callable[..., type], arguments: tuple[Any, ...]) -> type:
    """Return the class with this tracker's id, or a new one without its attributes."""
    known: type | None = _tracker.get(arguments[-2])
    if known is not None:
        return known
    made = maker(*arguments) if maker is not _cloudpickle_class else _make_quietly(*arguments)
    _loaded.add(made)
    return made


def _make_quietly(
    metaclass: type, name: str, bases: tuple[Any, ...], attributes: dict[str, Any], tracker: str, extra: Any
) -> type:
    """Return a new class, without a call of the program's metaclass and of `__init_subclass__` of its classes.

    These may want keywords, and have done their work: it is pickled too.
    """
    real_bases = types.resolve_bases(bases)
    with _hooks_lock:
        ancestors = {each for base in real_bases for each in base.__mro__ if each in _loaded}
        hooks = {each: vars(each)["__init_subclass__"] for each in ancestors if "__init_subclass__" in vars(each)}
        for each in hooks:
            type.__setattr__(each, "__init_subclass__", classmethod(lambda kind, **_: None))
        try:
            if metaclass not in _loaded:
                return _cloudpickle_class(metaclass, name, bases, attributes, tracker, extra)
            names = {sys.intern(key): value for key, value in attributes.items()}
            if real_bases is not bases:
                names["__orig_bases__"] = bases
            maker: Any = next(each for each in metaclass.__mro__ if each not in _loaded)
            made = maker.__new__(metaclass, name, real_bases, names)
            return cast(type, cloudpickle.cloudpickle._lookup_class_or_track(tracker, made))
        finally:
            for each, hook in hooks.items():
                type.__setattr__(each, "__init_subclass__", hook)


def _set_class(kind: type, state: Any) -> type:
    if kind in _loaded:
        cloudpickle.cloudpickle._class_setstate(kind, state)
    return kind


# -------------------------------------------------------------------------------------------------- generic functions


@functools.singledispatch
def _without_functions(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a generic function was called while it was unpickled")


GENERIC_CODE = _without_functions.__code__  # type: ignore[attr-defined]
"""The code of what `functools.singledispatch` returns, the same for all."""


def _make_generic() -> Any:
    return functools.singledispatch(_without_functions.registry[object])


def _set_generic(generic: Any, state: tuple[list[tuple[type, Any]], dict[str, Any]]) -> None:
    functions, attributes = state
    for kind, function in functions:
        generic.register(kind, function)
    functools.update_wrapper(generic, generic.registry[object])
    generic.__dict__.update(attributes)


def _reduce_generic(generic: Any) -> Any:
    own = ("register", "dispatch", "registry", "_clear_cache", "__wrapped__")
    attributes = {name: value for name, value in generic.__dict__.items() if name not in own}
    # The functions are its state and not the arguments of its making: they may refer to it.
    return _make_generic, (), (list(generic.registry.items()), attributes), None, None, _set_generic


def _make_generic_method() -> Any:
    return functools.singledispatchmethod(_without_functions)


def _set_generic_method(method: Any, state: tuple[Any, Any]) -> None:
    method.dispatcher, method.func = state


def _reduce_generic_method(method: Any) -> Any:
    return _make_generic_method, (), (method.dispatcher, method.func), None, None, _set_generic_method


# -------------------------------------------------------------------------------------- weak references and decorators


class _Gone:
    """What a weak reference refers to that is dead."""


def _reduce_weak_reference(reference: Any) -> Any:
    """Reduce a weak reference. It is dead where it is loaded, if nothing else in the pickle holds its object."""
    target = reference()
    return weakref.ref, (_Gone() if target is None else target,)


def _reduce_weak_set(values: Any) -> Any:
    return weakref.WeakSet, (), list(values), None, None, weakref.WeakSet.update


def _reduce_weak_mapping(values: Any) -> Any:
    return type(values), (), None, None, iter(list(values.items()))


def _reduce_context_manager(manager: Any) -> Any:
    """Reduce what a function with `contextlib.contextmanager` returns. As a decorator it is a part of functions."""
    if inspect.getgeneratorstate(manager.gen) != inspect.GEN_CREATED:
        raise TypeError(f"cannot pickle a {type(manager).__name__} that was entered")
    return type(manager), (manager.func, manager.args, manager.kwds)


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """cloudpickle's pickler with support for more kinds of values, and with the names of source files."""

    dispatch_table = _Reducers(
        {
            **_tables[0],
            CachedFunction: _reduce_cached,
            CodeType: _reduce_code,
            functools.cached_property: _reduce_cached_property,
            functools.singledispatchmethod: _reduce_generic_method,
            contextlib._GeneratorContextManager: _reduce_context_manager,
            weakref.ReferenceType: _reduce_weak_reference,
            weakref.WeakSet: _reduce_weak_set,
            **dict.fromkeys((weakref.WeakKeyDictionary, weakref.WeakValueDictionary), _reduce_weak_mapping),
            **dict.fromkeys(_TYPES, _reduce_type),
            getattr(typing, "TypeAliasType", None): _reduce_alias,
        },
        *_tables[1:],
    )

    def reducer_override(self, value: Any) -> Any:
        """As cloudpickle's, with support for `__slots__`. It is called for each object, so it doesn't call that one."""
        if issubclass(type(value), type):
            return _reduce_class(value)
        if isinstance(value, FunctionType):
            return self._function_reduce(value)
        return exception_state.reduced_value(value) if isinstance(value, BaseException) else NotImplemented

    def _dynamic_function_reduce(self, function: Any) -> Any:
        if function.__code__ is GENERIC_CODE:
            return _reduce_generic(function)
        return super()._dynamic_function_reduce(function)


_NAMED = (type, FunctionType, ModuleType)


class NamingPickler(Pickler):
    """A pickler that notes the modules whose functions and classes it may pickle by name."""

    def __init__(self, file: io.BytesIO, **options: Any) -> None:
        super().__init__(file, **options)
        self.modules: dict[str, None] = {}

    def reducer_override(self, value: Any) -> Any:
        """Note a module, and the module of a function or class."""
        attribute = "__name__" if issubclass(type(value), ModuleType) else "__module__"
        name = getattr(value, attribute, None) if issubclass(type(value), _NAMED) else None
        if type(name) is str and not is_pickled_by_value(name):
            self.modules[name] = None
        return super().reducer_override(value)

    def _dynamic_function_reduce(self, function: Any) -> Any:
        self.modules.update((name, None) for name in _imported_names(function.__code__) if name in sys.modules)
        return super()._dynamic_function_reduce(function)


@functools.lru_cache(maxsize=4096)
def _imported_names(code: CodeType) -> tuple[str, ...]:
    """Return the modules that this code, or a function inside it, may import."""
    names: dict[str, None] = {}
    module = ""
    for each in dis.get_instructions(code):
        if each.opname == "IMPORT_NAME":
            module = each.argval
            names[module] = None
        elif each.opname == "IMPORT_FROM":
            names[f"{module}.{each.argval}"] = None
    for constant in code.co_consts:
        if type(constant) is CodeType:
            names.update(dict.fromkeys(_imported_names(constant)))
    return tuple(names)
