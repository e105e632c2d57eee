"""The files of a host's values, as its agent writes and removes them.

What needs the lock of the host's values (`HostStorage`) runs in a thread of its own, one job after the other. The
agent's loop never waits for this lock: a worker that is stopped may hold it for long, and the host would be lost by its
lease.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from scaler_client.commands.object_files import (
    ObjectName,
    directory_of,
    file_size,
    is_own_directory,
    mark_lost,
    objects_in,
)

from ..objects.host_storage import HostStorage, NoRoomError, Usage
from .data_sources import PartFiles
from .disk_thread import DiskThread
from .downloads import TransferAnswers
from .effects import DropPart, Effect, FinishFile, LinkFile, MarkObjectLost, RemoveObjects, WriteObject, WritePart
from .session import AgentSession

_log = logging.getLogger(__name__)


class ValueFiles:
    """The files of values on this host. Its methods are called in the agent's loop, and do not wait for the lock."""

    def __init__(self, directory: str, disk: DiskThread, answers: TransferAnswers) -> None:
        """
        Args:
            directory: has the object files in memory.
            disk: runs what may wait for the disk.
            answers: takes what the scheduler is told about fetched files.
        """
        self.storage = HostStorage(directory)
        self.parts = PartFiles(directory)
        self.thread = DiskThread("values")
        self._disk = disk
        self._answers = answers
        self._removing: Counter[ObjectName] = Counter()
        """Values whose removal the thread has not finished. To the session they are gone."""
        self.told_usage = Usage(0, 0)
        """What the last heartbeat says of the host's values."""
        self._removed_bytes = 0
        """The bytes of the values that were removed since then."""

    def connect(self, session: AgentSession, do: Callable[[list[Effect]], None]) -> None:
        """Set the session that is told of outcomes, and what carries out its effects."""
        self._session = session
        self._do = do

    def has(self, name: ObjectName) -> bool:
        """Whether the value is a file of this host."""
        return name not in self._removing and self.storage.has(name)

    def names(self) -> list[ObjectName]:
        """The values that are files of this host."""
        return [name for name in objects_in(self.storage.directory) if name not in self._removing]

    @staticmethod
    def can_link(name: ObjectName) -> bool:
        """Whether a client on this host has the object's file."""
        directory = directory_of(name[0])
        return is_own_directory(directory) and bool(file_size(directory, name))

    def usage_to_tell(self) -> Usage:
        """What the values of the host use, for a heartbeat."""
        self.told_usage, self._removed_bytes = self.storage.usage() or Usage(0, 0), 0
        return self.told_usage

    def process_ended(self, pid: int) -> None:
        """Remove what an ended worker process has left unfinished."""
        self.thread.run(partial(self.storage.process_ended, pid), self._disk.unlink)

    # --------------------------------------------------------------------------------------------------------- effects

    def write(self, effect: WriteObject) -> None:
        self.thread.run(partial(self._write_to_memory, effect), partial(self._written_to_memory, effect))

    def mark_lost(self, effect: MarkObjectLost) -> None:
        self.thread.run(partial(self._mark_lost, effect))

    def remove(self, effect: RemoveObjects) -> None:
        self._remove(effect.names)

    def link(self, effect: LinkFile) -> None:
        self.thread.run(partial(self._link, effect.name), partial(self._linked, effect.name))

    def write_part(self, effect: WritePart) -> None:
        try:
            self.parts.write(effect)
        except OSError as error:
            self._do(self._session.part_failed(effect.name, f"{error.strerror}: {self.storage.directory}"))

    def finish(self, effect: FinishFile) -> None:
        answer = effect.answer
        try:
            if effect.name in self._removing:
                raise ValueError("an earlier file of this object is being removed")
            self.parts.finish(effect.name)
        except (OSError, ValueError) as error:
            self.parts.drop(effect.name)
            self._answers.add(replace(answer, error=str(error)))
            return
        self.thread.run(partial(self.storage.adopt, effect.name))
        self._answers.add(answer)

    def drop_part(self, effect: DropPart) -> None:
        self.parts.drop(effect.name)

    # ---------------------------------------------------------------------------------------------------------- writing

    def _write_to_memory(self, write: WriteObject) -> str | None:
        """Returns an error; empty: none; None: there is no room in memory."""
        try:
            return "" if self.storage.write_to_memory(write.name, write.frames) else None
        except OSError as failure:
            return f"{failure.strerror}: {self.storage.directory}"

    def _written_to_memory(self, write: WriteObject, error: str | None) -> None:
        if error is None:
            self._disk.run(partial(self._write_to_disk, write), partial(self._written, write.name))
        else:
            self._written(write.name, error)

    def _write_to_disk(self, write: WriteObject) -> str:
        """Returns an error; empty: none."""
        try:
            self.storage.write_to_disk(write.name, write.frames)
        except (NoRoomError, OSError) as error:
            return str(error)
        return ""

    def _written(self, name: ObjectName, error: str) -> None:
        if self._session.has_object(name):
            self._do(self._session.object_written(name, error))
        else:  # it was forgotten meanwhile
            self._remove((name,))

    def _mark_lost(self, mark: MarkObjectLost) -> None:
        try:
            mark_lost(self.storage.directory, mark.name, mark.reason)
        except OSError as error:
            _log.debug("no mark for object %s: %s", mark.name, error)  # tasks that wait for it give up after a while

    # ------------------------------------------------------------------------------------------------ removing, linking

    def _remove(self, names: Iterable[ObjectName]) -> None:
        self._removing.update(names)
        self.thread.run(partial(self._unlink, names), partial(self._removed, names))

    def _unlink(self, names: Iterable[ObjectName]) -> tuple[list[str], int]:
        """Remove values. Returns their files on disk, and the number of bytes that were in use by them."""
        before = self.storage.usage()
        paths = self.storage.remove(names)
        after = self.storage.usage()
        if before is None or after is None:
            return paths, 0
        return paths, before.memory_bytes + before.disk_bytes - after.memory_bytes - after.disk_bytes

    def _removed(self, names: Iterable[ObjectName], outcome: tuple[list[str], int]) -> None:
        paths, removed = outcome
        self._disk.unlink(paths)
        self._removing.subtract(names)
        self._removing = +self._removing
        self._removed_bytes += max(0, removed)
        used = self.storage.usage()
        if used is not None and used.is_news(self.told_usage, self._removed_bytes):  # tasks may wait for this room
            self._session.tell_room(time.monotonic())

    def _link(self, name: ObjectName) -> bool:
        try:
            self.storage.link(directory_of(name[0]), name)
        except OSError:
            return False
        return True

    def _linked(self, name: ObjectName, is_linked: bool) -> None:
        self._do(self._session.file_linked(name, is_linked, time.monotonic()))
