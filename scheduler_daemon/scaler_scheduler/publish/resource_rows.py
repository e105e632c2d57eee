"""The counted resources of hosts in a snapshot: what is free, booked and reserved."""

from __future__ import annotations

from ..core.events import CPUS, UNIT
from ..core.placement.bookings import Host
from ..core.scheduler import Scheduler
from ..wire.schema import HostPool
from .snapshot_columns import TEXT_LIMIT

MAX_POOLS = 1000
"""The most resources in a snapshot."""

_MAX_NUMBER = (1 << 63) - 1


def host_pools(core: Scheduler) -> list[HostPool]:
    """The resources of hosts whose agent is connected, with their workers as `cpus` behind each host's resources."""
    rows: list[HostPool] = []
    for host in core.bookings.hosts.values():
        agent = core.tables.agents.find(host.agent)
        if agent is None or not host.pools or len(rows) >= MAX_POOLS:
            continue
        name = agent.host[:TEXT_LIMIT]
        needs = {} if host.reservation is None else host.reservation.needs
        for resource, pool in sorted(host.pools.items()):
            rows.append(_row(host, name, resource, pool.total, pool.used, needs.get(resource, 0)))
        rows.append(_cpus_row(core, host, name))
    return rows[:MAX_POOLS]


def waiting_tasks(core: Scheduler) -> int:
    """The number of waiting tasks that ask for resources."""
    lanes = [lane for client in core.tables.clients for lane in client.lanes.values() if lane.resources]
    return sum([lane.waiting for lane in lanes])


def reservation_milliseconds(core: Scheduler, now: float) -> int:
    """For how long the oldest reservation has waited."""
    since = [reservation.since for reservation in core.bookings.reservations.values()]
    return int(max(0.0, now - min(since)) * 1000) if since else 0


def _row(host: Host, host_name: str, resource: str, total: int, booked: int, reserved: int) -> HostPool:
    return HostPool(
        host=host_name,
        name=resource,
        total=min(total, _MAX_NUMBER),
        booked=min(booked, _MAX_NUMBER),
        reserved=min(reserved, _MAX_NUMBER),
        free=min(max(0, total - booked), _MAX_NUMBER),
        agent=host.agent,
    )


def _cpus_row(core: Scheduler, host: Host, name: str) -> HostPool:
    slots = host.slots or len(list(core.tables.workers.of_agent(host.agent)))
    cpus = host.cpus or slots * UNIT
    booked = sum([not booking.is_suspended for booking in host.bookings]) + host.further
    reserved = 0 if host.reservation is None else host.reservation.slots
    scale = cpus // max(1, slots)
    return _row(host, name, CPUS, cpus, booked * scale, reserved * scale)
