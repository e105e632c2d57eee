"""Which leases are due. Reads deadlines, returns when to look again."""

LEASE_CHECK_SECONDS = 1.0
"""How often leases are looked at: a peer may live this much longer than its lease."""


STALL_SECONDS = 3.0
"""A check that comes this much too late means that the scheduler was stopped, and not that everybody else was."""


class LeaseTimer:
    def __init__(self, now: float) -> None:
        self.next_check = now + LEASE_CHECK_SECONDS
        self._lateness = 0.0

    def is_due(self, now: float) -> bool:
        """Whether to look at the leases; then it is set for the next time."""
        if now < self.next_check:
            return False
        self._lateness = now - self.next_check
        self.next_check = now + LEASE_CHECK_SECONDS
        return True

    def stall(self) -> float:
        """How long the scheduler was stopped before the check that is due, in seconds; 0 when it was not."""
        return self._lateness if self._lateness > STALL_SECONDS else 0.0
