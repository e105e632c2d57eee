"""Who kills what, when."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

from tests.chaos.processes import Agent, MortalScheduler, kill


@dataclass
class WorkerDeath:
    time: float
    """By the monotonic clock, in seconds; as all times here."""
    replacement: int = 0
    """The process that came in its place; 0: not known."""


@dataclass
class SchedulerDeath:
    time: float
    back_at: float
    """When the next one had bound the address."""


@dataclass
class Deaths:
    workers: list[WorkerDeath] = field(default_factory=list)
    schedulers: list[SchedulerDeath] = field(default_factory=list)


def kill_workers(agents: list[Agent], every: float, seed: int, stop: threading.Event, deaths: Deaths) -> None:
    """Kill one worker, of one agent after the other, each `every` seconds until told to stop."""
    choice = random.Random(seed)
    seen = [set(agent.workers()) for agent in agents]
    last: list[WorkerDeath | None] = [None for _ in agents]
    began = time.monotonic()
    for number in range(1, 1 << 30):
        if stop.wait(max(0.0, began + number * every - time.monotonic())):
            return
        of = number % len(agents)
        living = agents[of].workers()
        came = set(living) - seen[of]
        seen[of] |= came
        death = last[of]
        if death is not None and len(came) == 1:
            (death.replacement,) = came
        if living:
            last[of] = death = WorkerDeath(kill(choice.choice(living)))
            deaths.workers.append(death)


def kill_schedulers(scheduler: MortalScheduler, every: float, stop: threading.Event, deaths: Deaths) -> None:
    """Kill the scheduler and start it again at once, each `every` seconds until told to stop."""
    began = time.monotonic()
    for number in range(1, 1 << 30):
        if stop.wait(max(0.0, began + number * every - time.monotonic())):
            return
        deaths.schedulers.append(SchedulerDeath(*scheduler.kill_and_restart()))
