"""What a client says of the results that it has taken."""

from __future__ import annotations

from .messages import Received, Resolved

RECEIVED_PARTS = 4
"""How often in each window of results the scheduler is told what has come."""


class Receipts:
    def __init__(self) -> None:
        self._window = 0
        self._received = 0
        """Bytes of answers since the join."""
        self._told = 0

    def restart(self, window: int) -> None:
        """A scheduler has accepted the client; 0: it wants to hear nothing."""
        self._window = window
        self._received = self._told = 0

    def take(self, message: Resolved) -> list[Received]:
        """What to tell the scheduler that has sent this."""
        if not self._window:
            return []
        self._received += sum(map(len, message.payloads))
        if self._received - self._told < self._window // RECEIVED_PARTS:
            return []
        self._told = self._received
        return [Received(self._received)]
