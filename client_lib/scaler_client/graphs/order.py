"""Finds the nodes that the requested keys need, in an order with inputs before their readers.

There are two backends. The Python backend works depth first, so that results are read soon and can be freed. The
GraphBLAS backend (`graphblas.py`) works level by level.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import GraphCycleError
from .nodes import Nodes

PYTHON = "python"
GRAPHBLAS = "graphblas"
BACKENDS = (PYTHON, GRAPHBLAS)

_UNVISITED, _VISITING, _VISITED = 0, 1, 2


def check_backend(name: str) -> None:
    """Check the name of a graph backend.

    Raises:
        TypeError: the name is not a string.
        ValueError: there is no such backend.
        ImportError: the library of the backend is not installed; the text names the extra.
    """
    if not isinstance(name, str):
        raise TypeError(f"graph_backend must be a string, not {name!r}")
    if name not in BACKENDS:
        raise ValueError(f"graph_backend must be one of {', '.join(BACKENDS)}, not {name!r}")
    if name == GRAPHBLAS:
        from . import graphblas  # noqa: F401  # not at the top: the library is an extra


def order(nodes: Nodes, wanted: Sequence[int], backend: str) -> list[int]:
    """Read the nodes that the wanted nodes need; returns all of them, with inputs before their readers.

    The scheduler starts nodes that are ready in this order.

    Raises:
        GraphCycleError: the graph has a cycle; the text names its nodes.
        ValueError: a node is nested too deep.
    """
    if backend == GRAPHBLAS:
        from . import graphblas

        ordered = graphblas.order(nodes, wanted)
        if ordered is not None:
            return ordered
    return order_depth_first(nodes, wanted)


def order_depth_first(nodes: Nodes, wanted: Sequence[int]) -> list[int]:
    """Do what `order` does, depth first."""
    states = bytearray(len(nodes))
    states.append(_VISITED)  # for position -1, which stands for a literal
    shapes, flat_inputs, begins, ends = nodes.shapes, nodes.flat_inputs, nodes.begins, nodes.ends
    ordered: list[int] = []
    stack = list(reversed(wanted))  # wanted nodes, and above each node its inputs that are still to be read
    while stack:
        position = stack[-1]
        if states[position] == _UNVISITED:
            states[position] = _VISITING
            if not shapes[position]:
                nodes.read(position)
            for each in reversed(flat_inputs[begins[position] : ends[position]]):
                if states[each] == _UNVISITED:
                    stack.append(each)
                elif states[each] == _VISITING:
                    path = [other for other in stack if states[other] == _VISITING]
                    cycle = [*path[path.index(each) :], each]
                    keys = [nodes.keys[other] for other in cycle]
                    raise GraphCycleError(f"the graph has a cycle: {nodes.names(cycle, ' -> ')}", keys)
            if stack[-1] != position:
                continue
        stack.pop()
        if states[position] == _VISITING:
            states[position] = _VISITED
            ordered.append(position)
    return ordered
