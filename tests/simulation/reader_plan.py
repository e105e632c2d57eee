"""Tasks that read the results of tasks that their client has submitted before: futures as arguments.

A third of the plans has such tasks. They are submitted one by one: at once, while their inputs run, or when these have
ended. Some of the plans end with a graph that reads them too.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from scaler_client.protocol.messages import Options

from .map_plan import draw_manner
from .plan import Plan, Work, Writer, add_after, is_endless
from .scripts import FUNCTIONS, Script, Source, read_results

_SHARE = 1 / 3

_LITTLE_ROOM_BYTES = 1 << 18
"""With this memory limit, a client's credit is less than `_FILLING_BYTES`."""

_FILLING_BYTES = 70_000

_CROSSING = (0.0005, 0.001, 0.002, 0.004)
"""Pauses about as long as a short task and its messages take: readers cross the answers of their inputs."""


def add_readers(plan: Plan, writer: Writer, seed: int) -> None:
    """Add tasks with results as arguments to a third of the plans."""
    chance = random.Random(f"readers {seed}")
    if chance.random() >= _SHARE:
        return
    has_little_room = plan.limits.memory_limit_bytes <= _LITTLE_ROOM_BYTES
    for program in plan.clients:
        if has_little_room and chance.random() < 0.5:
            program.append(_waiting_readers(chance, writer, chance.uniform(0.0, plan.load_seconds * 0.9)))
        for _ in range(chance.choice((1, 1, 2))):
            at = chance.choice([*[at for at, _ in plan.faults], chance.uniform(0.0, plan.load_seconds * 0.9)])
            program += _works(chance, writer, max(0.0, at - chance.choice((0.0, 0.005, 0.05, 0.5))))


def reader_counts(program: list[Work]) -> dict[int, int]:
    """Return for each task whose result other tasks of a program read how many tasks do so, by key."""
    counts: Counter[int] = Counter()
    for work in program:
        if work.targets is not None or work.is_map:
            counts.update(read_results(work.scripts))
        else:
            for script in work.scripts:
                counts.update(read_results([script]))
    return dict(counts)


def _works(chance: random.Random, writer: Writer, at: float) -> list[Work]:
    """Draw tasks in chains, trees and nets, in the order of their submission."""
    reach = chance.choice((1, 2, 5, 100))
    pauses = chance.choice(((0.0,), (0.0, 0.0, 0.0, 0.002), _CROSSING, (0.0, 0.02, 0.3), (0.002, 1.0)))
    is_plain = pauses is _CROSSING or chance.random() < 0.5
    lengths = (0.0, 0.0002, 0.001) if pauses is _CROSSING else (0.0, 0.0002, 0.02, 0.3)
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
                seconds=chance.choice(lengths) * chance.uniform(0.5, 1.5),
                raises=chance.random() < 0.03,
                options=options,
            )
        script = replace(script, inputs=tuple(inputs), result_bytes=chance.choice((0, 40, 200, 2000)))
        scripts.append(script)
        at = add_after(works, script, at, chance.choice(pauses))
    if chance.random() < 0.5:
        works.append(_graph(chance, writer, at + chance.choice((0.0, 0.002, 0.3)), scripts))
    add_map(writer, works)
    for work in works:
        if chance.random() < 0.15 and not work.is_map:
            places = range(len(work.scripts if work.targets is None else work.targets))
            chosen = sorted(chance.sample(places, chance.randint(1, len(places))))
            work.cancels.append((writer.moment(), chosen, chance.random() < 0.4))
    return works


def add_map(writer: Writer, works: list[Work]) -> None:
    """Add a map whose calls read the results of some of these tasks, in half of the cases.

    It is drawn from a random generator of its own.
    """
    read = [script for work in works if work.targets is None for script in work.scripts]
    chance = random.Random(f"map of readers {read[0].key}")
    if chance.random() < 0.5:
        return
    options = chance.choice((Options(), Options(), Options(priority=1)))
    function = chance.randrange(FUNCTIONS)
    share = chance.choice((1.0, 0.5, 0.1))
    """The share of the calls that read results."""
    seconds = chance.choice((0.0, 0.0002, 0.02))
    scripts = []
    for _ in range(chance.choice((2, 10, 40))):
        inputs = chance.choices(read, k=chance.choice((1, 1, 2))) if chance.random() < share else []
        script = Script(
            key=writer.next_key,
            function=function,
            seconds=seconds * chance.uniform(0.5, 1.5),
            raises=chance.random() < 0.01,
            kills=int(chance.random() < 0.02),
            result_bytes=chance.choice((0, 200, 2000)),
            options=options,
            inputs=tuple(inputs),
        )
        writer.next_key += 1
        scripts.append(script)
    work = Work(works[-1].at + chance.choice((0.0, 0.0, 0.002, 0.3)), scripts, is_map=True, manner=draw_manner(chance))
    if chance.random() < 0.15:
        work.cancels.append((writer.moment(), [0], chance.random() < 0.4))
    works.append(work)


def _waiting_readers(chance: random.Random, writer: Writer, at: float) -> Work:
    """Draw two readers of one task that wait for credit, in two batches. The first one is cancelled meanwhile."""

    def plain(priority: int, payload_bytes: int = 0, inputs: tuple[Source, ...] = ()) -> Script:
        key, writer.next_key = writer.next_key, writer.next_key + 1
        seconds = chance.choice((0.02, 0.3))
        options = Options(priority=priority)  # tasks with equal options are one batch
        return Script(key=key, function=0, seconds=seconds, payload_bytes=payload_bytes, options=options, inputs=inputs)

    read = plain(0)
    scripts = [read, plain(0, _FILLING_BYTES), plain(1, inputs=(read,)), plain(2, inputs=(read,))]
    return Work(at, scripts, cancels=[(chance.choice((0.0, 0.002)), [2], False)])


def _graph(chance: random.Random, writer: Writer, at: float, read: list[Script]) -> Work:
    """Draw a graph whose tasks read one another and these tasks."""
    scripts: list[Script] = []
    for _ in range(chance.choice((1, 3, 10))):
        script = Script(
            key=writer.next_key,
            seconds=chance.choice((0.0, 0.0002, 0.02)),
            raises=chance.random() < 0.03,
            result_bytes=chance.choice((0, 200, 2000)),
            inputs=tuple(chance.choices([*scripts, *read], k=chance.choice((0, 1, 2, 3)))),
        )
        writer.next_key += 1
        scripts.append(script)
    return Work(at, scripts, targets=sorted({chance.randrange(len(scripts)), len(scripts) - 1}))
