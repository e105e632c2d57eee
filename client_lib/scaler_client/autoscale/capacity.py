"""Places waiting work on pools: on hosts that are there or boot first, then on new hosts of the cheapest pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .demand import AgentLoad, Need
from .hosts import Host, HostState
from .pools import Pool


@dataclass
class PoolPlan:
    """What the work needs of one pool."""

    used: float = 0.0
    """Workers of hosts that are there or boot, which running and waiting tasks need within the target time."""
    new_hosts: int = 0
    has_waiting: bool = False
    """Whether tasks wait that hosts of this pool can run."""

    def wanted(self, pool: Pool) -> int:
        """The number of hosts that the work needs, new ones included."""
        return math.ceil(self.used / pool.workers - 1e-9) + self.new_hosts


@dataclass
class _Capacity:
    """Free workers of one kind: of a pool's hosts, or of agents that belong to no pool."""

    plan: PoolPlan
    workers: float
    tasks: Callable[[Need], float]
    """Returns which share of the workers can run tasks of a need at once; 0: none."""


@dataclass
class Planner:
    """Places needs on capacity.

    Args of the constructor:
        pools: all pools.
        target_seconds: the time in which the work shall be done.
        kinds: by pool, the kind of pickled functions that its hosts ran; a pool without an entry may run any.
    """

    pools: Sequence[Pool]
    target_seconds: float
    kinds: Mapping[str, str]
    _free: list[_Capacity] = field(default_factory=list)

    def place(
        self,
        needs: Iterable[Need],
        hosts: Iterable[Host],
        others: Iterable[AgentLoad],
        may_start: Callable[[Pool], int],
    ) -> dict[str, PoolPlan]:
        """Return the plan of each pool by its name.

        Args:
            needs: what waits.
            hosts: the hosts of all pools.
            others: agents that belong to no pool.
            may_start: returns how many more hosts of a pool may be requested now.
        """
        plans = {pool.name: PoolPlan() for pool in self.pools}
        room = {pool.name: may_start(pool) for pool in self.pools}
        self._free = []
        self._add_hosts(hosts, plans)
        self._add_others(others)
        # Those that few pools can serve first: the others find room elsewhere.
        for need in sorted(needs, key=self._choices):
            for pool in self.pools:
                if self.slots(pool, need):
                    plans[pool.name].has_waiting = True
            rest = self._fill(need, self.wanted_workers(need))
            if rest > 1e-9:
                self._start(need, rest, plans, room)
        return plans

    def wanted_workers(self, need: Need) -> float:
        """Return how many workers finish a need within the target time: never more than it has tasks."""
        return min(need.unknown + need.known_seconds / self.target_seconds, need.tasks, need.most)

    def slots(self, pool: Pool, need: Need) -> int:
        """Return how many tasks of a need a host of the pool runs at once; 0: it cannot run them."""
        known = self.kinds.get(pool.name, "")
        if known and need.kind.startswith("cloudpickle ") and need.kind != known:
            return 0
        return pool.tasks_a_host(need.capabilities, need.resources)

    def _choices(self, need: Need) -> int:
        return sum(1 for pool in self.pools if self.slots(pool, need))

    def _add_hosts(self, hosts: Iterable[Host], plans: Mapping[str, PoolPlan]) -> None:
        free = dict.fromkeys((pool.name for pool in self.pools), 0.0)
        for host in hosts:
            if not host.can_serve:
                continue
            busy = 0.0
            if host.state is HostState.THERE and host.load is not None:
                busy = self._busy_workers(host.load)
            plans[host.pool.name].used += busy
            free[host.pool.name] += max(0.0, host.pool.workers - busy)
        for pool in sorted(self.pools, key=lambda pool: pool.cost / pool.workers):

            def share(need: Need, pool: Pool = pool) -> float:
                return self.slots(pool, need) / pool.workers

            self._free.append(_Capacity(plans[pool.name], free[pool.name], share))

    def _add_others(self, others: Iterable[AgentLoad]) -> None:
        """Add agents that the operator started: they are used first, and never ended."""
        for load in others:
            if load.is_retiring or not load.workers:
                continue

            def share(need: Need, load: AgentLoad = load) -> float:
                if load.kind and need.kind.startswith("cloudpickle ") and need.kind != load.kind:
                    return 0.0
                has_all = all(load.capabilities.get(name, 0) >= amount for name, amount in need.capabilities.items())
                return float(has_all and not need.resources)

            self._free.insert(0, _Capacity(PoolPlan(), max(0.0, load.workers - self._busy_workers(load)), share))

    def _busy_workers(self, load: AgentLoad) -> float:
        """Return how many workers the running tasks of an agent need within the target time."""
        return sum(min(1.0, seconds / self.target_seconds) for seconds in load.remaining)

    def _fill(self, need: Need, workers: float) -> float:
        """Use free capacity. Returns the workers that are still wanted."""
        for capacity in self._free:
            if workers <= 1e-9:
                break
            share = capacity.tasks(need) if capacity.workers > 0 else 0.0
            if share <= 0:
                continue
            taken = min(workers, capacity.workers * share)
            workers -= taken
            capacity.workers -= taken / share
            capacity.plan.used += taken / share
        return workers

    def _start(self, need: Need, workers: float, plans: Mapping[str, PoolPlan], room: dict[str, int]) -> None:
        """Plan new hosts: of the cheapest pool that can serve the need, then of the next."""
        able = [(pool, slots) for pool in self.pools if (slots := self.slots(pool, need))]
        for pool, slots in sorted(able, key=lambda each: (each[0].cost / each[1], each[0].boot_seconds)):
            count = min(room[pool.name], math.ceil(workers / slots - 1e-9))
            if count <= 0:
                continue
            room[pool.name] -= count
            plans[pool.name].new_hosts += count
            rest = count * slots - workers
            workers -= min(workers, count * slots)
            if rest > 1e-9:

                def share(other: Need, pool: Pool = pool) -> float:
                    return self.slots(pool, other) / pool.workers

                # Their use counts in `new_hosts` already.
                self._free.append(_Capacity(PoolPlan(), rest * pool.workers / slots, share))
            if workers <= 1e-9:
                return
