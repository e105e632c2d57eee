"""Faults: one function for each kind, with its repair."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .network import Link

if TYPE_CHECKING:
    from .agent_host import AgentHost
    from .client_host import ClientHost
    from .world import World

_SPANS = (0.05, 0.5, 3.0, 12.0)
"""Durations in seconds: shorter than a heartbeat, shorter than a lease, longer than any lease."""


def inject(world: World, kind: str) -> None:
    """Inject a fault, if there is a peer for it."""
    world.trace.count(f"fault: {kind}")
    _KINDS[kind](world)


def duration(world: World) -> float:
    return world.chance.choice(_SPANS) * world.chance.uniform(0.5, 1.3)


def repair_after(world: World, seconds: float, repair: Callable[[], None]) -> None:
    """Repair a fault after a while, or when all faults stop, if that is earlier."""
    world.clock.after(min(seconds, max(0.0, world.calm_at - world.clock.now)), repair)


def random_host(world: World) -> AgentHost | None:
    hosts = world.living_hosts()
    return world.chance.choice(hosts) if hosts else None


def _client(world: World) -> ClientHost | None:
    clients = world.living_clients()
    return world.chance.choice(clients) if clients else None


# ------------------------------------------------------------------------------------------------------ workers, hosts


def _kill_worker(world: World) -> None:
    host = random_host(world)
    if host is not None and host.workers:
        worker = world.chance.choice(list(host.workers.values()))
        world.trace.note(worker.name, "is killed")
        host.kill_worker(worker)


def _freeze_worker(world: World) -> None:
    host = random_host(world)
    if host is not None and host.workers:
        worker = world.chance.choice(list(host.workers.values()))
        world.trace.note(worker.name, "is frozen")
        worker.process.freeze()
        repair_after(world, duration(world), worker.process.thaw)


def _switch_off(world: World) -> None:
    host = random_host(world)
    if host is not None:
        host.kill()
        repair_after(world, duration(world), lambda: world.add_host(len(host.names), host.capabilities))


def _kill_agent(world: World) -> None:
    """Kill the agent's process. Its workers end soon after."""
    host = random_host(world)
    if host is not None:
        host.kill_agent()
        repair_after(world, duration(world), lambda: world.add_host(len(host.names), host.capabilities))


def _stop_agent(world: World) -> None:
    host = random_host(world)
    if host is not None:
        host.stop()
        repair_after(world, duration(world), lambda: world.add_host(len(host.names), host.capabilities))


def _add_host(world: World) -> None:
    if len(world.living_hosts()) < 4:
        world.add_host(world.chance.randint(1, 2), {})


def _freeze_host(world: World) -> None:
    host = random_host(world)
    if host is not None:
        host.freeze()
        repair_after(world, duration(world), host.thaw)


# -------------------------------------------------------------------------------------------------------------- clients


def _kill_client(world: World) -> None:
    client = _client(world)
    if client is not None:
        client.kill()


def _leave_client(world: World) -> None:
    client = _client(world)
    if client is not None:
        client.close()


def _freeze_client(world: World) -> None:
    client = _client(world)
    if client is not None:
        world.trace.note(client.name, "is frozen")
        client.process.freeze()

        def thaw() -> None:
            world.trace.note(client.name, "thaws")
            client.process.thaw()

        repair_after(world, duration(world), thaw)


# ------------------------------------------------------------------------------------------------------------ scheduler


def _kill_scheduler(world: World) -> None:
    if world.scheduler.is_up:
        world.scheduler.kill()
        repair_after(world, duration(world), world.scheduler.start)


def _stop_scheduler(world: World) -> None:
    if world.scheduler.is_up:
        world.scheduler.stop()
        repair_after(world, duration(world), world.scheduler.start)


def _freeze_scheduler(world: World) -> None:
    scheduler = world.scheduler
    if scheduler.is_up:
        scheduler.freeze()
        repair_after(world, duration(world), scheduler.thaw)


# -------------------------------------------------------------------------------------------------------------- network


def _break_link(world: World) -> None:
    links = [link for link in world.network.links if link.connection is not None]
    if links:
        link = world.chance.choice(links)
        world.trace.note("the connection of", link.name, "breaks")
        link.cut()


def _break_client_link(world: World) -> None:
    client = _client(world)
    if client is not None:
        world.trace.note("the connection of", client.link.name, "breaks")
        client.link.cut()


def silence(world: World, links: list[Link], seconds: float | None = None) -> None:
    """A partition: no message arrives in either direction. Afterwards all messages arrive late, or the connections
    break."""
    world.trace.note("silence for", *[link.name for link in links])
    for link in links:
        link.set_silent(True)
    breaks = world.chance.random() < 0.5

    def heal() -> None:
        world.trace.note("no more silence for", *[link.name for link in links])
        for link in links:
            if breaks:
                link.cut()
            link.set_silent(False)

    repair_after(world, duration(world) if seconds is None else seconds, heal)


def _cut_off_host(world: World) -> None:
    host = random_host(world)
    if host is not None:
        silence(world, host.links())


def _cut_off_client(world: World) -> None:
    client = _client(world)
    if client is not None:
        silence(world, [client.link])


def _cut_off_link(world: World) -> None:
    if world.network.links:
        silence(world, [world.chance.choice(world.network.links)])


def _cut_off_one_way(world: World) -> None:
    """Hold what one peer sends, or what it is sent, for a while. Then everything arrives."""
    connections = [link.connection for link in world.network.links if link.connection is not None]
    if connections:
        connection = world.chance.choice(connections)
        pipe = connection.up if world.chance.random() < 0.5 else connection.down
        world.trace.note("one direction is silent:", connection.route.decode())
        pipe.hold()
        repair_after(world, duration(world), pipe.release)


_KINDS: dict[str, Callable[[World], None]] = {
    "worker killed": _kill_worker,
    "worker frozen": _freeze_worker,
    "host switched off": _switch_off,
    "agent killed": _kill_agent,
    "agent stopped": _stop_agent,
    "host joins": _add_host,
    "host frozen": _freeze_host,
    "client killed": _kill_client,
    "client frozen": _freeze_client,
    "client leaves": _leave_client,
    "scheduler killed": _kill_scheduler,
    "scheduler stopped": _stop_scheduler,
    "scheduler frozen": _freeze_scheduler,
    "connection broken": _break_link,
    "client's connection broken": _break_client_link,
    "host cut off": _cut_off_host,
    "client cut off": _cut_off_client,
    "link cut off": _cut_off_link,
    "link cut off one way": _cut_off_one_way,
}
