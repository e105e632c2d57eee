"""How well tasks are packed onto hosts: 1,000 random instances against the optimum."""

from __future__ import annotations

import random
from functools import cache

from tests.scheduler.core.harness import VERSION, C, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.scheduler import Scheduler

INSTANCES = 1000
NAMES = ("cpus", "gpu", "memory")

Amounts = tuple[int, int, int]
"""Units of each of NAMES."""


def draw(chance: random.Random) -> tuple[list[Amounts], list[Amounts]]:
    """Hosts, and tasks that together ask for somewhat more than there is."""
    hosts = [
        (chance.choice((4, 8, 16)), chance.choice((0, 2, 4)), chance.choice((16, 32, 64)))
        for _ in range(chance.choice((2, 3, 3)))
    ]
    tasks: list[Amounts] = []
    while len(tasks) < 12 and any(
        sum(task[at] for task in tasks) < 1.2 * sum(host[at] for host in hosts) for at in (0, 2)
    ):
        tasks.append((chance.choice((1, 1, 2, 4, 8)), chance.choice((0, 0, 0, 1, 2)), chance.choice((1, 4, 8, 16, 32))))
    return hosts, tasks


def value(task: Amounts, hosts: list[Amounts]) -> float:
    """The part of the whole cluster that a task takes."""
    totals = [sum(host[at] for host in hosts) for at in range(3)]
    return sum(task[at] / totals[at] for at in range(3) if totals[at])


def optimum(hosts: list[Amounts], tasks: list[Amounts]) -> float:
    """The highest value of tasks that fit at once, by a search of all ways to place them."""
    ordered = sorted(tasks, key=lambda task: -value(task, hosts))
    values = [value(task, hosts) for task in ordered]
    best = 0.0

    @cache
    def seen(at: int, free: tuple[Amounts, ...], reached: int) -> None:
        nonlocal best
        got = reached / 1e9
        best = max(best, got)
        if at == len(ordered) or got + sum(values[at:]) <= best:
            return
        task = ordered[at]
        for place, host in enumerate(free):
            if all(host[each] >= task[each] for each in range(3)) and host not in free[:place]:
                left = (host[0] - task[0], host[1] - task[1], host[2] - task[2])
                seen(
                    at + 1, tuple(sorted((*free[:place], left, *free[place + 1 :]))), reached + round(values[at] * 1e9)
                )
        seen(at + 1, free, reached)

    seen(0, tuple(sorted(hosts)), 0)
    return best


def packed(hosts: list[Amounts], tasks: list[Amounts]) -> float:
    """The value of the tasks that the scheduler dispatches at once."""
    scheduler = Scheduler(Limits(), VERSION, 0.0, incarnation=77)

    def hello(route: bytes, role: int, incarnation: int, agent: int = 0, **more: object) -> None:
        who = (incarnation, agent, "python", "1", f"node-{agent or incarnation}", 1, "name")
        scheduler.handle(events.Hello(route, VERSION, role, *who, **more), 0.0)  # type: ignore[arg-type]

    hello(C, events.CLIENT, 1)
    scheduler.handle(events.Function(C, 1, "f", "none", b"digest", b"f"), 0.0)
    for number, (cpus, gpus, memory) in enumerate(hosts):
        resources = (("gpu", 1000 * gpus, True),) if gpus else ()
        agent = 10 + number
        hello(b"agent %d" % number, events.AGENT, agent, resources=(*resources, ("memory", 1000 * memory, False)),
              slots=cpus)  # fmt: skip
        for each in range(cpus):
            hello(b"worker %d of %d" % (each, number), events.WORKER, 1000 * agent + each, agent)
    for number, task in enumerate(tasks):
        event = submit_event(C, [number], [1], [b""], ())
        asked = tuple((name, 1000 * amount) for name, amount in zip(NAMES, task) if amount)
        event.options = events.Options(resources=asked)
        scheduler.handle(event, 0.0)
    given = [effect.ids for effect in scheduler.collect() if isinstance(effect, effects.Dispatch)]
    return sum(value(tasks[task_id], hosts) for ids in given for task_id in ids)


def test_packing_reaches_nine_tenths_of_the_optimum() -> None:
    parts = []
    for seed in range(INSTANCES):
        hosts, tasks = draw(random.Random(seed))
        best = optimum(hosts, tasks)
        parts.append(packed(hosts, tasks) / best if best else 1.0)
    mean = sum(parts) / len(parts)
    print(f"packed {mean:.1%} of the optimum; the worst instance: {min(parts):.1%}")
    assert mean >= 0.9, f"{mean:.1%}"
