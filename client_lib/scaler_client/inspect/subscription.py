"""Hearing of a scheduler for as long as a question takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..commands.addresses import Address
from ..monitor.reader import MonitorReader, Presence
from ..monitor.snapshot_view import SnapshotView
from ..monitor.socket import MonitorAccessError, MonitorKeysError, MonitorSocket
from ..net.host_lookup import unresolved

RATES_SECONDS = 1.8
"""How long the second picture is waited for, without which there are no rates."""


class NothingHeardError(Exception):
    """No scheduler has answered; the text is one line that says what was tried, and what to look at."""


class Subscription:
    """One question's subscription.

    Args:
        address: where the scheduler publishes.
        seconds: how long the first picture is waited for, and each answer.
        keys: the folder of a monitor's keys, as MonitorSocket takes it.

    Raises:
        MonitorKeysError: the keys can't be read, or are none.
        NothingHeardError: nobody of this user will ever hear anything there, or there is no such host.
    """

    def __init__(self, address: Address, seconds: float, keys: str | None = None) -> None:
        self.address = address
        self.seconds = seconds
        complaint = unresolved(address)
        if complaint:
            raise NothingHeardError(f"{address}: {complaint}")
        try:
            self._monitor = MonitorSocket(address, keys=keys)
        except MonitorKeysError:
            raise
        except MonitorAccessError as error:
            raise NothingHeardError(str(error)) from None

    @property
    def reader(self) -> MonitorReader:
        return self._monitor.reader

    def subscribe(self, topic: bytes) -> None:
        self._monitor.subscribe(topic)

    def unsubscribe(self, topic: bytes) -> None:
        self._monitor.unsubscribe(topic)

    def view(self, has_rates: bool = True) -> SnapshotView:
        """The newest one, waited for; with rates where they come in time.

        Raises:
            NothingHeardError: none has come, or it is of another version.
        """
        reader = self.reader
        self.wait_until(lambda: reader.presence is not Presence.UNHEARD, self.seconds)
        if reader.presence is Presence.OTHER_VERSION:
            raise NothingHeardError(reader.problem)
        if reader.view is None:
            raise NothingHeardError(self._silence_text())
        if has_rates:
            self.wait_until(lambda: reader.view is not None and reader.view.seconds > 0, RATES_SECONDS)
        return reader.view

    def wait_until(self, is_wanted: Callable[[], bool], seconds: float) -> bool:
        """Read on until something is so, or the time is over; whether it is so."""
        deadline = time.monotonic() + seconds
        while not is_wanted():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._monitor.wait(left)
        return True

    def _silence_text(self) -> str:
        heard = f"no scheduler was heard at {self.address} within {self.seconds:g} s"
        obstacle = self._monitor.connection_problem()
        if obstacle:
            return f"{heard}: {obstacle}"
        look = "look whether it runs, and with which --monitor-address (its log's first lines say it)"
        own = "; the scheduler's own address goes behind --scheduler-address" if self.address.transport == "tcp" else ""
        return f"{heard}: {look}{own}"

    def close(self) -> None:
        """Leave."""
        self._monitor.close()
