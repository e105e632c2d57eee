"""A task on a worker, as plain tuples: a row of a dispatch, and its answer.

Reason: a named tuple costs as much as a whole no-op task.
"""

from __future__ import annotations

from collections.abc import Sequence

from scaler_client.protocol.messages import Payload, TaskAttempt
from scaler_worker.objects.table import KnownObject

PlainRow = tuple[int, int, int, int, Payload]
"""A task to run: client, id, attempt, function, payload."""

Result = Payload | KnownObject
"""The result of a row for the row behind it: its bytes, or its file."""

Input = int | Payload | list[Result]
"""The id of an object, the bytes themselves, or a list that gets the result of a row before."""

SpecialRow = tuple[int, int, int, int, Payload, int, int, int, Sequence[Input], str, str]
"""A task with flags, depth, priority, inputs, a given name or a booking, which follow the five fields of a PlainRow."""

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


def booking_of(row: Row | None) -> str:
    """The resources that the task has, as `17 cpus=4 gpu=1.5:0+2`; empty if there are none."""
    return row[10] if row is not None and len(row) != 5 else ""


def without_booking(row: Row) -> Row:
    """The row without its resources."""
    return row if len(row) == 5 else (*row[:10], "")


def booking_number(booking: str) -> str:
    """The first word of a booking: rows with the same number share it."""
    return booking.partition(" ")[0]


def reads_objects(row: Row | None) -> bool:
    return row is not None and len(row) != 5 and bool(row[8])


def depth_of(row: Row) -> int:
    return row[6] if len(row) != 5 else 0


def priority_of(row: Row) -> int:
    return row[7] if len(row) != 5 else 0
