"""What clients and workers do with ZeroMQ sockets beside its own methods."""

from __future__ import annotations

from typing import Any

import zmq

from .messages import Frames

BORROWED_BYTES = 1 << 20
"""A frame of this size is not copied when it is received."""


def receive(socket: zmq.Socket[bytes], flags: int = 0) -> Frames:
    """The frames of the next message.

    Raises:
        zmq.Again: there is none (with zmq.NOBLOCK), or not within the socket's RCVTIMEO.
    """
    # `recv_multipart` asks for an option after each frame, which costs as much as receiving; a Frame knows by itself.
    return all_frames(socket, socket.recv(flags, copy=False))


def all_frames(socket: zmq.Socket[bytes], frame: Any) -> Frames:
    """The frames of the message whose first one has been received."""
    # Small ones are copied, so that no message is kept alive by a slice of it. A large one is read where ZeroMQ has it:
    # a copy of 500 MB costs half a second, most of it the system's for fresh pages.
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = socket.recv(copy=False)
        frames.append(frame.bytes if len(frame) < BORROWED_BYTES else frame.buffer)
    return frames


class Reconnects:
    """Tells when a socket's lost connection is there again: a readable descriptor, for a poll beside the socket's.

    Used by the thread that uses the socket. Costs nothing while the connection stands.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        """Before the socket connects."""
        self._watched = socket
        self._events = socket.get_monitor_socket(int(zmq.EVENT_HANDSHAKE_SUCCEEDED))
        self._events.setsockopt(zmq.LINGER, 0)
        self._has_connected = False
        self.take()  # ZeroMQ announces an event only to who has found none before

    def fileno(self) -> int:
        # It becomes readable once, when events come while `take` has left none: an edge, not a level.
        return self._events.fileno()

    def take(self) -> bool:
        """Whether the connection was made again since this was asked last. The first one is none that was lost."""
        is_again = False
        try:
            while True:
                self._events.recv_multipart(zmq.NOBLOCK)
                is_again = self._has_connected
                self._has_connected = True
        except zmq.Again:
            return is_again

    def close(self) -> None:
        """Before the socket is closed."""
        self._watched.disable_monitor()
        self._events.close()
