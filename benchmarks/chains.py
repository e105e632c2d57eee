"""Futures as arguments: a chain and a tree of tasks, submitted one by one, in turn with as many plain tasks.

A link of a chain can run only when the link before it has ended. So its elapsed time says how long a step takes, and
the processor time what a task costs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from scaler_client import Client

from .figures import Figure, at_most, ratios
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo, processor_seconds
from .workload import first


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_runs: int


FULL = Sizes(tasks=100_000, runs=3, warm_up_runs=1)
QUICK = Sizes(tasks=400, runs=2, warm_up_runs=1)

Shape = Callable[[Client, int], list[Future[Any]]]


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    shapes: dict[str, Shape] = {"plain": _plain, "chain": _chain, "tree": _tree}
    elapsed: dict[str, list[float]] = {name: [] for name in shapes}
    spent: dict[str, list[float]] = {name: [] for name in shapes}
    with client_of_combo() as client:
        for run in range(-sizes.warm_up_runs, sizes.runs):
            for name, submit in shapes.items():
                seconds, processor = _run(client, submit, sizes.tasks)
                if run >= 0:
                    elapsed[name].append(seconds)
                    spent[name].append(processor)
    count = f"{sizes.tasks:,}"
    titles = {"chain": "a chain, each task reads the one before", "tree": "a tree, each task reads two"}
    return [
        Figure("chains.plain", f"{count} plain tasks by submit, {WORKERS} workers", "s", elapsed["plain"]),
        Figure("chains.plain_processor", "processor time of all processes", "s", spent["plain"]),
        *(
            figure
            for name, title in titles.items()
            for figure in (
                Figure(f"chains.{name}", f"{count} tasks by submit in {title}", "s", elapsed[name]),
                Figure(
                    f"chains.{name}_ratio",
                    f"{name}: ratio to plain tasks",
                    "x",
                    ratios(elapsed[name], elapsed["plain"]),
                    at_most(2),
                ),
                Figure(
                    f"chains.{name}_processor_ratio",
                    f"{name}: ratio of the processor time of all processes",
                    "x",
                    ratios(spent[name], spent["plain"]),
                    at_most(2),
                ),
            )
        ),
    ]


def _run(client: Client, submit: Shape, count: int) -> tuple[float, float]:
    """Run as many tasks; return the elapsed seconds and the processor seconds of all processes."""
    gc.collect()
    spent = processor_seconds()
    begin = time.perf_counter()
    values = {future.result(PATIENCE_SECONDS) for future in submit(client, count)}
    elapsed = time.perf_counter() - begin
    if values != {1}:
        raise RuntimeError(f"wrong results: {values}")
    return elapsed, processor_seconds() - spent


def _plain(client: Client, count: int) -> list[Future[Any]]:
    return [client.submit(first, 1, number) for number in range(count)]


def _chain(client: Client, count: int) -> list[Future[Any]]:
    futures: list[Future[Any]] = [client.submit(first, 1)]
    for number in range(1, count):
        futures.append(client.submit(first, futures[-1], number))
    return futures


def _tree(client: Client, count: int) -> list[Future[Any]]:
    leaves = (count + 1) // 2
    futures: list[Future[Any]] = [client.submit(first, 1, number) for number in range(leaves)]
    for number in range(leaves - 1):  # each task is read by one other
        futures.append(client.submit(first, futures[2 * number], futures[2 * number + 1]))
    return futures
