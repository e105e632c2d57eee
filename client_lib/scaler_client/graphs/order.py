"""What a graph's keys need, and in which order: inputs before what reads them.

Two ways to find out: in Python, which goes depth first, so that what is computed is soon read and can be freed; and by
GraphBLAS (`graphblas.py`), which goes level by level.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import GraphCycleError
from .nodes import Nodes

PYTHON = "python"
GRAPHBLAS = "graphblas"
BACKENDS = (PYTHON, GRAPHBLAS)

_UNSEEN, _UNDER_WAY, _DONE = 0, 1, 2


def check_backend(name: str) -> None:
    """Raise where there is no such way.

    Raises:
        TypeError, ValueError: there is none by this name.
        ImportError: its library is not installed; the text names the extra.
    """
    if not isinstance(name, str):
        raise TypeError(f"graph_backend must be a string, not {name!r}")
    if name not in BACKENDS:
        raise ValueError(f"graph_backend must be one of {', '.join(BACKENDS)}, not {name!r}")
    if name == GRAPHBLAS:
        from . import graphblas  # noqa: F401  # not at the top: its library is an extra


def order(nodes: Nodes, wanted: Sequence[int], backend: str) -> list[int]:
    """Read the nodes that these need, themselves included; returns them, inputs before what reads them.

    The scheduler starts what is ready in this order.

    Raises:
        GraphCycleError: nodes need one another in a circle; the text names them.
        ValueError: a node is nested too deep.
    """
    if backend == GRAPHBLAS:
        from . import graphblas

        ordered = graphblas.order(nodes, wanted)
        if ordered is not None:
            return ordered
    return order_depth_first(nodes, wanted)


def order_depth_first(nodes: Nodes, wanted: Sequence[int]) -> list[int]:
    """The same, depth first."""
    states = bytearray(len(nodes))
    states.append(_DONE)  # where position -1 is found, which is no node
    shapes, flat_inputs, begins, ends = nodes.shapes, nodes.flat_inputs, nodes.begins, nodes.ends
    ordered: list[int] = []
    stack = list(reversed(wanted))  # these, and above each what it reads and is to be looked at
    while stack:
        position = stack[-1]
        if states[position] == _UNSEEN:
            states[position] = _UNDER_WAY
            if not shapes[position]:
                nodes.read(position)
            for each in reversed(flat_inputs[begins[position] : ends[position]]):
                if states[each] == _UNSEEN:
                    stack.append(each)
                elif states[each] == _UNDER_WAY:
                    under_way = [other for other in stack if states[other] == _UNDER_WAY]
                    circle = [*under_way[under_way.index(each) :], each]
                    keys = [nodes.keys[other] for other in circle]
                    raise GraphCycleError(f"the graph has a cycle: {nodes.names(circle, ' -> ')}", keys)
            if stack[-1] != position:
                continue
        stack.pop()
        if states[position] == _UNDER_WAY:
            states[position] = _DONE
            ordered.append(position)
    return ordered
