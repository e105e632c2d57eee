"""Graphs for the measures, with the keys to ask for. Every value is 1."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

from .workload import first

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


def levels(count: int) -> tuple[Graph, list[Hashable]]:
    """Levels with the same number of nodes. Each node reads some nodes of the level below."""
    chance = random.Random(1)
    width = count // LEVELS
    graph: Graph = {("node", 0, number): (first, 1, number) for number in range(width)}
    for level in range(1, LEVELS):
        for number in range(width):
            others = [number, *(chance.randrange(width) for _ in range(INPUTS - 1))]  # so that every node is needed
            graph["node", level, number] = (first, *(("node", level - 1, other) for other in others))
    return graph, [("node", LEVELS - 1, number) for number in range(width)]
