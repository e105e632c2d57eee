"""What a graph's keys need, and in which order: level by level, so that inputs come before what reads them.

Two ways to find out, with the same results: in Python, and by GraphBLAS (`graph_blas`).
"""

from __future__ import annotations

from collections.abc import Sequence

from .graph_nodes import Nodes

PYTHON = "python"
GRAPHBLAS = "graphblas"
BACKENDS = (PYTHON, GRAPHBLAS)

# In the place of a level, which is 0 or more:
NO_NODE = -1
UNSEEN = -2
UNDER_WAY = -3


def check_backend(name: str) -> None:
    """Raise where there is no such way.

    Raises:
        ValueError: there is none by this name.
        ImportError: its library is not installed; the text names the extra.
    """
    if name not in BACKENDS:
        raise ValueError(f"graph_backend must be one of {', '.join(BACKENDS)}, not {name!r}")
    if name == GRAPHBLAS:
        from . import graph_blas  # noqa: F401  # not at the top: its library is an extra


def order(nodes: Nodes, wanted: Sequence[int], backend: str) -> list[int]:
    """Read the nodes that these need, themselves included; returns them by level, and by position within a level.

    A node without inputs is of level 0, any other one level above the highest of its inputs.

    Raises:
        ValueError: nodes need one another in a circle, or one is nested too deep; the text names them.
    """
    if backend == GRAPHBLAS:
        from . import graph_blas

        ordered = graph_blas.order(nodes, wanted)
        if ordered is not None:
            return ordered
    return order_in_python(nodes, wanted)


def order_in_python(nodes: Nodes, wanted: Sequence[int]) -> list[int]:
    """The same, depth first."""
    levels = [UNSEEN] * len(nodes)
    levels.append(NO_NODE)  # where position -1 is found
    level_of = levels.__getitem__
    shapes, named, begins, ends = nodes.shapes, nodes.named, nodes.begins, nodes.ends
    needed = []
    under_way: list[int] = []  # each is read by the one before it
    stack = list(reversed(wanted))  # these, and behind each what it reads and is to be looked at
    while stack:
        position = stack[-1]
        level = levels[position]
        if level == UNSEEN:
            if not shapes[position]:
                nodes.read(position)
            inputs = named[begins[position] : ends[position]]
            needed.append(position)
            if inputs and min(map(level_of, inputs)) < NO_NODE:
                levels[position] = UNDER_WAY
                under_way.append(position)
                for each in inputs:
                    if levels[each] == UNSEEN:
                        stack.append(each)
                    elif levels[each] == UNDER_WAY:
                        circle = [*under_way[under_way.index(each) :], each]
                        raise ValueError(f"the graph has a cycle: {nodes.names(circle, ' -> ')}")
                continue
        elif level == UNDER_WAY:
            inputs = named[begins[position] : ends[position]]
            under_way.pop()
        else:
            stack.pop()
            continue
        levels[position] = max(map(level_of, inputs)) + 1 if inputs else 0
        stack.pop()
    needed.sort()
    needed.sort(key=level_of)
    return needed
