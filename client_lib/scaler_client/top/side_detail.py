"""The details of one row of a side table."""

from __future__ import annotations

from typing import Any, Callable

from ..monitor.snapshot_view import ClientRow, FunctionRow, ObjectRow, RunningTask, SnapshotView
from ..protocol.snapshots import PoolState, TaskLimit
from .detail import Entries, total_with_rate
from .number_format import count, duration, percent, size
from .side_tables import (
    CLIENTS,
    FUNCTIONS,
    KEYS,
    LIMITS,
    OBJECTS,
    POOLS,
    SHARES,
    ShareRow,
    all_rows,
    limit_text,
    object_name,
    object_state,
)

MAX_RUNNING = 100
"""The maximum number of running tasks and objects that are listed."""


def side_entries(view: SnapshotView, table: str, key: Any) -> Entries | None:
    """The details of the row with this key; None if there is no such row any more."""
    row = next((row for row in all_rows(view, table) if KEYS[table](row) == key), None)
    return None if row is None else _PAGES[table](view, row)


def _function(view: SnapshotView, row: FunctionRow) -> Entries:
    names = {row.name, *row.task_names.split(", ")}
    return [
        (
            f"Function {row.name}",
            [
                ("called", row.task_names or "by its own name"),
                ("number", str(row.number)),
                ("bytes", f"{size(row.bytes)} pickled"),
                ("clients", f"{count(row.clients)} can submit tasks of it"),
            ],
        ),
        (
            "Tasks",
            [
                ("open", count(row.tasks)),
                ("done", total_with_rate(row.done, row.done_rate)),
                ("failed", count(row.failed)),
                ("mean", duration(row.mean_seconds)),
            ],
        ),
        ("Runs, by its names", _running(view, lambda task: task.name in names)),
    ]


def _client(view: SnapshotView, row: ClientRow) -> Entries:
    worker = next((one.name for one in view.workers if one.incarnation == row.worker), f"{row.worker:x}, not shown")
    objects = [one for one in view.objects if one.client == row.incarnation]
    return [
        (
            f"Client {row.name}",
            [
                ("incarnation", f"{row.incarnation:x}"),
                ("share", row.share),
                *([("lives in", f"worker {worker}")] if row.worker else []),
            ],
        ),
        (
            "Tasks",
            [
                ("waiting", count(row.waiting)),
                ("others", f"{count(row.not_waiting)} with workers, or blocked"),
                ("done", total_with_rate(row.done, row.done_rate)),
            ],
        ),
        ("Runs", _running(view, lambda task: task.client == row.incarnation)),
        (
            "Objects",
            [
                ("objects", f"{count(row.objects)} of {size(row.object_bytes)}"),
                *((object_name(one), f"{size(one.bytes)}, {object_state(one)}") for one in objects[:MAX_RUNNING]),
            ],
        ),
    ]


def _object(view: SnapshotView, row: ObjectRow) -> Entries:
    client = next((one for one in view.clients if one.incarnation == row.client), None)
    return [
        (
            f"Object {object_name(row)}",
            [
                ("id", str(row.id)),
                ("client", f"{client.name if client else 'not shown'} ({row.client:x})"),
                ("bytes", size(row.bytes)),
                ("tasks", f"{count(row.tasks)} open ones read it"),
                ("state", object_state(row)),
            ],
        )
    ]


def _share(_: SnapshotView, row: ShareRow) -> Entries:
    share = row.share
    return [
        (
            f"Share {share.name}",
            [
                ("weight", f"{share.weight:g}"),
                ("clients", count(share.clients)),
                ("running", count(share.running) + _at_most(share.max_running)),
                ("waiting", count(share.waiting) + _at_most(share.max_waiting)),
                ("used", f"{duration(share.used_seconds)}, {percent(row.percent)} of the time of all shares"),
            ],
        )
    ]


def _at_most(limit: int) -> str:
    return f", at most {count(limit)}" if limit else ""


def _limit(_: SnapshotView, row: TaskLimit) -> Entries:
    figures = [("most", limit_text(row)), ("running", count(row.running)), ("waiting", count(row.waiting))]
    return [(f"Limit {row.name}", figures)]


def _pool(_: SnapshotView, row: PoolState) -> Entries:
    hosts = {
        "wanted": row.wanted,
        "there": row.there,
        "booting": row.booting,
        "draining": row.draining,
        "failed": row.failed,
        "late": row.late,
        "left": row.left,
    }
    states = [("rests", "too many hosts failed")] if row.is_resting else []
    if row.problem:
        states += [("fails for", duration(row.problem_seconds)), ("problem", row.problem)]
    return [(f"Pool {row.name}", [*((name, f"{count(number)} hosts") for name, number in hosts.items()), *states])]


def _running(view: SnapshotView, belongs: Callable[[RunningTask], bool]) -> list[tuple[str, str]]:
    """The running tasks that belong to the row, the longest first."""
    found = [(row.name, row.task) for row in view.workers if row.task is not None and belongs(row.task)]
    found.sort(key=lambda each: -each[1].seconds)
    lines = [(duration(task.seconds), f"{task.name}#{task.id} on {worker}") for worker, task in found[:MAX_RUNNING]]
    if len(found) > MAX_RUNNING:
        lines.append(("", f"and {count(len(found) - MAX_RUNNING)} more"))
    return lines or [("", "none is known: short tasks are not listed")]


_PAGES: dict[str, Callable[[SnapshotView, Any], Entries]] = {
    FUNCTIONS: _function,
    CLIENTS: _client,
    OBJECTS: _object,
    SHARES: _share,
    LIMITS: _limit,
    POOLS: _pool,
}
