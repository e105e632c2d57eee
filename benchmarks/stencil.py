"""METG(50 %) of stencils on two workers: a graph, in turn with a ProcessPoolExecutor that gathers each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from scaler_client import Client

from .figures import Figure, at_most, ratios
from .graph_shapes import stencil
from .metg import FULL, QUICK, InefficientError, Run, shortest_useful_task
from .processes import PATIENCE_SECONDS, client_of_combo, forked_pool
from .workload import spin

WORKERS = 2
WIDTHS = (2, 8)
RUNS = 2
QUICK_RUNS = 1
WARM_UP_SECONDS = 1.0
QUICK_WARM_UP_SECONDS = 0.1


def measure(is_quick: bool) -> list[Figure]:
    figures = []
    # The pool goes first: it forks, which is safest before threads exist.
    with forked_pool(WORKERS) as pool, client_of_combo(WORKERS) as client:
        for width in WIDTHS:
            runs = {"graph": _of_graph(client, width), "pool": _of_pool(pool, width)}
            found = _searched(runs, width, is_quick)
            ratio = ratios(found["graph"], found["pool"])
            title = f"METG(50 %), stencil of width {width}, {WORKERS} workers"
            figures += [
                Figure(f"stencil.{width}", f"{title}: a graph", "ms", found["graph"]),
                Figure(f"stencil.{width}_pool", "ProcessPoolExecutor, step by step", "ms", found["pool"]),
                Figure(f"stencil.{width}_ratio", "ratio of the two", "x", ratio, at_most(1)),
            ]
    return figures


def _searched(runs: dict[str, Run], width: int, is_quick: bool) -> dict[str, list[float]]:
    """The METG of each of these, in ms, searched in turn."""
    search = QUICK if is_quick else replace(FULL, run_seconds=0.2)
    for run in runs.values():
        end = time.monotonic() + (QUICK_WARM_UP_SECONDS if is_quick else WARM_UP_SECONDS)
        while time.monotonic() < end:
            run(50, 0.0)
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(QUICK_RUNS if is_quick else RUNS):
        for name, run in runs.items():
            # Each further search begins near what the first one has found.
            near = replace(search, first=min(search.longest, 4e-3 * found[name][0])) if found[name] else search
            try:
                seconds = shortest_useful_task(run, width, WORKERS, near)
            except InefficientError:
                if not is_quick:
                    raise
                seconds = near.longest  # a quick run shows that it works, on a busy machine too
            found[name].append(seconds * 1e3)
    return found


def _of_graph(client: Client, width: int) -> Run:
    return _timed(lambda steps, seconds: client.get(*stencil(width, steps, seconds)))


def _of_pool(pool: ProcessPoolExecutor, width: int) -> Run:
    def run(steps: int, seconds: float) -> None:
        values = [0] * width
        for _ in range(steps):
            futures = [pool.submit(spin, seconds, *values[max(0, n - 1) : n + 2]) for n in range(width)]
            values = [future.result(PATIENCE_SECONDS) for future in futures]

    return _timed(run)


def _timed(run: Callable[[int, float], object]) -> Run:
    def seconds_of(steps: int, seconds: float) -> float:
        begin = time.perf_counter()
        run(steps, seconds)
        return time.perf_counter() - begin

    return seconds_of
