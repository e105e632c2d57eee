"""Pools: hosts of one kind, which one provider starts and ends."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..commands.resource_amounts import CPUS

POOL_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
"""A pool's name is part of its hosts' names, which some providers restrict to these characters."""

HOST_NAME = re.compile(r"(?P<pool>[a-z0-9][a-z0-9-]*)-(?P<number>[0-9]{1,6})-(?P<random>[a-z0-9]{6})")
"""The name of a host."""


@dataclass(frozen=True)
class Pool:
    """The hosts of one kind.

    Raises:
        ValueError: a value is out of its range; the text names it.
    """

    name: str
    """Lower-case letters, digits and dashes."""
    workers: int = 1
    """The workers of each host."""
    capabilities: Mapping[str, int] = field(default_factory=dict)
    """The capabilities of every worker of these hosts, amounts by name."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """The counted resources of each host, in units by name. Default of `cpus`: one for each worker."""
    cost: float = 1.0
    """The price of one host for one hour, in any currency. Only the ratio between pools matters."""
    least: int = 0
    """The number of hosts that stay when there is no work."""
    most: int = 1
    """The largest number of hosts at one time, booting and ending hosts included."""
    boot_seconds: float = 60.0
    """The usual seconds from the request for a host to its agent's hello. After twice this time the host has failed."""
    time_limit_seconds: float = 0.0
    """The seconds after which the provider ends a host. 0: there is no limit."""
    retire_seconds: float = 86400.0
    """The seconds that running tasks may continue on a draining host."""

    def __post_init__(self) -> None:
        if POOL_NAME.fullmatch(self.name) is None:
            raise ValueError(f"name {self.name!r} is not 1 to 32 lower-case letters, digits and dashes")
        if self.workers < 1:
            raise ValueError(f"workers is {self.workers}: a host has at least 1")
        if not 0 <= self.least <= self.most:
            raise ValueError(f"least is {self.least} and most is {self.most}: it must be 0 <= least <= most")
        if not self.cost >= 0:
            raise ValueError(f"cost is {self.cost}: it must be at least 0")
        for name in ("boot_seconds", "retire_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be above 0")
        if not self.time_limit_seconds >= 0:
            raise ValueError(f"time_limit_seconds is {self.time_limit_seconds}: it must be at least 0")

    def host_name(self, number: int, random: str) -> str:
        """Return the name of a host: the pool's name, a number that no other host of the pool has, and six random
        letters or digits."""
        return f"{self.name}-{number}-{random}"

    def tasks_a_host(self, capabilities: Mapping[str, int], resources: Mapping[str, float]) -> int:
        """Return how many tasks with these requirements a host can run at once; 0: none."""
        if any(self.capabilities.get(name, 0) < amount for name, amount in capabilities.items()):
            return 0
        return fitting_tasks(self.workers, self.resources, resources)


def fitting_tasks(workers: int, there: Mapping[str, float], wanted: Mapping[str, float]) -> int:
    """Return how many tasks a host can run at once.

    Args:
        workers: the workers of the host.
        there: its counted resources, in units by name.
        wanted: what each task needs, in units by name.
    """
    if not wanted:
        return workers
    a_worker = there.get(CPUS, workers) / max(1, workers)
    count = workers // max(1, math.ceil(wanted.get(CPUS, 0.0) / a_worker - 1e-9)) if a_worker else 0
    for name, amount in wanted.items():
        if amount > 0 and name != CPUS:
            count = min(count, int(there.get(name, 0.0) / amount + 1e-9))
    return count


def parse_host_name(name: str) -> tuple[str, int] | None:
    """Return the pool and the number in a host's name. None: the name is not that of a pool's host."""
    found = HOST_NAME.fullmatch(name)
    return None if found is None else (found["pool"], int(found["number"]))
