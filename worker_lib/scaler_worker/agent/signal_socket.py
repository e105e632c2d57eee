"""Makes signals readable from a socket, for a poll loop."""

from __future__ import annotations

import signal
import socket
import sys

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalSocket:
    """Receives SIGTERM and SIGINT from now on, and SIGHUP if the process has no terminal."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._is_hangup_pending = False
        # Windows has no SIGHUP.
        self._hangup_signal = getattr(signal, "SIGHUP", None) if not sys.stdin or not sys.stdin.isatty() else None
        for number in (*STOP_SIGNALS, *filter(None, [self._hangup_signal])):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._reader.fileno()

    def receive(self) -> list[signal.Signals]:
        """The STOP_SIGNALS that have come since the last call."""
        try:
            received = self._reader.recv(4096)
        except BlockingIOError:
            return []
        if self._hangup_signal is not None and self._hangup_signal in received:
            self._is_hangup_pending = True
        return [signal.Signals(number) for number in received if number in STOP_SIGNALS]

    def take_hangup(self) -> bool:
        """Whether SIGHUP had come by the last `receive`. Returns True once."""
        is_pending, self._is_hangup_pending = self._is_hangup_pending, False
        return is_pending
