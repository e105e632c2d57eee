"""Chooses the hosts of tasks that ask for counted resources. Reads state, returns choices.

Best fit: of the hosts with room the one that keeps the least free. If none has room, one host keeps what becomes free
for the next task of the lane: a reservation. Others may use what the reservation leaves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

from scaler_scheduler.core.events import CPUS, Resources
from scaler_scheduler.core.placement.bookings import Booking, Bookings, Host, Reservation
from scaler_scheduler.core.placement.free_workers import Need, is_reserved
from scaler_scheduler.core.placement.prefetch import has_portion_room
from scaler_scheduler.core.placement.task_limits import TaskLimits
from scaler_scheduler.core.placement.wait import INFINITY, LANE_WAITS, Wait
from scaler_scheduler.core.placement.worker_pool import WorkerPool
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.state.resource_pools import shown_amount
from scaler_scheduler.core.tables import Tables

MAX_HOSTS = 1024
"""At most so many hosts are looked at for one task."""

MAX_WORKERS = 64
"""At most so many workers are looked at for one task, and so many hosts for one reservation."""

SHOWN_HOSTS = 10
"""At most so many hosts are described."""

PATIENCE_SECONDS = 0.1
"""A task that finds no room waits for so long before a host keeps room for it: meanwhile others may fill what is free.
Without it, hosts are packed to 73 % of the optimum."""

RESERVED_SECONDS = 1.0
"""A reservation stays at its host for so long at least. Then a host that is expected to have room earlier gets it."""


class HostChoice:
    """Chooses workers and hosts for lanes that ask for resources."""

    def __init__(self, tables: Tables, bookings: Bookings, task_limits: TaskLimits, pool: WorkerPool) -> None:
        self._tables = tables
        self._counts = tables.counts
        self._clock = tables.clock
        self._bookings = bookings
        self._task_limits = task_limits
        self._pool = pool
        self._idle = pool.idle
        self.could_change: Callable[[Worker, Lane], bool] = never
        """Whether a worker could run the lane's tasks after a change of its environment that can begin at once."""

    # -------------------------------------------------------------------------------------------------------- room now

    def has_room(self, lane: Lane, agent: int) -> bool:
        """Whether the host of this agent has room for the lane's next task now."""
        host = self._bookings.hosts.get(agent)
        return host is not None and host.has_amounts(lane.resources, lane) and self._spare(host, lane) >= 0

    def _spare(self, host: Host, lane: Lane) -> int:
        """How many idle workers are left on the host beside the lane's next task. Negative: it lacks some."""
        count = len(self._idle.of_agent(host.agent))
        kept = host.reservation
        if kept is not None and kept.lane is lane:
            count += len(host.aside) - host.further
        return count - host.slots_for(lane.resources)

    def find(self, lane: Lane) -> Worker | None:
        """Return an idle worker of the host that fits best. It is in the list of idle workers, or set aside for the
        lane. None: no host has room."""
        best: Host | None = None
        found: Worker | None = None
        least = INFINITY
        hosts = self._bookings.with_free(lane.resources)
        for host in islice(self._idle_hosts() if hosts is None else hosts, MAX_HOSTS):
            if not host.has_amounts(lane.resources, lane):
                continue
            spare = self._spare(host, lane)
            if spare < 0:
                continue
            left = host.left(lane.resources) + (spare / max(1, host.slots)) ** 2
            if left < least or (left == least and best is not None and host.agent < best.agent):
                worker = self._able_worker(host, lane)
                if worker is not None:
                    best, found, least = host, worker, left
        return found

    def _idle_hosts(self) -> Iterator[Host]:
        """Hosts with idle workers, and those with reservations."""
        hosts = self._bookings.hosts
        for agent in self._idle.agents():
            if agent in hosts:
                yield hosts[agent]
        for reservation in self._bookings.reservations.values():
            if not self._idle.of_agent(reservation.host.agent):
                yield reservation.host

    def _able_worker(self, host: Host, lane: Lane) -> Worker | None:
        """An idle worker of the host that can run the lane's tasks."""
        if host.reservation is not None and host.reservation.lane is lane:
            for worker in host.aside:
                if worker.can_serve(lane.capabilities, lane.kind):
                    return worker
        return self._idle.newest_of_agent(host.agent, lane.capabilities, lane.kind)

    def arrange(self, lanes: deque[Lane]) -> None:
        """Put those of these lanes that ask for resources in their order, and leave the others in their places.

        Those that wait for longer than PATIENCE_SECONDS go first, the one that waits longest before all. Then the one
        that asks for most: the small ones fill what the large ones leave.
        """
        places = [place for place, lane in enumerate(lanes) if lane.resources]
        if len(places) > 1:
            arranged = sorted([lanes[place] for place in places], key=self._order)
            for place, lane in zip(places, arranged):
                lanes[place] = lane

    def goes_on(self, lane: Lane, following: Lane) -> bool:
        """Whether a lane has another turn before the next one, because it asks for more."""
        return bool(following.resources) and self._order(lane) < self._order(following)

    def _order(self, lane: Lane) -> tuple[int, float]:
        if lane.ticket and lane.refused_at + PATIENCE_SECONDS <= self._clock.now:
            return 0, lane.ticket
        return 1, -self._bookings.size(lane.resources)

    # ---------------------------------------------------------------------------------------------------- open bookings

    def filling(self, lane: Lane, cost: int, reserved: Collection[Need]) -> Worker | None:
        """Return the worker that got rows with these resources last, until its portion is full."""
        workers = self._bookings.open.get(lane.resources)
        if workers is None:
            return None
        worker = next(reversed(workers))
        if not has_portion_room(worker, cost, self._counts.waiting, self._clock.now):
            return None
        return worker if self._may_join(worker, workers[worker], lane, reserved) else None

    def joinable(self, lane: Lane, reserved: Collection[Need]) -> Worker | None:
        """Return the worker with an open booking of these resources that got rows longest ago, and has room."""
        workers = self._bookings.open.get(lane.resources, {})
        for worker, booking in islice(workers.items(), MAX_WORKERS):
            if self._may_join(worker, booking, lane, reserved):
                return worker
        return None

    @staticmethod
    def _may_join(worker: Worker, booking: Booking, lane: Lane, reserved: Collection[Need]) -> bool:
        kept = booking.host.reservation
        return (
            worker.is_ready
            and (kept is None or kept.lane is lane)
            and worker.can_serve(lane.capabilities, lane.kind)
            and not is_reserved(worker, reserved)
        )

    # ---------------------------------------------------------------------------------------------------- reservations

    def reserve(self, lane: Lane) -> Reservation | None:
        """Choose the host that is expected to have room for the lane's next task first.

        Returns:
            The new reservation; None: the lane has one, or no host could ever run the task, or others wait already.
        """
        now = self._clock.now
        present = self._bookings.reservations.get(lane)
        if present is not None and now < present.until:
            return None
        best: Host | None = None
        least = INFINITY, True, INFINITY
        for host in self.able_hosts(lane, MAX_WORKERS):
            kept = host.reservation
            if kept is not None and kept is not present and not _goes_before(lane, kept.lane):
                continue
            lacks = host.lacks(lane.resources) - min(0, self._spare(host, lane)) / max(1, host.slots)
            key = _expected_at(host, lane.resources, now), not self._has_able_worker(host, lane), lacks
            if key < least:
                best, least = host, key
        if best is None:
            return None
        return Reservation(lane, best, lane.refused_at, now + RESERVED_SECONDS)

    def wait_for_room(self, lane: Lane, may_reserve: bool) -> Worker | Wait:
        """Note that no host has room for the lane's next task. Let one keep what becomes free for it, if it has waited
        for long enough. Returns a worker, removed from its list, if this makes room at once: another lane may have had
        the reservation, and a worker set aside."""
        self._bookings.take_ticket(lane)
        if not may_reserve:
            return LANE_WAITS
        reserve_at = lane.refused_at + PATIENCE_SECONDS
        if reserve_at > self._clock.now:
            return Wait(reserve_at)
        reservation = self.reserve(lane)
        if reservation is None:
            return LANE_WAITS
        self._bookings.reserve(reservation)
        self.settle()
        worker = self.find(lane)
        return LANE_WAITS if worker is None else self._pool.take(worker)

    def give_up(self, lane: Lane) -> None:
        """End the lane's reservation, if it has one: its task waits for more than room on a host."""
        if lane in self._bookings.reservations:
            self._bookings.cancel(lane)
            self.settle()

    def settle(self) -> None:
        """Set as many workers of hosts aside as their bookings and reservations want."""
        bookings = self._bookings
        for reservation in list(bookings.reservations.values()):
            if not self.is_valid(reservation):
                bookings.cancel(reservation.lane)
        while bookings.unsettled:
            host = next(iter(bookings.unsettled))
            del bookings.unsettled[host]
            self._settle_host(host)

    def _settle_host(self, host: Host) -> None:
        bookings, pool = self._bookings, self._pool
        wanted = host.wanted
        bookings.short.pop(host.agent, None)
        while len(host.aside) > wanted:
            worker = next(reversed(host.aside))
            bookings.take_aside(worker)
            pool.add(worker)
        if len(host.aside) < wanted:
            bookings.short[host.agent] = host
            for worker in list(pool.idle.of_agent(host.agent)):
                if host.agent in bookings.short:
                    pool.add(worker)
            if host.agent in bookings.short:
                for worker in list(pool.partial.of_agent(host.agent)):
                    pool.take(worker)
        bookings.forget_if_empty(host)

    def is_valid(self, reservation: Reservation) -> bool:
        """Whether a reservation still makes sense: its next task waits for nothing but room."""
        lane = reservation.lane
        if not lane.waiting or not lane.is_queued or lane.client.share.room <= 0:
            return False
        if lane.client.lanes.get(lane.key) is not lane:
            return False
        if lane.limits and self._task_limits.ready_at(lane.limits) > self._clock.now:
            return False
        return self._is_able(reservation.host, lane)

    def able_hosts(self, lane: Lane, most: int) -> Iterable[Host]:
        """Hosts that could run the lane's tasks if nothing of them was booked."""
        hosts = islice(self._bookings.with_any(lane.resources), MAX_HOSTS)
        return islice((host for host in hosts if self._is_able(host, lane)), most)

    def busy_hosts(self, lane: Lane) -> Iterator[Host]:
        """Of the hosts that could run the lane's tasks if nothing of them was booked, those whose workers hold tasks. A
        host whose workers would have to change their environment does not count."""
        for host in self.able_hosts(lane, MAX_WORKERS):
            workers = islice(self._tables.workers.of_agent(host.agent), MAX_WORKERS)
            if self._has_able_worker(host, lane) and any(worker.task_count for worker in workers):
                yield host

    def is_hopeless(self, lane: Lane) -> bool:
        """Whether the lane finds no host until what some host has changes: no host has so much, free or not."""
        bookings, resources = self._bookings, lane.resources
        if resources in bookings.open or lane in bookings.reservations:  # its host has less than before
            return False
        return not any(host.could_have(resources) for host in bookings.with_any(resources))

    def explain(self, lane: Lane, served: str) -> Iterator[str]:
        """Which hosts could run the lane's next task, and what each lacks: one line for each, those that lack least
        first. `served`: what would run there. Nothing: no host could."""
        hosts = list(self.able_hosts(lane, MAX_WORKERS))
        hosts.sort(key=lambda host: (host.lacks(lane.resources), host.agent))
        for host in hosts[:SHOWN_HOSTS]:
            agent = self._tables.agents.find(host.agent)
            kept = host.reservation
            text = ", ".join(self._lacking(host, lane)) or "it has room"
            if kept is not None:
                text += ", reserved for it" if kept.lane is lane else ", reserved for others"
            yield f"host: {'' if agent is None else agent.host} could serve {served}: {text}"

    def _lacking(self, host: Host, lane: Lane) -> Iterator[str]:
        for name, amount in lane.resources:
            pool = host.pools.get(name)
            if name != CPUS and pool is not None and not pool.fits(amount):
                free = shown_amount(max(0, pool.free))
                yield f"{name}: {free} of {shown_amount(pool.total)} free, {shown_amount(amount)} asked"
        wanted = host.slots_for(lane.resources)
        idle = len(self._idle.of_agent(host.agent)) + max(0, len(host.aside) - host.further)
        if idle < wanted:
            yield f"workers: {idle} of {host.slots} idle, {wanted} asked"

    def _is_able(self, host: Host, lane: Lane) -> bool:
        agent = self._tables.agents.find(host.agent)
        if agent is None or agent.is_retiring or not host.could_have(lane.resources):
            return False
        workers = self._tables.workers.of_agent(host.agent)
        if host.slots_for(lane.resources) > (host.slots or len(list(workers))):
            return False
        return self._has_able_worker(host, lane) or any(
            self.could_change(worker, lane) for worker in islice(workers, MAX_WORKERS)
        )

    def _has_able_worker(self, host: Host, lane: Lane) -> bool:
        """Whether a worker of the host, idle or not, can run the lane's tasks as it is."""
        workers = islice(self._tables.workers.of_agent(host.agent), MAX_WORKERS)
        return any(worker.can_serve(lane.capabilities, lane.kind) for worker in workers)


def never(_worker: Worker, _lane: Lane) -> bool:
    """No worker changes its environment."""
    return False


def _goes_before(lane: Lane, other: Lane) -> bool:
    """Whether a lane may take the reservation of another one: it has a higher rank in its share, or waits longer."""
    if lane.client.share is other.client.share and lane.rank != other.rank:
        return lane.rank > other.rank
    return lane.ticket < other.ticket


def _expected_at(host: Host, resources: Resources, now: float) -> float:
    """When the host is expected to have room, in seconds of the monotonic clock."""
    lacking = {}
    for name, amount in resources:
        pool = host.pools.get(name)
        if name != CPUS and pool is not None and amount > pool.free:
            lacking[name] = amount - pool.free
    at = now
    if lacking:
        for booking in sorted(host.bookings, key=lambda each: each.expected_end(now)):
            for name, amount in booking.resources:
                if name in lacking:
                    lacking[name] -= amount
                    if lacking[name] <= 0:
                        del lacking[name]
            at = booking.expected_end(now)
            if not lacking:
                break
    return at
