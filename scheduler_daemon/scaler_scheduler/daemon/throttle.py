"""A limit on the scheduler's time that one connection may waste. Above it, the connection is blocked for a second.

A message is waste if it changes nothing. Examples are malformed or rejected messages, messages of unknown peers, too
many heartbeats or hellos, and names of tasks that do not exist. Its estimated cost is taken from the token bucket of
the connection. Honest peers hardly use their buckets. If a bucket is empty, the connection is blocked: its messages are
dropped before they are decoded. Some of them may be useful. So afterwards the scheduler asks for a hello, as after a
lost connection, and the peer sends its state again.
"""

from __future__ import annotations

from typing import Callable

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
    """Measures the waste of connections, and blocks connections that waste too much.

    Args:
        waste_percent: the share of the scheduler's time that a connection may waste in the long run.
    """

    def __init__(self, waste_percent: float) -> None:
        self._refill = waste_percent / 100
        self.blocked: dict[bytes, float] = {}
        """The end of each block, in seconds of the monotonic clock, by route."""
        self.awaiting_hello: set[bytes] = set()
        """Connections that were blocked. Their messages are ignored until they say hello."""
        self._wasted: dict[bytes, tuple[float, float]] = {}
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

    def release(self, now: float) -> list[bytes]:
        """End the blocks whose time is over. Returns their routes."""
        over = [route for route, until in self.blocked.items() if until <= now]
        for route in over:
            del self.blocked[route]
        return over

    def prune(self, now: float, is_known: Callable[[bytes], bool]) -> None:
        """Forget connections that have wasted nothing lately, and connections of lost peers."""
        self.awaiting_hello = {route for route in self.awaiting_hello if is_known(route)}
        self._wasted = {
            route: (level, then) for route, (level, then) in self._wasted.items() if (now - then) * self._refill < level
        }
