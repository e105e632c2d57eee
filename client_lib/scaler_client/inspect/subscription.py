"""A subscription to a scheduler for the time that one command takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..commands.addresses import Address
from ..monitor.reader import MonitorReader, Presence
from ..monitor.snapshot_view import SnapshotView
from ..monitor.socket import MonitorAccessError, MonitorKeysError, MonitorSocket
from ..net.host_lookup import host_problem

RATES_SECONDS = 1.8
"""The longest wait for the second snapshot. Without it there are no rates."""


class NoAnswerError(Exception):
    """The scheduler has not answered. The text is one line: it names the address, and says what to check."""


class Subscription:
    """The subscription of one command.

    Args:
        address: where the scheduler publishes.
        seconds: the longest wait for the first snapshot and for each answer.
        keys: the folder of a monitor's keys, as for MonitorSocket.

    Raises:
        MonitorKeysError: the keys cannot be read or are missing.
        NoAnswerError: this user cannot connect to the address, or its host is unknown.
    """

    def __init__(self, address: Address, seconds: float, keys: str | None = None) -> None:
        self.address = address
        self.seconds = seconds
        complaint = host_problem(address)
        if complaint:
            raise NoAnswerError(f"{address}: {complaint}")
        try:
            self._monitor = MonitorSocket(address, keys=keys)
        except MonitorKeysError:
            raise
        except MonitorAccessError as error:
            raise NoAnswerError(str(error)) from None

    @property
    def reader(self) -> MonitorReader:
        return self._monitor.reader

    def subscribe(self, topic: bytes) -> None:
        self._monitor.subscribe(topic)

    def unsubscribe(self, topic: bytes) -> None:
        self._monitor.unsubscribe(topic)

    def view(self, has_rates: bool = True) -> SnapshotView:
        """Wait for the newest snapshot as rows, with rates if they come in time.

        Raises:
            NoAnswerError: no snapshot came, or the scheduler has another version.
        """
        reader = self.reader
        self.wait_until(lambda: reader.presence is not Presence.UNKNOWN, self.seconds)
        if reader.presence is Presence.INCOMPATIBLE:
            raise NoAnswerError(reader.problem)
        if reader.view is None:
            raise NoAnswerError(self._silence_text())
        if has_rates:
            self.wait_until(lambda: reader.view is not None and reader.view.seconds > 0, RATES_SECONDS)
        return reader.view

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Read messages until `condition` returns true or the time is over. Returns whether it did."""
        deadline = time.monotonic() + seconds
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._monitor.wait(left)
        return True

    def _silence_text(self) -> str:
        message = f"no scheduler was heard at {self.address} within {self.seconds:g} s"
        obstacle = self._monitor.connection_problem()
        if obstacle:
            return f"{message}: {obstacle}"
        look = "check that it runs, and that it publishes there (the first lines of its log name its monitor address)"
        own = "to use the scheduler's own address, give it as --scheduler-address"
        return f"{message}: {look}; {own}"

    def close(self) -> None:
        """Close the socket."""
        self._monitor.close()
