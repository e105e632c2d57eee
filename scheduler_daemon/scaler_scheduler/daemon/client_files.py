"""Objects that clients of this host write as files in shared memory, instead of sending their bytes.

The core keeps a `ClientFile` in the place of such an object's frames, and only asks for its length. An agent of this
host links the file into its own directory. For a peer of another host the frames are read from the file.
"""

from __future__ import annotations

import logging
from typing import Protocol

from ..commands.object_directory import ObjectDirectory, make_directory
from ..commands.object_files import (
    SHARED_MEMORY,
    ObjectName,
    directory_of,
    file_size,
    is_own_directory,
    objects_in,
    read_frames,
    remove_object,
    remove_objects_of,
)
from ..core import effects, events
from ..core.scheduler import Scheduler
from ..wire.errors import WireError

_MAX_HEADER_BYTES = 64 * 1024
"""The file has at most so many bytes more than its frames: the header, and the gaps between the frames."""

_log = logging.getLogger(__name__)


class FileStore(Protocol):
    """The directory of the files. The simulation has another one."""

    def size(self, name: ObjectName) -> int:
        """The size of a file with its header, in bytes; 0: there is no such file."""

    def read(self, name: ObjectName) -> list[bytes]:
        """The frames in a file.

        Raises:
            OSError: the file can't be read.
            ValueError: it is damaged.
        """

    def clients(self) -> set[int]:
        """The clients that have files, finished or not."""

    def remove(self, name: ObjectName) -> None:
        """Remove a file."""

    def remove_client(self, client: int) -> None:
        """Remove all files of a client."""

    def is_near(self, agent: int) -> bool:
        """Whether the host agent of this incarnation can link the files."""

    def close(self) -> None:
        """Remove the directory with all files."""


class ClientFile:
    """Stands for the frames of an object that is a file."""

    __slots__ = ("_size", "name")

    def __init__(self, name: ObjectName, size: int) -> None:
        self.name = name
        self._size = size

    def __len__(self) -> int:
        """The bytes of all frames."""
        return self._size


class ClientFiles:
    """The objects that are files of the scheduler's directory.

    Args:
        core: knows which objects are needed.
        store: the directory; None: there is none, and no client can write a file.
    """

    def __init__(self, core: Scheduler, store: FileStore | None) -> None:
        self._core = core
        self._store = store
        self._held: set[ObjectName] = set()
        """The files that the core was told of."""

    def take(self, event: events.Object) -> None:
        """Put a `ClientFile` in the place of the object's frames. The core has not seen the event yet.

        Raises:
            WireError: there is no such file, or only clients may send such an object.
        """
        client = self._core.tables.clients.by_route.get(event.route)
        if client is None:
            if self._core.has_peer(event.route):
                raise WireError("an object as a file, from a peer that is no client")
            return  # the core asks an unknown peer for its hello
        name = client.incarnation, event.id
        size = 0 if self._store is None else self._store.size(name)
        if not event.file_bytes <= size <= event.file_bytes + _MAX_HEADER_BYTES:
            raise WireError(f"object {event.id} has no file of {event.file_bytes:,} bytes on the scheduler's host")
        self._held.add(name)
        event.frames = [ClientFile(name, event.file_bytes)]  # type: ignore[list-item]

    def forget(self, event: events.ForgetObjects) -> None:
        """Note the files of objects that a client no longer needs and the core was never told of: their message was
        dropped, because the client's connection was new. The core has not seen the event yet."""
        client = self._core.tables.clients.by_route.get(event.route)
        if client is None or self._store is None:
            return
        for object_id in event.ids:
            if object_id not in client.objects and self._store.size((client.incarnation, object_id)):
                self._held.add((client.incarnation, object_id))

    def resolve(self, effect: effects.Object) -> None:
        """Prepare an object that is a file for its message: for an agent of this host it stays a file, for other peers
        its frames are read. If the file is lost, the message has no frames, and the peer drops it."""
        file: object = effect.frames[0]
        if type(file) is not ClientFile or self._store is None:
            return
        agent = self._core.tables.agents.by_route.get(effect.route)
        effect.frames = []
        if agent is not None and self._store.is_near(agent.incarnation):
            effect.file_bytes = len(file)
            return
        try:
            effect.frames = self._store.read(file.name)
        except (OSError, ValueError) as error:
            _log.error("object %d of client %d is lost with its file: %s", file.name[1], file.name[0], error)

    def remove_unneeded(self) -> None:
        """Remove the files of objects that are not needed any more, and those of clients that have left."""
        if self._store is None:
            return
        clients = self._core.tables.clients
        for name in list(self._held):
            client = clients.find(name[0])
            if client is None or name[1] not in client.objects:
                self._held.discard(name)
                self._store.remove(name)
        # A client may have left after it wrote a file and before its message came.
        for owner in self._store.clients():
            if clients.find(owner) is None:
                self._store.remove_client(owner)

    def close(self) -> None:
        """Remove the directory with all files."""
        if self._store is not None:
            self._store.close()


class SharedMemory:
    """The scheduler's directory in shared memory."""

    def __init__(self, directory: ObjectDirectory) -> None:
        self._directory = directory
        self._path = directory.path

    def size(self, name: ObjectName) -> int:
        return file_size(self._path, name)

    def read(self, name: ObjectName) -> list[bytes]:
        return read_frames(self._path, name)

    def clients(self) -> set[int]:
        return {client for client, _ in objects_in(self._path, with_unfinished=True)}

    def remove(self, name: ObjectName) -> None:
        remove_object(self._path, name)

    def remove_client(self, client: int) -> None:
        remove_objects_of(self._path, client)

    def is_near(self, agent: int) -> bool:
        return is_own_directory(directory_of(agent))

    def close(self) -> None:
        self._directory.remove()


def make_store(scheduler: int) -> FileStore | None:
    """Make the directory of the scheduler of this incarnation. None: it can't be made, so clients send bytes."""
    try:
        return SharedMemory(make_directory(scheduler, [SHARED_MEMORY]))
    except OSError as error:
        _log.debug("clients send large objects as messages: no directory in %s: %s", SHARED_MEMORY, error)
        return None
