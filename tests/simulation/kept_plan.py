"""Tasks whose results stay on their hosts (`options(keep=True)`), which other tasks and the user read.

Half of the plans with results on hosts have such tasks, and some others, whose results the scheduler has. They are
submitted one by one, and read one another, tasks without `keep`, and objects.
"""

from __future__ import annotations

import random
from dataclasses import replace

from scaler_client.protocol.messages import Options

from .plan import Plan, Work, Writer, add_after
from .reader_plan import add_map
from .scripts import FUNCTIONS, Script, SentObject, Source

_SHARE_ON_HOSTS = 1 / 2
_SHARE = 1 / 10
_PAUSES = ((0.0,), (0.0, 0.0, 0.002), (0.0, 0.02, 0.3), (0.3, 1.0))


def keep_tasks(plan: Plan, writer: Writer, seed: int) -> None:
    """Add kept tasks to some plans."""
    chance = random.Random(f"kept tasks {seed}")
    if chance.random() >= (_SHARE_ON_HOSTS if plan.keeps_results else _SHARE):
        return
    for program in plan.clients:
        for work in program:
            work.clears_after = None  # a cleared client can't pass its kept results to tasks
        for _ in range(chance.choice((1, 1, 2))):
            at = chance.choice([*[at for at, _ in plan.faults], chance.uniform(0.0, plan.load_seconds * 0.9)])
            works = _works(chance, writer, max(0.0, at - chance.choice((0.0, 0.05, 0.5, 2.0))))
            program += [work for work in works if work.at < plan.load_seconds]


def _works(chance: random.Random, writer: Writer, at: float) -> list[Work]:
    """Draw tasks in chains, trees and nets, in the order of their submission."""
    reach = chance.choice((1, 2, 5, 100))
    pauses = chance.choice(_PAUSES)
    kept_share = chance.choice((1.0, 1.0, 0.7))
    options = Options(priority=chance.choice((0, 0, 0, 2)))
    objects: list[SentObject] = []
    if chance.random() < 0.2:
        objects.append(SentObject(writer.next_key, (chance.choice((40, 2000)),)))
        writer.next_key += 1
    scripts: list[Script] = []
    works: list[Work] = []
    for _ in range(chance.choice((2, 5, 10, 25))):
        inputs: list[Source] = chance.choices(scripts[-reach:], k=chance.choice((0, 1, 1, 2, 3))) if scripts else []
        if chance.random() < 0.3:
            inputs += objects
        script = _script(chance, writer, options, tuple(inputs))
        scripts.append(script)
        at = add_after(works, script, at, chance.choice(pauses))
    add_map(writer, works)
    for work in works:
        if work.is_map:
            continue
        places = range(len(work.scripts))
        work.kept = frozenset(place for place in places if chance.random() < kept_share)
        for place in sorted(work.kept):
            if chance.random() < 0.5:
                work.reads.append((_moment(chance), place))
            if chance.random() < 0.5:
                work.lets_go.append((_moment(chance), place))
        if chance.random() < 0.1:
            chosen = sorted(chance.sample(places, chance.randint(1, len(places))))
            work.cancels.append((writer.moment(), chosen, chance.random() < 0.4))
        work.drops = [(_moment(chance), each) for each in objects if chance.random() < 0.3]
    return works


def _script(chance: random.Random, writer: Writer, options: Options, inputs: tuple[Source, ...]) -> Script:
    script = Script(
        key=writer.next_key,
        function=chance.randrange(FUNCTIONS),
        seconds=chance.choice((0.0, 0.005, 0.05, 0.3)) * chance.uniform(0.5, 1.5),
        result_bytes=chance.choice((0, 100, 2000, 2000, 2000)),
        options=options,
        inputs=inputs,
    )
    writer.next_key += 1
    if chance.random() < 0.04:
        script = replace(script, raises=chance.random() < 0.3, retryable=int(chance.random() < 0.3), kills=1)
    return script


def _moment(chance: random.Random) -> float:
    """A time after a submit, often after the end of the task."""
    return chance.choice((0.0, 0.01, 0.3, 1.0, 3.0, 8.0)) * chance.uniform(0.5, 1.5)
