"""Turns functions, arguments and results into bytes.

The payload of a call is one pickle: of the tuple of arguments, or of the list `[args, kwargs]` if there are keywords.
Arguments of exact built-in types go through the C pickler (0.17 us for a small tuple). Everything else goes through
cloudpickle (1.6 us): plain pickle would refer by name to objects of `__main__`, which workers don't have.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

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


def call_dumper(io_thread: object, shares_inputs: bool = False) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Call]:
    """Return a function that turns the arguments of a call into bytes.

    Arguments with references to objects become a `references.CallWithInputs`.

    Args:
        io_thread: the I/O thread of the client that calls.
        shares_inputs: whether the tasks of a worker share the values of all inputs of these calls.
    """

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
                return _dumps(args, _PROTOCOL)
            if all(map(is_plain, kwargs.values())):
                return _dumps([args, kwargs], _PROTOCOL)
        collector = InputCollector(io_thread, None, shares_inputs)
        return collector.call(_dump_any(args, kwargs, collector))

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
            return _dumps(call, _PROTOCOL) if is_quick else cloudpickle_ext.dumps(call)
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
    """Return a function as bytes.

    Raises:
        TypeError: the function can't be pickled; the text has its name.
    """
    try:
        return cloudpickle_ext.dumps(fn)
    except Exception as error:
        raise TypeError(f"function {name} can't be pickled: {_describe(error)}") from error


def _unpicklable(args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> TypeError:
    """Return the error that names the first argument that can't be pickled alone."""
    named = [(f"argument {position}", value) for position, value in enumerate(args)]
    named += [(f"argument {name!r}", value) for name, value in kwargs.items()]
    for name, value in named:
        try:
            cloudpickle_ext.dumps(value)
        except Exception as own:
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            return TypeError(f"{name} of type {kind} can't be pickled: {_describe(own)}")
    return TypeError(f"the arguments can't be pickled together: {_describe(error)}")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
