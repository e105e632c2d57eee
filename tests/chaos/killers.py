"""Injects faults: which fault, into which process, at which time."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.chaos.judge import Fault
from tests.chaos.network import Network
from tests.chaos.processes import Host, LoadProcess, MortalScheduler, kill, signal_to

T = TypeVar("T")

CUT_SECONDS = (0.5, 8.0)
"""Random cuts of the network, in seconds. Some are longer than the lease of workers and agents."""

FROZEN_SECONDS = (0.3, 6.0)
"""Times for which processes are stopped (SIGSTOP, SIGCONT), in seconds."""

LONG_CUT_SECONDS = 90.0
"""Longer than every lease, and longer than a client waits by default."""


@dataclass
class WorkerDeath:
    time: float
    """In seconds of the monotonic clock, as all times here."""
    replacement: int = 0
    """The process that replaced it; 0: not known."""


@dataclass
class SchedulerDeath:
    time: float
    back_at: float
    """When the next scheduler had bound the address."""


@dataclass
class Deaths:
    workers: list[WorkerDeath] = field(default_factory=list)
    schedulers: list[SchedulerDeath] = field(default_factory=list)
    """The killed workers."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of all other faults, by kind."""
    outages: list[tuple[float, float]] = field(default_factory=list)
    """Times without a reachable scheduler."""
    faults: list[Fault] = field(default_factory=list)
    """All faults, for the judge."""


def kill_workers(hosts: list[Host], every: float, seed: int, stop: threading.Event, deaths: Deaths) -> None:
    """Kill one worker every `every` seconds, host by host, until `stop` is set."""
    choice = random.Random(seed)
    seen = [set(host.workers()) for host in hosts]
    last: list[WorkerDeath | None] = [None for _ in hosts]
    for number in _moments(every, stop):
        of = number % len(hosts)
        living = hosts[of].workers()
        came = set(living) - seen[of]
        seen[of] |= came
        death = last[of]
        if death is not None and len(came) == 1:
            (death.replacement,) = came
        if living:
            pid = choice.choice(living)
            last[of] = death = WorkerDeath(kill(pid))
            deaths.workers.append(death)
            deaths.faults.append(Fault("worker killed", death.time, death.time, frozenset({pid}), is_end=True))


def trouble_scheduler(
    scheduler: MortalScheduler,
    network: Network,
    every: float,
    seed: int,
    has_long_cut: bool,
    stop: threading.Event,
    deaths: Deaths,
) -> None:
    """Kill, stop, freeze or cut off the scheduler every `every` seconds, until `stop` is set."""
    chance = random.Random(seed)

    def without_scheduler(kind: str, begin: float, end: float) -> None:
        deaths.outages.append((begin, end))
        deaths.faults.append(Fault(kind, begin, end))

    def kill_it() -> None:
        with network.refusing():
            death = SchedulerDeath(*scheduler.kill_and_restart())
        deaths.schedulers.append(death)
        without_scheduler("scheduler ended", death.time, death.back_at)

    def stop_it() -> None:
        with network.refusing():
            outage = scheduler.stop_and_restart()
        without_scheduler("scheduler ended", *outage)
        deaths.counts["scheduler stopped"] += 1

    def freeze_it() -> None:
        began = time.monotonic()
        _freeze([scheduler.command.process.pid], chance.uniform(*FROZEN_SECONDS), stop)
        without_scheduler("scheduler frozen", began, time.monotonic())
        deaths.counts["scheduler frozen"] += 1

    def cut_off(seconds: float) -> None:
        began = time.monotonic()
        network.cut()
        stop.wait(seconds)
        network.mend(breaks_connections=chance.random() < 0.5)
        without_scheduler("network cut", began, time.monotonic())
        deaths.counts["network cut"] += 1

    def cut_shortly() -> None:
        cut_off(chance.uniform(*CUT_SECONDS))

    ways = _deck(chance, [kill_it, kill_it, stop_it, freeze_it, cut_shortly], first=kill_it)
    for number, way in zip(_moments(every, stop), ways):
        if has_long_cut and number == 3:
            cut_off(LONG_CUT_SECONDS)
            deaths.counts[f"network cut for {LONG_CUT_SECONDS:g} s"] += 1
        else:
            way()


def trouble_hosts(
    hosts: list[Host], clients: list[LoadProcess], every: float, seed: int, stop: threading.Event, deaths: Deaths
) -> None:
    """Every `every` seconds, end one host in another way and start it again, or freeze a host or process."""
    chance = random.Random(seed)

    def ending(end: Callable[[Host], None]) -> Callable[[Host], None]:
        def end_and_start(host: Host) -> None:
            end(host)
            host.start()

        return end_and_start

    def freeze_host(host: Host) -> None:
        _freeze([process.pid for process in host.processes()], chance.uniform(*FROZEN_SECONDS), stop)

    def freeze_worker(host: Host) -> None:
        workers = host.workers()
        if workers:
            _freeze([chance.choice(workers)], chance.uniform(*FROZEN_SECONDS), stop)

    def freeze_client(_: Host) -> None:
        _freeze([chance.choice(clients).process.pid], chance.uniform(*FROZEN_SECONDS), stop)

    stopping = "cluster stopped", ending(Host.stop)
    kinds = [
        *(stopping, stopping, stopping),
        *(("agent killed", ending(Host.kill_agent)), ("fork_server killed", ending(Host.kill_fork_server))),
        *(("host killed", ending(Host.kill_all)), ("host frozen", freeze_host)),
        *(("worker frozen", freeze_worker), ("client frozen", freeze_client)),
    ]
    for _, (kind, way) in zip(_moments(every, stop), _deck(chance, kinds, first=stopping)):
        host = chance.choice(hosts)
        host.look()
        began = time.monotonic()
        way(host)
        deaths.counts[kind] += 1
        if kind != "client frozen":
            is_end = "frozen" not in kind
            deaths.faults.append(Fault(kind, began, time.monotonic(), host.living, is_end))


def _moments(every: float, stop: threading.Event) -> Iterator[int]:
    """Yield numbers from 1 on, one every `every` seconds, until `stop` is set. Late numbers are left out."""
    began = time.monotonic()
    number = 0
    while True:
        number += 1
        next_at = began + number * every
        if next_at < time.monotonic():
            began = time.monotonic() - number * every
        if stop.wait(max(0.0, next_at - time.monotonic())):
            return
        yield number


def _deck(chance: random.Random, kinds: Sequence[T], first: T) -> Iterator[T]:
    """Yield all kinds in random order, again and again: no kind is left out for long."""
    yield first
    while True:
        yield from chance.sample(kinds, len(kinds))


def _freeze(processes: list[int], seconds: float, stop: threading.Event) -> None:
    for process in processes:
        signal_to(process, signal.SIGSTOP)
    try:
        stop.wait(seconds)
    finally:
        for process in processes:
            signal_to(process, signal.SIGCONT)
