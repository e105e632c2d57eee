"""The client's work on a graph before it sends the first message: reading, culling, cycles, order. By both back ends.

This needs no scheduler. GraphBLAS is measured if the extra `scaler-client[graphblas]` is installed.
"""

from __future__ import annotations

import gc
import importlib.util
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from scaler_client.graphs.nodes import Nodes
from scaler_client.graphs.order import GRAPHBLAS, PYTHON, order

from .figures import Figure, ratios
from .graph_shapes import INPUTS, LEVELS, Graph, levels, tree


@dataclass(frozen=True)
class Sizes:
    nodes: Sequence[int]
    runs: Sequence[int]
    """For each number of nodes."""


FULL = Sizes(nodes=(10_000, 100_000), runs=(3, 3))
QUICK = Sizes(nodes=(1_000,), runs=(2,))


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    figures: list[Figure] = []
    for nodes, runs in zip(sizes.nodes, sizes.runs, strict=True):
        figures += _measure_shape("tree", f"a reduction of pairs, {nodes:,} nodes", tree(nodes), runs)
        title = f"{LEVELS} levels, {INPUTS} inputs a node, {nodes:,} nodes"
        figures += _measure_shape("levels", title, levels(nodes), runs)
    return figures


def _measure_shape(shape: str, title: str, made: tuple[Graph, list[Hashable]], runs: int) -> list[Figure]:
    graph, keys = made
    name = f"analysis.{shape}.{len(graph)}"
    python = [_seconds(graph, keys, PYTHON) for _ in range(runs)]
    figures = [Figure(f"{name}.python", f"{title}, in Python", "s", python)]
    if importlib.util.find_spec("graphblas") is not None:
        _seconds(graph, keys, GRAPHBLAS)  # the first call initializes GraphBLAS
        by_matrices = [_seconds(graph, keys, GRAPHBLAS) for _ in range(runs)]
        figures.append(Figure(f"{name}.graphblas", f"{title}, by GraphBLAS", "s", by_matrices))
        figures.append(
            Figure(f"{name}.ratio", f"{title}, ratio of Python to GraphBLAS", "x", ratios(python, by_matrices))
        )
    return figures


def _seconds(graph: Graph, keys: list[Hashable], backend: str) -> float:
    gc.collect()
    begin = time.perf_counter()
    nodes = Nodes(graph)
    ordered = order(nodes, nodes.positions(keys), backend)
    seconds = time.perf_counter() - begin
    if len(ordered) != len(graph):
        raise RuntimeError(f"{len(ordered)} of {len(graph)} nodes")
    return seconds
