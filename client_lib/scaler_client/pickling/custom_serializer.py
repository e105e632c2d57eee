"""A user's own serializer, for functions, arguments and results.

Only the client knows about it. The client submits a `RemoteCall`, which carries the serializer to the workers and
converts arguments and result around the call. For the protocol this is an ordinary function of bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import cloudpickle

from ..errors import SerializerError
from . import serializer as default
from .references import STAND_INS, Call, NodeRef, ObjectRef


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
        cloudpickle.dumps(given)
    except Exception as error:
        raise TypeError(f"serializer {given!r} can't be pickled: {type(error).__name__}: {error}") from error


class RemoteCall:
    """A function in the bytes of a user's serializer. It takes serialized arguments and returns a serialized result."""

    def __init__(self, serializer: Serializer, name: str, function: bytes) -> None:
        self._serializer = serializer
        self._name = name
        self._function = function
        self._loaded: Callable[..., Any] | None = None

    def __call__(self, *args: Serialized | Direct, **kwargs: Serialized | Direct) -> Serialized:
        if self._loaded is None:
            self._loaded = load(self._serializer, self._function, f"function {self._name}", "on the worker")
        loaded = [self._load(payload, f"argument {position}") for position, payload in enumerate(args)]
        named = {name: self._load(payload, f"argument {name!r}") for name, payload in kwargs.items()}
        return dump(self._serializer, self._loaded(*loaded, **named), f"the result of {self._name}", "on the worker")

    def __reduce__(self) -> Any:
        return RemoteCall, (self._serializer, self._name, self._function)

    def _load(self, given: Serialized | Direct, what: str) -> Any:
        if isinstance(given, Direct):
            return given.value
        kind, payload = given
        return load(self._serializer, payload, f"{what} of type {kind}", "on the worker")


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
    serializer: Serializer | None, io_thread: object
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Call]:
    """Return a function that turns the arguments of a call into bytes.

    Args:
        serializer: the user's own serializer; None: cloudpickle, as in `serializer.call_dumper`.
        io_thread: the I/O thread of the client that calls.
    """
    dump_bytes = default.call_dumper(io_thread)
    if serializer is None:
        return dump_bytes

    def dump_argument(value: Any, name: object) -> Any:
        if type(value) is ObjectRef:
            return Direct(value)
        if type(value) is NodeRef:  # the value of a node is serialized already
            return value
        if type(value) in STAND_INS:  # a future, whose result is serialized already
            if value.done() and not value.cancelled() and value.exception() is None:
                value = value.result()
            else:
                return value
        return dump(serializer, value, f"argument {name!r}", "in the client")

    def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        payloads = tuple(dump_argument(value, position) for position, value in enumerate(args))
        return dump_bytes(payloads, {name: dump_argument(value, name) for name, value in kwargs.items()})

    return dump_call
