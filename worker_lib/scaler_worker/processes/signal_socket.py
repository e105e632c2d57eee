"""Signals as something to poll."""

from __future__ import annotations

import signal
import socket
import sys

STOPPING = (signal.SIGTERM, signal.SIGINT)


class SignalSocket:
    """From now on SIGTERM and SIGINT are read here, and SIGHUP where the process has no terminal to hang up."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._is_hung_up = False
        # Windows has no SIGHUP.
        self._hang_up = getattr(signal, "SIGHUP", None) if not sys.stdin or not sys.stdin.isatty() else None
        for number in (*STOPPING, *filter(None, [self._hang_up])):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._reader.fileno()

    def receive(self) -> list[signal.Signals]:
        """Those that ask to stop and have come since the last call."""
        try:
            received = self._reader.recv(4096)
        except BlockingIOError:
            return []
        if self._hang_up is not None and self._hang_up in received:
            self._is_hung_up = True
        return [signal.Signals(number) for number in received if number in STOPPING]

    def take_hang_up(self) -> bool:
        """Whether SIGHUP has come, up to the last `receive`; once."""
        is_hung_up, self._is_hung_up = self._is_hung_up, False
        return is_hung_up
