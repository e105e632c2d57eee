"""Graphs for the measures, with the keys to ask for. Every value is 1."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

from .workload import first, spin

LEVELS = 20
INPUTS = 3

Graph = dict[Hashable, Any]


def tree(count: int) -> tuple[Graph, list[Hashable]]:
    """A reduction of pairs."""
    graph: Graph = {}
    level = [f"leaf-{number}" for number in range((count + 1) // 2)]
    for number, name in enumerate(level):
        graph[name] = (first, 1, number)
    while len(level) > 1:
        above = [f"{name}+" for name in level[: len(level) // 2]]
        for position, name in enumerate(above):
            graph[name] = (first, level[2 * position], level[2 * position + 1])
        level = [*above, *level[2 * len(above) :]]
    return graph, list(level)


def levels(count: int, inputs: int = INPUTS) -> tuple[Graph, list[Hashable]]:
    """Levels with the same number of nodes. Each node reads so many nodes of the level below."""
    chance = random.Random(1)
    width = count // LEVELS
    graph: Graph = {("node", 0, number): (first, 1, number) for number in range(width)}
    for level in range(1, LEVELS):
        for number in range(width):
            others = [number, *(chance.randrange(width) for _ in range(inputs - 1))]  # so that every node is needed
            graph["node", level, number] = (first, *(("node", level - 1, other) for other in others))
    return graph, [("node", LEVELS - 1, number) for number in range(width)]


def stencil(width: int, steps: int, seconds: float) -> tuple[Graph, list[Hashable]]:
    """Steps of as many tasks of so many seconds. Each task reads its own and both neighbours' previous values."""
    graph: Graph = {("step", 0, n): (spin, seconds) for n in range(width)}
    for step in range(1, steps):
        for n in range(width):
            inputs = (("step", step - 1, other) for other in range(max(0, n - 1), min(width, n + 2)))
            graph["step", step, n] = (spin, seconds, *inputs)
    return graph, [("step", steps - 1, n) for n in range(width)]
