"""A limit on the scheduler's time that one connection may waste. Beyond it the connection is blocked for a second.

A message is waste if it changes nothing: it is malformed, rejected, from an unknown peer, one of too many heartbeats or
hellos, or it names tasks that do not exist. Its estimated cost is taken from a token bucket. Honest peers hardly use
theirs. If it is empty, the connection is blocked: its messages are dropped before they are decoded. Some of them may
have mattered. So afterwards the peer is asked for its hello, as after a lost connection, and sends again all that the
scheduler must know.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Set, Tuple

BLOCK_SECONDS = 1.0
"""How long a connection is blocked."""

BURST_SECONDS = 0.5
"""The time that a connection may waste at once. It is the cost of ten thousand heartbeats."""

MALFORMED_MICROSECONDS = 100
BYTES_PER_MICROSECOND = 1000
"""The estimated cost of a malformed message, and the bytes that cost one more microsecond."""

UNKNOWN_PEER_MICROSECONDS = 50
"""The estimated cost of a message from a connection that must say hello first."""


class Throttle:
    """Measures the waste of connections, and blocks those that waste too much.

    Args:
        waste_percent: the share of the scheduler's time that a connection may waste in the long run.
    """

    def __init__(self, waste_percent: float) -> None:
        self._refill = waste_percent / 100
        self.blocked: Dict[bytes, float] = {}
        """The end of each block, in seconds of the monotonic clock, by route."""
        self.awaiting_hello: Set[bytes] = set()
        """Connections that were blocked. Their messages are ignored until they say hello."""
        self._wasted: Dict[bytes, Tuple[float, float]] = {}
        """For each route the seconds wasted, and when this level was computed."""

    def charge(self, route: bytes, microseconds: float, now: float) -> bool:
        """Charge a connection for waste. Returns whether this blocks it."""
        level, then = self._wasted.get(route, (0.0, now))
        level = max(0.0, level - (now - then) * self._refill) + microseconds / 1e6
        self._wasted[route] = min(level, BURST_SECONDS), now
        if level <= BURST_SECONDS:
            return False
        self.block(route, now)
        return True

    def block(self, route: bytes, now: float) -> None:
        """Block a connection for BLOCK_SECONDS."""
        self.blocked[route] = now + BLOCK_SECONDS
        self.awaiting_hello.discard(route)

    def release(self, now: float) -> List[bytes]:
        """End the blocks whose time is over. Returns their routes."""
        over = [route for route, until in self.blocked.items() if until <= now]
        for route in over:
            del self.blocked[route]
        return over

    def prune(self, now: float, is_known: Callable[[bytes], bool]) -> None:
        """Forget connections that have wasted nothing lately, and those of peers that were given up."""
        self.awaiting_hello = {route for route in self.awaiting_hello if is_known(route)}
        self._wasted = {
            route: (level, then) for route, (level, then) in self._wasted.items() if (now - then) * self._refill < level
        }
