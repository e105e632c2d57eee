"""A user's own serializer: for the function, each argument and each result.

Nothing but the client knows of it. What is submitted is a `RemoteCall`, which carries the serializer to the workers and
turns bytes into objects and back around the call; on the wire there is an ordinary function of bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import cloudpickle

from ..errors import SerializerError
from . import serializer as default
from .references import NodeRef, ObjectRef


@runtime_checkable
class Serializer(Protocol):
    """What a serializer has: a class with these as static methods, or an object. It is shipped to the workers."""

    def serialize(self, obj: Any, /) -> bytes:
        """The object as bytes."""

    def deserialize(self, payload: bytes, /) -> Any:
        """The object that `serialize` made these bytes of."""


Serialized = tuple[str, bytes]
"""An object's type, for errors, and its bytes."""


def check_serializer(given: Any) -> None:
    """Raise TypeError where this is no serializer, or can't be shipped."""
    for name in ("serialize", "deserialize"):
        if not callable(getattr(given, name, None)):
            raise TypeError(f"serializer {given!r} has no method {name}")
        if isinstance(given, type) and inspect.isfunction(inspect.getattr_static(given, name)):
            raise TypeError(f"serializer {given!r}: its {name} is no static method, which takes an instance instead")
    try:
        cloudpickle.dumps(given)
    except Exception as error:
        raise TypeError(f"serializer {given!r} can't be pickled: {type(error).__name__}: {error}") from error


class RemoteCall:
    """A function as bytes of a user's serializer; called with serialized arguments, it returns what is serialized."""

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
    """In the place of an argument's bytes: one that is an object already, as it was sent by itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Direct, (self.value,)


def dump(serializer: Serializer, value: Any, what: str, side: str) -> Serialized:
    """The value as bytes, and its type.

    Raises:
        SerializerError: the serializer raised or returned something else; the text names the value's type and the side.
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
    """The value in the bytes.

    Raises:
        SerializerError: the serializer raised; the text is `what` it is, and the side.
    """
    try:
        return serializer.deserialize(payload)
    except Exception as error:
        raise SerializerError(f"{what} can't be deserialized {side}: {error!r}") from error


def call_dumper(
    serializer: Serializer | None, io_thread: object
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], bytes]:
    """What makes calls' payloads with this serializer; None: as `serializer.call_dumper` does."""
    dump_bytes = default.call_dumper(io_thread)
    if serializer is None:
        return dump_bytes

    def dump_argument(value: Any, name: object) -> Any:
        if type(value) is ObjectRef:
            return Direct(value)
        if type(value) is NodeRef:  # what nodes return is serialized
            return value
        return dump(serializer, value, f"argument {name!r}", "in the client")

    def dump_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        payloads = tuple(dump_argument(value, position) for position, value in enumerate(args))
        return dump_bytes(payloads, {name: dump_argument(value, name) for name, value in kwargs.items()})

    return dump_call
