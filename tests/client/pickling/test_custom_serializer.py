"""A user's own serializer: its errors, and the checks of invalid ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from scaler_client.errors import SerializerError
from scaler_client.io.objects import dump_object
from scaler_client.pickling import custom_serializer
from scaler_client.pickling.custom_serializer import call_dumper, check_serializer
from scaler_client.pickling.functions import FunctionTable
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol.messages import Outcome


class Thing:
    def __init__(self, breaks: str) -> None:
        self.breaks = breaks


class Fragile:
    """A serializer that raises for a Thing, in the given direction."""

    @staticmethod
    def serialize(obj: Any) -> Any:
        if isinstance(obj, Thing) and obj.breaks == "serialize":
            raise ValueError("not that way")
        return "no bytes" if isinstance(obj, Thing) and obj.breaks == "type" else cloudpickle.dumps(obj)

    @staticmethod
    def deserialize(payload: bytes) -> Any:
        obj = cloudpickle.loads(payload)
        if isinstance(obj, Thing):
            raise KeyError("not back")
        return obj


NAME = rf"{Thing.__module__}\.Thing"


def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as a task: arguments to the worker, the result back."""
    function = FunctionTable(lambda number: None, Fragile).get(fn)
    arguments = loads(call_dumper(Fragile, None)(args, kwargs))
    args, kwargs = (arguments, {}) if type(arguments) is tuple else arguments
    result, error = function.read_answer(Outcome.VALUE, dumps(loads(function.payload)(*args, **kwargs)))
    if error is not None:
        raise error
    return result


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (lambda: call(len, Thing("serialize")), f"^argument 0 of type {NAME} can't be serialized in the client: Value"),
        (
            lambda: call(dict, k=Thing("type")),
            f"^argument 'k' of type {NAME}: serialize returned str, .* in the client",
        ),
        (lambda: call(len, Thing("")), f"^argument 0 of type {NAME} can't be deserialized on the worker: KeyError"),
        (
            lambda: call(dict, k=Thing("")),
            f"^argument 'k' of type {NAME} can't be deserialized on the worker: KeyError",
        ),
        (lambda: call(Thing, "serialize"), f"^the result of Thing of type {NAME} can't be serialized on the worker"),
        (lambda: call(Thing, "type"), f"^the result of Thing of type {NAME}: serialize returned str, .* on the worker"),
        (lambda: call(Thing, ""), f"^the result of Thing of type {NAME} can't be deserialized in the client: KeyError"),
        (
            lambda: dump_object(Thing("serialize"), Fragile),
            f"^the object of type {NAME} can't be serialized in the cli",
        ),
        (
            lambda: loads(dump_object(Thing(""), Fragile)[0]),
            f"^the object of type {NAME} can't be deserialized on the ",
        ),
    ],
)
def test_a_serializer_that_raises(way: Callable[[], Any], text: str) -> None:
    with pytest.raises(SerializerError, match=text):
        way()


def test_only_the_serializers_bytes_are_sent() -> None:
    assert call(sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
    (frame,) = dump_object([1, "two"], Fragile)
    with with_inputs({0: loads(frame)}.__getitem__):
        assert loads(frame) == [1, "two"]


class WithKey:
    """A serializer whose methods need an instance."""

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def serialize(self, obj: Any) -> bytes:
        return bytes(cloudpickle.dumps(obj))

    def deserialize(self, payload: bytes) -> Any:
        return cloudpickle.loads(payload)

    @classmethod
    def of_class(cls, obj: Any) -> bytes:
        return bytes(cloudpickle.dumps(obj))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5, "serializer 5 has no method serialize"),
        (
            WithKey,
            "serializer <class .*WithKey'>: its serialize must be a static method, or pass an instance of the class",
        ),
        (custom_serializer.Serializer, "its serialize must be a static method"),
        (WithKey(threading.Lock()), r"serializer <.*WithKey object .*> can't be pickled: TypeError: .*lock"),
    ],
)
def test_invalid_arguments_are_rejected(given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        check_serializer(given)


def test_valid_serializers() -> None:
    for given in (
        Fragile,
        Fragile(),
        WithKey(),
        type("ByClass", (), {"serialize": WithKey.of_class, "deserialize": len}),
    ):
        check_serializer(given)
