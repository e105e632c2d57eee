"""Wakes a thread that sleeps in a poll."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable


class WakeupFd:
    """A file descriptor that `set` makes readable: an eventfd, or a socket pair if the system has no eventfd."""

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
        """Return the descriptor to poll."""
        return self._reader

    def set(self) -> None:
        """Make the descriptor readable. Any thread and any signal handler may call this."""
        try:
            if self._sockets is None:
                os.eventfd_write(self._writer, 1)
            else:
                self._sockets[1].send(b"\0")
        except BlockingIOError:
            pass  # already set

    def clear(self) -> None:
        """Make the descriptor unreadable until the next `set`."""
        try:
            if self._sockets is None:
                os.eventfd_read(self._reader)
            else:
                self._sockets[0].recv(4096)
        except BlockingIOError:
            pass

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Not earlier: another thread may still call `set`, and the number could belong to another file by then. `close`
        # is an argument, because the module's names are deleted at the interpreter's end.
        if self._sockets is None:
            close(self._reader)
        else:
            for end in self._sockets:
                end.close()
