"""Faults of hosts with kept results: every way in which such a host ends, and at the worst moments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .faults import duration, random_host, repair_after, silence

if TYPE_CHECKING:
    from .agent_host import AgentHost
    from .world import World

MOMENTS = ("a result is made", "a result is made again", "a result is written", "a result is fetched")
"""The moments at which a planned fault happens; see World.reached."""

LONG_FAULTS = frozenset(("scheduler cut off",))
"""Faults that may last longer than clients and agents wait for an answer."""

CUT_OFF_SECONDS = 90.0

POLL_SECONDS = 0.02
"""The time between two checks whether a host that is to be restarted has ended."""


def inject(world: World, kind: str) -> None:
    """Inject a fault, if there is a peer for it."""
    world.trace.count(f"fault: {kind}")
    _KINDS[kind](world)


# ------------------------------------------------------------------------------------------------------------- the ends


def _restart(world: World, host: AgentHost) -> None:
    """Stop the host in order, and start it at once under its name."""
    host.stop()
    _start_when_gone(world, host)


def _start_when_gone(world: World, host: AgentHost) -> None:
    if not host.is_gone and not world.is_ending:
        world.clock.after(POLL_SECONDS, partial(_start_when_gone, world, host))
    elif not world.is_ending and not any(other.name == host.name for other in world.living_hosts()):
        world.add_host(len(host.names), host.capabilities, host.name)


def _start_later(world: World, host: AgentHost) -> None:
    if world.chance.random() < 0.5:
        _start_when_gone(world, host)
    else:
        repair_after(world, duration(world), partial(_start_when_gone, world, host))


def _kill_agent(world: World, host: AgentHost) -> None:
    host.kill_agent()
    _start_later(world, host)


def _end_fork_server(world: World, host: AgentHost) -> None:
    host.kill_fork_server()
    _start_later(world, host)


def _switch_off(world: World, host: AgentHost) -> None:
    host.kill()
    _start_later(world, host)


def _kill_worker(world: World, host: AgentHost) -> None:
    if host.workers:
        host.kill_worker(world.chance.choice(list(host.workers.values())))


def _cut_off(world: World, host: AgentHost) -> None:
    silence(world, host.links())


def _break_agent_link(world: World, host: AgentHost) -> None:
    world.trace.note("the connection of", host.name, "breaks")
    host.link.cut()


def _restart_scheduler(world: World, _: AgentHost) -> None:
    if world.scheduler.is_up:
        if world.chance.random() < 0.5:
            world.scheduler.kill()
        else:
            world.scheduler.stop()
        repair_after(world, duration(world), world.scheduler.start)


_ENDS: tuple[Callable[[World, AgentHost], None], ...] = (
    _restart,
    _restart,
    _kill_agent,
    _end_fork_server,
    _switch_off,
    _kill_worker,
    _cut_off,
)


def _end(world: World, host: AgentHost) -> None:
    if not host.is_gone:
        world.chance.choice(_ENDS)(world, host)


# ------------------------------------------------------------------------------------------------------------ faults


def _restart_one(world: World) -> None:
    host = random_host(world)
    if host is not None:
        _restart(world, host)


def _restart_in_turn(world: World) -> None:
    """Restart hosts one after another, every 1.5 seconds."""
    for number in range(world.chance.choice((2, 4, 8))):
        at = world.clock.now + 1.5 * number
        if at < world.calm_at:
            world.clock.after(1.5 * number, partial(_restart_nth, world, number))


def _restart_nth(world: World, number: int) -> None:
    hosts = world.living_hosts()
    if hosts:
        _restart(world, hosts[number % len(hosts)])


def _restart_all(world: World) -> None:
    for host in world.living_hosts():
        _restart(world, host)


def _kill_a_fork_server(world: World) -> None:
    host = random_host(world)
    if host is not None:
        _end_fork_server(world, host)


def _end_host_of_results(world: World) -> None:
    """End the host that has most results."""
    hosts = world.living_hosts()
    if hosts:
        _end(world, max(hosts, key=lambda host: len(host.files)))


def _lay_ambush(world: World) -> None:
    world.ambushes[world.chance.choice(MOMENTS)] = partial(_end, world)


def _lay_ambushes(world: World) -> None:
    for moment in MOMENTS:
        world.ambushes[moment] = partial(_end, world)


def _ambush_with_scheduler(world: World) -> None:
    world.ambushes[world.chance.choice(MOMENTS)] = partial(_restart_scheduler, world)


def _cut_off_scheduler(world: World) -> None:
    """Cut the scheduler off from all peers, for longer than any lease, and perhaps for longer than clients and agents
    wait."""
    seconds = CUT_OFF_SECONDS if world.chance.random() < 0.5 else duration(world)
    world.calm_at = max(world.calm_at, world.clock.now + seconds)
    silence(world, list(world.network.links), seconds)


def _break_link(world: World) -> None:
    host = random_host(world)
    if host is not None:
        _break_agent_link(world, host)


_KINDS: dict[str, Callable[[World], None]] = {
    "host restarted": _restart_one,
    "hosts restarted in turn": _restart_in_turn,
    "all hosts restarted": _restart_all,
    "fork server killed": _kill_a_fork_server,
    "host of results ends": _end_host_of_results,
    "ambush": _lay_ambush,
    "ambushes": _lay_ambushes,
    "ambush by the scheduler's end": _ambush_with_scheduler,
    "agent's connection broken": _break_link,
    "scheduler cut off": _cut_off_scheduler,
}
KEPT_FAULTS = tuple(_KINDS)
