"""The files of a simulated client: agents of its host link them, and other agents ask its data address."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import (
    DataAddress,
    FileResult,
    NoObject,
    Object,
    ObjectChunk,
    Payload,
    ReadObject,
)
from scaler_scheduler.core.ids import value_id

from .clock import Process

if TYPE_CHECKING:
    from .world import World

HOSTS = 3
"""Half of the clients are on one of so many of the first hosts."""


def host_of(incarnation: int, name: str) -> str:
    """The host of a client: half of them are on hosts that have an agent. No random number is drawn for it."""
    return f"host{1 + (incarnation >> 3) % HOSTS}" if incarnation & 2 else name


class SimulatedFiles:
    """Does what `scaler_client.io.client_files` does."""

    def __init__(self, world: World, client: int, host: str, process: Process) -> None:
        self.incarnation = client
        self.process = process
        self.host = host
        # Some clients have no data address, some can't write files, and some have no space for some objects.
        self.data = DataAddress(f"sim://{client}" if (client >> 6) % 2 else "", "", str(client))
        self._can_write = (client >> 8) % 8 > 0
        self._is_full = (client >> 11) % 4 == 0
        self._world = world
        self._files: dict[int, Sequence[Payload]] = {}
        self._results: dict[int, bytes] = {}
        """The files of results that the client has not taken, by the id of the file."""
        world.client_files[client] = self

    def __len__(self) -> int:
        return len(self._files) + len(self._results)

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    # ------------------------------------------------------------------------------------------------- for the session

    def share(self, message: Object) -> Object:
        size = sum(map(len, message.frames))
        if size < self._world.least_file_bytes or not self._can_write or (self._is_full and message.id % 3 == 1):
            return message
        self._world.trace.count("objects as files of clients")
        self._files[message.id] = message.frames
        return self.announcement(message.id, message.name)

    def take_results(self) -> None:
        """Do nothing: the directory is always there."""

    def take_result(self, result: FileResult) -> bytes | None:
        found = self._results.pop(result.file, None)
        self._world.trace.count("results as files of clients")
        return found

    def remove_results(self, is_open: Callable[[int], bool]) -> None:
        for file in [file for file in self._results if not is_open(value_id(file))]:
            self._world.trace.count("results that nobody takes")
            del self._results[file]

    def ids(self) -> Sequence[int]:
        return list(self._files)

    def has(self, object_id: int) -> bool:
        return object_id in self._files

    def announcement(self, object_id: int, name: str = "") -> Object:
        size = sum(map(len, self._files[object_id]))
        return Object(object_id, (), name=name, file_bytes=size, data=self.data)

    def read(self, object_id: int) -> Sequence[Payload] | None:
        self._world.trace.count("files that clients send as messages")
        return self._files.get(object_id)

    def take_ticket(self, ticket: str) -> None:
        """Do nothing: no key is revoked in the simulation."""

    def remove(self, object_id: int) -> None:
        self._files.pop(object_id, None)

    # ----------------------------------------------------------------------------------------------------- for workers

    def write_result(self, file: int, payload: bytes, host: str) -> bool:
        """Write a result, as a worker of this host does. Returns whether it was written."""
        if host != self.host or not self.is_alive or not self._can_write or file % 3 == 1:
            return False
        self._results[file] = payload
        return True

    # ------------------------------------------------------------------------------------------------------ for agents

    def find(self, name: ObjectName, host: str) -> Sequence[Payload] | None:
        """The frames of a file that an agent of this host links; None: it can't."""
        return self._files.get(name[1]) if host == self.host and self.is_alive and name[1] % 8 != 5 else None

    def answer(self, request: ReadObject) -> ObjectChunk | NoObject:
        """Answer an agent that asks for a chunk."""
        found = self._files.get(request.id)
        if found is None:
            return NoObject(request.client, request.id, "there is no such file")
        return chunk_of(found, request)


def chunk_of(frames: Sequence[Payload], request: ReadObject) -> ObjectChunk:
    """A part of the file with these frames."""
    file = pickle.dumps([bytes(frame) for frame in frames])
    chunk = file[request.offset : request.offset + request.bytes]
    return ObjectChunk(request.client, request.id, request.offset, len(file), chunk)
