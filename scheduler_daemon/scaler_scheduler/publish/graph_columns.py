"""The columns of a Graphs message: nodes of graphs."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.report.graph_view import Node
from ..wire.columns import UINT8, UINT32, UINT64, columns_message, compacted
from ..wire.message_kinds import KIND_NAMES
from .snapshot_columns import TextTable

_GRAPHS = KIND_NAMES.index("graphs")


def graphs_frame(total: int, nodes: Sequence[Node], incarnation: int, started: float) -> bytes:
    """Frame 0 of a Graphs message.

    Args:
        total: the number of all nodes.
        nodes: the nodes with a row.
        incarnation: the scheduler's.
        started: the start of the scheduler, in seconds of the monotonic clock.
    """
    texts = TextTable()
    names = compacted([texts.number(node.name) for node in nodes])
    keys = compacted([texts.number(node.options.keys) for node in nodes])
    counts = [len(node.inputs) for node in nodes]
    return columns_message(
        _GRAPHS,
        (
            (UINT64, (incarnation,)),
            (UINT64, (total,)),
            (UINT64, compacted([node.client for node in nodes])),
            (UINT64, [node.id for node in nodes]),
            (UINT32, names),
            (UINT8, compacted([node.state for node in nodes])),
            (UINT64, [number for node in nodes for number in node.inputs]),
            (UINT32, compacted(counts)),
            *texts.columns(),
            (UINT64, compacted([node.options.graph for node in nodes])),
            (UINT32, keys),
            (UINT64, compacted([max(0, int((node.submitted_at - started) * 1000)) for node in nodes])),
        ),
    )
