"""What a client says of the results and output that it has taken."""

from __future__ import annotations

from ..protocol.messages import Received

ACKS_PER_WINDOW = 4
"""How often in each window of results the scheduler is told what has come."""


class ResultAcks:
    def __init__(self) -> None:
        self._window = 0
        self._received = 0
        """Bytes of answers and output since the join."""
        self._told = 0

    def restart(self, window: int) -> None:
        """A scheduler has accepted the client; 0: it wants to hear nothing."""
        self._window = window
        self._received = self._told = 0

    def take(self, size: int) -> list[Received]:
        """What to tell the scheduler that has sent so many bytes."""
        if not self._window:
            return []
        self._received += size
        if self._received - self._told < self._window // ACKS_PER_WINDOW:
            return []
        self._told = self._received
        return [Received(self._received)]
