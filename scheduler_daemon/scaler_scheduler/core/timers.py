"""Which leases are due. Reads deadlines, returns when to look again."""

LEASE_CHECK_SECONDS = 1.0
"""How often leases are looked at: a peer may live this much longer than its lease."""


class LeaseTimer:
    def __init__(self, now: float) -> None:
        self.next_check = now + LEASE_CHECK_SECONDS

    def is_due(self, now: float) -> bool:
        """Whether to look at the leases; then it is set for the next time."""
        if now < self.next_check:
            return False
        self.next_check = now + LEASE_CHECK_SECONDS
        return True
