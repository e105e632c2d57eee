"""Plans in which a few tasks want much, and many that want little keep all workers busy. How long the few wait is
bounded.

Seeds from FIRST_SEED on have them, and nothing else: no faults, no objects. Up to FIRST_GANG_SEED the few want much of
one host. From there on they are gangs whose members want the GPUs of all hosts.
"""

from __future__ import annotations

import random

from scaler_client.protocol.messages import Options
from scaler_scheduler.core.dispatch.host_choice import PATIENCE_SECONDS
from scaler_scheduler.core.limits import Limits

from .gang_plan import ALL_CAPABILITIES
from .network import LinkFaults
from .plan import Plan, Work
from .scripts import Script

FIRST_SEED = 6_000_000

FIRST_GANG_SEED = 6_500_000

WORKERS = 4

LOAD_SECONDS = 6.0

_LARGE = ((("gpu", 2000),), (("cpus", 4000),), (("cpus", 3000), ("gpu", 2000)))
"""What the few want. The host has four workers and two GPUs."""

_SMALL = ((), (("gpu", 250),), (("gpu", 500),), (("gpu", 1000),), (("cpus", 1000),))
"""What the many want."""

_SLACK_SECONDS = 0.1
"""Messages, and rows that are sent ahead to a worker: a few prefetch portions of 16 ms."""


def draw_load_plan(seed: int) -> Plan:
    """Return a plan of hosts that small tasks keep busy from the begin to the end, while large ones come."""
    if seed >= FIRST_GANG_SEED:
        return _draw_gang_plan(seed)
    chance = random.Random(f"load {seed}")
    longest = chance.choice((0.2, 0.4))
    kinds = chance.sample(_SMALL, chance.randint(1, 3))
    large = chance.sample(_LARGE, chance.randint(1, 2))
    clients: list[list[Work]] = []
    bounds: dict[int, float] = {}
    key = 1
    for resources in kinds:
        count = int(1.5 * WORKERS * LOAD_SECONDS / (longest * 0.75) / len(kinds))
        scripts = []
        for _ in range(count):
            seconds = longest * chance.uniform(0.5, 1.0)
            scripts.append(Script(key, seconds=seconds, function=1, options=Options(resources=resources)))
            key += 1
        clients.append([Work(0.0, scripts)])
    # Those that run when it reserves, and one turn of each kind that waits for longer: small ones, and the other large.
    bound = PATIENCE_SECONDS + longest * (1 + len(kinds) + len(large)) + _SLACK_SECONDS
    program = []
    for resources in large:
        at = 1.0
        while at < LOAD_SECONDS / 2:
            at += 2 * bound + chance.uniform(0.0, 1.0)
            program.append(Work(at, [Script(key, seconds=longest / 2, options=Options(resources=resources))]))
            bounds[key] = bound
            key += 1
    clients.append(sorted(program, key=lambda work: work.at))
    return _plan(seed, [(WORKERS, dict(ALL_CAPABILITIES))], clients, bounds)


def _draw_gang_plan(seed: int) -> Plan:
    """Return a plan of hosts with one GPU each, for gangs with a member on each host. One has most of the workers."""
    chance = random.Random(f"load of gangs {seed}")
    longest = chance.choice((0.2, 0.4))
    hosts = [2 * WORKERS, *[1] * chance.randint(4, 6)]
    small = chance.choice((((),), ((), (("gpu", 250),))))
    clients: list[list[Work]] = []
    bounds: dict[int, float] = {}
    key = 1
    for resources in small:
        scripts = []
        for _ in range(int(1.5 * sum(hosts) * LOAD_SECONDS / (longest * 0.75) / len(small))):
            seconds = longest * chance.uniform(0.5, 1.0)
            scripts.append(Script(key, seconds=seconds, function=1, options=Options(resources=resources)))
            key += 1
        clients.append([Work(0.0, scripts)])
    # Those that run when it keeps workers first, and one turn of each kind that waits already.
    bound = longest * (1 + len(small)) + _SLACK_SECONDS
    options = Options(resources=(("gpu", 1000),), gang_size=len(hosts))
    program = []
    at = 1.0
    while at < LOAD_SECONDS * 0.7:
        program.append(Work(at, [Script(key, seconds=longest / 2, options=options)]))
        bounds[key] = bound
        key += 1
        at += 2 * bound + chance.uniform(0.0, 1.0)
    clients.append(program)
    return _plan(seed, [(workers, {"gpu": 1}) for workers in hosts], clients, bounds, gang_size=len(hosts))


def _plan(
    seed: int,
    hosts: list[tuple[int, dict[str, int]]],
    clients: list[list[Work]],
    bounds: dict[int, float],
    *,
    gang_size: int = 0,
) -> Plan:
    return Plan(
        seed=seed,
        limits=Limits(queue_size=1000, client_timeout_seconds=10.0, worker_timeout_seconds=10.0),
        link_faults=LinkFaults(latency=0.0005),
        heartbeat_seconds=1.0,
        timeout_seconds=10.0,
        step_seconds=0.0001,
        slow_share=0.0,
        load_seconds=LOAD_SECONDS,
        hosts=hosts,
        clients=clients,
        faults=[],
        map_sizes={"FIRST_CALLS": 4, "_UNKNOWN_CALLS": 2, "MAX_CALLS": 20, "HANDOVER_BLOCKS": 3, "_CALLS_AHEAD": 50},
        gang_size=gang_size,
        wait_bounds=bounds,
    )
