"""The rest of a pool whose hosts fail."""

from __future__ import annotations

from collections import deque

FIRST_SECONDS = 10.0
MOST_SECONDS = 900.0
"""The first rest of a pool, and the longest. Each rest is twice as long as the one before."""

FAILURES = 3
"""With fewer failures a pool never rests."""


class Backoff:
    """Counts the failures of one pool, and says when it may start hosts again.

    A pool rests when more of its hosts failed lately than boot, serve or came lately. So 5 % of failures never stop a
    pool, and a pool of which each host fails rests after three. After a rest it may try one host, until one has come.
    """

    def __init__(self, memory_seconds: float) -> None:
        """`memory_seconds`: how long a failure counts."""
        self.failures = 0
        """All failures since the start."""
        self.until = 0.0
        """When the rest ends, in seconds of the caller's clock."""
        self.is_probing = False
        """Whether the pool may only try one host at a time, because it has rested and no host has come since."""
        self._memory_seconds = memory_seconds
        self._recent: deque[float] = deque()
        self._came: deque[float] = deque()
        self._rest_seconds = FIRST_SECONDS

    def failed(self, now: float) -> None:
        """Count a failure."""
        self.failures += 1
        self._recent.append(now)

    def came(self, now: float) -> None:
        """Note that a host has come: the next rest is short again."""
        self._came.append(now)
        self.is_probing = False
        self._rest_seconds = FIRST_SECONDS

    def rests(self, now: float, living: int) -> bool:
        """Whether the pool rests.

        Args:
            now: seconds of the caller's clock.
            living: the hosts of the pool that boot or serve.
        """
        while self._recent and self._recent[0] < now - self._memory_seconds:
            self._recent.popleft()
        while self._came and self._came[0] < now - 2 * self._memory_seconds:
            self._came.popleft()
        if now < self.until:
            return True
        failed = len(self._recent)
        if failed and (self.is_probing or (failed >= FAILURES and failed > max(living, len(self._came)))):
            self.until = now + self._rest_seconds
            self._rest_seconds = min(2 * self._rest_seconds, MOST_SECONDS)
            self.is_probing = True
            self._recent.clear()
            return True
        return False
