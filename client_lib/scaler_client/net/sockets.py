"""What clients and workers do with ZeroMQ sockets beside its own methods."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import zmq

from ..protocol.messages import Frames
from .curve import FAILURES, MIN_CUT_HANDSHAKES, MIN_CUT_SECONDS, HandshakeFailure

_SUCCEEDED = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
_EVENT = struct.Struct("=HI")

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 5.0
"""Between two tries to connect to a scheduler that cuts handshakes: doubled each time, up to a bound."""

BORROWED_BYTES = 1 << 20
"""A frame of this size is not copied when it is received."""


def receive(socket: zmq.Socket[bytes], flags: int = 0) -> Frames:
    """The frames of the next message.

    Raises:
        zmq.Again: there is none (with zmq.NOBLOCK), or not within the socket's RCVTIMEO.
    """
    # `recv_multipart` asks for an option after each frame, which costs as much as receiving; a Frame knows by itself.
    return receive_rest(socket, socket.recv(flags, copy=False))


def receive_rest(socket: zmq.Socket[bytes], frame: Any) -> Frames:
    """The frames of the message whose first one has been received."""
    # Small ones are copied, so that no message is kept alive by a slice of it. A large one is read where ZeroMQ has it:
    # a copy of 500 MB costs half a second, most of it the system's for fresh pages.
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = socket.recv(copy=False)
        frames.append(frame.bytes if len(frame) < BORROWED_BYTES else frame.buffer)
    return frames


class ReconnectWatcher:
    """Tells when a socket's lost connection is there again: a readable descriptor, for a poll beside the socket's.

    Used by the thread that uses the socket. Costs nothing while the connection stands.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        cut_seconds: float = MIN_CUT_SECONDS,
        endpoint: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make it before the socket connects.

        Args:
            cut_seconds: handshakes that are cut for so long are a failure.
            endpoint: where the socket connects. If it is given, a scheduler that cuts handshakes again and again is
                tried less and less often, by `retry`; ZeroMQ itself would try several times a second for ever. The
                socket has no connection meanwhile, so it may not be sent to without zmq.NOBLOCK.
        """
        self._watched = socket
        self._endpoint = endpoint
        self._clock = clock
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at: float | None = None
        self._cut_seconds = cut_seconds
        self._events = socket.get_monitor_socket(_SUCCEEDED | FAILURES)
        self._events.setsockopt(zmq.LINGER, 0)
        self._has_connected = False
        self.failure: HandshakeFailure | None = None
        """Why there is no connection, where the other side does not want one, or not with these keys."""
        self._cut = 0
        self._cut_since = 0.0
        self.has_reconnected()  # ZeroMQ announces an event only to who has found none before

    def fileno(self) -> int:
        # It becomes readable once, when events come while `has_reconnected` has left none: an edge, not a level.
        return self._events.fileno()

    def has_reconnected(self) -> bool:
        """Whether the connection was made again since this was asked last. The first one is none that was lost."""
        is_again = False
        try:
            while True:
                what = self._events.recv_multipart(zmq.NOBLOCK)[0]
                event, value = _EVENT.unpack(what)
                if event & FAILURES:
                    self._record_failure(HandshakeFailure(event, value))
                    continue
                is_again = self._has_connected
                self._has_connected = True
                self._cut = 0
                self._pause = FIRST_PAUSE_SECONDS
                self.failure = None
        except zmq.Again:
            return is_again

    def _record_failure(self, failure: HandshakeFailure) -> None:
        now = self._clock()
        if not self._cut:
            self._cut_since = now
        self._cut += 1
        # A scheduler that was there before is rather ended, or started again, just now.
        is_certain = self._cut >= MIN_CUT_HANDSHAKES and now - self._cut_since >= self._cut_seconds
        if failure.is_final or (is_certain and not self._has_connected):
            self.failure = failure
        if self._endpoint and self._cut >= MIN_CUT_HANDSHAKES and self._retry_at is None and not failure.is_final:
            with suppress(zmq.ZMQError):  # it has forgotten it already
                self._watched.disconnect(self._endpoint)
            self._retry_at = now + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)

    def retry(self) -> None:
        """Connect again if the pause after a cut handshake is over. To be called once a second or more often."""
        if self._retry_at is not None and self._clock() >= self._retry_at:
            self._retry_at = None
            self._watched.connect(self._endpoint)

    def close(self) -> None:
        """Before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()
