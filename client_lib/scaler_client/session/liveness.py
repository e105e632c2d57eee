"""Heartbeats to the scheduler, and the timeout after which a silent scheduler counts as lost."""

from __future__ import annotations

from ..protocol.messages import Heartbeat

LEASE_HEARTBEATS = 3
"""At least this many heartbeats fit into the scheduler's lease, and into the client's own timeout."""


SILENT_HEARTBEATS = 2
"""A scheduler that has not answered this many heartbeats is silent."""


class Liveness:
    """Decides when a session sends heartbeats and when it gives up its scheduler.

    Args:
        interval_seconds: the wanted time between two heartbeats. A short timeout or lease makes it shorter.
        timeout_seconds: a scheduler that is silent for longer is lost.
        now: the time of the session's start, by any monotonic clock, in seconds.
    """

    def __init__(self, interval_seconds: float, timeout_seconds: float, now: float) -> None:
        # Several heartbeats fit into the timeout: a quiet scheduler is asked more than once before it counts as lost.
        self._interval_seconds = min(interval_seconds, timeout_seconds / LEASE_HEARTBEATS)
        self._timeout_seconds = timeout_seconds
        self._last_tick = now
        self.is_late = False
        """Whether this process did not run before the last tick. Answers may have come that it has not read yet."""
        self.last_heard = now
        """The time of the scheduler's last message."""
        self.next_heartbeat = now + self._interval_seconds
        """The time at which the next heartbeat is due."""
        self.sequence = 0
        """The number of the last heartbeat."""

    def heartbeat(self, now: float) -> Heartbeat:
        """Return the next heartbeat, to send now."""
        self.next_heartbeat = now + self._interval_seconds
        self.sequence += 1
        return Heartbeat(self.sequence)

    def is_timed_out(self, now: float) -> bool:
        """Whether the scheduler has been silent for longer than the timeout.

        A tick that comes late shows that this process did not run (stopped, suspended): that time does not count.
        """
        pause_seconds = now - self._last_tick - self._interval_seconds
        self._last_tick = now
        self.is_late = pause_seconds > self._interval_seconds
        if self.is_late:
            self.last_heard = min(now, self.last_heard + pause_seconds)
        return now - self.last_heard > self._timeout_seconds

    def is_silent(self, now: float) -> bool:
        """Whether the scheduler has not answered several heartbeats."""
        return now - self.last_heard >= SILENT_HEARTBEATS * self._interval_seconds

    def fit_lease(self, lease_seconds: float) -> None:
        """Shorten the interval so that the lease outlasts a few lost heartbeats. A lease of 0 changes nothing."""
        longest = lease_seconds / LEASE_HEARTBEATS
        if 0 < longest < self._interval_seconds:
            self._interval_seconds = longest
            self.next_heartbeat = min(self.next_heartbeat, self.last_heard + longest)
