"""Who shares the workers: one record for each key, or without keys for each user of a host. All clients of a key count
together, so that more connections get no more.

Shares are fair by time: the dispatcher serves the share whose virtual time is the least (`Share.virtual_ns`). This is
start-time fair queueing (Goyal, Vin and Cheng, 1996): time used, divided by weight. A share that begins to wait starts
at the virtual time of those that wait already, so that time without work gives no claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NO_LIMIT = 1 << 62
"""More tasks than there can be."""


@dataclass(frozen=True)
class ShareLimits:
    """What the operator allows a key."""

    name: str = ""
    """The name of the key in the list."""
    weight: float = 1.0
    """With twice the weight of others, a key gets twice their time."""
    max_running: int = NO_LIMIT
    """The most tasks that workers hold."""
    max_waiting: int = NO_LIMIT
    """The most open tasks of all clients of the key. They get no credit for more."""


DEFAULT_LIMITS = ShareLimits()


class Share:
    """What the clients of one key use of the workers. Times are in nanoseconds of workers."""

    __slots__ = (
        "base_ns",
        "client_count",
        "held",
        "held_ns",
        "late_ns",
        "limits",
        "name",
        "number",
        "owner_count",
        "used_ns",
        "user",
    )

    def __init__(self, number: int, user: str, name: str, limits: ShareLimits) -> None:
        self.number = number
        """The order of shares that are equal otherwise."""
        self.user = user
        """The user of its key; empty if peers have no keys."""
        self.name = name
        """For people: the user of its key, or user@host."""
        self.limits = limits
        self.client_count = 0
        """The records of its clients."""
        self.owner_count = 0
        """Its connected clients that are not nested."""
        self.held = 0
        """Tasks that workers hold, without suspended ones."""
        self.held_ns = 0
        """The expected time of these tasks."""
        self.late_ns = 0
        """How much longer than expected the running ones take by now, as of the last check."""
        self.used_ns = 0
        """The time of the attempts that have ended."""
        self.base_ns = 0.0
        """The virtual time that it did not use, because it had nothing to run."""

    @property
    def display_name(self) -> str:
        """The name of its key, or user@host."""
        return self.limits.name or self.name

    @property
    def virtual_ns(self) -> float:
        """Its virtual time: what it has used and is going to use, by its weight."""
        return self.base_ns + (self.used_ns + self.held_ns + self.late_ns) / self.limits.weight

    @property
    def room(self) -> int:
        """How many more tasks workers may hold."""
        return self.limits.max_running - self.held

    def end(self, count: int, expected_ns: int, used_ns: int) -> None:
        """Count the results of tasks.

        Args:
            count: the tasks that leave their worker by it.
            expected_ns: their expected time.
            used_ns: the time of all results.
        """
        self.held -= count
        self.held_ns -= expected_ns
        self.used_ns += used_ns

    def forget_late(self, late_ns: int) -> None:
        """Note that a task has ended whose time was so much longer than expected."""
        if self.late_ns and late_ns > 0:
            self.late_ns = max(0, self.late_ns - late_ns)

    def start_at(self, virtual_ns: float) -> None:
        """Begin to wait for workers, when those that wait have this virtual time at least."""
        self.base_ns += max(0.0, virtual_ns - self.virtual_ns)

    def set_limits(self, limits: ShareLimits) -> None:
        """Change the limits, and keep the virtual time."""
        virtual_ns = self.virtual_ns
        self.limits = limits
        self.base_ns += virtual_ns - self.virtual_ns


class ShareTable:
    """The shares of all clients."""

    def __init__(self) -> None:
        self._by_name: dict[str, Share] = {}
        self._limits: Mapping[str, ShareLimits] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Share]:
        return iter(self._by_name.values())

    def add_client(self, user: str, account: str, host: str) -> Share:
        """Return the share of a new client.

        Args:
            user: the user of its key; empty without keys.
            account: its user on its host, as it says.
            host: the name of its host, as it says.
        """
        name = user or f"{account}@{host}"
        share = self._by_name.get(name)
        if share is None:
            share = Share(self._next_number, user, name, self._limits.get(user, DEFAULT_LIMITS))
            self._by_name[name] = share
            self._next_number += 1
        share.client_count += 1
        return share

    def remove_client(self, share: Share) -> None:
        """Note that the record of a client is dropped."""
        share.client_count -= 1
        if not share.client_count:
            del self._by_name[share.name]

    def move_client(self, old: Share, new: Share) -> None:
        """Count a client in another share. It has no open tasks."""
        new.client_count += 1
        self.remove_client(old)

    def set_limits(self, limits: Mapping[str, ShareLimits]) -> None:
        """Set the limits of keys, by their user. Others have the default."""
        self._limits = limits
        for share in self._by_name.values():
            share.set_limits(limits.get(share.user, DEFAULT_LIMITS))
