"""Tasks that sleep: the ideal makespan as a share of the real one."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaler_client import Client

from .figures import Figure, at_least
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import noop, sleep_fixed, sleep_map, sleep_random, work_for

SEED = 20_260_319


@dataclass(frozen=True)
class Sizes:
    fixed_tasks: int
    random_tasks: int
    runs: int
    warm_up_tasks: int
    mix: tuple[tuple[int, float], ...]
    """Numbers of calls of one `map`, and their seconds."""


FULL = Sizes(
    fixed_tasks=2_000,
    random_tasks=1_000,
    runs=3,
    warm_up_tasks=20_000,
    mix=((100_000, 0.000_01), (1_000, 0.01), (10, 1.0)),
)
QUICK = Sizes(
    fixed_tasks=200, random_tasks=100, runs=1, warm_up_tasks=500, mix=((1_000, 0.000_01), (50, 0.01), (2, 0.1))
)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    generator = random.Random(SEED)
    fixed = [0.010] * sizes.fixed_tasks
    uneven = [generator.uniform(0.001, 0.100) for _ in range(sizes.random_tasks)]
    fixed_shares: list[float] = []
    uneven_shares: list[float] = []
    map_shares: list[float] = []
    mix_shares: list[float] = []
    mix = [seconds for count, seconds in sizes.mix for _ in range(count)]
    generator.shuffle(mix)
    with client_of_combo() as client:
        client.map(noop, [()] * sizes.warm_up_tasks)
        for _ in range(sizes.runs):
            fixed_shares.append(_share(client, sleep_fixed, fixed))
            uneven_shares.append(_share(client, sleep_random, uneven))
            map_shares.append(_map_share(client, sleep_map, fixed, sum(fixed) / WORKERS))
            mix_shares.append(_map_share(client, work_for, mix, list_schedule_seconds(mix, WORKERS)))
    bar = at_least(95)
    return [
        Figure("sleep.fixed", f"{len(fixed):,} tasks of 10 ms, share of the ideal makespan", "%", fixed_shares, bar),
        Figure(
            "sleep.random",
            f"{len(uneven):,} tasks of 1 to 100 ms, share of the ideal makespan",
            "%",
            uneven_shares,
            bar,
        ),
        Figure("sleep.map", f"{len(fixed):,} calls of 10 ms by map, share of the ideal makespan", "%", map_shares, bar),
        Figure(
            "sleep.mix",
            f"{len(mix):,} calls of 10 us, 10 ms and 1 s by map, share of the makespan of a list schedule",
            "%",
            mix_shares,
            at_least(90),
        ),
    ]


def list_schedule_seconds(durations: Sequence[float], workers: int) -> float:
    """Return the makespan if each call, in this order, begins on the worker that is free first, at no cost.

    No system that does not know the durations can be sure to do better (R. L. Graham, Bounds on multiprocessing timing
    anomalies, 1969).
    """
    ends = [0.0] * workers
    for seconds in durations:
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def _map_share(client: Client, fn: Callable[[float], None], durations: Sequence[float], ideal_seconds: float) -> float:
    begin = time.perf_counter()
    client.map(fn, zip(durations, strict=True))
    return 100 * ideal_seconds / (time.perf_counter() - begin)


def _share(client: Client, sleep: Callable[[float], None], durations: Sequence[float]) -> float:
    """The ideal makespan as a percentage of the real one."""
    begin = time.perf_counter()
    futures = [client.submit(sleep, seconds) for seconds in durations]
    for future in futures:
        future.result(PATIENCE_SECONDS)
    return 100 * sum(durations) / WORKERS / (time.perf_counter() - begin)
