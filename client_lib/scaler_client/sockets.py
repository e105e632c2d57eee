"""What clients and workers do with ZeroMQ sockets beside its own methods."""

from __future__ import annotations

from typing import Any

import zmq

from .messages import Frames


def receive(socket: zmq.Socket[bytes], flags: int = 0) -> Frames:
    """The frames of the next message.

    Raises:
        zmq.Again: there is none (with zmq.NOBLOCK), or not within the socket's RCVTIMEO.
    """
    # `recv_multipart` asks for an option after each frame, which costs as much as receiving; a Frame knows by itself.
    # Its bytes are copied, so that no message is kept alive by a slice of it.
    frame: Any = socket.recv(flags, copy=False)
    frames: Frames = [frame.bytes]
    while frame.more:
        frame = socket.recv(copy=False)
        frames.append(frame.bytes)
    return frames
