"""When a session says that it lives, and how long a scheduler may be silent."""

from __future__ import annotations

from ..protocol.messages import Heartbeat

LEASE_HEARTBEATS = 3
"""Heartbeats that fit into the scheduler's lease, at the least."""


class Heartbeats:
    def __init__(self, interval_seconds: float, timeout_seconds: float, now: float) -> None:
        # A quiet scheduler is not a lost one: it is asked more than once before it is given up.
        self._interval_seconds = min(interval_seconds, timeout_seconds / LEASE_HEARTBEATS)
        self.sequence = 0
        """Of the last one."""
        self._last_tick = now
        self.next = now + self._interval_seconds
        """The time of the next one."""

    def beat(self, now: float) -> Heartbeat:
        self.next = now + self._interval_seconds
        self.sequence += 1
        return Heartbeat(self.sequence)

    def pause_seconds(self, now: float) -> float:
        """Seconds, since this was asked last, in which this process did not run (stopped, suspended); else 0."""
        gap = now - self._last_tick - self._interval_seconds
        self._last_tick = now
        return gap if gap > self._interval_seconds else 0.0

    def fit_lease(self, lease_seconds: float, now: float) -> None:
        """Often enough that the lease outlasts a few lost ones, whatever interval was asked for."""
        longest = lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._interval_seconds:
            self._interval_seconds = longest
            self.next = min(self.next, now + longest)
