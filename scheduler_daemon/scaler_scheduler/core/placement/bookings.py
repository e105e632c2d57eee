"""Bookings of counted resources: which host's resources which attempts have.

A booking belongs to one worker. Rows that ask for the same may join it: the worker runs one at a time. It ends when its
last attempt is over. The worker that runs the task is one of the booked cpus. For further ones, idle workers of its
host are set aside: they get no tasks. Which ones does not matter, so a host only counts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scaler_scheduler.core.events import CPUS, UNIT, Claim, HostResources, Resources
from scaler_scheduler.core.state.records import Agent, Lane, Worker
from scaler_scheduler.core.state.resource_pools import ResourcePool, amount_text, parts_of
from scaler_scheduler.core.tables import Tables


class Booking:
    """Resources of a host that a worker's attempts have."""

    __slots__ = (
        "attempts",
        "cpus",
        "ends_at",
        "host",
        "is_open",
        "is_restored",
        "is_suspended",
        "number",
        "parts",
        "resources",
    )

    def __init__(self, number: int, host: Host, resources: Resources, parts: dict[str, list[tuple[int, int]]]) -> None:
        self.number = number
        self.host = host
        self.resources = resources
        self.parts = parts
        """The units of resources with identities, and the part of each."""
        self.cpus = host.slots_for(resources) - 1
        """The workers that are set aside for it."""
        self.attempts = 0
        """Attempts that have it."""
        self.is_open = True
        """Whether further rows may join it."""
        self.is_suspended = False
        """Whether its task waits for tasks of its own. Then it has given its cpus back."""
        self.is_restored = False
        """Whether a worker named it when it joined again."""
        self.ends_at = 0.0
        """When its attempts are expected to be over, in seconds of the monotonic clock."""

    def expected_end(self, now: float) -> float:
        """When it is expected to end. One that is late is expected to take as long again as it is late."""
        return max(self.ends_at, now + now - self.ends_at)

    @property
    def text(self) -> str:
        """The booking as in messages: its number, and names with amounts and ids, `7 gpu=1.5:0+2 license=1`."""
        texts = [str(self.number)]
        for name, amount in self.resources:
            ids = "+".join([str(unit) for unit, _ in self.parts.get(name, ())])
            texts.append(f"{name}={amount_text(amount)}" + (f":{ids}" if ids else ""))
        return " ".join(texts)


class Reservation:
    """What one host keeps for the next task of a lane, which no host has room for."""

    __slots__ = ("host", "lane", "needs", "since", "slots", "until")

    def __init__(self, lane: Lane, host: Host, now: float, until: float) -> None:
        self.lane = lane
        self.host = host
        self.needs = dict(lane.resources)
        self.slots = host.slots_for(lane.resources)
        self.since = now
        """When the lane found no room first, in seconds of the monotonic clock."""
        self.until = until
        """When another host may be chosen."""


class Host:
    """The resources of one host, by its agent's incarnation."""

    __slots__ = (
        "agent",
        "aside",
        "bookings",
        "cpus",
        "further",
        "may_exceed",
        "pools",
        "reservation",
        "slots",
    )

    def __init__(self, agent: int) -> None:
        self.agent = agent
        self.pools: dict[str, ResourcePool] = {}
        self.cpus = 0
        """Thousandths; 0: as many as workers."""
        self.slots = 0
        """The number of its workers, as its agent says; 0: it does not."""
        self.bookings: dict[Booking, None] = {}
        self.further = 0
        """How many workers its bookings have beyond those that run their tasks."""
        self.aside: dict[Worker, None] = {}
        """Idle workers that get no tasks: for bookings with several cpus, and for the reservation."""
        self.reservation: Reservation | None = None
        self.may_exceed = False
        """Whether more may be booked than there is: workers named bookings when they joined again, or the agent says
        that there is less than before."""

    def slots_for(self, resources: Resources) -> int:
        """How many of its workers a task with these resources takes. At least one."""
        for name, amount in resources:
            if name == CPUS:
                cpus, slots = (self.cpus, self.slots) if self.cpus and self.slots else (UNIT, 1)
                return max(1, -(-amount * slots // cpus))
        return 1

    def has_amounts(self, resources: Resources, lane: Lane | None) -> bool:
        """Whether so much is free for this lane's next task, without a look at workers."""
        kept = self.reservation
        if kept is not None and kept.lane is lane:
            kept = None
        for name, amount in resources:
            if name != CPUS:
                pool = self.pools.get(name)
                if pool is None or not pool.fits(amount, 0 if kept is None else kept.needs.get(name, 0)):
                    return False
        return True

    def could_have(self, resources: Resources) -> bool:
        """Whether the host has so much, free or not."""
        for name, amount in resources:
            if name != CPUS:
                pool = self.pools.get(name)
                if pool is None or amount > pool.total:
                    return False
        return True

    def left(self, resources: Resources) -> float:
        """What is left of the host if it gives these: the sum of the squares of the free parts of all its resources.
        Best fit chooses the host with the least."""
        left = 0.0
        needs = dict(resources)
        for name, pool in self.pools.items():
            if pool.total:
                left += ((pool.total - pool.used - needs.get(name, 0)) / pool.total) ** 2
        return left

    def lacks(self, resources: Resources) -> float:
        """The sum of the parts of its resources that are not free yet."""
        lacks = 0.0
        for name, amount in resources:
            pool = self.pools.get(name)
            if pool is not None and pool.total:
                lacks += max(0, amount - pool.free) / pool.total
        return lacks

    @property
    def wanted(self) -> int:
        """How many workers must be aside: those of bookings, and those of a reservation that lacks nothing else."""
        kept = self.reservation
        if kept is None or not self.has_amounts(kept.lane.resources, kept.lane):
            return self.further
        return self.further + kept.slots


def is_useful(reservation: Reservation, worker: Worker) -> bool:
    """Whether an idle worker of the host may be set aside. One worker runs the reserved task; what the further ones can
    run does not matter. So the last place is for a worker that can run it, unless there is one already."""
    host, lane = reservation.host, reservation.lane
    return (
        len(host.aside) < host.further + reservation.slots - 1
        or worker.can_serve(lane.capabilities, lane.kind)
        or any(each.can_serve(lane.capabilities, lane.kind) for each in host.aside)
    )


def _enter(table: dict[str, dict[Host, None]], name: str, host: Host, is_in: bool) -> None:
    """Enter a host into a table of hosts by resource, or remove it."""
    if is_in:
        table.setdefault(name, {})[host] = None
    elif name in table:
        table[name].pop(host, None)
        if not table[name]:
            del table[name]


def _fewest(table: dict[str, dict[Host, None]], resources: Resources) -> Iterable[Host] | None:
    """The hosts of that one of these resources which the fewest hosts are entered for. None: of none but cpus."""
    fewest: Iterable[Host] | None = None
    count = 0
    for name, _ in resources:
        if name != CPUS:
            hosts = table.get(name)
            if hosts is None:
                return ()
            if fewest is None or len(hosts) < count:
                fewest, count = hosts, len(hosts)
    return fewest


class Bookings:
    """The hosts' resources of one scheduler."""

    def __init__(self, tables: Tables, incarnation: int) -> None:
        """`incarnation` is the scheduler's own: numbers of bookings of different schedulers differ."""
        self._tables = tables
        self._next_number = incarnation // 2 % (1 << 60) + 1
        self.hosts: dict[int, Host] = {}
        """By the incarnation of the host's agent: hosts whose agent is here, or that have bookings."""
        self._free: dict[str, dict[Host, None]] = {}
        """The hosts with something free, by the resource's name."""
        self._with: dict[str, dict[Host, None]] = {}
        """The hosts that have something, free or not, by the resource's name."""
        self._totals: dict[str, int] = {}
        """What all hosts have, by the resource's name."""
        self.changes = 0
        """How often hosts were added, or what a host has, free or not, has changed."""
        self.open: dict[Resources, dict[Worker, Booking]] = {}
        """Bookings that rows may join, by what they have and by worker. The one that got rows last is the last one."""
        self.open_of: dict[Worker, Booking] = {}
        """The same by worker."""
        self.unsettled: dict[Host, None] = {}
        """Hosts with too many workers aside, or too few."""
        self._last_ticket = 0
        self.reservations: dict[Lane, Reservation] = {}
        self.has_cancelled = False
        """Whether a reservation has ended since the dispatcher's run began: others may have room now."""
        self.aside_of: dict[Worker, Host] = {}
        """The workers that are set aside."""
        self.short: dict[int, Host] = {}
        """The hosts that lack workers to set aside, by their agent's incarnation."""

    # -------------------------------------------------------------------------------------------------------- the hosts

    def define(self, agent: Agent, resources: HostResources, slots: int) -> str:
        """Set what a host has, as its agent says. What is booked stays booked.

        Returns:
            What has changed since it joined first, for the operator; empty: nothing.
        """
        host = self._host(agent.incarnation)
        cpus = sum([amount for name, amount, _ in resources if name == CPUS])
        given = {name: (amount, has_ids) for name, amount, has_ids in resources if name != CPUS}
        before = {name: (pool.total, pool.has_ids) for name, pool in host.pools.items() if pool.total}
        is_changed = bool(host.slots) and (before, host.cpus) != (given, cpus)
        self._add_total(CPUS, (cpus or slots * UNIT) - (host.cpus or host.slots * UNIT))
        host.cpus, host.slots = cpus, slots
        for name, pool in list(host.pools.items()):
            total, pool.has_ids = given.pop(name, (0, pool.has_ids))
            self._add_total(name, total - pool.total)
            pool.total = total
        for name, (total, has_ids) in given.items():
            host.pools[name] = ResourcePool(total, has_ids)
            self._add_total(name, total)
        self._settle_pools(host, host.pools)
        if any(pool.is_exceeded for pool in host.pools.values()):
            host.may_exceed = True
        if not is_changed:
            return ""
        now = ", ".join(f"{name}={amount_text(amount)}" for name, amount, _ in resources) or "none"
        return f"host {agent.host} has other resources than before: {now}; what is booked stays booked"

    def agent_left(self, agent: int) -> None:
        """Give nothing of a host any more whose agent has left."""
        host = self.hosts.get(agent)
        if host is not None:
            self._add_total(CPUS, -(host.cpus or host.slots * UNIT))
            host.cpus = host.slots = 0
            for name, pool in host.pools.items():
                self._add_total(name, -pool.total)
                pool.total = 0
                host.may_exceed = True
            self._settle_pools(host, host.pools)

    def _add_total(self, name: str, amount: int) -> None:
        if amount:
            self.changes += 1
        total = self._totals.get(name, 0) + amount
        if total:
            self._totals[name] = total
        else:
            self._totals.pop(name, None)

    def size(self, resources: Resources) -> float:
        """How large these are: the sum of the cube roots of their parts of what all hosts have. So several kinds count
        more, which packs better than the plain sum (tests/scheduler/core/dispatch/test_packing.py)."""
        totals = self._totals
        return sum([math.pow(amount / totals[name], 1 / 3) for name, amount in resources if name in totals])

    def _host(self, agent: int) -> Host:
        host = self.hosts.get(agent)
        if host is None:
            host = self.hosts[agent] = Host(agent)
            self.changes += 1
        return host

    def _settle_pools(self, host: Host, names: Iterable[str]) -> None:
        """Enter the host for the resources of which something is free, and drop what is gone."""
        for name in list(names):
            pool = host.pools[name]
            _enter(self._free, name, host, pool.free > 0)
            _enter(self._with, name, host, pool.total > 0)
            if not pool.total and not pool.used:
                del host.pools[name]
        if host.may_exceed and not any(pool.is_exceeded for pool in host.pools.values()):
            host.may_exceed = False
        if host.reservation is not None or host.further or host.aside or host.agent in self.short or not host.slots:
            self.unsettled[host] = None

    def forget_if_empty(self, host: Host) -> None:
        """Forget a host whose agent has left and of which nothing is booked."""
        if not host.bookings and not host.aside and host.reservation is None:
            if self._tables.agents.find(host.agent) is None:
                self.hosts.pop(host.agent, None)

    def with_free(self, resources: Resources) -> Iterable[Host] | None:
        """Hosts with something free of the resource that the fewest have free. None: only cpus are asked for."""
        return _fewest(self._free, resources)

    def with_any(self, resources: Resources) -> Iterable[Host]:
        """Hosts that have something of the resource that the fewest have."""
        hosts = _fewest(self._with, resources)
        return self.hosts.values() if hosts is None else hosts

    def book(self, worker: Worker, resources: Resources) -> Booking:
        """Book resources of the worker's host, which has room. Rows that ask for the same may join the booking."""
        host = self._host(worker.agent)
        parts: dict[str, list[tuple[int, int]]] = {}
        for name, amount in resources:
            pool = host.pools.get(name)
            if pool is not None and pool.has_ids:
                chosen = pool.choose(amount)
                assert chosen is not None
                parts[name] = chosen
        booking = self._add(host, resources, parts, self._new_number())
        self.close(worker)
        self.open_of[worker] = booking
        self.open.setdefault(resources, {})[worker] = booking
        return booking

    def restore(self, worker: Worker, claim: Claim) -> Booking:
        """Book what a worker names when it joins again, whether so much is free or not."""
        host = self._host(worker.agent)
        number, amounts = claim
        resources = tuple([(name, amount) for name, amount, _ in amounts])
        parts = {name: parts_of(amount, ids) for name, amount, ids in amounts if ids}
        host.may_exceed = True
        booking = self._add(host, resources, parts, number)
        booking.is_open = False
        booking.is_restored = True
        booking.ends_at = self._tables.clock.now
        return booking

    def book_unnamed(self, worker: Worker, resources: Resources) -> Booking:
        """Book for a task that a worker runs already, and of which it has named no booking."""
        host = self._host(worker.agent)
        amounts = []
        for name, amount in resources:
            pool = host.pools.get(name)
            chosen = pool.choose(amount) if pool is not None and pool.has_ids else None
            amounts.append((name, amount, tuple([unit for unit, _ in chosen or ()])))
        return self.restore(worker, (self._new_number(), tuple(amounts)))

    def _new_number(self) -> int:
        self._next_number += 1
        return self._next_number

    def _add(self, host: Host, resources: Resources, parts: dict[str, list[tuple[int, int]]], number: int) -> Booking:
        booking = Booking(number, host, resources, parts)
        host.bookings[booking] = None
        host.further += booking.cpus
        names = [name for name, _ in resources if name != CPUS]
        for name, amount in resources:
            if name != CPUS:
                if name not in host.pools:
                    host.pools[name] = ResourcePool()
                host.pools[name].take(amount, parts.get(name, ()))
        self._settle_pools(host, names)
        return booking

    def end(self, booking: Booking, worker: Worker) -> None:
        """Give everything back. No attempt has the booking any more."""
        if self.open_of.get(worker) is booking:
            self.close(worker)
        host = booking.host
        del host.bookings[booking]
        if not booking.is_suspended:
            host.further -= booking.cpus
        for name, amount in booking.resources:
            if name != CPUS:
                host.pools[name].give_back(amount, booking.parts.get(name, ()))
        self._settle_pools(host, [name for name, _ in booking.resources if name != CPUS])

    def note_rows(self, worker: Worker, booking: Booking) -> None:
        """Note that rows with this booking were dispatched to its worker."""
        booking.ends_at = self._tables.clock.now + worker.load_ns / 1e9
        if booking.is_open:
            workers = self.open[booking.resources]
            del workers[worker]
            workers[worker] = booking

    def close(self, worker: Worker) -> None:
        """Let no further rows join the worker's open booking."""
        booking = self.open_of.pop(worker, None)
        if booking is None:
            return
        booking.is_open = False
        workers = self.open[booking.resources]
        del workers[worker]
        if not workers:
            del self.open[booking.resources]

    def suspend(self, booking: Booking, worker: Worker) -> None:
        """Take the cpus of a task back that waits for tasks of its own. It keeps everything else."""
        if self.open_of.get(worker) is booking:
            self.close(worker)
        if not booking.is_suspended:
            booking.is_suspended = True
            booking.host.further -= booking.cpus
            self.unsettled[booking.host] = None

    def resume(self, booking: Booking) -> None:
        """Give a suspended task its cpus again. Workers of the host are set aside when they become idle."""
        if booking.is_suspended:
            booking.is_suspended = False
            booking.host.further += booking.cpus
            self.unsettled[booking.host] = None

    # ----------------------------------------------------------------------------------------------------- reservations

    def take_ticket(self, lane: Lane) -> None:
        """Note that no host has room for the lane's next task. Lanes that wait get rooms in the order of this."""
        if not lane.ticket:
            self._last_ticket += 1
            lane.ticket = self._last_ticket
            lane.refused_at = self._tables.clock.now

    def reserve(self, reservation: Reservation) -> None:
        """Let a host keep what the next task of a lane needs. The lane's last reservation ends, and the host's."""
        self.cancel(reservation.lane)
        host = reservation.host
        if host.reservation is not None:
            self.cancel(host.reservation.lane)
        host.reservation = reservation
        self.reservations[reservation.lane] = reservation
        self.unsettled[host] = None

    def cancel(self, lane: Lane) -> None:
        """End the lane's reservation, if it has one."""
        reservation = self.reservations.pop(lane, None)
        if reservation is not None:
            self.has_cancelled = True
            reservation.host.reservation = None
            self.unsettled[reservation.host] = None

    # ---------------------------------------------------------------------------------------------- workers set aside

    def set_aside(self, worker: Worker, host: Host) -> None:
        """Set an idle worker aside, which is in no list."""
        host.aside[worker] = None
        self.aside_of[worker] = host
        if len(host.aside) >= host.wanted:
            self.short.pop(host.agent, None)

    def take_aside(self, worker: Worker) -> bool:
        """Take a worker that is set aside, if it is. Returns whether it was."""
        host = self.aside_of.pop(worker, None)
        if host is None:
            return False
        del host.aside[worker]
        self.unsettled[host] = None
        return True
