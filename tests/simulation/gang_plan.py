"""The gangs of a plan: tasks that start together on several workers, meet, and fail in all ways that tasks do.

Seeds from FIRST_SEED on have them, so that the runs of other seeds stay as they are.
"""

from __future__ import annotations

import random
from dataclasses import replace

from scaler_client.protocol.messages import Options

from .plan import Plan, Work, Writer, is_endless
from .scripts import Script

FIRST_SEED = 5_000_000

ALL_CAPABILITIES = {"gpu": 1, "linux": 4}
"""A host with these can serve every task."""


def add_gangs(plan: Plan, writer: Writer, seed: int) -> None:
    """Add gangs to the programs of clients, and plain tasks beside them."""
    if seed < FIRST_SEED:
        return
    chance = random.Random(f"gangs {seed}")
    leaving = random.Random(f"leaving members {seed}")
    workers = sum(count for count, _ in plan.hosts)
    plan.gang_size = max(2, min(workers, chance.choice((2, 3, 4, 6))))
    for program in plan.clients:
        for _ in range(chance.choice((1, 2, 4))):
            at = chance.choice([*[at for at, _ in plan.faults], chance.uniform(0.0, plan.load_seconds * 0.9)])
            work = _work(chance, plan, writer, max(0.0, at - chance.choice((0.0, 0.05, 0.5, 2.0))))
            work.scripts = [_with_leaving_member(script, leaving) for script in work.scripts]
            program.append(work)


def _with_leaving_member(script: Script, chance: random.Random) -> Script:
    """Let a member of some gangs end without the last exchange of values."""
    size = script.options.gang_size
    if size < 2 or not script.meets or chance.random() < 0.6:
        return script
    return replace(script, leaving_rank=chance.randrange(size))


def _work(chance: random.Random, plan: Plan, writer: Writer, at: float) -> Work:
    scripts = []
    for _ in range(chance.choice((1, 1, 2, 5))):
        size = chance.randint(1, plan.gang_size)
        options = replace(
            writer.options(),
            gang_size=size,
            profiling=False,
            capabilities=chance.choice(((), (), (("linux", 2),))),
            resources=chance.choice(((), (), (("gpu", 250),), (("gpu", 1000 if size <= 2 else 250),))),
            limits=("db",) if size <= 2 and chance.random() < 0.3 else (),
        )
        script = replace(
            writer.script(Options()),
            options=options,
            children=(),
            meets=chance.choice((0, 0, 1, 3)),
            odd_rank=chance.choice((-1, -1, 0, size - 1)),
        )
        scripts.append(script)
        for _ in range(chance.choice((0, 0, 1, 4))):
            scripts.append(replace(writer.script(Options()), children=()))
    work = Work(at, scripts)
    for _ in range(chance.choice((0, 0, 1))):
        chosen = sorted(chance.sample(range(len(scripts)), chance.randint(1, len(scripts))))
        work.cancels.append((writer.moment(), chosen, chance.random() < 0.6))
    endless = [place for place, script in enumerate(scripts) if is_endless(script)]
    if endless:
        work.cancels.append((writer.moment(), endless, True))
    return work


def is_odd(script: Script, rank: int) -> bool:
    """Whether the member of this rank fails as the script says."""
    return script.odd_rank in (-1, rank)
