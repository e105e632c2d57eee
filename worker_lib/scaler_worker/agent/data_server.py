"""The agent's data address: other agents get object files there, chunk by chunk.

A request for a chunk that this host is still fetching waits for it, so a file goes through several hosts at once. A
thread reads the files that are on disk.
"""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from scaler_client.commands.addresses import Address
from scaler_client.commands.key_files import PeerKeys
from scaler_client.commands.object_files import ObjectName
from scaler_client.net import data_server
from scaler_client.net.data_server import NO_FILE
from scaler_client.protocol.messages import NoObject, ObjectChunk, ReadObject

from ..objects.files import ObjectLostError, open_object
from ..objects.host_storage import HostStorage
from .disk_thread import DiskThread

WAIT_SECONDS = 4.0
"""So long a request waits for its chunk. It is less than CONNECT_SECONDS, after which the other agent gives up the
connection."""

MAX_WAITING = 1024
"""At most so many requests wait."""


@dataclass(frozen=True)
class _Waiting:
    """A request, and until when it may wait for its chunk."""

    route: bytes
    request: ReadObject
    deadline: float


class DataServer(data_server.DataServer):
    """The socket of the agent's data address.

    Args:
        wanted: the option `--data-address`.
        scheduler: the scheduler's address.
        keys: the agent's keys; None: connections are not encrypted.
        directory: of the object files.

    Raises:
        DataAddressError: the address cannot be bound, or must not be bound without keys.
    """

    option, keys_option = "--data-address", "--keys DIR"

    def __init__(self, wanted: Address | str, scheduler: Address, keys: PeerKeys | None, directory: str) -> None:
        self._storage = HostStorage(directory)
        self.disk: DiskThread | None = None
        """Reads files on disk; None: the caller of `serve` does."""
        self.read_part: Callable[[ObjectName, int, int], tuple[int, bytes] | None] = lambda name, offset, size: None
        """Reads a chunk of a file that is being fetched: `PartFiles.read`."""
        self._waiting: deque[_Waiting] = deque()
        super().__init__(wanted, scheduler, keys, directory)

    def serve(self) -> None:
        """Answer requests that have come, and those whose chunks have come. A bad message never raises."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._answer(each)
        super().serve()

    def deadline(self) -> float:
        """When `serve` is to be called next, at the latest."""
        return min(super().deadline(), self._waiting[0].deadline if self._waiting else float("inf"))

    def _handle(self, route: bytes, request: ReadObject) -> None:
        self._answer(_Waiting(route, request, time.monotonic() + WAIT_SECONDS))

    def _answer(self, asked: _Waiting) -> None:
        request = asked.request
        if self.disk is not None and self._storage.disk_path((request.client, request.id)):
            self.disk.run(partial(self.answer, request), partial(self._reply, asked))
        else:
            self._reply(asked, self.answer(request))

    def _reply(self, asked: _Waiting, answer: ObjectChunk | NoObject | None) -> None:
        """Send an answer. Without one, keep the request for a while."""
        if answer is None:
            if time.monotonic() < asked.deadline and len(self._waiting) < MAX_WAITING:
                self._waiting.append(asked)
                return
            answer = NoObject(asked.request.client, asked.request.id, NO_FILE)
        self._send(asked.route, answer)

    def _open(self, name: ObjectName) -> int:
        try:
            return open_object(self._directory, name)[0]
        except ObjectLostError as error:
            raise OSError(errno.EIO, str(error)) from None

    def _part(self, name: ObjectName, offset: int, size: int) -> tuple[int, bytes] | None:
        return self.read_part(name, offset, size)
