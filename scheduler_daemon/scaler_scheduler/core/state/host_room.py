"""How much room a host has for values, as far as the scheduler knows."""

from __future__ import annotations

UNLIMITED_BYTES = 1 << 62
"""The room of a host whose limits are not known."""


class HostRoom:
    """The room of one host in bytes, by the last heartbeat of its agent and by what has happened since then."""

    __slots__ = ("coming", "copied", "dropped", "dropped_at", "excess", "free", "heard_free", "limit")

    def __init__(self) -> None:
        self.limit = 0
        """The host's limit in memory or on disk, whichever is more. 0: not known."""
        self.heard_free = UNLIMITED_BYTES
        """The free bytes in memory or on disk, whichever are more, at the last heartbeat."""
        self.free = UNLIMITED_BYTES
        """`heard_free`, less the results written and the files transferred since the last heartbeat. If a heartbeat
        counts a file before the scheduler hears of the file, the file counts twice until the next heartbeat."""
        self.excess = 0
        """The bytes beyond the limits at the last heartbeat."""
        self.coming = 0
        """The bytes of the files that are on their way to the host, or wait for their turn."""
        self.copied = 0
        """The bytes of its copies of values (`Agent.copies`)."""
        self.dropped = 0
        """The bytes of the copies that its agent was told to remove since the last heartbeat."""
        self.dropped_at = float("-inf")
        """When its agent was told to remove copies last, in seconds of the monotonic clock."""

    def heard(self, used: tuple[int, int], limits: tuple[int, int]) -> None:
        """Note what a heartbeat says: the bytes of values in memory and on disk, and the limits of both.

        If the first limit is 0, no limits are known.
        """
        self.limit = max(limits) if limits[0] else 0
        free = max(limits[0] - used[0], limits[1] - used[1], 0) if limits[0] else UNLIMITED_BYTES
        self.free = self.heard_free = free
        self.excess = max(0, used[0] - limits[0]) + max(0, used[1] - limits[1]) if limits[0] else 0
        self.dropped = 0

    def has(self, size: int) -> bool:
        """Whether so many bytes of further values fit, beside the files on their way."""
        return size + self.coming <= self.free or not self.limit

    def lacks(self, size: int) -> int:
        """How many bytes of copies have to be removed, until so many bytes fit, and the host is within its limits. 0 or
        less: none."""
        return size + self.coming + self.excess - self.free - self.dropped
