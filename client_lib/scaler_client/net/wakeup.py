"""Waking a thread that sleeps in a poll."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable


class WakeupFd:
    """A file descriptor that `set` makes readable: an eventfd, or a socket pair where there is none."""

    def __init__(self) -> None:
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        if hasattr(os, "eventfd"):
            self._reader = self._writer = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self._sockets = socket.socketpair()
            for end in self._sockets:
                end.setblocking(False)
            self._reader, self._writer = self._sockets[0].fileno(), self._sockets[1].fileno()

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        try:
            if self._sockets is None:
                os.eventfd_write(self._writer, 1)
            else:
                self._sockets[1].send(b"\0")
        except BlockingIOError:
            pass  # it is set already

    def clear(self) -> None:
        try:
            if self._sockets is None:
                os.eventfd_read(self._reader)
            else:
                self._sockets[0].recv(4096)
        except BlockingIOError:
            pass

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Not earlier: any thread that still knows this may set it, and the number may be another file's by then. At the
        # interpreter's end the module's names are gone before this.
        if self._sockets is None:
            close(self._reader)
        else:
            for end in self._sockets:
                end.close()
