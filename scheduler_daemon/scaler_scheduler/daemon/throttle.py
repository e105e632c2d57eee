"""Connections that waste the scheduler's time are not listened to for a while.

What changes nothing (malformed, refused, of strangers, ever more heartbeats and hellos, names of tasks that are none)
costs its connection part of an allowance, which honest peers hardly touch. Whoever has used it up is blocked: what it
sends is dropped unread. Some of that may have been worth something, so that afterwards it is asked for its hello, as
after a lost connection: then peers say again what the scheduler must know, and nothing is lost without a word.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Set, Tuple

BLOCK_SECONDS = 1.0

BURST_SECONDS = 0.5
"""What a connection may waste at once: of heartbeats ten thousand."""

MALFORMED_MICROSECONDS = 100
BYTES_A_MICROSECOND = 1000
"""What it costs, about, to find that a message is none."""

STRANGER_MICROSECONDS = 50
"""To find that a message comes from a connection that is to say hello first."""


class Throttle:
    def __init__(self, waste_percent: float) -> None:
        """`waste_percent` is how much of the scheduler's time a connection may waste, in the long run."""
        self._refill = waste_percent / 100
        self.blocked: Dict[bytes, float] = {}
        """Until when, in seconds of the monotonic clock."""
        self.awaiting_hello: Set[bytes] = set()
        """Connections that were blocked: nothing of theirs counts before a hello."""
        self._wasted: Dict[bytes, Tuple[float, float]] = {}
        """Seconds, and when they were worked out."""

    def charge(self, route: bytes, microseconds: float, now: float) -> bool:
        """The connection has wasted so much; returns whether that was too much."""
        level, then = self._wasted.get(route, (0.0, now))
        level = max(0.0, level - (now - then) * self._refill) + microseconds / 1e6
        self._wasted[route] = min(level, BURST_SECONDS), now
        if level <= BURST_SECONDS:
            return False
        self.block(route, now)
        return True

    def block(self, route: bytes, now: float) -> None:
        self.blocked[route] = now + BLOCK_SECONDS
        self.awaiting_hello.discard(route)

    def release(self, now: float) -> List[bytes]:
        """Those whose time is over."""
        over = [route for route, until in self.blocked.items() if until <= now]
        for route in over:
            del self.blocked[route]
        return over

    def prune(self, now: float, is_known: Callable[[bytes], bool]) -> None:
        """Connections may be gone: those that have wasted nothing lately, and those of peers that are given up."""
        self.awaiting_hello = {route for route in self.awaiting_hello if is_known(route)}
        self._wasted = {
            route: (level, then) for route, (level, then) in self._wasted.items() if (now - then) * self._refill < level
        }
