"""Tasks that sleep: the ideal makespan as a share of the real one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaler_client import Client

from .figures import Figure, at_least
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import noop, sleep_fixed, sleep_random

SEED = 20_260_319


@dataclass(frozen=True)
class Sizes:
    fixed_tasks: int
    random_tasks: int
    runs: int
    warm_up_tasks: int


FULL = Sizes(fixed_tasks=2_000, random_tasks=1_000, runs=3, warm_up_tasks=20_000)
QUICK = Sizes(fixed_tasks=200, random_tasks=100, runs=1, warm_up_tasks=500)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    generator = random.Random(SEED)
    fixed = [0.010] * sizes.fixed_tasks
    uneven = [generator.uniform(0.001, 0.100) for _ in range(sizes.random_tasks)]
    fixed_shares: list[float] = []
    uneven_shares: list[float] = []
    with client_of_combo() as client:
        client.map(noop, [()] * sizes.warm_up_tasks)
        for _ in range(sizes.runs):
            fixed_shares.append(_share(client, sleep_fixed, fixed))
            uneven_shares.append(_share(client, sleep_random, uneven))
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
    ]


def _share(client: Client, sleep: Callable[[float], None], durations: Sequence[float]) -> float:
    """The ideal makespan as a percentage of the real one."""
    begin = time.perf_counter()
    futures = [client.submit(sleep, seconds) for seconds in durations]
    for future in futures:
        future.result(PATIENCE_SECONDS)
    return 100 * sum(durations) / WORKERS / (time.perf_counter() - begin)
