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
    """An object that tasks read."""

    __slots__ = (
        "first_load_ns",
        "frames",
        "has_file",
        "is_forgotten",
        "is_immutable",
        "is_invalid",
        "is_mapped",
        "load_ns",
        "name",
        "value",
    )

    def __init__(self, name: ObjectName, frames: Sequence[Payload] | None) -> None:
        self.name = name
        self.frames = frames
        """The bytes that the scheduler has sent, or the mapped file. None: the object is a file that is not mapped."""
        self.value: Any = ABSENT
        """The value that tasks share, after one of them has read it."""
        self.is_immutable = False
        """Whether the value is shared because no task can change it, and not because the user said so."""
        self.load_ns = 0
        """The time that tasks have spent on loading values of their own, in nanoseconds, without the first load."""
        self.first_load_ns = 0
        """When the first load began, by a monotonic clock; 0: there was none."""
        self.is_forgotten = False
        self.has_file = False
        """Whether a worker has written the file already."""
        self.is_mapped = False
        """Whether `frames` or `value` keep the object's file mapped."""
        self.is_invalid = False
        """Whether the scheduler's information on the object is outdated.

        If so, a task does not wait for a missing file.
        """

    def keep_value(self, value: Any, is_immutable: bool) -> None:
        """Keep a value that tasks share."""
        self.is_immutable = is_immutable
        self.value = value
        if self.is_forgotten:  # meanwhile, by the long-task watcher
            self.value = ABSENT

    def keep_mapped(self, frames: Sequence[Payload]) -> None:
        """Keep the mapped file."""
        self.is_mapped = True
        self.frames = frames
        if self.is_forgotten:
            self.frames = None


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
        """Unmap files. A task that reads one later maps it again."""
        for known in list(self._objects.values()):
            if known.is_mapped:
                known.is_mapped = False
                known.value, known.frames = ABSENT, None

    def release(self) -> None:
        """Free the removed values. Do not hold the lock: this may take long, and runs code of the objects."""
        self._dropped.clear()
