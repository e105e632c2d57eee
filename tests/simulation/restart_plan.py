"""Plans in which the scheduler restarts while clients have a backlog. No task may run twice.

Seeds from FIRST_SEED on have them, and nothing else: plain tasks, some of which hold the GIL, and messages that cost
the scheduler processor time. In a third of the seeds connections are silent in one direction for a while, in place of
restarts. In another third both happen: then a worker may come back too late, and a task may run twice. From
FIRST_BREAK_SEED on, connections break instead, those of clients most often. From FIRST_KEPT_SEED on, the scheduler
restarts and clients have kept results, which tasks read after the restarts.
"""

from __future__ import annotations

import random

from scaler_client.protocol.messages import Options
from scaler_scheduler.core.limits import Limits

from .gang_plan import ALL_CAPABILITIES
from .network import LinkFaults
from .plan import Plan, Work
from .scripts import Script

FIRST_SEED = 7_000_000

FIRST_BREAK_SEED = 7_500_000

FIRST_KEPT_SEED = 7_700_000

LOAD_SECONDS = 15.0

_RESTARTS = ("scheduler killed", "scheduler stopped")
_CUTS = ("link cut off one way",)
_BREAKS = ("connection broken", "client's connection broken")


def draw_restart_plan(seed: int) -> Plan:
    """Return the plan of a seed from FIRST_SEED on."""
    chance = random.Random(f"restarts {seed}")
    kinds = (_RESTARTS, _CUTS, _RESTARTS + _CUTS)[seed % 3] if seed < FIRST_BREAK_SEED else _BREAKS
    if seed >= FIRST_KEPT_SEED:
        kinds = _RESTARTS
    faults = sorted((chance.uniform(0.5, LOAD_SECONDS), chance.choice(kinds)) for _ in range(chance.randint(1, 4)))
    clients: list[list[Work]] = []
    key = 1
    for _ in range(chance.randint(1, 2)):
        works = []
        for _ in range(chance.randint(2, 5)):
            # Each task has other options than the one before it, so each is a message.
            scripts = []
            longest = chance.choice((0.0005, 0.02, 0.3))
            for number in range(chance.choice((5, 20, 150))):
                options = Options(priority=number % 3, retries=number % 4)
                scripts.append(Script(key, seconds=longest * chance.random(), function=key % 3, options=options))
                key += 1
            works.append(Work(chance.uniform(0.0, LOAD_SECONDS * 0.9), scripts))
        if seed >= FIRST_KEPT_SEED:
            kept, key = _kept_works(chance, key)
            works += kept
        clients.append(sorted(works, key=lambda work: work.at))
    message_seconds = chance.choice((0.0, 0.001, 0.02))
    if kinds is not _CUTS and chance.random() < 0.5:
        # So many that hellos repeat, and that their second copy comes when the first has run.
        backlog = []
        for number in range(300):
            options = Options(priority=number % 3, retries=number % 4)
            backlog.append(Script(key, seconds=0.0005, function=key % 3, options=options))
            key += 1
        clients.append([Work(faults[0][0] + 0.01, backlog)])
    if kinds is _RESTARTS and seed < FIRST_BREAK_SEED and chance.random() < 0.5:  # their workers return late
        hogs = [Script(key + number, seconds=chance.uniform(2.0, 6.0), function=3, hogs=True) for number in range(2)]
        clients.append([Work(max(0.0, faults[0][0] - chance.uniform(0.1, 1.5)), hogs)])
    limits = Limits(queue_size=chance.choice((8, 1000)), client_timeout_seconds=20.0, worker_timeout_seconds=20.0)
    if FIRST_BREAK_SEED <= seed < FIRST_KEPT_SEED and seed % 2:
        # A client waits for credit before it has submitted all tasks again.
        limits.client_tasks = chance.choice((10, 50))
    return Plan(
        seed=seed,
        limits=limits,
        link_faults=LinkFaults(latency=chance.choice((0.0005, 0.005))),
        heartbeat_seconds=1.0,
        timeout_seconds=120.0,
        step_seconds=0.0001,
        slow_share=0.0,
        load_seconds=LOAD_SECONDS,
        hosts=[(chance.randint(2, 4), dict(ALL_CAPABILITIES))],
        clients=clients,
        faults=faults,
        map_sizes={"FIRST_CALLS": 4, "_UNKNOWN_CALLS": 2, "MAX_CALLS": 20, "HANDOVER_BLOCKS": 3, "_CALLS_AHEAD": 50},
        message_seconds=message_seconds,
        kept_bytes=chance.choice((1 << 40, 1000)) if seed >= FIRST_KEPT_SEED else 1 << 40,
        repeats_nothing=seed % 3 < 2 or seed >= FIRST_BREAK_SEED,
    )


def _kept_works(chance: random.Random, key: int) -> tuple[list[Work], int]:
    """Draw kept tasks, the user's reads of their values, and tasks that read them later. Returns the next key too."""
    works = []
    for _ in range(chance.randint(1, 3)):
        at = chance.uniform(0.0, LOAD_SECONDS * 0.6)
        made = []
        for _ in range(chance.choice((1, 5, 20))):
            inputs = tuple(chance.sample(made, min(len(made), chance.choice((0, 0, 1, 2)))))
            size = chance.choice((0, 300, 2000))
            made.append(Script(key, seconds=0.02 * chance.random(), result_bytes=size, function=key % 3, inputs=inputs))
            key += 1
        reads = [(chance.uniform(0.0, LOAD_SECONDS), place) for place in range(len(made)) if chance.random() < 0.5]
        works.append(Work(at, list(made), kept=frozenset(range(len(made))), reads=reads))
        for _ in range(chance.choice((1, 10))):
            inputs = tuple(chance.sample(made, chance.randint(1, min(3, len(made)))))
            readers = [Script(key, seconds=0.01, function=key % 3, inputs=inputs)]
            works.append(Work(chance.uniform(at, LOAD_SECONDS * 0.9), readers))
            key += 1
    return works, key
