"""The objects that the agent has written to files of its host. Sans-IO.

It does not know the results that workers write. Workers report these to the scheduler, which names a result when the
agent should send or remove it. Such a message may be lost with the connection, so each hello names the existing files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import FetchObjects, ForgetObjects, Object, Welcome

from .effects import Effect, Log, MarkObjectLost, RemoveObjects, SendObjects, WriteObject


class HostObjects:
    """The object files that the agent has written, with their sizes."""

    def __init__(self) -> None:
        self._sizes: dict[ObjectName, int] = {}
        self._scheduler = 0
        self._frame_limit = 0
        self._unconfirmed: set[ObjectName] = set()
        """The objects that existed at the last welcome and were not sent again since then."""
        self._failed_bytes = 0
        """The size of the last object that could not be written; 0: larger ones can be written now."""
        self.total_bytes = 0

    def welcomed(self, welcome: Welcome) -> list[Effect]:
        """Handle a welcome.

        A new scheduler knows no objects, and sends the objects that tasks need again. The same scheduler may have tasks
        on the workers that read these objects: it sends these objects again, right after the welcome.

        Files of workers stay, because the worker may have joined the new scheduler before. The hello has named them,
        and the scheduler names those that it does not need.
        """
        self._frame_limit = welcome.message_size_limit
        before, self._scheduler = self._scheduler, welcome.incarnation
        if not before or before == welcome.incarnation:
            self._unconfirmed = set(self._sizes)
            return []
        names = tuple(self._sizes)
        self._drop(names)
        return [RemoveObjects(names)] if names else []

    def has(self, name: ObjectName) -> bool:
        """Whether the agent has written this object, or is writing it."""
        return name in self._sizes

    def written_by_workers(self, names: Iterable[ObjectName]) -> list[ObjectName]:
        """The names of the files that workers have written, among these."""
        return sorted(name for name in names if name not in self._sizes)

    def remove_unconfirmed(self) -> list[Effect]:
        """Remove the objects that were not sent again after a welcome. The message that removes them may have been lost
        with the connection."""
        unconfirmed, self._unconfirmed = self._unconfirmed, set()
        return self._remove(sorted(unconfirmed))

    def add(self, message: Object) -> list[Effect]:
        """Write an object that workers of this host will read, unless its file exists.

        After a lost connection the scheduler sends it again, because the last messages may not have arrived.
        """
        name = (message.client, message.id)
        self._unconfirmed.discard(name)
        if name in self._sizes:
            return []
        self._sizes[name] = size = sum(map(len, message.frames))
        self.total_bytes += size
        if message.file_bytes:  # the scheduler sends the bytes to the worker that can't read it
            return [MarkObjectLost(name, "it is a file of a scheduler of another version")]
        return [WriteObject(name, message.frames)]

    def written(self, name: ObjectName, error: str) -> list[Effect]:
        """Handle the outcome of WriteObject. `error` says why the object could not be written; empty: it was
        written."""
        size = self._sizes.get(name, 0)
        if not error:
            if size >= self._failed_bytes:
                self._failed_bytes = 0
            return []
        # Log only the first failure: if there is no space for one object, there is none for many others.
        level = logging.DEBUG if self._failed_bytes else logging.ERROR
        self._failed_bytes = max(size, 1)
        client, object_id = name
        text = f"object {object_id} of client {client}, {size} bytes, can't be shared among the workers: {error}"
        return [
            Log(level, f"{text}; the scheduler sends it to each worker"),
            MarkObjectLost(name, f"{error} ({size} bytes)"),
        ]

    def forget(self, message: ForgetObjects) -> list[Effect]:
        return self._remove(list(zip(message.clients, message.ids)))

    def fetch(self, message: FetchObjects) -> list[Effect]:
        """Send the files that the scheduler asks for."""
        return [SendObjects(tuple(zip(message.clients, message.ids)), self._frame_limit)]

    def _remove(self, names: Sequence[ObjectName]) -> list[Effect]:
        self._drop(names)
        return [RemoveObjects(tuple(names))] if names else []

    def _drop(self, names: Sequence[ObjectName]) -> None:
        self._unconfirmed.difference_update(names)
        for name in names:
            self.total_bytes -= self._sizes.pop(name, 0)
