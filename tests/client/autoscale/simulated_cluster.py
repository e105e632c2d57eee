"""A cluster in simulated time: tasks that arrive, hosts that boot, fail and end, and the policy that decides.

It counts what the policy costs: idle core-seconds (from a host's request to its end, without the time in which its
workers run tasks), the makespan, hosts, and tasks that ran again.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from scaler_client.autoscale import (
    AgentLoad,
    AutoscalePolicy,
    Demand,
    Drain,
    Kill,
    Need,
    Pool,
    Start,
)
from scaler_client.autoscale.demand import remaining_seconds

LEAVE_SECONDS = 2.0
"""From the end of a draining host's last task to the host's end."""


@dataclass
class Task:
    at: float
    seconds: float
    function: str = "f"
    capabilities: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0


@dataclass
class Faults:
    """How the hosts of a pool fail. Shares are of all requests."""

    dies_at_boot: float = 0.0
    never_comes: float = 0.0
    boot_jitter: float = 0.0
    """Boot times vary by this share, both ways."""
    start_fails: bool = False


class SimulatedHost:
    def __init__(self, name: str, pool: Pool, requested_at: float) -> None:
        self.name, self.pool, self.requested_at = name, pool, requested_at
        self.is_there = False
        self.is_draining = False
        self.is_gone = False
        self.running: dict[int, tuple[Task, float]] = {}


class SimulatedCluster:
    """Runs tasks under a policy until all have ended and all hosts that nobody wants have left."""

    def __init__(
        self,
        pools: Sequence[Pool],
        tasks: Iterable[Task],
        *,
        seed: int,
        target_seconds: float = 60.0,
        idle_seconds: float = 30.0,
        faults: Mapping[str, Faults] | None = None,
        tick_seconds: float = 2.0,
        known: Mapping[str, float] | None = None,
    ) -> None:
        """`known` has the mean run times of functions that have returned before."""
        self.now = 0.0
        self.random = random.Random(seed)
        self.pools = {pool.name: pool for pool in pools}
        self.faults = faults or {}
        self.settings = {"target_seconds": target_seconds, "idle_seconds": idle_seconds}
        self.policy = self._new_policy()
        self.tick_seconds = tick_seconds
        self.tasks = sorted(tasks, key=lambda task: task.at)
        self.next_task = 0
        self.queues: dict[tuple[tuple[str, int], ...], deque[Task]] = {}
        self.hosts: dict[str, SimulatedHost] = {}
        self.events: list[tuple[float, int, str, str, int]] = []
        self.numbers = count()
        self.done = 0
        self.run_seconds = 0.0
        self.functions = {name: (1, seconds) for name, seconds in (known or {}).items()}
        self.reruns = 0
        self.busy_seconds = 0.0
        self.paid_seconds = 0.0
        self.makespan = 0.0
        self.most_hosts: dict[str, int] = dict.fromkeys(self.pools, 0)
        self.started: dict[str, int] = dict.fromkeys(self.pools, 0)
        self.reasons: list[str] = []
        self.lines: list[str] = []
        self.restart_at: float | None = None

    @property
    def idle_core_seconds(self) -> float:
        return self.paid_seconds - self.busy_seconds

    def run(self, until: float) -> None:
        """Run until this time, or until nothing is left to do."""
        while self.now < until:
            tick = self.now
            while self.events and self.events[0][0] <= tick:
                self._event(*heappop(self.events))
            while self.next_task < len(self.tasks) and self.tasks[self.next_task].at <= tick:
                self._queue(self.tasks[self.next_task])
                self.next_task += 1
            self._dispatch(self.hosts.values())
            if self.restart_at is not None and tick >= self.restart_at:
                self.restart_at = None
                self.policy = self._new_policy()
            self._decide()
            if self.done == len(self.tasks) and not self.hosts:
                return
            self.now = tick + self.tick_seconds

    def serving(self, pool: str) -> int:
        return sum(1 for host in self.policy.hosts.of_pool(self.pools[pool]) if host.can_serve)

    def _new_policy(self) -> AutoscalePolicy:
        def draw() -> str:
            return "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=6))

        return AutoscalePolicy(tuple(self.pools.values()), draw=draw, now=self.now, **self.settings)

    def _queue(self, task: Task) -> None:
        key = tuple(sorted(task.capabilities.items()))
        self.queues.setdefault(key, deque()).append(task)

    def _event(self, at: float, _number: int, kind: str, name: str, slot: int) -> None:
        self.now = at
        host = self.hosts.get(name)
        if host is None or host.is_gone:
            return
        if kind == "comes":
            host.is_there = True
            self._dispatch([host])
        elif kind == "ends":
            task, began = host.running.pop(slot)
            self.done += 1
            self.run_seconds += task.seconds
            self.busy_seconds += at - began
            number, seconds = self.functions.get(task.function, (0, 0.0))
            self.functions[task.function] = number + 1, seconds + task.seconds
            self.makespan = max(self.makespan, at)
            if host.is_draining and not host.running:
                self._push(at + LEAVE_SECONDS, "leaves", name)
            self._dispatch([host])  # the others have taken what they can
        else:  # it leaves, or dies
            self._remove(host)

    def _push(self, at: float, kind: str, name: str, slot: int = 0) -> None:
        heappush(self.events, (at, next(self.numbers), kind, name, slot))

    def _dispatch(self, hosts: Iterable[SimulatedHost]) -> None:
        if not any(self.queues.values()):
            return
        for host in hosts:
            if not host.is_there or host.is_draining:
                continue
            while len(host.running) < host.pool.workers:
                task = self._next_task(host.pool)
                if task is None:
                    break
                slot = next(self.numbers)
                task.runs += 1
                self.reruns += task.runs > 1
                host.running[slot] = task, self.now
                self._push(self.now + task.seconds, "ends", host.name, slot)

    def _next_task(self, pool: Pool) -> Task | None:
        for key, queue in self.queues.items():
            if queue and pool.tasks_a_host(dict(key), {}):
                return queue.popleft()
        return None

    def _remove(self, host: SimulatedHost) -> None:
        host.is_gone = True
        for task, began in host.running.values():
            self.busy_seconds += self.now - began
            self._queue(task)
        self.paid_seconds += (self.now - host.requested_at) * host.pool.workers
        del self.hosts[host.name]

    def _decide(self) -> None:
        if round(self.now / self.tick_seconds) % 5 == 0:
            for name in self.pools:
                names = [host.name for host in self.hosts.values() if host.pool.name == name]
                self.lines += self.policy.listed(name, names, self.now, self.now)
        decisions, lines = self.policy.decide(self._demand(), self.now)
        self.lines += lines
        for decision in decisions:
            self.reasons.append(f"{self.now:.0f} {decision.reason}")
            if isinstance(decision, Start):
                self._start(decision)
                continue
            for name in decision.names:
                host = self.hosts.get(name)
                if host is None:
                    continue
                if isinstance(decision, Drain):
                    host.is_draining = True
                    if not host.running:
                        self._push(self.now + LEAVE_SECONDS, "leaves", name)
                    else:
                        self._push(self.now + host.pool.retire_seconds, "leaves", name)
                elif isinstance(decision, Kill):
                    self._remove(host)
        for name in self.pools:
            self.most_hosts[name] = max(self.most_hosts[name], self.serving(name))

    def _start(self, start: Start) -> None:
        pool, faults = self.pools[start.pool], self.faults.get(start.pool, Faults())
        if faults.start_fails:
            self.policy.start_failed(start.pool, start.names, "the provider fails", self.now)
            return
        self.policy.started(start.pool, start.names, self.now)
        for name in start.names:
            assert name not in self.hosts
            self.started[pool.name] += 1
            self.hosts[name] = SimulatedHost(name, pool, self.now)
            boot = pool.boot_seconds * self.random.uniform(1 - faults.boot_jitter, 1 + faults.boot_jitter)
            fate = self.random.random()
            if fate < faults.dies_at_boot:
                self._push(self.now + boot * self.random.random(), "dies", name)
            elif fate >= faults.dies_at_boot + faults.never_comes:
                self._push(self.now + boot, "comes", name)
            if pool.time_limit_seconds:
                self._push(self.now + pool.time_limit_seconds, "dies", name)
        assert sum(1 for host in self.hosts.values() if host.pool is pool) <= pool.most

    def _demand(self) -> Demand:
        means = {name: seconds / number for name, (number, seconds) in self.functions.items()}
        needs = []
        for key, queue in self.queues.items():
            if not queue:
                continue
            functions = Counter(task.function for task in queue)
            known = sum(number * means.get(function, 0.0) for function, number in functions.items())
            unknown = sum(number for function, number in functions.items() if function not in means)
            needs.append(Need(len(queue), known, unknown, dict(key)))
        agents = tuple(
            AgentLoad(
                host.name,
                host.pool.workers,
                tuple(
                    remaining_seconds(means.get(task.function), self.now - began)
                    for task, began in host.running.values()
                ),
                host.pool.capabilities,
                is_retiring=host.is_draining,
            )
            for host in self.hosts.values()
            if host.is_there
        )
        running = sum(len(host.running) for host in self.hosts.values())
        waiting = sum(len(queue) for queue in self.queues.values())
        return Demand(tuple(needs), agents, self.done + running + waiting, self.done, self.run_seconds)
