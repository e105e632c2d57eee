"""Messages between the agent and its fork server: JSON objects, one a line, over a stream socket, never blocking."""

from __future__ import annotations

import json
import socket
from typing import Any


class JsonLines:
    """One end of the connection. The caller polls `fileno()` for reading, and for writing while `wants_write`."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received = bytearray()
        self._unsent = bytearray()
        self.closed = False
        """Whether the other side has closed the connection."""

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._unsent)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, or as much of it as fits; `flush` sends the rest."""
        self._unsent += json.dumps(message).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # the other side has closed: its last messages are still to be read

    def receive(self) -> list[dict[str, Any]]:
        """All complete messages that have arrived."""
        try:
            while not self.closed:
                data = self._connection.recv(65536)
                self.closed = not data
                self._received += data
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        return [json.loads(line) for line in lines]

    def end_writing(self) -> None:
        """Close the direction to the other side. Its messages can still be received."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed already

    def close(self) -> None:
        self._connection.close()
        self.closed = True
