"""Places waiting work on pools: on hosts that are there or boot first, then on new hosts of the cheapest pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..commands.resource_amounts import CPUS
from .demand import AgentLoad, Need
from .hosts import Host, HostState
from .pools import Pool, fitting_tasks

LEAST_TASKS = 0.01
"""Waiting tasks want room for so many tasks at once, however short they are. Else a function that returns within a
microsecond would start no host."""


@dataclass
class PoolPlan:
    """What the work needs of one pool."""

    used: float = 0.0
    """Workers of hosts that are there or boot, which running and waiting tasks need within the target time."""
    resources: dict[str, float] = field(default_factory=dict)
    """Likewise their counted resources, in units by name."""
    new_hosts: int = 0
    has_waiting: bool = False
    """Whether tasks wait that hosts of this pool can run."""

    def wanted(self, pool: Pool) -> int:
        """The number of hosts that the work needs, new ones included."""
        hosts = self.used / pool.workers
        for name, amount in self.resources.items():
            if name != CPUS and pool.resources.get(name):
                hosts = max(hosts, amount / pool.resources[name])
        return math.ceil(hosts - 1e-9) + self.new_hosts

    def use(self, workers: float, resources: Mapping[str, float]) -> None:
        """Add what tasks need."""
        self.used += workers
        for name, amount in resources.items():
            self.resources[name] = self.resources.get(name, 0.0) + amount


@dataclass
class _Capacity:
    """Free workers and resources of one kind: of a pool's hosts, or of an agent that belongs to no pool."""

    plan: PoolPlan
    workers: float
    resources: dict[str, float]
    host_workers: int
    """The workers of one host."""
    host_resources: Mapping[str, float]
    """The resources of one host."""
    slots: Callable[[Need], int]
    """Returns how many tasks of a need one host runs at once; 0: none."""

    def take(self, need: Need, tasks: float) -> float:
        """Use room for up to so many tasks at once. Returns for how many there was room."""
        if self.workers <= 0 or not self.slots(need):
            return 0.0
        each = self._workers_a_task(need)
        amounts = {
            # What remains of a host is of no use for tasks that do not fit into it.
            name: self.host_resources[name] / int(self.host_resources[name] / amount + 1e-9)
            for name, amount in need.resources.items()
            if name != CPUS and amount > 0
        }
        taken = min(tasks, self.workers / each)
        for name, amount in amounts.items():
            taken = min(taken, max(0.0, self.resources.get(name, 0.0)) / amount)
        self.workers -= taken * each
        used = {name: taken * amount for name, amount in amounts.items()}
        for name, amount in used.items():
            self.resources[name] = self.resources.get(name, 0.0) - amount
        self.plan.use(taken * each, used)
        return taken

    def _workers_a_task(self, need: Need) -> float:
        cpus = {name: amount for name, amount in need.resources.items() if name == CPUS}
        return self.host_workers / fitting_tasks(self.host_workers, self.host_resources, cpus)


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
            rest = self._fill(need, self.wanted_tasks(need))
            if rest > 1e-9:
                self._start(need, rest, plans, room)
        return plans

    def wanted_tasks(self, need: Need) -> float:
        """Return how many tasks at once finish a need within the target time: never more than it has tasks."""
        at_once = need.unknown + need.known_seconds / self.target_seconds
        return min(max(at_once, LEAST_TASKS), need.tasks, need.most)

    def slots(self, pool: Pool, need: Need) -> int:
        """Return how many tasks of a need a host of the pool runs at once; 0: it cannot run them."""
        known = self.kinds.get(pool.name, "")
        if known and need.kind.startswith("cloudpickle ") and need.kind != known:
            return 0
        return pool.tasks_a_host(need.capabilities, need.resources)

    def _choices(self, need: Need) -> int:
        return sum(1 for pool in self.pools if self.slots(pool, need))

    def _add_hosts(self, hosts: Iterable[Host], plans: Mapping[str, PoolPlan]) -> None:
        free = {
            pool.name: _Capacity(plans[pool.name], 0.0, {}, pool.workers, pool.resources, partial(self.slots, pool))
            for pool in self.pools
        }
        for host in hosts:
            if not host.can_serve:
                continue
            busy, booked = 0.0, dict[str, float]()
            if host.state is HostState.THERE and host.load is not None:
                busy, booked = self._busy(host.load)
            plans[host.pool.name].use(busy, booked)
            _add_host(free[host.pool.name], busy, booked)
        self._free += [free[pool.name] for pool in sorted(self.pools, key=lambda pool: pool.cost / pool.workers)]

    def _add_others(self, others: Iterable[AgentLoad]) -> None:
        """Add agents that the operator started: they are used first, and never ended."""
        for load in others:
            if load.is_retiring or not load.workers:
                continue

            def slots(need: Need, load: AgentLoad = load) -> int:
                if load.kind and need.kind.startswith("cloudpickle ") and need.kind != load.kind:
                    return 0
                has_all = all(load.capabilities.get(name, 0) >= amount for name, amount in need.capabilities.items())
                return fitting_tasks(load.workers, load.resources, need.resources) if has_all else 0

            capacity = _Capacity(PoolPlan(), 0.0, {}, load.workers, load.resources, slots)
            _add_host(capacity, *self._busy(load))
            self._free.insert(0, capacity)

    def _busy(self, load: AgentLoad) -> tuple[float, dict[str, float]]:
        """Return how many workers, and which resources, the running tasks of an agent need within the target time."""
        busy = sum(min(1.0, seconds / self.target_seconds) for seconds in load.remaining)
        part = busy / len(load.remaining) if load.remaining else 1.0
        booked = {name: part * amount for name, amount in load.booked.items() if name != CPUS}
        if load.resources.get(CPUS):  # a task with `cpus` has several workers
            busy = max(busy, part * load.workers * load.booked.get(CPUS, 0.0) / load.resources[CPUS])
        return busy, booked

    def _fill(self, need: Need, tasks: float) -> float:
        """Use free capacity. Returns for how many tasks at once there is no room."""
        for capacity in self._free:
            if tasks <= 1e-9:
                break
            tasks -= capacity.take(need, tasks)
        return tasks

    def _start(self, need: Need, tasks: float, plans: Mapping[str, PoolPlan], room: dict[str, int]) -> None:
        """Plan new hosts: of the cheapest pool that can serve the need, then of the next."""
        able = [(pool, slots) for pool in self.pools if (slots := self.slots(pool, need))]
        for pool, slots in sorted(able, key=lambda each: (each[0].cost / each[1], each[0].boot_seconds)):
            count = min(room[pool.name], math.ceil(tasks / slots - 1e-9))
            if count <= 0:
                continue
            room[pool.name] -= count
            plans[pool.name].new_hosts += count
            # Their use counts in `new_hosts` already.
            fresh = _Capacity(PoolPlan(), 0.0, {}, pool.workers, pool.resources, partial(self.slots, pool))
            for _ in range(count):
                _add_host(fresh, 0.0, {})
            tasks -= fresh.take(need, tasks)
            self._free.append(fresh)
            if tasks <= 1e-9:
                return


def _add_host(capacity: _Capacity, busy: float, booked: Mapping[str, float]) -> None:
    """Add the room of one host."""
    capacity.workers += max(0.0, capacity.host_workers - busy)
    for name, amount in capacity.host_resources.items():
        free = max(0.0, amount - booked.get(name, 0.0))
        capacity.resources[name] = capacity.resources.get(name, 0.0) + free
