"""The objects that a worker has been told of, and their values. Sans-IO."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from scaler_client.protocol.messages import Payload
from scaler_worker.task_rows import ObjectName

ABSENT = object()
"""In the place of a value, which may be None."""


class KnownObject:
    """What stands in a task's arguments for its value, which is made once and then read by all tasks of the process."""

    __slots__ = ("frames", "is_forgotten", "has_file", "is_invalid", "name", "value")

    def __init__(self, name: ObjectName, frames: Sequence[Payload] | None) -> None:
        self.name = name
        self.frames = frames
        """Its bytes, where the scheduler has sent them here; None: they are in a file of the host, or were needed."""
        self.value: Any = ABSENT
        self.is_forgotten = False
        self.has_file = False
        """Its file is there already: a worker has made it."""
        self.is_invalid = False
        """What was said of it counts no longer: its file is there by now, or is not to be waited for."""

    def keep(self, value: Any) -> None:
        """The value has been made of the bytes."""
        self.value = value
        self.frames = None
        if self.is_forgotten:  # meanwhile, by the watcher
            self.value = ABSENT


class ObjectTable:
    """Changed under the connection's lock, as the session is; `find` and `release` may be called by any thread."""

    def __init__(self) -> None:
        self._objects: dict[ObjectName, KnownObject] = {}
        self._dropped: deque[Any] = deque()

    def find(self, name: ObjectName) -> KnownObject | None:
        return self._objects.get(name)

    def put(self, name: ObjectName, frames: Sequence[Payload]) -> None:
        """The scheduler has sent these bytes."""
        known = self._objects.setdefault(name, KnownObject(name, frames))
        if known.value is ABSENT:
            known.frames = frames

    def expect_file(self, name: ObjectName, has_file: bool = False) -> None:
        """A task will read the object, which is a file of the host, or soon will be."""
        known = self._objects.setdefault(name, KnownObject(name, None))
        known.has_file = has_file

    def forget(self, names: Iterable[ObjectName]) -> None:
        """Nobody needs these any more."""
        for name in names:
            known = self._objects.pop(name, None)
            if known is not None:
                known.is_forgotten = True  # before the value is taken: who just makes it looks here after that
                self._dropped.append((known.value, known.frames))
                known.value, known.frames = ABSENT, None

    def clear(self) -> None:
        """Another scheduler, or this one anew: nothing is known any more. A task that has begun reads on, but does not
        wait for a file: who was to make it may have been told by nobody."""
        for known in self._objects.values():
            known.is_invalid = True
        self._dropped.extend(self._objects.values())
        self._objects.clear()

    def release(self) -> None:
        """Let go of what was forgotten. Not under the lock: it may take long, and run code of the objects' own."""
        self._dropped.clear()
