"""Sends object files that the scheduler has asked for, a few at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import zmq

from scaler_client.commands.object_files import ObjectName
from scaler_client.protocol.messages import ForgetObjects, Message, Object, Transferred
from scaler_client.protocol.wire import encode
from scaler_client.session.frame_limit import fits_limit, too_large_text

from ..objects.files import ObjectLostError, read_object
from ..objects.host_storage import HostStorage
from .disk_thread import DiskThread

MAX_IN_FLIGHT_BYTES = 64 << 20
MAX_IN_FLIGHT_MESSAGES = 8
"""While so many bytes are being sent, the next object waits.

In the socket's queue it would delay the agent's heartbeats.
"""


_log = logging.getLogger(__name__)


class ObjectSender:
    """Sends requested object files over the agent's connection."""

    def __init__(self, connection: zmq.Socket[bytes], storage: HostStorage, disk: DiskThread) -> None:
        self._connection = connection
        self._storage = storage
        self._disk = disk
        self._waiting: dict[ObjectName, list[memoryview] | None] = {}
        """The frames if they were on disk. The other files are mapped when they are sent."""
        self._reading: set[ObjectName] = set()
        """The objects that are read from disk now."""
        self._frame_limit = 0
        self._in_flight: list[tuple[zmq.MessageTracker, int]] = []
        """Objects that ZeroMQ has not sent yet, each with its size."""

    @property
    def is_busy(self) -> bool:
        """Whether some requested object has not left this process."""
        return bool(self._waiting or self._reading) or not all(tracker.done for tracker, _ in self._in_flight)

    def add(self, names: Iterable[ObjectName], frame_limit: int) -> None:
        """Send these objects, each as soon as there is room. An object with a frame above the limit is refused; 0: no
        limit."""
        self._frame_limit = frame_limit
        for name in names:
            if name not in self._reading:
                self._waiting.setdefault(name, None)
        self.send()

    def send(self) -> None:
        """Send objects while there is room."""
        self._in_flight = [(tracker, size) for tracker, size in self._in_flight if not tracker.done]
        while self._waiting and self._has_room:
            name, found = next(iter(self._waiting.items()))
            if found is None and self._storage.disk_path(name):
                self._read_from_disk(name)
                continue
            # The frames are mapped files, and never copied. They live until ZeroMQ has sent them.
            frames = encode(self._message(name, self._read(name, may_wait=False) if found is None else found))
            try:
                tracker = self._connection.send_multipart(frames, zmq.NOBLOCK, copy=False, track=True)
            except zmq.Again:
                return  # there is no scheduler, or it is slow
            del self._waiting[name]
            if tracker is not None:
                self._in_flight.append((tracker, sum(map(len, frames))))

    @property
    def _has_room(self) -> bool:
        return (
            len(self._in_flight) < MAX_IN_FLIGHT_MESSAGES
            and sum(size for _, size in self._in_flight) < MAX_IN_FLIGHT_BYTES
        )

    def _read(self, name: ObjectName, may_wait: bool) -> list[memoryview]:
        """Map an object. Returns its frames; none: it is lost."""
        try:
            return read_object(self._storage.directory, name, may_wait) or []
        except (ObjectLostError, OSError):
            return []

    def _read_from_disk(self, name: ObjectName) -> None:
        """Map an object in the thread that may wait for the disk. ZeroMQ's thread must not, and must not fail there."""

        def then(frames: list[memoryview]) -> None:
            self._reading.discard(name)
            self._waiting[name] = frames
            self.send()

        del self._waiting[name]
        self._reading.add(name)
        self._disk.run(lambda: self._read(name, may_wait=True), then)

    def _message(self, name: ObjectName, frames: list[memoryview]) -> Message:
        client, object_id = name
        if frames and not fits_limit(frames, self._frame_limit):
            text = too_large_text("the result", max(map(len, frames)), self._frame_limit)
            _log.error("object %d of client %d is not sent to the scheduler: %s", object_id, client, text)
            return Transferred(0, [client], [object_id], text)
        if not frames:
            return ForgetObjects([object_id], [client])
        return Object(object_id, frames, client)
