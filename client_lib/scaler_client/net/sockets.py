"""Receiving with few copies, and watching a socket's connection, for clients and workers."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import zmq

from ..protocol.messages import Frames
from .curve import FAILURES, MIN_CUT_HANDSHAKES, MIN_CUT_SECONDS, HandshakeFailure

T = TypeVar("T")

_SUCCEEDED = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
_EVENT = struct.Struct("=HI")

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 5.0
"""The first and the longest pause between attempts to connect to a scheduler that cuts handshakes. It doubles."""

BORROWED_BYTES = 1 << 20
"""A received frame of at least this size is not copied."""

FREED_BYTES = 16 << 20
"""glibc keeps up to twice this much freed memory at the end of its heap, after `keep_freed_memory`."""


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next large message. Has no effect without glibc.

    glibc learns from the largest block that a program has freed. Until then it returns about 256 KB and more to the
    system. So a worker's pages were mapped and cleared anew for each message of 1 MB, which took longer than the rest
    of the task (decision 90, `make bench ONLY=data`). `bytes` gets a cleared block from the system and does not touch
    it, so it takes no memory and a few microseconds. `bytearray` writes to each page, which took 10 to 30 ms.
    """
    bytes(FREED_BYTES)


def receive(socket: zmq.Socket[bytes], flags: int = 0) -> Frames:
    """Receive the frames of the next message.

    Args:
        flags: zmq.NOBLOCK or 0.

    Raises:
        zmq.Again: there is no message (with zmq.NOBLOCK), or none within the socket's RCVTIMEO.
    """
    # `recv_multipart` reads an option after each frame, which costs as much as receiving. A Frame has `more` itself.
    return receive_rest(socket, socket.recv(flags, copy=False))


def receive_rest(socket: zmq.Socket[bytes], frame: Any) -> Frames:
    """Receive the further frames of a message; return all of them.

    Args:
        frame: the first frame, a zmq.Frame.
    """
    # Small frames are copied, so that no slice keeps a message alive. Large frames stay in ZeroMQ's memory: a copy of
    # 500 MB costs half a second, mostly for fresh pages from the system.
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = socket.recv(copy=False)
        frames.append(frame.bytes if len(frame) < BORROWED_BYTES else frame.buffer)
    return frames


def uninterrupted(call: Callable[..., T], *args: Any) -> T:
    """Call a method of pyzmq, and call it again if a signal has interrupted it. Return what it returns.

    pyzmq itself repeats most calls after a signal, but not `monitor`, `unbind` and `disconnect`.
    """
    while True:
        try:
            return call(*args)
        except zmq.error.InterruptedSystemCall:
            continue


class ReconnectWatcher:
    """Watches the connection of a socket: a descriptor becomes readable when a lost connection is made again.

    Only the thread that uses the socket may use it. It costs nothing while there is a connection.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        cut_seconds: float = MIN_CUT_SECONDS,
        endpoint: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it before the socket connects.

        Args:
            socket: the socket to watch.
            cut_seconds: if handshakes are cut for this long, the connection has failed.
            endpoint: the address that the socket connects to. If it is given, `retry` makes the pauses between attempts
                longer while the scheduler cuts handshakes. ZeroMQ alone would try several times a second for ever. The
                socket has no connection in these pauses, so sending needs zmq.NOBLOCK.
            clock: returns the current time in seconds.
        """
        self._watched = socket
        self._endpoint = endpoint
        self._clock = clock
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at: float | None = None
        self._cut_seconds = cut_seconds
        self._events = uninterrupted(socket.get_monitor_socket, _SUCCEEDED | FAILURES)
        self._events.setsockopt(zmq.LINGER, 0)
        self._has_connected = False
        self.failure: HandshakeFailure | None = None
        """Why the other side does not accept a connection, or not with these keys; None: no failure."""
        self._cut = 0
        self._cut_since = 0.0
        self.has_reconnected()  # ZeroMQ signals the next event only after a read that found no event

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        # Edge-triggered: it becomes readable once, for events after `has_reconnected` has read all earlier ones.
        return self._events.fileno()

    def has_reconnected(self) -> bool:
        """Whether a lost connection was made again since the last call. The first connection does not count."""
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
        # A scheduler that was connected before has more likely ended, or is being restarted.
        is_certain = self._cut >= MIN_CUT_HANDSHAKES and now - self._cut_since >= self._cut_seconds
        if failure.is_final or (is_certain and not self._has_connected):
            self.failure = failure
        if self._endpoint and self._cut >= MIN_CUT_HANDSHAKES and self._retry_at is None and not failure.is_final:
            with suppress(zmq.ZMQError):  # ZeroMQ has dropped the endpoint already
                uninterrupted(self._watched.disconnect, self._endpoint)
            self._retry_at = now + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)

    def retry(self) -> None:
        """Connect again if the pause after a cut handshake is over. Must be called at least once a second."""
        if self._retry_at is not None and self._clock() >= self._retry_at:
            self._retry_at = None
            self._watched.connect(self._endpoint)

    def close(self) -> None:
        """Stop watching. Must be called before the socket is closed."""
        uninterrupted(self._watched.disable_monitor)
        self._events.close()
