"""The connections to the data addresses of other agents, and the files that come through them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import zmq

from scaler_client.commands.key_files import PeerKeys
from scaler_client.commands.object_files import (
    CHUNK_BYTES,
    FLAGS,
    ObjectName,
    finish_part,
    part_path,
)
from scaler_client.net.data_server import MAX_QUEUED_MESSAGES, PEER_INTERVAL_MILLISECONDS
from scaler_client.net.sockets import receive
from scaler_client.protocol.messages import DataAddress, Message, ObjectChunk, ReadObject
from scaler_client.protocol.wire import WireError, decode, encode

from .downloads import CONNECT_SECONDS
from .effects import WritePart

MAX_ANSWER_BYTES = CHUNK_BYTES + 16 * 1024
"""ZeroMQ cuts a connection that sends a longer frame."""

ANSWERS_PER_ROUND = 32
BYTES_PER_ROUND = 8 << 20
"""The agent reads at most so many answers of each source, and little more than so many bytes, before it serves the
others."""


class DataSources:
    """One socket for each data address from which files are fetched."""

    def __init__(self, keys: PeerKeys | None, poller: zmq.Poller) -> None:
        self._keys = keys
        self._poller = poller
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets: dict[DataAddress, zmq.Socket[bytes]] = {}

    def ask(self, source: DataAddress, request: ReadObject) -> None:
        """Send a request. A request that can't be sent has no answer, and its file is given up after a time."""
        with suppress(zmq.ZMQError, ValueError):
            if source not in self._sockets:
                self._sockets[source] = self._connect(source)
            self._sockets[source].send_multipart(encode(request), zmq.NOBLOCK)

    def _connect(self, source: DataAddress) -> zmq.Socket[bytes]:
        made = self._context.socket(zmq.DEALER)
        options = {
            zmq.LINGER: 0,
            zmq.IPV6: int("[" in source.address),
            zmq.MAXMSGSIZE: MAX_ANSWER_BYTES,
            zmq.SNDHWM: MAX_QUEUED_MESSAGES,
            zmq.RCVHWM: MAX_QUEUED_MESSAGES,
            zmq.CONNECT_TIMEOUT: round(CONNECT_SECONDS * 1000),
            zmq.HEARTBEAT_IVL: PEER_INTERVAL_MILLISECONDS,
            zmq.HEARTBEAT_TIMEOUT: 3 * PEER_INTERVAL_MILLISECONDS,
        }
        try:
            for option, value in options.items():
                made.setsockopt(option, value)
            if self._keys is not None:
                # A source without keys can't be one of this scheduler's agents: then there is no connection.
                made.setsockopt(zmq.CURVE_SERVERKEY, bytes.fromhex(source.key))
                made.setsockopt(zmq.CURVE_PUBLICKEY, self._keys.public)
                made.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
            made.connect(source.address)
        except (zmq.ZMQError, ValueError):
            made.close()
            raise
        self._poller.register(made, zmq.POLLIN)
        return made

    def receive(self) -> Iterator[tuple[DataAddress, Message]]:
        """Messages that have come. Messages that can't be decoded are dropped."""
        for source, connection in list(self._sockets.items()):
            size = 0
            for _ in range(ANSWERS_PER_ROUND):
                if connection.closed or size >= BYTES_PER_ROUND:
                    break
                try:
                    message = decode(receive(connection, zmq.NOBLOCK))
                except zmq.Again:
                    break
                except WireError:
                    continue
                if isinstance(message, ObjectChunk):
                    size += len(message.payload)
                yield source, message

    def close_source(self, source: DataAddress) -> None:
        """Close the connection to a source, if there is one."""
        connection = self._sockets.pop(source, None)
        if connection is not None:
            self._poller.unregister(connection)
            connection.close()

    def close(self) -> None:
        for source in list(self._sockets):
            self.close_source(source)
        self._context.destroy(linger=0)


@dataclass
class _PartFile:
    descriptor: int
    file_bytes: int
    chunks: dict[int, int] = field(default_factory=dict)
    """The chunks that are written: their sizes by offset. All agents ask for the same chunks."""


class PartFiles:
    """The files that are being fetched, under their unfinished names."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._files: dict[ObjectName, _PartFile] = {}

    def write(self, part: WritePart) -> None:
        """Write a part of a file.

        Raises:
            OSError: it can't be written. Nothing is left of the file.
        """
        name = part.name
        try:
            self._write(part)
        except OSError:
            self.drop(name)
            raise

    def _write(self, part: WritePart) -> None:
        file = self._files.get(part.name)
        if file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | FLAGS
            descriptor = os.open(part_path(self._directory, part.name), flags, 0o600)
            file = self._files[part.name] = _PartFile(descriptor, part.file_bytes)
        offset, data = part.offset, memoryview(part.payload)
        while data:
            written = os.pwrite(file.descriptor, data, offset)
            offset, data = offset + written, data[written:]
        file.chunks[part.offset] = len(part.payload)

    def read(self, name: ObjectName, offset: int, size: int) -> tuple[int, bytes] | None:
        """Read a chunk of a file that is being fetched.

        Returns:
            The size of the whole file, and the bytes. None: the chunk is not there.

        Raises:
            OSError: it can't be read.
        """
        file = self._files.get(name)
        if file is None or not 0 < file.chunks.get(offset, 0) <= size:
            return None
        return file.file_bytes, os.pread(file.descriptor, file.chunks[offset], offset)

    def finish(self, name: ObjectName) -> None:
        """Give a file its name.

        Raises:
            OSError: it can't be renamed, or a part of it could not be written.
            ValueError: it is damaged.
        """
        file = self._files.pop(name, None)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "a part of it could not be written")
        try:
            finish_part(self._directory, name, file.descriptor)
        finally:
            os.close(file.descriptor)

    def drop(self, name: ObjectName) -> None:
        """Remove an unfinished file, if there is one."""
        file = self._files.pop(name, None)
        if file is not None:
            os.close(file.descriptor)
            with suppress(OSError):
                os.unlink(part_path(self._directory, name))
