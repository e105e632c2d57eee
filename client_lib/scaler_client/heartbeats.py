"""When a session says that it lives."""

from __future__ import annotations

from .messages import Heartbeat

LEASE_HEARTBEATS = 3
"""Heartbeats that fit into the scheduler's lease, at the least."""


class Heartbeats:
    def __init__(self, interval_seconds: float, now: float) -> None:
        self._interval_seconds = interval_seconds
        self._sequence = 0
        self.next = now + interval_seconds
        """The time of the next one."""

    def beat(self, now: float) -> Heartbeat:
        self.next = now + self._interval_seconds
        self._sequence += 1
        return Heartbeat(self._sequence)

    def keep_lease(self, lease_seconds: float, now: float) -> None:
        """Often enough that the lease outlasts a few lost ones, whatever interval was asked for."""
        longest = lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._interval_seconds:
            self._interval_seconds = longest
            self.next = min(self.next, now + longest)
