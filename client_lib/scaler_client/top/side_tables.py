"""The tables of functions, objects, clients, shares, limits and pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from ..monitor.snapshot_view import ClientRow, FunctionRow, ObjectRow, SnapshotView
from ..protocol.snapshots import ObjectState, PoolState, Share, TaskLimit
from .number_format import count, duration, percent, rate, size
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


def limit_text(limit: TaskLimit) -> str:
    return count(limit.most, 7) if limit.most else f"{limit.per_second:.4g}/s"


def pool_name(pool: PoolState) -> str:
    state = "rests" if pool.is_resting else "fails" if pool.problem else ""
    return f"{pool.name} ({state})" if state else pool.name


def _tasks(row: Share | TaskLimit) -> int:
    return row.running + row.waiting


def _hosts(pool: PoolState) -> int:
    return pool.booting + pool.there + pool.draining


CLIENT_COLUMNS: tuple[Column[ClientRow], ...] = (
    Column("client", 12, lambda row: row.name, lambda row: row.name, stretches=True, is_text=True),
    Column("tasks", 9, lambda row: count(row.waiting + row.not_waiting, 8), lambda row: row.waiting + row.not_waiting),
    Column("waiting", 9, lambda row: count(row.waiting, 7), lambda row: row.waiting),
    Column("done/s", 8, lambda row: rate(row.done_rate), lambda row: row.done_rate, drop_order=1),
    Column("done", 9, lambda row: count(row.done, 8), lambda row: row.done, drop_order=3),
    Column("objects", 8, lambda row: count(row.objects, 7), lambda row: row.objects, drop_order=2),
    Column("bytes", 7, lambda row: size(row.object_bytes), lambda row: row.object_bytes, drop_order=2),
)


@dataclass(frozen=True)
class ShareRow:
    """A share, with its part of the time that all shares have used."""

    share: Share
    percent: float


SHARE_COLUMNS: tuple[Column[ShareRow], ...] = (
    Column("share", 12, lambda row: row.share.name, lambda row: row.share.name, stretches=True, is_text=True),
    Column("weight", 7, lambda row: f"{row.share.weight:.4g}", lambda row: row.share.weight, drop_order=2),
    Column("tasks", 9, lambda row: count(_tasks(row.share), 8), lambda row: _tasks(row.share)),
    Column("running", 8, lambda row: count(row.share.running, 7), lambda row: row.share.running),
    Column("waiting", 9, lambda row: count(row.share.waiting, 7), lambda row: row.share.waiting, drop_order=1),
    Column("time", 6, lambda row: percent(row.percent), lambda row: row.percent),
)

LIMIT_COLUMNS: tuple[Column[TaskLimit], ...] = (
    Column("limit", 12, lambda row: row.name, lambda row: row.name, stretches=True, is_text=True),
    Column("most", 8, limit_text, lambda row: row.most or row.per_second),
    Column("tasks", 9, lambda row: count(_tasks(row), 8), _tasks, drop_order=1),
    Column("running", 8, lambda row: count(row.running, 7), lambda row: row.running),
    Column("waiting", 9, lambda row: count(row.waiting, 7), lambda row: row.waiting),
)

POOL_COLUMNS: tuple[Column[PoolState], ...] = (
    Column("pool", 12, pool_name, lambda row: row.name, stretches=True, is_text=True),
    Column("hosts", 7, lambda row: count(_hosts(row), 6), _hosts),
    Column("wanted", 7, lambda row: count(row.wanted, 6), lambda row: row.wanted),
    Column("there", 7, lambda row: count(row.there, 6), lambda row: row.there, drop_order=1),
    Column("booting", 8, lambda row: count(row.booting, 6), lambda row: row.booting, drop_order=2),
    Column("draining", 9, lambda row: count(row.draining, 6), lambda row: row.draining, drop_order=3),
    Column("failed", 7, lambda row: count(row.failed, 6), lambda row: row.failed),
)

FUNCTIONS, OBJECTS, CLIENTS = "functions", "objects", "clients"
SHARES, LIMITS, POOLS = "shares", "limits", "pools"
LOWER = (CLIENTS, SHARES, LIMITS, POOLS)
"""The tables of the lower place, of which one is shown."""
COLUMNS: dict[str, tuple[Column[Any], ...]] = {
    FUNCTIONS: FUNCTION_COLUMNS,
    OBJECTS: OBJECT_COLUMNS,
    CLIENTS: CLIENT_COLUMNS,
    SHARES: SHARE_COLUMNS,
    LIMITS: LIMIT_COLUMNS,
    POOLS: POOL_COLUMNS,
}
SORTED_BY = {FUNCTIONS: "tasks", OBJECTS: "tasks", CLIENTS: "tasks", SHARES: "tasks", LIMITS: "tasks", POOLS: "hosts"}

KEYS: dict[str, Callable[[Any], Any]] = {
    FUNCTIONS: lambda row: row.number,
    OBJECTS: lambda row: (row.client, row.id),
    CLIENTS: lambda row: row.incarnation,
    SHARES: lambda row: row.share.name,
    LIMITS: lambda row: row.name,
    POOLS: lambda row: row.name,
}
"""What identifies a row of each table."""


def side_rows(view: SnapshotView, table: str, words: str) -> list[Any]:
    """The rows of a table that contain each of the words, those with the most tasks or hosts first."""
    wanted = words.lower().split()
    name, tasks = (_column(table, each) for each in (table[:-1], SORTED_BY[table]))
    rows = [row for row in all_rows(view, table) if all(word in _searchable_text(table, row) for word in wanted)]
    return sorted(sorted(rows, key=name.order), key=tasks.order, reverse=True)


def all_rows(view: SnapshotView, table: str) -> list[Any]:
    """The rows of a table in the order of the snapshot."""
    snapshot = view.snapshot
    if table == SHARES:
        used = sum(share.used_seconds for share in snapshot.shares)
        return [ShareRow(share, 100 * share.used_seconds / used if used else 0.0) for share in snapshot.shares]
    rows: dict[str, list[Any]] = {
        FUNCTIONS: view.functions,
        OBJECTS: view.objects,
        CLIENTS: view.clients,
        LIMITS: snapshot.limits,
        POOLS: snapshot.pools,
    }
    return rows[table]


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
    if table == CLIENTS:
        return max(snapshot.clients, len(view.clients))
    return len(all_rows(view, table))
