"""How often something may be done: so many times at once, and so many times a second in the long run."""

from __future__ import annotations

from typing import Dict, Tuple

_LOOK_SECONDS = 10.0
"""How often what was done long ago is forgotten."""


class RateLimits:
    """One each, by name."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._used: Dict[bytes, Tuple[float, float]] = {}
        """How much of it, and when that was worked out, in seconds of the caller's clock."""
        self._next_check = 0.0

    def exceeds(self, name: bytes, now: float) -> bool:
        """It is done once more; returns whether that is too often. The count begins anew then."""
        used, then = self._used.get(name, (0.0, now))
        used = max(0.0, used - (now - then) * self._per_second) + 1
        if used > self._burst:
            self._used.pop(name, None)
            return True
        self._used[name] = used, now
        if now >= self._next_check:
            self._next_check = now + _LOOK_SECONDS
            self._used = {
                each: (level, since)
                for each, (level, since) in self._used.items()
                if (now - since) * self._per_second < level
            }
        return False
