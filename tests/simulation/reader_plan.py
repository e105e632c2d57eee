"""Tasks that read the results of tasks that their client has submitted before: futures as arguments.

A third of the plans has such tasks. They are submitted one by one: at once, while their inputs run, or when these have
ended.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from scaler_client.protocol.messages import Options

from .plan import Plan, Work, Writer, is_endless
from .scripts import Script, Source

_SHARE = 1 / 3


def add_readers(plan: Plan, writer: Writer, seed: int) -> None:
    """Add tasks with results as arguments to a third of the plans."""
    chance = random.Random(f"readers {seed}")
    if chance.random() >= _SHARE:
        return
    for program in plan.clients:
        for _ in range(chance.choice((1, 1, 2))):
            at = chance.choice([*[at for at, _ in plan.faults], chance.uniform(0.0, plan.load_seconds * 0.9)])
            program += _works(chance, writer, max(0.0, at - chance.choice((0.0, 0.005, 0.05, 0.5))))


def reader_counts(program: list[Work]) -> dict[int, int]:
    """Return for each task whose result other tasks of a program read how many tasks do so, by key."""
    counts: Counter[int] = Counter()
    for work in program:
        if work.targets is None and not work.is_map:
            for script in work.scripts:
                counts.update({each.key for each in script.inputs if isinstance(each, Script)})
    return dict(counts)


def _works(chance: random.Random, writer: Writer, at: float) -> list[Work]:
    """Draw tasks in chains, trees and nets, in the order of their submission."""
    reach = chance.choice((1, 2, 5, 100))
    pauses = chance.choice(((0.0,), (0.0, 0.0, 0.0, 0.002), (0.0, 0.02, 0.3), (0.002, 1.0)))
    is_plain = chance.random() < 0.5
    scripts: list[Script] = []
    works: list[Work] = []
    for _ in range(chance.choice((3, 8, 20, 40))):
        options = Options() if is_plain else writer.options()
        inputs: list[Source] = chance.choices(scripts[-reach:], k=chance.choice((0, 1, 1, 2, 3))) if scripts else []
        script = writer.script(options)
        if is_endless(script):
            options = replace(options, capabilities=())
        if is_plain or is_endless(script) or script.seconds > 5.0:
            script = Script(
                key=script.key,
                function=script.function,
                seconds=chance.choice((0.0, 0.0002, 0.02, 0.3)) * chance.uniform(0.5, 1.5),
                raises=chance.random() < 0.03,
                options=options,
            )
        script = replace(script, inputs=tuple(inputs), result_bytes=chance.choice((0, 40, 200, 2000)))
        scripts.append(script)
        pause = chance.choice(pauses)
        if works and not pause:
            works[-1].scripts.append(script)
        else:
            at += pause
            works.append(Work(at, [script]))
    for work in works:
        if chance.random() < 0.15:
            places = range(len(work.scripts))
            chosen = sorted(chance.sample(places, chance.randint(1, len(work.scripts))))
            work.cancels.append((writer.moment(), chosen, chance.random() < 0.4))
    return works
