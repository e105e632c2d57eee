"""Plans in which a few tasks want much, and many that want little keep all workers busy. How long the few wait is
bounded.

Seeds from FIRST_SEED on have them, and nothing else: no faults, no objects. Up to FIRST_GANG_SEED the few want much of
one host. From there on they are gangs whose members want the GPUs of all hosts. From FIRST_JUMP_SEED on, short tasks
wait behind long ones: those of a function whose run time jumps, or those that a gang waits for.
"""

from __future__ import annotations

import random

from scaler_client.protocol.messages import Options
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.placement.host_choice import PATIENCE_SECONDS

from .gang_plan import ALL_CAPABILITIES
from .network import LinkFaults
from .plan import Plan, Work
from .scripts import FUNCTIONS, Script

FIRST_SEED = 6_000_000

FIRST_GANG_SEED = 6_500_000

FIRST_JUMP_SEED = 6_800_000

WORKERS = 4

LOAD_SECONDS = 6.0

_LARGE = ((("gpu", 2000),), (("cpus", 4000),), (("cpus", 3000), ("gpu", 2000)))
"""What the few want. The host has four workers and two GPUs."""

_SMALL = ((), (("gpu", 250),), (("gpu", 500),), (("gpu", 1000),), (("cpus", 1000),))
"""What the many want."""

_SLACK_SECONDS = 0.1
"""Messages, and rows that are sent ahead to a worker: a few prefetch portions of 16 ms."""


_GANGS_SECONDS = 15.0
"""All gangs of a plan with environments begin in this time: for each, most workers change their environment once."""


def draw_load_plan(seed: int) -> Plan:
    """Return a plan of hosts that small tasks keep busy from the begin to the end, while large ones come."""
    if seed >= FIRST_JUMP_SEED:
        if seed % 7 == 3:
            return _draw_gangs_of_environments_plan(seed)
        return _draw_busy_gang_plan(seed) if seed % 2 else _draw_jump_plan(seed)
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


def _draw_jump_plan(seed: int) -> Plan:
    """Return a plan of a function that was quick many times, and then takes long: many tasks are queued at workers."""
    chance = random.Random(f"jump {seed}")
    longest = chance.choice((0.2, 0.5))
    quick = [Script(key, seconds=0.0002, function=1) for key in range(1, 1001)]
    long = [Script(key, seconds=longest * chance.uniform(0.8, 1.0), function=1) for key in range(1001, 1081)]
    clients = [[Work(0.0, quick), Work(1.0, long)]]
    bounds: dict[int, float] = {}
    # Those of another client, and an urgent one of the same share. The running ones end first.
    for key, priority in ((2001, 0), (2002, 1)):
        urgent = Script(key, function=2, options=Options(priority=priority))
        clients.append([Work(1.0 + chance.uniform(0.05, 0.3), [urgent])])
        bounds[key] = longest + _SLACK_SECONDS
    return _plan(seed, [(WORKERS, dict(ALL_CAPABILITIES))], clients, bounds)


def _draw_busy_gang_plan(seed: int) -> Plan:
    """Return a plan of a gang of all workers that waits for the last of them, while short and long tasks come."""
    chance = random.Random(f"busy gang {seed}")
    seconds = chance.uniform(1.5, 2.0)
    known = [Script(key, seconds=0.001 if key % 2 else 0.5, function=key % 2 + 1) for key in range(1, 21)]
    gang = Script(30, seconds=0.1, options=Options(gang_size=WORKERS))
    clients = [[Work(0.0, known)], [Work(3.0, [Script(29, seconds=seconds, function=3)]), Work(3.1, [gang])]]
    bounds = {30: seconds - 0.1 + _SLACK_SECONDS}
    short = [Script(key, seconds=0.001, function=2) for key in range(40, 60)]
    long = [Script(key, seconds=0.5, function=1) for key in range(60, 68)]
    clients += [[Work(3.2 + chance.uniform(0.0, 0.4), long)], [Work(3.6 + chance.uniform(0.0, 0.5), short)]]
    bounds.update((script.key, _SLACK_SECONDS) for script in short)
    return _plan(seed, [(WORKERS, dict(ALL_CAPABILITIES))], clients, bounds, gang_size=WORKERS)


def _draw_gangs_of_environments_plan(seed: int) -> Plan:
    """Return a plan of clients with different modules, whose gangs want most workers, one after another and at once."""
    chance = random.Random(f"gangs of environments {seed}")
    workers = 2 * WORKERS
    clients: list[list[Work]] = []
    bounds: dict[int, float] = {}
    key = 1
    for _ in range(3):
        program = []
        for at in (0.0, 1.0, 1.02, 1.04):
            scripts = []
            for function in range(FUNCTIONS):
                options = Options(gang_size=chance.randint(workers - 3, workers - 1), priority=chance.choice((0, 0, 1)))
                scripts.append(Script(key, seconds=chance.uniform(0.001, 0.05), function=function, options=options))
                bounds[key] = _GANGS_SECONDS
                key += 1
            program.append(Work(at, scripts))
        clients.append(program)
    return _plan(seed, [(workers, dict(ALL_CAPABILITIES))], clients, bounds, gang_size=workers)


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
