"""`scaler_client workers`: the table of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..picture import Picture, WorkerRow
from ..snapshots import WorkerState
from ..task_names import exact_name
from .layout import BAD, Page, clean, cut, many, percent, rate, size, span, table

LONGEST_NAME = 24

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
"""By what one may sort, and whether the largest comes first."""

SORT_KEYS = tuple(_KEYS)


def state_of(row: WorkerRow) -> str:
    """In a word."""
    if row.state & WorkerState.DOES_NOT_ANSWER:
        return "silent"
    if row.state & WorkerState.RETIRES:
        return "retires"
    if row.suspended and not row.running:
        return "waits"
    if row.state & WorkerState.HOLDS_TASK:
        return "busy"
    return "idle"


def chosen(picture: Picture, sort: str, wanted: str) -> list[WorkerRow]:
    """The workers that have the text somewhere, sorted."""
    key, is_reversed = _KEYS[sort]
    rows = sorted(picture.workers, key=lambda row: row.name)
    return sorted((row for row in rows if wanted.lower() in _words(row)), key=key, reverse=is_reversed)


def _words(row: WorkerRow) -> str:
    task = row.task.name if row.task else ""
    return "\n".join((row.name, row.host, state_of(row), row.capabilities, task)).lower()


def workers_text(page: Page, picture: Picture, rows: list[WorkerRow]) -> list[str]:
    """A line a worker, and one that counts them."""
    titles = ["WORKER", "STATE", "CPU", "MEMORY", "HELD", "FREE", "DONE/s", "LAG", "RUNS"]
    cells = [
        [
            cut(clean(row.name), LONGEST_NAME),
            state_of(row),
            percent(row.cpu_percent),
            size(row.resident_bytes),
            str(row.held),
            str(row.free),
            rate(row.done_rate),
            span(row.lag_seconds) if row.lag_seconds else "-",
            _runs(row),
        ]
        for row in rows
    ]
    lines = table(page, titles, cells, {0, 1, 8})
    for at, row in enumerate(rows, 1):
        if row.state & WorkerState.DOES_NOT_ANSWER:
            lines[at] = page.styled(lines[at], BAD)
    of = "" if len(rows) == picture.snapshot.workers else f" of {picture.snapshot.workers:,}"
    return [*lines, f"{many(len(rows), 'worker')}{of} on {many(len({row.host for row in rows}), 'host')}"]


def _runs(row: WorkerRow) -> str:
    if row.task is None:
        return ""
    return f"{clean(row.task.name)}#{row.task.id} {span(row.task.seconds)}"


def worker_json(row: WorkerRow) -> dict[str, Any]:
    """One worker; keys stay as they are."""
    task = row.task
    return {
        "worker": str(row.incarnation),
        "name": row.name,
        "host": row.host,
        "pid": row.pid,
        "language": row.language,
        "version": row.version,
        "capabilities": row.capabilities,
        "state": state_of(row),
        "runs_long": bool(row.state & WorkerState.RUNS_LONG),
        "agent": str(row.agent),
        "agent_is_here": bool(row.state & WorkerState.AGENT_IS_HERE),
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


def workers_json(picture: Picture, rows: list[WorkerRow]) -> dict[str, Any]:
    """The chosen ones, and how many there are."""
    return {"workers_there": picture.snapshot.workers, "workers": [worker_json(row) for row in rows]}
