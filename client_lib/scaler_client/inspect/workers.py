"""`scaler_client workers`: the table of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..monitor.snapshot_view import SnapshotView, WorkerRow
from ..monitor.task_names import exact_name
from ..monitor.text_layout import (
    BAD,
    GAP,
    OutputFormat,
    clean,
    duration,
    percent,
    plural,
    rate,
    size,
    table,
    truncate_middle,
)
from ..protocol.snapshots import WorkerState

MAX_NAME_LENGTH = 36
MAX_TASK_LENGTH = 32
"""Characters for a worker's task, with its number and time, before other columns get more room."""

_KEYS: dict[str, tuple[Callable[[WorkerRow], Any], bool]] = {
    "name": (lambda row: row.name, False),
    "host": (lambda row: (row.host, row.name), False),
    "state": (lambda row: (state_of(row), row.name), False),
    "cpu": (lambda row: row.cpu_percent, True),
    "memory": (lambda row: row.resident_bytes, True),
    "held": (lambda row: row.held, True),
    "free": (lambda row: row.free, True),
    "done": (lambda row: row.done, True),
    "rate": (lambda row: row.done_rate, True),
    "lag": (lambda row: row.lag_seconds, True),
    "running": (lambda row: row.task.seconds if row.task else -1.0, True),
}
"""The sort keys, and whether the largest value comes first."""

SORT_KEYS = tuple(_KEYS)


def state_of(row: WorkerRow) -> str:
    """The state in one word."""
    if row.state & WorkerState.DOES_NOT_ANSWER:
        return "silent"
    if row.state & WorkerState.RETIRING:
        return "retires"
    if row.suspended and not row.running:
        return "waits"
    if row.state & WorkerState.HOLDS_TASK:
        return "busy"
    return "idle"


def select_workers(view: SnapshotView, sort: str, filter_text: str) -> list[WorkerRow]:
    """The workers that contain the text, sorted."""
    key, is_reversed = _KEYS[sort]
    rows = sorted(view.workers, key=lambda row: row.name)
    return sorted((row for row in rows if filter_text.lower() in _searchable_text(row)), key=key, reverse=is_reversed)


def _searchable_text(row: WorkerRow) -> str:
    task = row.task.name if row.task else ""
    return "\n".join((row.name, row.host, state_of(row), row.capabilities, row.environment, task)).lower()


_COLUMNS: tuple[tuple[str, Callable[[WorkerRow], str]], ...] = (
    ("WORKER", lambda row: truncate_middle(clean(row.name), MAX_NAME_LENGTH)),
    ("STATE", state_of),
    ("CPU", lambda row: percent(row.cpu_percent)),
    ("MEMORY", lambda row: size(row.resident_bytes)),
    ("HELD", lambda row: str(row.held)),
    ("FREE", lambda row: str(row.free)),
    ("DONE/s", lambda row: rate(row.done_rate)),
    ("LAG", lambda row: duration(row.lag_seconds) if row.lag_seconds else "-"),
    ("ENVIRONMENT", lambda row: row.short_environment or "-"),
)
_OPTIONAL = ("LAG", "FREE", "MEMORY", "DONE/s", "ENVIRONMENT", "CPU")
"""Columns that are left out, in this order, if names have no room."""
_LEFT_ALIGNED = ("WORKER", "STATE")


def workers_text(output: OutputFormat, view: SnapshotView, rows: list[WorkerRow]) -> list[str]:
    """The lines of the table: one for each worker, and a last one that counts them. The worker and its task are always
    shown."""
    cells = {title: [text(row) for row in rows] for title, text in _COLUMNS}
    if not any(row.environment for row in rows):
        del cells["ENVIRONMENT"]
    runs_width = max((len(_running_text(row, MAX_TASK_LENGTH)) for row in rows), default=0)
    for title in _OPTIONAL:
        if _width_of(cells) + runs_width <= output.columns:
            break
        cells.pop(title, None)
    cells["RUNS"] = [_running_text(row, output.columns - _width_of(cells)) for row in rows]
    titles = list(cells)
    left = {titles.index(title) for title in (*_LEFT_ALIGNED, "RUNS")}
    lines = table(output, titles, list(zip(*cells.values())), left)
    for at, row in enumerate(rows, 1):
        if row.state & WorkerState.DOES_NOT_ANSWER:
            lines[at] = output.styled(lines[at], BAD)
    of = "" if len(rows) == view.snapshot.workers else f" of {view.snapshot.workers:,}"
    return [*lines, f"{plural(len(rows), 'worker')}{of} on {plural(len({row.host for row in rows}), 'host')}"]


def _width_of(cells: Mapping[str, list[str]]) -> int:
    """The width of these columns with the gaps after them."""
    return sum(max(map(len, (title, *texts))) + GAP for title, texts in cells.items())


def _running_text(row: WorkerRow, width: int) -> str:
    """For example `fit#17 2.5 s`. If it is longer than `width`, the name is cut."""
    if row.task is None:
        return ""
    suffix = f"#{row.task.id} {duration(row.task.seconds)}"
    return truncate_middle(clean(row.task.name), max(0, width - len(suffix))) + suffix


def worker_json(row: WorkerRow) -> dict[str, Any]:
    """One worker as JSON. Its keys are stable."""
    task = row.task
    return {
        "worker": str(row.incarnation),
        "name": row.name,
        "host": row.host,
        "pid": row.pid,
        "language": row.language,
        "version": row.version,
        "capabilities": row.capabilities,
        "environment": row.environment,
        "state": state_of(row),
        "runs_long": bool(row.state & WorkerState.RUNS_LONG),
        "agent": str(row.agent),
        "agent_is_here": bool(row.state & WorkerState.AGENT_CONNECTED),
        "agent_cpu_percent": row.agent_cpu_percent,
        "agent_resident_bytes": row.agent_resident_bytes,
        "lag_seconds": row.lag_seconds,
        "cpu_percent": row.cpu_percent,
        "resident_bytes": row.resident_bytes,
        "free": row.free,
        "held": row.held,
        "queued": row.queued,
        "running": row.running,
        "suspended": row.suspended,
        "sent": row.sent,
        "sent_per_second": row.sent_rate,
        "done": row.done,
        "done_per_second": row.done_rate,
        "task": None
        if task is None
        else {
            "task": exact_name(task.client, task.id),
            "client": str(task.client),
            "id": str(task.id),
            "attempt": task.attempt,
            "name": task.name,
            "seconds": task.seconds,
        },
    }


def workers_json(view: SnapshotView, rows: list[WorkerRow]) -> dict[str, Any]:
    """The selected workers as JSON, and how many are connected."""
    return {"workers_there": view.snapshot.workers, "workers": [worker_json(row) for row in rows]}
