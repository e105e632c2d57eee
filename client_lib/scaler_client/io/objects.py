"""Sends objects that the scheduler keeps for a client (`Client.send_object`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..errors import MessageTooLargeError
from ..pickling import cloudpickle_ext, custom_serializer, serializer
from ..pickling.custom_serializer import Serializer
from ..pickling.object_frames import pickle_object
from ..pickling.references import ObjectHolder, ObjectRef, StoredObject
from ..protocol.messages import Payload, TaskAttempt
from ..session.frame_limit import fits_limit, too_large_text
from ..session.session import Session


class ObjectSender(ObjectHolder, Protocol):
    """The client's I/O thread, as senders of objects see it."""

    @property
    def frame_limit(self) -> int:
        """The most bytes of a frame that the scheduler takes; 0: no limit."""

    def call_soon(self, command: Callable[[Session], None]) -> None:
        """Let the I/O thread call `command` with the session, after everything that was submitted before."""


def make_object(
    io_thread: ObjectSender,
    frames: list[Payload],
    name: str = "",
    parent: TaskAttempt | None = None,
    *,
    is_arguments: bool = False,
    is_shared: bool = False,
) -> ObjectRef:
    """Return a reference to a new object. The caller passes it to `send` before it submits readers of the object.

    Args:
        io_thread: drops the object when its last reference is deleted.
        frames: the object, from `dump_object`.
        name: for display.
        parent: the task that sends the object; None: a call outside of tasks.
        is_arguments, is_shared: as for `StoredObject`.
    """
    return ObjectRef(io_thread, StoredObject(name, frames, parent, is_arguments, is_shared))


def send(session: Session, reference: ObjectRef) -> None:
    """Send the object. Only the I/O thread calls this."""
    session.send_object(reference._stored)


def send_object(
    io_thread: ObjectSender,
    value: Any,
    name: str,
    own_serializer: Serializer | type | None,
    parent: TaskAttempt | None,
    *,
    is_arguments: bool = False,
    is_shared: bool = False,
) -> ObjectRef:
    """Send a value to the scheduler, which keeps it; return its reference.

    Args:
        io_thread: sends the object.
        value: any picklable value.
        name: for display; may be empty.
        own_serializer: the user's serializer; None: cloudpickle.
        parent: the task that sends the object; None: a call outside of tasks.
        is_arguments, is_shared: as for `StoredObject`.

    Raises:
        TypeError: the value can't be pickled; the text names its type, and the part of it that can't be.
        MessageTooLargeError: a frame has more bytes than the scheduler takes.
        ClientClosedError: the client is disconnected.
    """
    frames = dump_object(value, own_serializer)
    limit = io_thread.frame_limit
    if not fits_limit(frames, limit):
        raise MessageTooLargeError(too_large_text(f"the object {name}".rstrip(), max(map(len, frames)), limit))
    reference = make_object(io_thread, frames, name, parent, is_arguments=is_arguments, is_shared=is_shared)
    io_thread.call_soon(lambda session: send(session, reference))
    return reference


def dump_object(value: Any, own_serializer: Serializer | type | None) -> list[Payload]:
    """Return the value's frames: a pickle, then its large buffers.

    Buffers are not copied: they must not change until the object is sent.

    Raises:
        TypeError: the value can't be pickled; the text names its type, and the part of it that can't be.
    """
    if own_serializer is not None:
        whole = custom_serializer.dump(own_serializer, value, "the object", "in the client")  # type: ignore[arg-type]
        return [cloudpickle_ext.dumps(_Serialized(own_serializer, *whole))]
    try:
        return pickle_object(value).frames()
    except Exception as error:
        raise serializer.unpicklable("the object", value, error) from error


class _Serialized:
    """An object as bytes of the user's serializer. Unpickling gives the object itself."""

    def __init__(self, own_serializer: Any, kind: str, data: bytes) -> None:
        self._parts = own_serializer, kind, data

    def __reduce__(self) -> Any:
        return _deserialized, self._parts


def _deserialized(own_serializer: Any, kind: str, data: bytes) -> Any:
    return custom_serializer.load(own_serializer, data, f"the object of type {kind}", "on the worker")
