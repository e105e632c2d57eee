"""A task on a worker: what comes with a dispatch, and what goes back.

Plain tuples: a named one costs as much as a whole no-op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from scaler_client.protocol.messages import Payload, TaskName

PlainRow = tuple[int, int, int, int, Payload]
"""A task to run: client, id, attempt, function, payload."""

SpecialRow = tuple[int, int, int, int, Payload, int, int, int, Sequence[Union[int, Payload]], str]
"""The same with flags, depth, priority, what it reads, and its given name, where it has any of these. What it reads are
bytes that have come along, and ids of objects."""

Row = Union[PlainRow, SpecialRow]

Answer = tuple[int, int, int, int, int, Payload]
"""A task that has run: client, id, attempt, outcome, duration in nanoseconds, payload."""

Cost = tuple[int, int]
"""Of a profiled task: CPU time in nanoseconds, the largest resident size seen in bytes."""

ObjectName = tuple[int, int]
"""Of an object: its client's incarnation, and an id of that client's."""


def name_of(row: Row | Answer) -> TaskName:
    return row[0], row[1], row[2]


def flags_of(row: Row) -> int:
    return row[5] if len(row) != 5 else 0


def given_name_of(row: Row) -> str:
    """Empty where it has none."""
    return row[9] if len(row) != 5 else ""


def reads_objects(row: Row | None) -> bool:
    return row is not None and len(row) != 5 and bool(row[8])


def depth_of(row: Row) -> int:
    return row[6] if len(row) != 5 else 0


def priority_of(row: Row) -> int:
    return row[7] if len(row) != 5 else 0
