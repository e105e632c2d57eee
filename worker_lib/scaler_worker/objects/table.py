"""The objects that a worker knows, with their values. Sans-IO."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import Payload

ABSENT = object()
"""Stands for a value that was not made yet. A value may be None."""


class KnownObject:
    """An object that tasks read. Its value is made once, and then read by all tasks of the process."""

    __slots__ = ("frames", "is_forgotten", "has_file", "is_invalid", "is_mapped", "name", "value")

    def __init__(self, name: ObjectName, frames: Sequence[Payload] | None) -> None:
        self.name = name
        self.frames = frames
        """The bytes that the scheduler has sent. None: the object is a file of the host, or its value was made."""
        self.value: Any = ABSENT
        self.is_forgotten = False
        self.has_file = False
        """Whether a worker has written the file already."""
        self.is_mapped = False
        """Whether the value keeps the object's file mapped."""
        self.is_invalid = False
        """Whether the scheduler's information on the object is outdated.

        If so, a task does not wait for a missing file.
        """

    def keep(self, value: Any) -> None:
        """Keep the value that was unpickled from the bytes."""
        self.value = value
        self.frames = None
        if self.is_forgotten:  # meanwhile, by the long-task watcher
            self.value = ABSENT


def result_file(name: ObjectName) -> KnownObject:
    """A result that this worker has just written to a file, for the row behind it. It is in no table."""
    known = KnownObject(name, None)
    known.has_file = True
    return known


class ObjectTable:
    """The known objects by name. Changes need the connection's lock. Any thread may call `find` and `release`."""

    def __init__(self) -> None:
        self._objects: dict[ObjectName, KnownObject] = {}
        self._dropped: deque[Any] = deque()

    def find(self, name: ObjectName) -> KnownObject | None:
        return self._objects.get(name)

    def put(self, name: ObjectName, frames: Sequence[Payload]) -> None:
        """Enter an object whose bytes the scheduler has sent."""
        known = self._objects.setdefault(name, KnownObject(name, frames))
        if known.value is ABSENT:
            known.frames = frames

    def expect_file(self, name: ObjectName, has_file: bool = False) -> None:
        """Enter an object that a task will read, and whose file is on the host, or will be there soon."""
        known = self._objects.setdefault(name, KnownObject(name, None))
        known.has_file = has_file

    def forget(self, names: Iterable[ObjectName]) -> None:
        """Remove objects that are not needed any more."""
        for name in names:
            known = self._objects.pop(name, None)
            if known is not None:
                known.is_forgotten = True  # set it first: `keep`, in another thread, reads it last
                self._dropped.append((known.value, known.frames))
                known.value, known.frames = ABSENT, None

    def clear(self) -> None:
        """Remove all objects, at a new welcome.

        A task that has begun continues to read. It does not wait for a file, because the agent may not have the object.
        """
        for known in self._objects.values():
            known.is_invalid = True
        self._dropped.extend(self._objects.values())
        self._objects.clear()

    def release_mapped(self) -> None:
        """Free the values that keep files mapped. A task that reads one later maps its file again."""
        for known in list(self._objects.values()):
            if known.is_mapped:
                known.is_mapped = False
                known.value = ABSENT

    def release(self) -> None:
        """Free the removed values. Do not hold the lock: this may take long, and runs code of the objects."""
        self._dropped.clear()
