"""Objects that the scheduler keeps for a client: what `Client.send_object` sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..errors import MessageTooLargeError
from ..pickling import cloudpickle_ext, custom_serializer
from ..pickling.custom_serializer import Serializer
from ..pickling.object_frames import pickle_object
from ..pickling.references import ObjectHolder, ObjectRef, StoredObject
from ..protocol.messages import Payload, TaskName
from ..session.frame_limit import fits_limit, too_large_text
from ..session.session import Session


class ObjectSender(ObjectHolder, Protocol):
    """The client's I/O thread, as what sends objects sees it."""

    @property
    def frame_limit(self) -> int:
        """Bytes of one frame that the scheduler takes; 0: any."""

    def call_soon(self, command: Callable[[Session], None]) -> None:
        """Have this called by the I/O thread, behind all that was handed over before."""


def make_object(
    io_thread: ObjectSender, frames: list[Payload], name: str = "", parent: TaskName | None = None
) -> ObjectRef:
    """The reference to an object that is to be handed over, by `send`, before anything that reads it."""
    return ObjectRef(io_thread, StoredObject(name, frames, parent))


def send(session: Session, reference: ObjectRef) -> None:
    """Hand the object over; called by the I/O thread."""
    session.send_object(reference._stored)


def send_object(
    io_thread: ObjectSender, value: Any, name: str, own_serializer: Serializer | type | None, parent: TaskName | None
) -> ObjectRef:
    """Have the scheduler keep this value; returns its reference.

    Raises:
        TypeError: it can't be pickled; the text names its type.
        MessageTooLargeError: one of its frames has more bytes than the scheduler takes.
        ClientClosedError: the client is disconnected.
    """
    frames = dump_object(value, own_serializer)
    limit = io_thread.frame_limit
    if not fits_limit(frames, limit):
        raise MessageTooLargeError(too_large_text(f"the object {name}".rstrip(), max(map(len, frames)), limit))
    reference = make_object(io_thread, frames, name, parent)
    io_thread.call_soon(lambda session: send(session, reference))
    return reference


def dump_object(value: Any, own_serializer: Serializer | type | None) -> list[Payload]:
    """The value's frames: a pickle, and behind it large buffers, as they lie in memory: they must not change.

    Raises:
        TypeError: it can't be pickled; the text names its type.
    """
    if own_serializer is not None:
        whole = custom_serializer.dump(own_serializer, value, "the object", "in the client")  # type: ignore[arg-type]
        return [cloudpickle_ext.dumps(_Serialized(own_serializer, *whole))]
    try:
        return pickle_object(value).frames()
    except Exception as error:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise TypeError(f"the object of type {kind} can't be pickled: {type(error).__name__}: {error}") from error


class _Serialized:
    """An object as bytes of a user's serializer: unpickled, it is the object."""

    def __init__(self, own_serializer: Any, kind: str, data: bytes) -> None:
        self._parts = own_serializer, kind, data

    def __reduce__(self) -> Any:
        return _deserialized, self._parts


def _deserialized(own_serializer: Any, kind: str, data: bytes) -> Any:
    return custom_serializer.load(own_serializer, data, f"the object of type {kind}", "on the worker")
