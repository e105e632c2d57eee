"""Which objects are files of this host. Sans-IO.

What the workers write is not known here: the scheduler is told by them, and names it when it wants it sent, or gone. It
may have said so while the connection was lost: so each hello names what there is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from scaler_client.protocol.messages import FetchObjects, ForgetObjects, Object, Welcome

from ..task_rows import ObjectName
from .effects import Effect, Log, MarkObjectLost, RemoveObjects, SendObjects, WriteObject


class HostObjects:
    def __init__(self) -> None:
        self._sizes: dict[ObjectName, int] = {}
        self._scheduler = 0
        self._frame_limit = 0
        self._unconfirmed: set[ObjectName] = set()
        """What was here at the last welcome and did not come again since."""
        self._is_failing = False
        self.total_bytes = 0

    def welcomed(self, welcome: Welcome) -> list[Effect]:
        """A new scheduler knows of no object, and sends again what is needed. The same one may still have tasks on the
        workers that read what is here: that comes again at once, behind the welcome."""
        self._frame_limit = welcome.message_size_limit
        before, self._scheduler = self._scheduler, welcome.incarnation
        if not before or before == welcome.incarnation:
            self._unconfirmed = set(self._sizes)
            return []
        names = tuple(self._sizes)
        self._drop(names)
        return [RemoveObjects(names, with_others=True)]

    def written_by_workers(self, names: Iterable[ObjectName]) -> list[ObjectName]:
        """Those of these files that workers have written."""
        return sorted(name for name in names if name not in self._sizes)

    def remove_unconfirmed(self) -> list[Effect]:
        """All that came at once has come: nobody needs the rest. That may have been said while the connection broke."""
        unconfirmed, self._unconfirmed = self._unconfirmed, set()
        return self._remove(sorted(unconfirmed))

    def add(self, message: Object) -> list[Effect]:
        """An object that workers of this host will read. One that is here already comes again after a lost connection:
        what was sent last may not have arrived."""
        name = (message.client, message.id)
        self._unconfirmed.discard(name)
        if name in self._sizes:
            return []
        self._sizes[name] = size = sum(map(len, message.frames))
        self.total_bytes += size
        return [WriteObject(name, message.frames)]

    def written(self, name: ObjectName, error: str) -> list[Effect]:
        """The answer to WriteObject; `error` is empty, or says why the object could not be written."""
        if not error:
            self._is_failing = False
            return []
        # It is said once: when there is no space for one, there will be none for many.
        level = logging.DEBUG if self._is_failing else logging.ERROR
        self._is_failing = True
        client, object_id = name
        size = self._sizes.get(name, 0)
        text = f"object {object_id} of client {client}, {size} bytes, can't be shared among the workers: {error}"
        return [Log(level, f"{text}; each of them is sent it"), MarkObjectLost(name, f"{error} ({size} bytes)")]

    def forget(self, message: ForgetObjects) -> list[Effect]:
        return self._remove(list(zip(message.clients, message.ids)))

    def fetch(self, message: FetchObjects) -> list[Effect]:
        """The scheduler wants what is in these files."""
        return [SendObjects(tuple(zip(message.clients, message.ids)), self._frame_limit)]

    def _remove(self, names: Sequence[ObjectName]) -> list[Effect]:
        self._drop(names)
        return [RemoveObjects(tuple(names))] if names else []

    def _drop(self, names: Sequence[ObjectName]) -> None:
        self._unconfirmed.difference_update(names)
        for name in names:
            self.total_bytes -= self._sizes.pop(name, 0)
