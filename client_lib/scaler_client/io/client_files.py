"""The large objects of a client as files of its host: one copy of the bytes, for all workers of all hosts.

Agents of this host link the files. Agents of other hosts get them from the data address of the client, which a thread
of its own serves: a slow or hostile host holds up neither the I/O thread nor the program. Directory, thread and socket
are made for the first large object.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence

import zmq

from ..commands.addresses import DATA_ADDRESS_AUTO, Address
from ..commands.key_files import PeerKeys
from ..commands.mapped_files import map_copy, map_file, write_frames_to_memory
from ..commands.object_directory import ObjectDirectory, make_directory
from ..commands.object_files import (
    DO_NOT_WAIT,
    FLAGS,
    HEAD_BYTES,
    SHARED_BYTES,
    SHARED_MEMORY,
    frame_places,
    path_of,
    read_frames,
    remove_object,
    result_of,
    write_object,
)
from ..net.data_server import DataAddressError, DataServer
from ..net.wakeup import WakeupFd
from ..pickling.object_frames import ResultFile
from ..protocol.messages import DataAddress, FileResult, Object, Payload

_log = logging.getLogger(__name__)


class ClientFiles:
    """The files of one client. Only the I/O thread uses them.

    Args:
        client: the client's incarnation, which names the directory.
        scheduler: the scheduler's address.
        keys: the client's keys; None: connections are not encrypted.
        wanted: the data address; `auto`: a free port; empty: none.

    Raises:
        DataAddressError: a data address was given that can't be bound.
    """

    def __init__(self, client: int, scheduler: Address, keys: PeerKeys | None, wanted: Address | str) -> None:
        self._client = client
        self._scheduler = scheduler
        self._keys = keys
        self._wanted = wanted
        self._directory: ObjectDirectory | None = None
        self._server: _DataThread | None = None
        self._is_possible = True
        """Whether there may be files. If the directory can't be made, all bytes are sent."""
        self._is_served = False
        """Whether agents of other hosts may get the files, or it was tried in vain."""
        self._searched_at = 0
        """When the directory had changed last in the last search for files to remove, in nanoseconds."""
        self._sizes: dict[int, int] = {}
        """The bytes of the frames in each file, by id."""
        if isinstance(wanted, Address):
            self._open()

    def share(self, message: Object) -> Object:
        """Write a large object to a file; return the message to send: without frames if they are in the file now."""
        size = sum(map(len, message.frames))
        if size < SHARED_BYTES or not self._open() or self._directory is None:
            return message
        if self._sizes.get(message.id) != size:
            try:
                name = self._client, message.id
                write_object(self._directory.path, name, message.frames, write_frames_to_memory)
            except OSError:  # no space
                return message
            self._sizes[message.id] = size
        return self.announcement(message.id, message.name)

    def take_results(self) -> None:
        """Make the directory. Workers of this host write large results into it from now on."""
        self._open_directory()

    def take_result(self, result: FileResult) -> ResultFile | Payload | None:
        """Map the file with a result, and remove the file. The mapping keeps its bytes.

        Returns:
            The result; None: there is no such file, or it is damaged.
        """
        if self._directory is None:
            return None
        path = path_of(self._directory.path, (self._client, result.file))
        try:
            descriptor = os.open(path, os.O_RDONLY | DO_NOT_WAIT | FLAGS)
            try:
                os.unlink(path)
                return _map_result(descriptor)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            _log.error("the result in %s is lost: %s", path, error)
            return None

    def remove_results(self, is_open: Callable[[int], bool]) -> None:
        """Remove the files of results that nobody is going to take: of attempts that do not count.

        Args:
            is_open: tells whether a task may still be answered with a file.
        """
        if self._directory is None:
            return
        try:
            changed_at = os.stat(self._directory.path).st_mtime_ns
            if changed_at == self._searched_at:
                return
            has_left = False
            for name in os.listdir(self._directory.path):
                found = result_of(name)
                if found is not None:
                    task_id, path = found, os.path.join(self._directory.path, name)
                    if is_open(task_id):
                        has_left = True
                    else:
                        os.unlink(path)
            self._searched_at = 0 if has_left else changed_at
        except OSError as error:
            _log.debug("results can't be removed: %s", error)

    def ids(self) -> Sequence[int]:
        """Return the ids of all files."""
        return list(self._sizes)

    def has(self, object_id: int) -> bool:
        """Whether the object is a file."""
        return object_id in self._sizes

    def announcement(self, object_id: int, name: str = "") -> Object:
        """Return the message that tells the scheduler of a file."""
        data = DataAddress() if self._server is None else self._server.address
        return Object(object_id, (), name=name, file_bytes=self._sizes[object_id], data=data)

    def take_ticket(self, ticket: str) -> None:
        """Give files only to agents with this ticket from now on."""
        if self._server is not None:
            self._server.take_ticket(ticket)

    def read(self, object_id: int) -> Sequence[Payload] | None:
        """Return the frames in a file; None: it can't be read."""
        if self._directory is None:
            return None
        try:
            return read_frames(self._directory.path, (self._client, object_id))
        except (OSError, ValueError) as error:
            _log.error("object %d is lost with its file: %s", object_id, error)
            return None

    def remove(self, object_id: int) -> None:
        """Remove a file, if there is one."""
        if self._directory is not None and self._sizes.pop(object_id, None) is not None:
            remove_object(self._directory.path, (self._client, object_id))

    def close(self) -> None:
        """Stop serving, and remove all files."""
        if self._server is not None:
            self._server.close()
        if self._directory is not None:
            self._directory.remove()
        self._server = self._directory = None
        self._is_possible = False

    def mark_forked(self) -> None:
        """Leave everything to the parent, in a forked child."""
        if self._directory is not None:
            self._directory.release_lock()
        self._server = self._directory = None
        self._is_possible = False

    def _open(self) -> bool:
        """Make the directory, and serve its files, unless that was done. Returns whether there may be files."""
        if self._is_served or not self._open_directory():
            return self._is_possible
        assert self._directory is not None
        self._is_served = True
        try:
            server = DataServer(self._wanted, self._scheduler, self._keys, self._directory.path)
        except (DataAddressError, zmq.ZMQError) as error:
            if self._wanted != DATA_ADDRESS_AUTO:
                self.close()
                raise
            _log.warning("large objects go to other hosts through the scheduler: %s", error)
            return True
        if server.socket is not None:
            self._server = _DataThread(server)
            _log.info("agents get large objects at %s", server.address.address)
        return True

    def _open_directory(self) -> bool:
        """Make the directory, unless that was done. Returns whether there may be files."""
        if self._directory is None and self._is_possible:
            try:
                self._directory = make_directory(self._client, [SHARED_MEMORY])
            except OSError as error:
                self._is_possible = False
                _log.debug("large values are sent as messages: no directory in %s: %s", SHARED_MEMORY, error)
        return self._is_possible


def _map_result(descriptor: int) -> ResultFile | Payload:
    """Map a file with a result.

    Raises:
        OSError: it can't be mapped or read.
        ValueError: it is damaged.
    """
    size = os.fstat(descriptor).st_size
    head = os.pread(descriptor, HEAD_BYTES, 0)
    places = frame_places(head, size)
    try:
        whole = map_file(descriptor, size)
        own = whole if len(places) == 1 else map_copy(descriptor, size)
    except OSError:  # a process may have some 65,000 mappings
        data = bytearray(os.pread(descriptor, size, 0))
        whole, own = memoryview(bytes(data)), memoryview(data)
        if len(data) != size:
            raise
    frames = [whole[begin : begin + length] for begin, length in places]
    if len(frames) == 1:
        return frames[0]
    return ResultFile(frames, [own[begin : begin + length] for begin, length in places[1:]])


class _DataThread:
    """Answers the requests of agents in a thread."""

    def __init__(self, server: DataServer) -> None:
        self._server = server
        self._wake = WakeupFd()
        self._thread = threading.Thread(target=self._run, name="scaler-data", daemon=True)
        self._thread.start()

    @property
    def address(self) -> DataAddress:
        return self._server.address

    def take_ticket(self, ticket: str) -> None:
        """Accept only this ticket from now on."""
        self._server.take_ticket(ticket)

    def close(self) -> None:
        """End the thread, and close the socket."""
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._server.socket, zmq.POLLIN)
        poller.register(self._wake.fileno(), zmq.POLLIN)
        if self._server.listener is not None:
            poller.register(self._server.listener.fileno(), zmq.POLLIN)
        try:
            while True:
                seconds = self._server.deadline() - time.monotonic()
                ready = dict(poller.poll(None if seconds == float("inf") else max(0, math.ceil(seconds * 1000))))
                if self._wake.fileno() in ready:
                    break
                self._server.serve()
        except Exception:
            _log.exception("the thread of the data address failed: large objects go through the scheduler")
        finally:
            self._server.close()
