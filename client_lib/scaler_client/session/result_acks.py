"""Acknowledgements of results and output, which keep the scheduler from sending faster than the client reads."""

from __future__ import annotations

from ..protocol.messages import Received

ACKS_PER_WINDOW = 4
"""Acknowledgements in each window of results. With a single one the scheduler would pause at the end of each window."""


class ResultAcks:
    """Counts the bytes of results and output. Acknowledges them several times per window, and with each heartbeat."""

    def __init__(self) -> None:
        self._window = 0
        self._received = 0
        """Bytes of results and output since the last join."""
        self._acknowledged = 0
        """The value of `_received` in the last acknowledgement."""

    def restart(self, window: int) -> None:
        """Reset the counts after a join.

        Args:
            window: the bytes that the scheduler sends without an acknowledgement. 0: it wants none.
        """
        self._window = window
        self._received = self._acknowledged = 0

    def acknowledge(self, size: int) -> list[Received]:
        """Count `size` more bytes; return the acknowledgement to send, if one is due.

        Args:
            size: the bytes of one message with results or output.
        """
        if not self._window:
            return []
        self._received += size
        if self._received - self._acknowledged < self._window // ACKS_PER_WINDOW:
            return []
        return self.rest()

    def rest(self) -> list[Received]:
        """Return the acknowledgement to send with a heartbeat, if there is something to acknowledge."""
        if not self._window or self._received == self._acknowledged:
            return []
        self._acknowledged = self._received
        return [Received(self._received)]
