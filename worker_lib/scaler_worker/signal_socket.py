"""SIGTERM and SIGINT as something to poll."""

from __future__ import annotations

import signal
import socket


class SignalSocket:
    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._reader.fileno()

    def receive(self) -> list[signal.Signals]:
        try:
            received = self._reader.recv(4096)
        except BlockingIOError:
            return []
        return [signal.Signals(number) for number in received if number in (signal.SIGTERM, signal.SIGINT)]
