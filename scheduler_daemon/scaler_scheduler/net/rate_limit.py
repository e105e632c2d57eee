"""Rate limits by key: a number of operations at once, and a number a second in the long run."""

from __future__ import annotations

_CLEANUP_SECONDS = 10.0
"""How often old entries are removed."""


class RateLimits:
    """Counts operations by key (a token bucket for each).

    Args:
        burst: operations of one key that are allowed at once.
        per_second: operations of one key that are allowed a second, in the long run.
    """

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._used: dict[bytes, tuple[float, float]] = {}
        """For each key the level of its bucket, and when it had this level, in seconds of the caller's clock."""
        self._next_cleanup = 0.0

    def exceeds(self, name: bytes, now: float) -> bool:
        """Count an operation. Returns whether the limit is exceeded; the count then begins at zero.

        Args:
            name: the key.
            now: the time in seconds.
        """
        used, then = self._used.get(name, (0.0, now))
        used = max(0.0, used - (now - then) * self._per_second) + 1
        if used > self._burst:
            self._used.pop(name, None)
            return True
        self._used[name] = used, now
        if now >= self._next_cleanup:
            self._next_cleanup = now + _CLEANUP_SECONDS
            self._used = {
                each: (level, since)
                for each, (level, since) in self._used.items()
                if (now - since) * self._per_second < level
            }
        return False
