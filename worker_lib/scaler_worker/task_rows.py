"""A task on a worker, as plain tuples: a row of a dispatch, and its answer.

Reason: a named tuple costs as much as a whole no-op task.
"""

from __future__ import annotations

from collections.abc import Sequence

from scaler_client.protocol.messages import Payload, TaskAttempt

PlainRow = tuple[int, int, int, int, Payload]
"""A task to run: client, id, attempt, function, payload."""

Input = int | Payload | list[Payload]
"""The id of an object, the bytes themselves, or a list that gets the result of a row before."""

SpecialRow = tuple[int, int, int, int, Payload, int, int, int, Sequence[Input], str]
"""A task with flags, depth, priority, inputs or a given name, which follow the five fields of a PlainRow."""

Row = PlainRow | SpecialRow

Answer = tuple[int, int, int, int, int, Payload]
"""The result of a task: client, id, attempt, outcome, duration in nanoseconds, payload."""

Cost = tuple[int, int]
"""The cost of a profiled task: CPU time in nanoseconds, largest resident size in bytes."""


def attempt_of(row: Row | Answer) -> TaskAttempt:
    return row[0], row[1], row[2]


def flags_of(row: Row) -> int:
    return row[5] if len(row) != 5 else 0


def task_name_of(row: Row) -> str:
    """The name that the user has given to the task; empty if there is none."""
    return row[9] if len(row) != 5 else ""


def reads_objects(row: Row | None) -> bool:
    return row is not None and len(row) != 5 and bool(row[8])


def depth_of(row: Row) -> int:
    return row[6] if len(row) != 5 else 0


def priority_of(row: Row) -> int:
    return row[7] if len(row) != 5 else 0
