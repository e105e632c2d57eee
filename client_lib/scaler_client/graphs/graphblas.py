"""The order of a graph's nodes, computed with the sparse matrices of GraphBLAS.

Each level of the graph costs a few calls, even if it has few nodes. So `order.py` handles deep and thin graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..commands.install_hints import install_hint
from .nodes import Nodes

try:
    import graphblas
    import numpy
except ImportError as error:
    raise ImportError(f"graph_backend='graphblas' needs python-graphblas: {install_hint('graphblas')}") from error

FIRST_LEVELS = 200
"""The number of levels after which the width of the graph is checked."""

NARROW_LEVEL_NODES = 100
"""A graph with fewer nodes a level, on average, is thin."""

_ANY = graphblas.semiring.any_pair[bool]
_COUNT = graphblas.semiring.plus_pair[numpy.int64]


class _NarrowGraphError(Exception):
    """The graph is deep and thin."""


def order(nodes: Nodes, wanted: Sequence[int]) -> list[int] | None:
    """Return the result of `order.order`, or None if the Python backend must do it: for thin graphs, and to name a
    cycle.
    """
    if not wanted:
        return []
    count = len(nodes)
    try:
        nodes.read_all()
        reads = _matrix(nodes)
        needed = _reachable(reads, wanted, count)
        levels = _topological_levels(reads, needed, count)
    except (ValueError, _NarrowGraphError):  # the node that cannot be read is perhaps not needed
        return None
    ordered: list[int] = numpy.concatenate([numpy.empty(0, numpy.int64), *levels]).tolist()
    return ordered if len(ordered) == needed.nvals else None


def _matrix(nodes: Nodes) -> Any:
    """Return the adjacency matrix: row i has an entry in column j if node i reads node j."""
    count = len(nodes)
    begins, ends = numpy.array(nodes.begins), numpy.array(nodes.ends)
    lengths = ends - begins
    readers = numpy.repeat(numpy.arange(count), lengths)
    # The indexes of all inputs in `flat_inputs`, which has gaps between the nodes.
    indexes = numpy.arange(len(readers)) + numpy.repeat(begins - (numpy.cumsum(lengths) - lengths), lengths)
    inputs = numpy.array(nodes.flat_inputs, numpy.int64)[indexes]
    is_node = inputs >= 0
    return graphblas.Matrix.from_coo(readers[is_node], inputs[is_node], True, nrows=count, ncols=count)


def _reachable(reads: Any, wanted: Sequence[int], count: int) -> Any:
    """Return the wanted nodes and all nodes that they need, as a vector."""
    needed = graphblas.Vector.from_coo(list(dict.fromkeys(wanted)), True, size=count)
    level = needed.dup()
    depth = 0
    while level.nvals:
        level(~needed.S, replace=True) << _ANY(level @ reads)
        needed(level.S) << True
        depth += 1
        _check_width(needed.nvals, depth)
    return needed


def _topological_levels(reads: Any, needed: Any, count: int) -> list[Any]:
    """Return the needed nodes level by level. Nodes in a cycle are left out."""
    read_by = reads.T.new()
    missing = graphblas.Vector(numpy.int64, count)
    missing(needed.S) << _COUNT(reads @ graphblas.Vector.from_scalar(True, count))
    level = graphblas.Vector(bool, count)
    level(~missing.S) << needed
    levels = []
    ordered_count = 0
    while level.nvals:
        levels.append(level.to_coo(values=False)[0].astype(numpy.int64))
        ordered_count += level.nvals
        _check_width(ordered_count, len(levels))
        done = graphblas.Vector(numpy.int64, count)
        done(missing.S) << _COUNT(level @ read_by)
        left = graphblas.binary.minus(missing & done).new()
        missing(left.S) << left
        level = graphblas.select.valueeq(left, 0).new()
        missing(~level.S, replace=True) << missing
    return levels


def _check_width(nodes: int, levels: int) -> None:
    if levels >= FIRST_LEVELS and nodes < levels * NARROW_LEVEL_NODES:
        raise _NarrowGraphError
