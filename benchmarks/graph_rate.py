"""The time of a graph, from submission to its last result, in turn with as many plain tasks."""

from __future__ import annotations

import gc
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from scaler_client import Client

from . import graph_memory
from .figures import Figure, at_most, ratios
from .graph_shapes import Graph, levels, tree
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import first


@dataclass(frozen=True)
class Sizes:
    nodes: int
    runs: int
    warm_up_runs: int


FULL = Sizes(nodes=100_000, runs=3, warm_up_runs=2)
QUICK = Sizes(nodes=400, runs=2, warm_up_runs=1)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    shapes = {"tree": tree(sizes.nodes), "levels": levels(sizes.nodes)}
    seconds: dict[str, list[float]] = {name: [] for name in ("plain", *shapes)}
    with client_of_combo() as client:
        for run in range(-sizes.warm_up_runs, sizes.runs):
            figures = {"plain": _plain_seconds(client, sizes.nodes)}
            figures.update({name: _graph_seconds(client, *shape) for name, shape in shapes.items()})
            for name, figure in figures.items():
                if run >= 0:
                    seconds[name].append(figure)
    plain = seconds["plain"]
    count = f"{sizes.nodes:,}"
    return [
        Figure("graph.plain", f"{count} plain tasks by submit, {WORKERS} workers", "s", plain),
        Figure("graph.tree", f"a graph of {count} nodes that each reduce two others", "s", seconds["tree"]),
        Figure(
            "graph.tree_ratio",
            "ratio to plain tasks, two inputs a node",
            "x",
            ratios(seconds["tree"], plain),
            at_most(1.4),
        ),
        Figure("graph.levels", f"a graph of {count} nodes: 20 levels, 3 inputs a node", "s", seconds["levels"]),
        Figure(
            "graph.levels_ratio",
            "ratio to plain tasks, three inputs a node",
            "x",
            ratios(seconds["levels"], plain),
            at_most(2),
        ),
        *graph_memory.memory_figures(is_quick),
    ]


def _plain_seconds(client: Client, tasks: int) -> float:
    gc.collect()
    begin = time.perf_counter()
    futures = [client.submit(first, number, number) for number in range(tasks)]
    for future in futures:
        future.result(PATIENCE_SECONDS)
    return time.perf_counter() - begin


def _graph_seconds(client: Client, graph: Graph, keys: list[Hashable]) -> float:
    gc.collect()
    begin = time.perf_counter()
    values: dict[Hashable, Any] = client.get(graph, keys)
    seconds = time.perf_counter() - begin
    if set(values.values()) != {1}:
        raise RuntimeError(f"wrong results: {values}")
    return seconds
