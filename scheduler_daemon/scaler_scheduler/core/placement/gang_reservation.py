"""Chooses workers for gangs, and reserves workers for a gang that waits for more.

All members of a gang are dispatched in one step, each to an idle worker, or none is. So no gang holds workers while it
waits for others, and gangs cannot block one another. One gang at a time has a reservation: idle workers that can run
its members get no other tasks until enough are idle. So many small tasks do not starve it. Only a task that surely ends
before the gang can begin runs on such a worker meanwhile (EASY backfill: Lifka, 1995).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from scaler_scheduler.core.events import CPUS, UNIT
from scaler_scheduler.core.placement.bookings import Booking, Bookings, Host
from scaler_scheduler.core.placement.free_workers import Need
from scaler_scheduler.core.placement.host_choice import never
from scaler_scheduler.core.placement.prefetch import TARGET_NS
from scaler_scheduler.core.placement.wait import INFINITY
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.state.transitions import RUNNING
from scaler_scheduler.core.state.workers import WorkerTable

SHORT_SECONDS = 1.0
"""A reservation for which there are too few workers is given up after this time. A worker that changes its environment
is away for less."""

BACKFILL_FACTOR = 4
"""A worker that is kept for a gang runs a task of so much less time than the gang waits at least: run times vary."""


class GangReservation:
    """The workers for the gangs of one dispatcher."""

    def __init__(self, pool: WorkerPool, workers: WorkerTable, bookings: Bookings, has_common_ranks: bool) -> None:
        """
        Args:
            pool: the workers that have room.
            workers: all workers.
            bookings: the resources of hosts.
            has_common_ranks: whether a higher rank goes first across shares.
        """
        self._pool = pool
        self._idle = pool.idle
        self._bookings = bookings
        self.is_holding = False
        """Whether what is served now must leave workers and resources to the gang."""
        self._workers = workers
        self._has_common_ranks = has_common_ranks
        self.could_change: Callable[[Worker, Lane], bool] = never
        """Whether a worker could run the lane's tasks after a change of its environment that can begin at once."""
        self.lane: Lane | None = None
        """The lane whose next gang has the reservation."""
        self.held_back: list[Worker] = []
        """Idle workers that the present run of the dispatcher keeps for this gang."""

        self.is_given_up = False
        """Whether the present run has given up a reservation, so that others may get workers that were held back."""

        self._short_since = INFINITY
        """Since when there are too few workers for the gang with the reservation."""
        self._refused: dict[Share | None, int] = {}
        """The ranks of tasks that got no worker of the gang's in the present run, by share, or of all."""
        self._waits_until: float | None = None
        """The earliest time at which the gang may begin, in seconds of the monotonic clock; None: not yet estimated in
        the present run."""
        self._places: list[tuple[Host, int]] | None = None
        """The hosts for the gang's members in the present run, with the number of members; None: not chosen yet."""

    def choose(self, lane: Lane) -> list[Worker] | None:
        """Return idle workers for the lane's next gang, by rank; those of one host follow one another. None: there are
        not enough. The gang gets as few hosts as possible."""
        size = lane.gang_size
        by_host: dict[int, list[Worker]] = {}
        for worker in self._idle if len(self._idle) >= size else ():
            if worker.can_serve(lane.capabilities, lane.kind):
                by_host.setdefault(worker.agent, []).append(worker)
        fitting = [workers for workers in by_host.values() if len(workers) >= size]
        if fitting:
            return min(fitting, key=len)[:size]
        chosen: list[Worker] = []
        for workers in sorted(by_host.values(), key=len, reverse=True):
            chosen += workers
            if len(chosen) >= size:
                return chosen[:size]
        return None

    def choose_members(self, lane: Lane) -> list[tuple[Worker, Booking | None]] | None:
        """Choose idle workers for all members of the lane's next gang, and book what each asks for. None: there is not
        enough for all, and nothing is booked."""
        if not lane.resources:
            workers = self.choose(lane)
            return None if workers is None else [(worker, None) for worker in workers]
        bookings, size = self._bookings, lane.gang_size
        booked: list[tuple[Worker, Booking]] = []
        for host in self.hosts_of(lane):
            slots, idle = host.slots_for(lane.resources), list(self._idle.of_agent(host.agent))
            able = [worker for worker in idle if worker.can_serve(lane.capabilities, lane.kind)]
            spare = len(idle)
            while able and spare >= slots and len(booked) < size and host.has_amounts(lane.resources, lane):
                worker = able.pop()
                booked.append((worker, bookings.book(worker, lane.resources)))
                bookings.close(worker)  # no further rows join it
                spare -= slots
        if len(booked) < size:
            for worker, booking in booked:
                bookings.end(booking, worker)
            return None
        return [*booked]

    @property
    def need(self) -> Need:
        """What the reservation needs of its workers. There must be one."""
        assert self.lane is not None
        return self.lane.capabilities, self.lane.kind

    def reserve(self, lane: Lane, *, had: bool) -> bool:
        """Reserve workers for the lane's next gang, unless another gang has a reservation or there are too few. Returns
        whether it has one now.

        Args:
            had: whether it had the reservation until now; then too few workers do not matter yet.
        """
        if self.lane is None and had:
            self.lane = lane
        elif self.lane is None and self.count_able(lane, lane.gang_size) >= lane.gang_size:
            self.lane = lane
            self._short_since = INFINITY
        return self.lane is lane

    def cancel(self) -> None:
        """Give up the reservation, for now or because its gang begins."""
        self.release()
        self._places = None
        self.lane = None
        self.is_given_up = True

    def check(self, now: float) -> None:
        """Give up a reservation whose gang waits no longer, or for which there are too few workers."""
        lane = self.lane
        if lane is None:
            return
        if self.count_able(lane, lane.gang_size) >= lane.gang_size:
            self._short_since = INFINITY
        else:
            self._short_since = min(self._short_since, now)
        if not (lane.is_queued and lane.waiting) or now >= self._short_since + SHORT_SECONDS:
            self.cancel()

    def count_able(self, lane: Lane, most: int) -> int:
        """Return how many connected workers can run members of the lane's gangs, perhaps after a change of their
        environment; at most `most`."""
        able = (each for each in self._workers if self._is_able(each, lane))
        return min(most, self.count_members(lane, able if lane.resources else islice(able, most)))

    def count_members(self, lane: Lane, workers: Iterable[Worker]) -> int:
        """Return how many members of the lane's gangs these workers could run at once if nothing was booked."""
        by_host = Counter(worker.agent for worker in workers)
        if not lane.resources:
            return sum(by_host.values())
        hosts = self._bookings.hosts
        return sum(most_members(hosts[each], lane, by_host[each]) for each in by_host if each in hosts)

    def hosts_of(self, lane: Lane) -> list[Host]:
        """Return the hosts with idle workers that could have the resources of the lane's tasks, those with most idle
        workers first."""
        hosts = [self._bookings.hosts[agent] for agent in self._idle.agents() if agent in self._bookings.hosts]
        able = [host for host in hosts if host.could_have(lane.resources)]
        return sorted(able, key=lambda host: len(self._idle.of_agent(host.agent)), reverse=True)

    def hold_for(self, share: Share, rank: int) -> bool:
        """Keep idle workers for the gang while this rank of a share is served, unless it goes before the gang. Returns
        whether it does not."""
        lane = self.lane
        if lane is None:
            return False
        if rank > lane.rank and (self._has_common_ranks or lane.client.share is share):
            self.release()
            return False
        self.is_holding = True
        for worker in self._candidates(lane):
            worker.is_ready = False
            self._idle.remove(worker)
            self.held_back.append(worker)
        return True

    def backfill(self, lane: Lane, cost_ns: float, now: float) -> Worker | None:
        """Return a worker that is kept for the gang, and that may run tasks of the lane meanwhile: a dispatch of them
        surely ends before the gang can begin.

        Args:
            lane: the lane. It asks for no resources.
            cost_ns: nanoseconds of its next task; infinity: not known. Then tasks of lower ranks wait too.
            now: seconds of the monotonic clock.
        """
        share = None if self._has_common_ranks else lane.client.share
        if not self.held_back or lane.rank < self._refused.get(share, lane.rank):
            return None
        if self._waits_until is None:
            self._waits_until = self._earliest_begin(now)
        if now + (BACKFILL_FACTOR * cost_ns + TARGET_NS) / 1e9 > self._waits_until:
            self._refused[share] = lane.rank
            return None
        for worker in self.held_back:
            if worker.can_serve(lane.capabilities, lane.kind):
                self.held_back.remove(worker)
                return worker
        return None

    def _earliest_begin(self, now: float) -> float:
        """Estimate when enough workers are free for the gang, at the earliest. A task that takes longer than expected
        is expected to take as long again as it is late."""
        lane = self.lane
        assert lane is not None
        seconds: list[float] = []
        for worker in self._workers:
            if worker in self._idle or worker in self.held_back or worker.is_retiring or worker.is_unreachable:
                continue
            if worker.can_serve(lane.capabilities, lane.kind):
                running = [
                    abs(task.cost / 1e9 - (now - began))
                    for task, began in worker.started_at.items()
                    if task.state == RUNNING
                ]
                seconds.append(max(running, default=0.0))
        able = (worker for worker in self._idle if worker.can_serve(lane.capabilities, lane.kind))
        lacking = 1 if lane.resources else lane.gang_size - len(self.held_back) - sum(1 for _ in able)
        return now + (sorted(seconds)[lacking - 1] if 0 < lacking <= len(seconds) else 0.0)

    def release(self) -> None:
        """Put the workers that were held back into the list of idle workers again."""
        self.is_holding = False
        while self.held_back:
            self._pool.add(self.held_back.pop())

    def end_run(self) -> None:
        """Forget what was chosen for one run of the dispatcher."""
        self.release()
        self._places = self._waits_until = None
        self._refused.clear()

    def _candidates(self, lane: Lane) -> list[Worker]:
        """Return idle workers that the lane's next gang may get, as many as it lacks beside those held back."""
        if lane.resources:
            return self._candidates_by_host(lane)
        lacking = lane.gang_size - len(self.held_back)
        if lacking <= 0:
            return []
        able = (worker for worker in self._idle if worker.can_serve(lane.capabilities, lane.kind))
        return list(islice(able, lacking))

    def _candidates_by_host(self, lane: Lane) -> list[Worker]:
        """Return idle workers of the hosts for the gang's members: as many of each host as its members take."""
        if self._places is None:
            self._places = self._choose_places(lane)
        held: dict[int, list[Worker]] = {}
        for worker in self.held_back:
            held.setdefault(worker.agent, []).append(worker)
        found: list[Worker] = []
        for host, members in self._places if self._idle else ():
            free = [*held.get(host.agent, ()), *self._idle.of_agent(host.agent)]
            able = [worker for worker in free if worker.can_serve(lane.capabilities, lane.kind)][:members]
            # Each member runs on one of them. What its further cpus can run does not matter.
            further = (worker for worker in free if worker not in able)
            chosen = [*able, *islice(further, len(able) * (host.slots_for(lane.resources) - 1))]
            found += [worker for worker in chosen if worker.is_ready]
        return found

    def _choose_places(self, lane: Lane) -> list[tuple[Host, int]]:
        """Return hosts that could run the gang's members, those first that are likely to have room first, with the
        number of members of each. Workers of other hosts would not help: a host may have resources for one member."""
        connected = Counter(worker.agent for worker in self._workers if self._is_able(worker, lane))
        held = Counter(worker.agent for worker in self.held_back)
        hosts = [self._bookings.hosts[agent] for agent in connected if agent in self._bookings.hosts]
        hosts.sort(
            key=lambda host: (
                not host.has_amounts(lane.resources, lane),
                -len(self._idle.of_agent(host.agent)) - held[host.agent],
                host.agent,
            )
        )
        places: list[tuple[Host, int]] = []
        lacking = lane.gang_size
        for host in hosts:
            members = min(lacking, most_members(host, lane, connected[host.agent]))
            places.append((host, members))
            lacking -= members
            if lacking <= 0:
                break
        return places

    def _is_able(self, worker: Worker, lane: Lane) -> bool:
        """Whether the worker can run members of the lane's gangs now or later."""
        if worker.is_retiring or worker.is_unreachable:
            return False
        return worker.can_serve(lane.capabilities, lane.kind) or self.could_change(worker, lane)

    def keeps_resources(self, lane: Lane) -> bool:
        """Whether this lane must leave a resource, of which it asks for some, to the gang with the reservation. It need
        not while `is_holding` is False."""
        own = self.lane
        if own is None or own is lane:
            return False
        names = {name for name, _ in own.resources}
        return any(name in names for name, _ in lane.resources)

    def keeps(self, worker: Worker) -> bool:
        """Whether the reservation may keep this idle worker from other tasks."""
        if self.lane is None:
            return False
        has_cpus = any(name == CPUS for name, _ in self.lane.resources)
        return has_cpus or worker.can_serve(self.lane.capabilities, self.lane.kind)

    def gathers(self, worker: Worker) -> bool:
        """Whether the gang with the reservation needs this idle worker: its host has not more that can run members."""
        lane = self.lane
        if lane is None or not worker.can_serve(lane.capabilities, lane.kind):
            return False
        members = lane.gang_size
        if lane.resources:
            host = self._bookings.hosts.get(worker.agent)
            members = 0 if host is None else most_members(host, lane, host.slots)
        idle = self._idle.of_agent(worker.agent) if lane.resources else self._idle
        return sum(each.can_serve(lane.capabilities, lane.kind) for each in idle) <= members

    def kept_count(self) -> int:
        """How many of the idle workers the reservation keeps, at most."""
        if self.lane is None:
            return 0
        cpus = sum(amount for name, amount in self.lane.resources if name == CPUS)
        return self.lane.gang_size * max(1, -(-cpus // UNIT))


def most_members(host: Host, lane: Lane, workers: int) -> int:
    """Return how many members of the lane's gangs the host could run if nothing of it was booked."""
    most = workers // host.slots_for(lane.resources)
    for name, amount in lane.resources:
        pool = host.pools.get(name)
        if name == CPUS:
            continue
        if pool is None:
            return 0
        whole, part = divmod(amount, UNIT)
        if not pool.has_ids or not part:
            most = min(most, pool.total // amount)
        else:
            sharing, units = UNIT // part, pool.total // UNIT
            while most and most * whole + -(-most // sharing) > units:
                most -= 1
    return most
