"""No-op tasks by `map`, in turn with the pools of the standard library: each returns its argument."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass

from .figures import Figure, at_least, ratios
from .processes import WORKERS, client_of_combo, forked_pool, leave_interrupts
from .workload import identity


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_runs: int


FULL = Sizes(tasks=1_000_000, runs=5, warm_up_runs=3)
FULL_TCP = Sizes(tasks=500_000, runs=3, warm_up_runs=1)
QUICK = Sizes(tasks=20_000, runs=2, warm_up_runs=1)


def measure(is_quick: bool) -> list[Figure]:
    """Measure `map` in turn with the pools of the standard library, each with the same number of processes."""
    sizes = QUICK if is_quick else FULL
    ours: list[float] = []
    pools: list[float] = []
    executors: list[float] = []
    items = range(sizes.tasks)
    # The pools go first: they fork, which is safest before threads exist.
    with multiprocessing.get_context("fork").Pool(WORKERS, leave_interrupts) as pool, forked_pool(WORKERS) as executor:
        pool.map(identity, range(10 * WORKERS))
        list(executor.map(identity, range(10 * WORKERS), chunksize=1))
        with client_of_combo() as client:
            for _ in range(sizes.warm_up_runs):
                _rate(sizes.tasks, lambda: client.map(identity, zip(items, strict=True)))
            for _ in range(sizes.runs):
                ours.append(_rate(sizes.tasks, lambda: client.map(identity, zip(items, strict=True))))
                pools.append(_rate(sizes.tasks, lambda: pool.map(identity, items)))
                executors.append(_rate(sizes.tasks, lambda: list(executor.map(identity, items, chunksize=100))))
    what = f"{sizes.tasks:,} no-op tasks by"
    return [
        Figure("map.rate", f"{what} map, {WORKERS} workers", "tasks/s", ours, at_least(400_000)),
        Figure("map.pool_rate", f"{what} multiprocessing.Pool.map", "tasks/s", pools),
        Figure("map.executor_rate", f"{what} ProcessPoolExecutor.map(chunksize=100)", "tasks/s", executors),
        Figure("map.ratio_to_pool", "ratio of map to Pool.map", "x", ratios(ours, pools), at_least(0.5)),
        Figure(
            "map.ratio_to_executor",
            "ratio of map to ProcessPoolExecutor.map(chunksize=100)",
            "x",
            ratios(ours, executors),
            at_least(3),
        ),
    ]


def measure_tcp(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL_TCP
    rates = _rates("tcp://127.0.0.1:*", sizes)
    return [Figure("tcp.map_rate", f"{sizes.tasks:,} no-op tasks by map, {WORKERS} workers, tcp", "tasks/s", rates)]


def _rates(address: str | None, sizes: Sizes) -> list[float]:
    items = range(sizes.tasks)
    with client_of_combo(address=address) as client:
        rates = [
            _rate(sizes.tasks, lambda: client.map(identity, zip(items, strict=True)))
            for _ in range(sizes.warm_up_runs + sizes.runs)
        ]
    return rates[sizes.warm_up_runs :]


def _rate(tasks: int, run: Callable[[], list[int]]) -> float:
    begin = time.perf_counter()
    results = run()
    seconds = time.perf_counter() - begin
    if results != list(range(tasks)):
        raise RuntimeError("map gave wrong results")
    return tasks / seconds
