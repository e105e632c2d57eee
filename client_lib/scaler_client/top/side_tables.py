"""The tables of functions, objects and clients."""

from __future__ import annotations

from typing import Any, Callable

from ..monitor.snapshot_view import ClientRow, FunctionRow, ObjectRow, SnapshotView
from ..protocol.snapshots import ObjectState
from .number_format import count, duration, rate, size
from .tables import Column

CALLED = "called"
"""The column of names that tasks of a function were given."""

FUNCTION_COLUMNS: tuple[Column[FunctionRow], ...] = (
    Column("function", 12, lambda row: row.name, lambda row: row.name, stretches=True, is_text=True),
    Column(
        CALLED, 12, lambda row: row.task_names, lambda row: row.task_names, drop_order=1, stretches=True, is_text=True
    ),
    Column("tasks", 8, lambda row: count(row.tasks, 7), lambda row: row.tasks),
    Column("done", 8, lambda row: count(row.done, 7), lambda row: row.done),
    Column("failed", 7, lambda row: count(row.failed, 6), lambda row: row.failed),
    Column("done/s", 9, lambda row: rate(row.done_rate), lambda row: row.done_rate, drop_order=2),
    Column("mean", 7, lambda row: duration(row.mean_seconds), lambda row: row.mean_seconds, drop_order=1),
    Column("bytes", 7, lambda row: size(row.bytes), lambda row: row.bytes, drop_order=3),
)
_STATES = {ObjectState.PENDING: "pending", ObjectState.IN_MEMORY: "memory", ObjectState.ON_HOST: "on host"}


def object_name(row: ObjectRow) -> str:
    return row.name or f"object {row.id}"


def object_state(row: ObjectRow) -> str:
    return _STATES[row.state] if isinstance(row.state, ObjectState) else f"state {row.state}"


OBJECT_COLUMNS: tuple[Column[ObjectRow], ...] = (
    Column("object", 12, object_name, object_name, stretches=True, is_text=True),
    Column("tasks", 8, lambda row: count(row.tasks, 7), lambda row: row.tasks),
    Column("bytes", 8, lambda row: size(row.bytes), lambda row: row.bytes),
    Column("state", 9, object_state, object_state, is_text=True),
)


CLIENT_COLUMNS: tuple[Column[ClientRow], ...] = (
    Column("client", 12, lambda row: row.name, lambda row: row.name, stretches=True, is_text=True),
    Column("tasks", 9, lambda row: count(row.waiting + row.not_waiting, 8), lambda row: row.waiting + row.not_waiting),
    Column("waiting", 9, lambda row: count(row.waiting, 7), lambda row: row.waiting),
    Column("done/s", 8, lambda row: rate(row.done_rate), lambda row: row.done_rate, drop_order=1),
    Column("done", 9, lambda row: count(row.done, 8), lambda row: row.done, drop_order=3),
    Column("objects", 8, lambda row: count(row.objects, 7), lambda row: row.objects, drop_order=2),
    Column("bytes", 7, lambda row: size(row.object_bytes), lambda row: row.object_bytes, drop_order=2),
)

FUNCTIONS, OBJECTS, CLIENTS = "functions", "objects", "clients"
COLUMNS: dict[str, tuple[Column[Any], ...]] = {
    FUNCTIONS: FUNCTION_COLUMNS,
    OBJECTS: OBJECT_COLUMNS,
    CLIENTS: CLIENT_COLUMNS,
}
SORTED_BY = "tasks"

KEYS: dict[str, Callable[[Any], Any]] = {
    FUNCTIONS: lambda row: row.number,
    OBJECTS: lambda row: (row.client, row.id),
    CLIENTS: lambda row: row.incarnation,
}
"""What identifies a row of each table."""


def side_rows(view: SnapshotView, table: str, words: str) -> list[Any]:
    """The rows of a table that contain each of the words, those with the most tasks first."""
    tables: dict[str, list[Any]] = {
        FUNCTIONS: view.functions,
        OBJECTS: view.objects,
        CLIENTS: view.clients,
    }
    wanted = words.lower().split()
    name, tasks = (_column(table, each) for each in (table[:-1], SORTED_BY))
    rows = [row for row in tables[table] if all(word in _searchable_text(table, row) for word in wanted)]
    return sorted(sorted(rows, key=name.order), key=tasks.order, reverse=True)


def side_columns(table: str, rows: list[Any]) -> list[Column[Any]]:
    """The columns of a table without empty ones: few programs name their tasks."""
    return [column for column in COLUMNS[table] if column.name != CALLED or any(row.task_names for row in rows)]


def _column(table: str, name: str) -> Column[Any]:
    return next(column for column in COLUMNS[table] if column.name == name)


def _searchable_text(table: str, row: Any) -> str:
    return " ".join(column.text(row) for column in COLUMNS[table] if column.is_text).lower()


def total_rows(view: SnapshotView, table: str) -> int:
    """The total number of rows. The scheduler publishes only the largest ones if there are too many."""
    snapshot = view.snapshot
    if table == FUNCTIONS:
        return max(snapshot.functions, len(view.functions))
    if table == OBJECTS:
        return max(snapshot.objects, len(view.objects))
    return max(snapshot.clients, len(view.clients))
