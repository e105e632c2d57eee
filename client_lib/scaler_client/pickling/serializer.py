"""Turns functions, arguments and results into bytes.

The payload of a call is one pickle: of the tuple of arguments, or of the list `[args, kwargs]` if there are keywords.
Arguments of exact built-in types go through the C pickler (0.17 us for a small tuple). Everything else goes through
cloudpickle (1.6 us): plain pickle would refer by name to objects of `__main__`, which workers don't have.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

from ..environments.module_versions import program
from ..protocol.messages import Payload
from . import cloudpickle_ext, exceptions
from .call_pickles import dump_simple_call
from .references import REFERENCES, Call, InputCollector, call_payload

CLOUDPICKLE_KIND = f"cloudpickle {sys.version_info[0]}.{sys.version_info[1]}"
"""The kind of cloudpickled functions in the protocol. Their bytes hold code for one version of Python."""

_PLAIN = frozenset({int, float, str, bytes, bool, complex, bytearray, type(None)})
_PLAIN_CONTAINERS = frozenset({tuple, list, dict, set, frozenset})
_MAX_ELEMENTS = 32
"""The most elements of a container that are examined. A longer container goes to cloudpickle, whose pickler is as fast
for many elements."""

_dumps = pickle.dumps
_PROTOCOL = cloudpickle_ext.PROTOCOL


def is_plain(value: Any) -> bool:
    """Whether the value is known to have only built-in types, so that plain pickle is enough.

    It examines two levels of containers: a value may contain itself, or the same parts many times.
    """
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind not in _PLAIN_CONTAINERS or len(value) > _MAX_ELEMENTS:
        return False
    if kind is dict:
        return all(map(_is_flat, value)) and all(map(_is_flat, value.values()))
    return all(map(_is_flat, value))


def _is_flat(value: Any) -> bool:
    """Whether the value has a plain type, or is a container of such values."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind not in _PLAIN_CONTAINERS or len(value) > _MAX_ELEMENTS:
        return False
    return _PLAIN.issuperset(map(type, value)) and (kind is not dict or _PLAIN.issuperset(map(type, value.values())))


NONE = _dumps(None, _PROTOCOL)
"""The pickle of None, the result of every function that is called for its effect."""

_NO_ARGUMENTS = _dumps((), _PROTOCOL)


def dumps(value: Any) -> bytes:
    """Return the value as bytes.

    Raises:
        Exception: any error of the pickling.
    """
    if value is None:
        return NONE
    if type(value) in _PLAIN or is_plain(value):
        return _dumps(value, _PROTOCOL)
    return cloudpickle_ext.dumps(value)


loads: Callable[[Payload], Any] = pickle.loads

LargeCalls = tuple[int, Callable[[Call], Call]]
"""The least number of bytes of a large call, and the function that returns what is sent in its place."""

NO_LARGE_CALLS: LargeCalls = sys.maxsize, lambda call: call


def call_dumper(
    io_thread: object, shares_inputs: bool = False, large: LargeCalls = NO_LARGE_CALLS
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Call]:
    """Return a function that turns the arguments of a call into bytes.

    Arguments with references to objects become a `references.CallWithInputs`.

    Args:
        io_thread: the I/O thread of the client that calls.
        shares_inputs: whether the tasks of a worker share the values of all inputs of these calls.
        large: what becomes of calls with many bytes. It is checked here, because a function around this one would cost
            each task a call more (benchmarks/submit_rate.py).
    """
    least, share = large

    def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Return the arguments of one call as bytes.

        Raises:
            TypeError: an argument can't be pickled; the text names it.
            ObjectNotFoundError: an object among the arguments is not kept any more.
            ValueError: a reference among the arguments belongs to another client.
        """
        if not args and not kwargs:
            return _NO_ARGUMENTS
        for value in args:
            kind = type(value)
            if kind not in _PLAIN and (kind not in _PLAIN_CONTAINERS or not is_plain(value)):
                break
        else:
            if not kwargs:
                data = _dumps(args, _PROTOCOL)
                return data if len(data) < least else share(data)
            if all(map(is_plain, kwargs.values())):
                data = _dumps([args, kwargs], _PROTOCOL)
                return data if len(data) < least else share(data)
        collector = InputCollector(io_thread, None, shares_inputs)
        data = _dump_any(args, kwargs, collector)
        call = collector.call(data)
        return call if len(data) < least else share(call)

    return dump_call


def dump_collected_call(args: tuple[Any, ...], kwargs: Mapping[str, Any], collector: InputCollector) -> Call:
    """Return the arguments of one call as bytes, as `call_dumper` does.

    Args:
        collector: numbers the references among the arguments. It may have numbered those of serialized ones before.

    Raises:
        Exception: as `dump_call`.
    """
    if not args and not kwargs:
        return _NO_ARGUMENTS
    if not kwargs:
        return collector.call(dump_args(args, collector))
    if all(map(is_plain, (*args, *kwargs.values()))):
        return collector.call(_dumps([args, kwargs], _PROTOCOL))
    return collector.call(_dump_any(args, kwargs, collector))


def dumps_plain(value: Any) -> bytes:
    """Return a value of built-in types as bytes."""
    return _dumps(value, _PROTOCOL)


def dump_args(args: tuple[Any, ...], collector: InputCollector) -> bytes:
    """Return the positional arguments of one call as bytes.

    Args:
        collector: numbers the references among the arguments.

    Raises:
        Exception: as `dump_call`.
    """
    return _dumps(args, _PROTOCOL) if all(map(is_plain, args)) else _dump_any(args, {}, collector)


def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Return the arguments of a call without references as bytes."""
    return bytes(call_payload(_dump_call(args, kwargs)))


_dump_call = call_dumper(None)


def _dump_any(args: tuple[Any, ...], kwargs: Mapping[str, Any], collector: InputCollector) -> bytes:
    if not kwargs:
        data = dump_simple_call(args, collector)
        if data is not None:
            return data
    with collector:
        try:
            values = (*args, *kwargs.values())
            is_quick = all(type(value) in REFERENCES or is_plain(value) for value in values)
            call = [args, kwargs] if kwargs else args
            if is_quick:
                return _dumps(call, _PROTOCOL)
            return _dump_with_versions(call) if program.compares_arguments else cloudpickle_ext.dumps(call)
        except Exception as error:
            if collector.problem is not None:
                raise collector.problem from None
            raise _unpicklable(args, kwargs, error) from error


def dump_exception(error: BaseException, text: str, note: str = "", load_failure: str = "") -> bytes:
    """Return an exception as bytes, after a check that they can be unpickled.

    Args:
        text: the text of its traceback.
        note: names the task that raised the exception, its worker and its host.
        load_failure: the error text, if this exception is the cause why a function or arguments can't be unpickled.

    Raises:
        Exception: any error of the pickling.
    """
    texts = (text, note, load_failure) if note or load_failure else (text,)
    data = exceptions.dumps((error, *texts))
    loads(data)
    return data


def dump_function(fn: Callable[..., Any], name: str) -> bytes:
    """Return a function as bytes, with the versions of the modules that it names.

    Raises:
        TypeError: the function can't be pickled; the text has its name.
    """
    try:
        return _dump_with_versions(fn)
    except Exception as error:
        raise TypeError(f"function {name} can't be pickled: {_describe(error)}{place_of_failure(fn)}") from error


def _dump_with_versions(value: Any) -> bytes:
    """Return a value as bytes, with the versions of the modules that it names."""
    with io.BytesIO() as file:
        pickler = cloudpickle_ext.NamingPickler(file, protocol=_PROTOCOL)
        pickler.dump(value)
        return program.with_versions(file.getvalue(), pickler.modules)


def _unpicklable(args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> TypeError:
    """Return the error that names the first argument that can't be pickled alone."""
    named = [(f"argument {position}", value) for position, value in enumerate(args)]
    named += [(f"argument {name!r}", value) for name, value in kwargs.items()]
    for name, value in named:
        own = _pickle_error(value)
        if own is not None:
            return unpicklable(name, value, own)
    return TypeError(f"the arguments can't be pickled together: {_describe(error)}")


def unpicklable(name: str, value: Any, error: Exception) -> TypeError:
    """Return the error of a value that can't be pickled.

    Args:
        name: of the value.
        value: the value.
        error: what its pickling has raised.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return TypeError(f"{name} of type {kind} can't be pickled: {_describe(error)}{place_of_failure(value)}")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# ------------------------------------------------------------------------------------------------ what can't be pickled

MAX_PARTS = 100_000
"""At most so many parts of a value are searched for the one that can't be pickled."""

MAX_STEPS = 12
"""The longest way to it that a text has."""

Part = tuple[str, Any]
"""The name of a part of a value, and the part."""


def place_of_failure(value: Any) -> str:
    """Return the way to the part of a value that can't be pickled, for the text of an error; empty: it is not found.

    Each step goes to the first part that can't be pickled alone.
    """
    steps: list[str] = []
    seen = {id(value)}
    while len(steps) < MAX_STEPS:
        parts = [(name, part) for name, part in islice(_parts(value), MAX_PARTS) if id(part) not in seen]
        while len(parts) > 1:  # half by half: this costs as much as two picklings, however many parts there are
            half = parts[: len(parts) // 2]
            parts = half if _pickle_error([part for _, part in half]) is not None else parts[len(half) :]
        if not parts or _pickle_error(parts[0][1]) is None:
            break
        name, value = parts[0]
        seen.add(id(value))
        steps.append(name)
    return f" (it is {' of '.join(reversed(steps))})" if steps else ""


def _pickle_error(value: Any) -> Exception | None:
    try:
        cloudpickle_ext.dumps(value)
    except Exception as error:
        return error.with_traceback(None)  # its frames would lead to the caller's, which holds the error: a cycle
    return None


def _parts(value: Any) -> Iterator[Part]:
    """Yield what is pickled with a value, with names."""
    if isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, type):
        yield from ((f"attribute {name!r}", part) for name, part in vars(value).items() if name not in _OF_CLASSES)
        yield from (_class_part("base class", each) for each in value.__bases__)
        yield _class_part("metaclass", type(value))
    elif isinstance(value, cloudpickle_ext.CachedFunction):
        yield "the cached function", value.__wrapped__  # type: ignore[attr-defined]
    elif isinstance(value, ModuleType):
        yield from ((f"attribute {name!r}", part) for name, part in vars(value).items() if name != "__builtins__")
    elif isinstance(value, (MethodType, BuiltinMethodType)):
        yield "the object of the method", value.__self__
    elif isinstance(value, functools.partial):
        yield "the function of the partial", value.func
        yield from ((f"argument {position}", part) for position, part in enumerate(value.args))
        yield from ((f"argument {name!r}", part) for name, part in value.keywords.items())
    elif isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections"):
        for key, part in value.items():
            yield f"item {_short(key)}", part
            yield "a key", key
        if isinstance(value, defaultdict):
            yield "the default factory", value.default_factory
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from ((f"item {position}", part) for position, part in enumerate(value))
    else:
        yield from _parts_of_object(value)


_OF_CLASSES = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})


def _parts_of_function(function: FunctionType) -> Iterator[Part]:
    named = cloudpickle_ext.global_names(function)
    yield from ((f"global {name!r}", function.__globals__[name]) for name in named if name in function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f"closure variable {name!r}", cell.cell_contents
        except ValueError:
            pass  # it has no value yet
    yield from ((f"default {position}", part) for position, part in enumerate(function.__defaults__ or ()))
    yield from ((f"default {name!r}", part) for name, part in (function.__kwdefaults__ or {}).items())
    yield from ((f"attribute {name!r}", part) for name, part in vars(function).items())


def _parts_of_object(value: Any) -> Iterator[Part]:
    try:
        reduced = value.__reduce_ex__(_PROTOCOL)
    except Exception:
        return  # it is the part
    if not isinstance(reduced, tuple):
        return
    state = reduced[2] if len(reduced) > 2 else None
    states = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for each in states:
        if isinstance(each, dict):
            yield from ((f"attribute {name!r}", part) for name, part in each.items())
        elif each is not None:
            yield "its state", each
    yield from (_class_part("class", part) if isinstance(part, type) else ("part of it", part) for part in reduced[1])
    yield _class_part("class", type(value))


def _class_part(relation: str, kind: type) -> Part:
    return f"{relation} {kind.__qualname__}", kind


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 40 else text[:37] + "..."
