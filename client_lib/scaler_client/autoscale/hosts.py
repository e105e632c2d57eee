"""The hosts of the pools, from the request to the end of each."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .demand import AgentLoad
from .pools import Pool, parse_host_name

LATE_FACTOR = 2.0
"""A host that has not come after this multiple of its pool's boot time counts as failed."""

MISSING_LISTS = 2
"""A host is gone when so many lists of its provider in a row lack it: some providers list a new host late."""

QUIET_SECONDS = 8.0
"""A host that its provider does not list is gone although its lease lasts, if it sent no heartbeat for this time."""

SILENT_SECONDS = 30.0
"""A host whose agent is not in the snapshots for this time is lost, even if its provider lists it."""

REPEAT_SECONDS = 60.0
"""A host that still exists after it was to end is ended again after this time."""


class HostState(enum.Enum):
    """The state of a host."""

    BOOTING = "booting"
    THERE = "there"
    DRAINING = "draining"
    """It was asked to end: its running tasks may end."""
    ENDING = "ending"
    """It failed, or did not drain in time, and is ended by force."""


class Change(enum.Enum):
    """What became of a host, for counting."""

    CAME = "came"
    CAME_LATE = "came late"
    NEVER_CAME = "never came"
    DIED_AT_BOOT = "died at boot"
    LOST = "lost"
    LEFT = "left at its time limit"
    ENDED = "ended"


@dataclass
class Host:
    """A host of a pool. Times are seconds of the policy's clock."""

    pool: Pool
    name: str
    number: int
    state: HostState
    asked_at: float
    """When it was requested, or found."""
    started_at: float | None = None
    """When the provider's start returned; None: not yet."""
    seen_at: float = 0.0
    """When its agent was in a snapshot last."""
    end_at: float = 0.0
    """When it was asked to end last."""
    missing: int = 0
    """How many lists in a row lack it."""
    last_lines: str = ""
    """The end of its log, if it has ended and its provider knows it."""
    load: AgentLoad | None = None
    """Its agent in the newest snapshot; None: its agent is not connected."""

    @property
    def can_serve(self) -> bool:
        """Whether it counts as capacity."""
        return self.state in (HostState.BOOTING, HostState.THERE)

    def leaves_at(self) -> float:
        """When it must begin to drain, because of its pool's time limit; infinity: there is no limit."""
        limit = self.pool.time_limit_seconds
        return self.asked_at + limit - min(self.pool.retire_seconds, limit / 4) if limit else float("inf")


class HostTable:
    """The hosts of all pools, by name."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._pools = {pool.name: pool for pool in pools}
        self.by_name: dict[str, Host] = {}
        self._first_numbers: dict[str, int] = {}
        self._listed: set[str] = set()
        """The pools whose provider has listed its hosts once."""

    def of_pool(self, pool: Pool) -> list[Host]:
        """The hosts of a pool, in any state."""
        return [host for host in self.by_name.values() if host.pool is pool]

    def is_listed(self, pool: Pool) -> bool:
        """Whether the provider of the pool has listed its hosts since the start of the policy."""
        return pool.name in self._listed

    def free_numbers(self, pool: Pool, count: int) -> list[int]:
        """Return up to `count` numbers that no host of the pool has: the lowest ones behind the one that failed last.

        For some providers a number stands for a certain host. If this host is broken, others get their turn.
        """
        used = {host.number for host in self.of_pool(pool)}
        first = self._first_numbers.get(pool.name, 0)
        numbers = ((first + offset) % pool.most for offset in range(pool.most))
        return [number for number in numbers if number not in used][:count]

    def note_failure(self, host: Host) -> None:
        """Note that a host failed, so that other numbers go first."""
        self._first_numbers[host.pool.name] = host.number + 1

    def add(self, pool: Pool, name: str, number: int, now: float) -> Host:
        """Add a host that is being requested."""
        host = self.by_name[name] = Host(pool, name, number, HostState.BOOTING, now)
        return host

    def listed(
        self, pool: Pool, names: Iterable[str], begun_at: float, now: float, last_lines: Mapping[str, str]
    ) -> list[tuple[Host, Change]]:
        """Apply a provider's list of its hosts, and the ends of the logs of hosts that have ended. Returns hosts that
        are gone."""
        there = set(names)
        for name, lines in last_lines.items():
            if name in self.by_name:
                self.by_name[name].last_lines = lines
        self._listed.add(pool.name)
        for name in there:
            if name not in self.by_name:
                self._find(name, now)
        changes: list[tuple[Host, Change]] = []
        for host in self.of_pool(pool):
            if host.name in there:
                host.missing = 0
            elif host.started_at is not None and host.started_at <= begun_at:
                host.missing += 1
                is_silent = host.load is None or host.load.silent_seconds > QUIET_SECONDS
                if host.missing >= MISSING_LISTS and is_silent:
                    changes.append((host, self._gone(host, now)))
        return changes

    def seen(self, agents: Iterable[AgentLoad], now: float) -> list[tuple[Host, Change]]:
        """Apply the agents of a snapshot. Returns hosts that came."""
        changes: list[tuple[Host, Change]] = []
        for host in self.by_name.values():
            host.load = None
        for load in agents:
            if not load.workers:  # its agent comes before its workers, and stays for a while when they are dead
                continue
            host_there = self.by_name.get(load.name)
            if host_there is None and load.silent_seconds <= QUIET_SECONDS:  # the agent of a lost host stays as well
                host_there = self._find(load.name, now)
            if host_there is None:
                continue
            host_there.load = load
            host_there.seen_at = now
            if host_there.started_at is None:
                host_there.started_at = now
            if host_there.state is HostState.BOOTING:
                host_there.state = HostState.THERE
                is_late = now - host_there.asked_at > 1.25 * host_there.pool.boot_seconds
                changes.append((host_there, Change.CAME_LATE if is_late else Change.CAME))
        return changes

    def expire(self, now: float) -> list[tuple[Host, Change]]:
        """Return hosts that never came or were lost. Those that may still exist are in the state `ENDING` now."""
        changes: list[tuple[Host, Change]] = []
        for host in list(self.by_name.values()):
            if host.state is HostState.BOOTING and now - host.asked_at > LATE_FACTOR * host.pool.boot_seconds:
                host.state, host.end_at = HostState.ENDING, float("-inf")
                changes.append((host, Change.NEVER_CAME))
            elif host.load is None and host.state is HostState.THERE and now - host.seen_at > SILENT_SECONDS:
                change = Change.LEFT if now >= host.leaves_at() else Change.LOST
                host.state, host.end_at = HostState.ENDING, float("-inf")
                changes.append((host, change))
        return changes

    def pool_of(self, name: str) -> Pool | None:
        """Return the pool to which a host of this name belongs. None: no host of a pool is called so."""
        parsed = parse_host_name(name)
        return None if parsed is None else self._pools.get(parsed[0])

    def remove(self, host: Host) -> None:
        self.by_name.pop(host.name, None)

    def _find(self, name: str, now: float) -> Host | None:
        """Add a host of an earlier run of the autoscaler. None: the name is of no pool here."""
        pool, parsed = self.pool_of(name), parse_host_name(name)
        if parsed is None or pool is None:
            return None
        host = self.add(pool, name, parsed[1], now)
        host.started_at = now
        return host

    def _gone(self, host: Host, now: float) -> Change:
        self.remove(host)
        if host.state in (HostState.DRAINING, HostState.ENDING):
            return Change.ENDED
        if host.state is HostState.BOOTING:
            return Change.DIED_AT_BOOT
        return Change.LEFT if now >= host.leaves_at() else Change.LOST
