"""Why a task waits for resources: which it lacks, and which hosts could serve it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scaler_scheduler.core.dispatch.bookings import Host
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.events import CPUS
from scaler_scheduler.core.state.records import Lane
from scaler_scheduler.core.state.resource_pools import shown_amount

MAX_HOSTS = 20
"""At most so many hosts are described."""


class HostWait(NamedTuple):
    """A host that could run a task if less of it was booked."""

    host: str
    """Its name."""
    lacks: str
    """What is not free there, such as `gpu: 0.5 of 2 free`. Empty: it has room, and the task waits for something
    else."""
    is_reserved: bool
    """Whether what becomes free there is kept for this task."""
    reserved_for_others: bool
    """Whether it is kept for another kind of task, which waits longer or has a higher rank."""


def resource_waits(core: CoreState, lane: Lane) -> list[HostWait]:
    """Return the hosts that could run the next task of a lane, those that lack least first. Empty: none ever could, or
    the lane asks for no resources."""
    if not lane.resources:
        return []
    hosts = list(core.dispatcher.host_choice.able_hosts(lane, MAX_HOSTS))
    hosts.sort(key=lambda host: (host.lacks(lane.resources), host.agent))
    return [_host_wait(core, host, lane) for host in hosts]


def _host_wait(core: CoreState, host: Host, lane: Lane) -> HostWait:
    agent = core.tables.agents.find(host.agent)
    assert agent is not None  # otherwise the host could not run the task
    kept = host.reservation
    return HostWait(
        agent.host,
        ", ".join(_lacks(core, host, lane)),
        kept is not None and kept.lane is lane,
        kept is not None and kept.lane is not lane,
    )


def _lacks(core: CoreState, host: Host, lane: Lane) -> Iterator[str]:
    for name, amount in lane.resources:
        pool = host.pools.get(name)
        if name != CPUS and pool is not None and not pool.fits(amount):
            free = shown_amount(max(0, pool.free))
            yield f"{name}: {free} of {shown_amount(pool.total)} free, {shown_amount(amount)} asked"
    wanted = host.slots_for(lane.resources)
    idle = len(core.dispatcher.idle.of_agent(host.agent)) + max(0, len(host.aside) - host.further)
    if idle < wanted:
        yield f"workers: {idle} of {host.slots} idle, {wanted} asked"
