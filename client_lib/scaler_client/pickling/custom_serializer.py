"""A user's own serializer, for functions, arguments and results.

Only the client knows about it. The client submits a `RemoteCall`, which carries the serializer to the workers and
converts arguments and result around the call. For the protocol this is an ordinary function of bytes.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from ..errors import SerializerError
from . import cloudpickle_ext
from . import serializer as default
from .input_lookup import load_input, load_value
from .references import REFERENCES, STAND_INS, Call, InputCollector, ObjectRef, call_payload, read_result


@runtime_checkable
class Serializer(Protocol):
    """A custom serializer for functions, arguments, results and objects: `Client(serializer=...)`.

    Pass a class whose methods are static, or an object with these methods. It is pickled and sent to the workers.
    """

    def serialize(self, obj: Any, /) -> bytes:
        """Turn an object into bytes.

        Args:
            obj: the object.

        Returns:
            The bytes.
        """

    def deserialize(self, payload: bytes, /) -> Any:
        """Turn bytes back into the object.

        Args:
            payload: the bytes that `serialize` returned.

        Returns:
            The object.
        """


Serialized = tuple[str, bytes]
"""The name of an object's type, for errors, and the object's bytes."""


def check_serializer(given: Any) -> None:
    """Check that an object is a serializer and can be sent to workers.

    Raises:
        TypeError: a method is missing or not static, or the serializer can't be pickled.
    """
    for name in ("serialize", "deserialize"):
        if not callable(getattr(given, name, None)):
            raise TypeError(f"serializer {given!r} has no method {name}")
        if isinstance(given, type) and inspect.isfunction(inspect.getattr_static(given, name)):
            raise TypeError(
                f"serializer {given!r}: its {name} must be a static method, or pass an instance of the class"
            )
    try:
        cloudpickle_ext.dumps(given)
    except Exception as error:
        text = f"serializer {given!r} can't be pickled: {type(error).__name__}: {error}"
        raise TypeError(f"{text}{default.place_of_failure(given)}") from error


class RemoteCall:
    """A function in the bytes of a user's serializer. It takes serialized arguments and returns a serialized result."""

    def __init__(self, serializer: Serializer, name: str, function: bytes) -> None:
        self._serializer = serializer
        self._name = name
        self._function = function
        self._loaded: Callable[..., Any] | None = None

    def __call__(self, *args: Serialized | Direct, **kwargs: Serialized | Direct) -> Serialized:
        function = self.function()
        before, _loading.serializer = _loading.serializer, self._serializer
        try:
            loaded = [self._load(payload, f"argument {position}") for position, payload in enumerate(args)]
            named = {name: self._load(payload, f"argument {name!r}") for name, payload in kwargs.items()}
        finally:
            _loading.serializer = before
        return dump(self._serializer, function(*loaded, **named), f"the result of {self._name}", "on the worker")

    def function(self) -> Callable[..., Any]:
        """Return the function. It is deserialized once.

        Raises:
            SerializerError: the serializer raised.
        """
        if self._loaded is None:
            self._loaded = load(self._serializer, self._function, f"function {self._name}", "on the worker")
        return self._loaded

    def __reduce__(self) -> Any:
        return RemoteCall, (self._serializer, self._name, self._function)

    def _load(self, given: Serialized | Direct, what: str) -> Any:
        if isinstance(given, Direct):
            return given.value
        kind, payload = given
        return load(self._serializer, payload, f"{what} of type {kind}", "on the worker")


class _Loading(threading.local):
    serializer: Serializer | None = None
    """The serializer of the call whose arguments this thread deserializes."""


_loading = _Loading()


def load_serialized_input(position: int) -> Any:
    """Return the value of an input that is the result of a task. The bytes of an argument call this for a future in it.

    Raises:
        RuntimeError: the thread does not deserialize arguments of a task.
        SerializerError: the serializer raised.
    """
    return _load_result(load_input(position))


def load_serialized_value(data: bytes) -> Any:
    """Return the value of a future that was done when its reader was submitted.

    Args:
        data: the pickle of its serialized result.

    Raises:
        RuntimeError: the thread does not deserialize arguments of a task.
        SerializerError: the serializer raised.
    """
    return _load_result(load_value(data))


def _load_result(result: Serialized) -> Any:
    if _loading.serializer is None:
        raise RuntimeError("a future has a value only among the arguments of a task, on a worker")
    kind, payload = result
    return load(_loading.serializer, payload, f"a result of type {kind}", "on the worker")


class Direct:
    """An argument that is not serialized, because its object was sent before (`send_object`)."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Direct, (self.value,)


def dump(serializer: Serializer, value: Any, what: str, side: str) -> Serialized:
    """Serialize a value; return the name of its type and its bytes.

    Args:
        what: names the value in errors.
        side: where this happens, for errors: "in the client" or "on the worker".

    Raises:
        SerializerError: the serializer raised, or returned something else than bytes.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    try:
        data = serializer.serialize(value)
    except Exception as error:
        raise SerializerError(f"{what} of type {kind} can't be serialized {side}: {error!r}") from error
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SerializerError(f"{what} of type {kind}: serialize returned {type(data).__name__}, not bytes, {side}")
    return kind, bytes(data)


def load(serializer: Serializer, payload: bytes, what: str, side: str) -> Any:
    """Deserialize a value.

    Args:
        what: names the value in errors.
        side: where this happens, for errors: "in the client" or "on the worker".

    Raises:
        SerializerError: the serializer raised.
    """
    try:
        return serializer.deserialize(payload)
    except Exception as error:
        raise SerializerError(f"{what} can't be deserialized {side}: {error!r}") from error


def call_dumper(
    serializer: Serializer | None,
    io_thread: object,
    shares_inputs: bool = False,
    large: default.LargeCalls = default.NO_LARGE_CALLS,
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Call]:
    """Return a function that turns the arguments of a call into bytes.

    Args:
        serializer: the user's own serializer; None: cloudpickle, as in `serializer.call_dumper`.
        io_thread: the I/O thread of the client that calls.
        shares_inputs: whether the tasks of a worker share the values of all inputs of these calls.
        large: what becomes of calls with many bytes.
    """
    if serializer is None:
        return default.call_dumper(io_thread, shares_inputs, large)
    least, share = large

    def dump_argument(value: Any, name: object, collector: InputCollector) -> Any:
        if type(value) is ObjectRef and read_result(value) is None:
            return Direct(value)
        if type(value) in REFERENCES or type(value) in STAND_INS:
            return value  # a node or a future, whose result is serialized already
        try:
            return dump(serializer, value, f"argument {name!r}", "in the client")
        except SerializerError as error:
            if collector.problem is not None:
                raise collector.problem from None
            if contains_future(value):
                error.args = (f"{error}. {_UNKNOWN_FUTURE}",)
            raise

    def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        collector = InputCollector(io_thread, serializer, shares_inputs)
        collector.result_loaders = (load_serialized_value, load_serialized_input)
        with collector:
            payloads = tuple(dump_argument(value, position, collector) for position, value in enumerate(args))
            named = {name: dump_argument(value, name, collector) for name, value in kwargs.items()}
        collector.result_loaders = None  # RemoteCall itself deserializes whole arguments
        call = default.dump_collected_call(payloads, named, collector)
        return call if len(call_payload(call)) < least else share(call)

    return dump_call


_UNKNOWN_FUTURE = (
    "It contains a future, which only a serializer that uses pickle can serialize: pass the future as an argument of "
    "its own, or pass its result()"
)


def contains_future(value: Any) -> bool:
    """Return whether a list, tuple, set or dict contains a future, at any depth. Only errors call this."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        each = stack.pop()
        if type(each) in STAND_INS:
            return True
        if isinstance(each, (list, tuple, set, frozenset, dict)) and id(each) not in seen:
            seen.add(id(each))
            stack += each
            if isinstance(each, dict):
                stack += each.values()
    return False
