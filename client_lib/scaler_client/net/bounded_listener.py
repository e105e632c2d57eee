"""Bounds the connections to a bound socket. ZeroMQ accepts any number.

Without a bound, a scan of the port takes all open files of the process. While a socket is not bound it has no
connections: ZeroMQ closes those that came through the address together with it. So too many connections are ended at
once, and honest peers connect again.
"""

from __future__ import annotations

import errno
import logging
import struct
import time
from collections.abc import Callable
from contextlib import suppress

import zmq

from .sockets import uninterrupted

_log = logging.getLogger(__name__)

_EVENT = struct.Struct("=HI")
_ACCEPTED, _DISCONNECTED = int(zmq.EVENT_ACCEPTED), int(zmq.EVENT_DISCONNECTED)

MAX_CONNECTIONS = 256
"""Honest peers need fewer: each host sends a few files at once, and a connection stays open for seconds after that."""

PAUSE_SECONDS = 1.0
"""So long the address is closed after too many connections."""

LOG_SECONDS = 60.0
"""The least time between two log lines about this."""


def is_file_shortage(error: OSError) -> bool:
    """Whether this process, or the system, has no free file descriptor."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class BoundedListener:
    """Closes the address of a socket for a while when it has too many connections.

    One thread uses the socket and this object.

    Args:
        socket: a bound socket.
        endpoint: where it is bound, as ZeroMQ says it.
        most: the number of connections that is allowed.
        clock: returns the current time in seconds.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        endpoint: str,
        most: int = MAX_CONNECTIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = socket
        self._endpoint = endpoint
        self._most = most
        self._clock = clock
        self._open: set[int] = set()
        """The descriptors of the connections. One whose end was not reported is replaced when its number is used
        again."""
        self.bind_at = float("inf")
        """When the address is opened again; infinite: it is open."""
        self._log_at = 0.0
        self._events = uninterrupted(socket.get_monitor_socket, _ACCEPTED | _DISCONNECTED)
        self._events.setsockopt(zmq.LINGER, 0)
        self.check()

    def fileno(self) -> int:
        """Return the descriptor to poll. After it was readable, and at `bind_at`, call `check`."""
        return self._events.fileno()

    def check(self) -> None:
        """Count the connections; close the address, or open it again."""
        self._read_events()
        if self._clock() >= self.bind_at:
            self._bind()
        elif len(self._open) > self._most:
            self.end_connections(f"more than {self._most} connections")

    def _read_events(self) -> None:
        with suppress(zmq.Again):
            while True:  # ZeroMQ signals the next event only after a read that found none
                event, descriptor = _EVENT.unpack(self._events.recv_multipart(zmq.NOBLOCK)[0])
                if event == _ACCEPTED:
                    self._open.add(descriptor)
                else:
                    self._open.discard(descriptor)

    def end_connections(self, why: str) -> None:
        """End all connections, and accept none for a while."""
        if self.bind_at != float("inf"):
            return
        with suppress(zmq.ZMQError):
            uninterrupted(self._socket.unbind, self._endpoint)
        self._open.clear()
        now = self._clock()
        self.bind_at = now + PAUSE_SECONDS
        if now >= self._log_at:
            self._log_at = now + LOG_SECONDS
            _log.warning("%s is closed for %g s: %s", self._endpoint, PAUSE_SECONDS, why)

    def _bind(self) -> None:
        self._open.clear()
        try:
            self._socket.bind(self._endpoint)
        except zmq.ZMQError as error:  # ZeroMQ has not closed it yet, or another process has this port meanwhile
            self.bind_at = self._clock() + PAUSE_SECONDS
            _log.debug("%s is still closed: %s", self._endpoint, error)
        else:
            self.bind_at = float("inf")

    def close(self) -> None:
        """Stop watching. Must be called before the socket is closed."""
        with suppress(zmq.ZMQError):
            uninterrupted(self._socket.unbind, self._endpoint)
        self._read_events()  # ZeroMQ waits while the queue is full
        uninterrupted(self._socket.disable_monitor)
        self._events.close()
