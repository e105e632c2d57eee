"""The table of workers: its columns, sorting and filtering."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..monitor.snapshot_view import WorkerRow
from .number_format import count, duration, percent, rate, size
from .states import state_letters
from .tables import Column


def name_key(row: WorkerRow) -> list[str | int]:
    """The sort key of a name: node-2 comes before node-10."""
    parts: list[str | int] = list(re.split("([0-9]{1,18})", row.name))
    parts[1::2] = map(int, parts[1::2])
    return parts


def _counted(number: int) -> str:
    return count(number, 7)


def _running(row: WorkerRow) -> str:
    return "" if row.task is None else f"{row.task.name} {duration(row.task.seconds)}"


WORKER_COLUMNS: tuple[Column[WorkerRow], ...] = (
    Column("worker", 9, lambda row: row.name, name_key, "n", stretches=True, descends=False),
    Column("agt_cpu", 8, lambda row: percent(row.agent_cpu_percent), lambda row: row.agent_cpu_percent, "C"),
    Column("agt_rss", 8, lambda row: size(row.agent_resident_bytes), lambda row: row.agent_resident_bytes, "M"),
    Column("cpu", 7, lambda row: percent(row.cpu_percent), lambda row: row.cpu_percent, "c"),
    Column("rss", 7, lambda row: size(row.resident_bytes), lambda row: row.resident_bytes, "m"),
    Column("free", 6, lambda row: count(row.free, 5), lambda row: row.free, "f"),
    Column("sent", 8, lambda row: _counted(row.sent), lambda row: row.sent, "w"),
    Column("queued", 7, lambda row: count(row.queued, 6), lambda row: row.queued, "d"),
    Column("susp", 5, lambda row: count(row.suspended, 4), lambda row: row.suspended),
    Column("lag", 7, lambda row: duration(row.lag_seconds), lambda row: row.lag_seconds, "l"),
    Column("state", 6, lambda row: state_letters(row.state), lambda row: row.state),
    Column("done/s", 9, lambda row: rate(row.done_rate), lambda row: row.done_rate, drop_order=1),
    Column("runs", 16, _running, _running, drop_order=2, stretches=True, is_text=True),
)
SORT_KEYS = {column.key: column for column in WORKER_COLUMNS if column.key}
BY_NAME = {column.name: column for column in WORKER_COLUMNS}


def filtered(rows: Sequence[WorkerRow], words: str) -> list[WorkerRow]:
    """The rows that contain each of the words in name, host, capabilities, environment, state or task."""
    wanted = words.lower().split()
    if not wanted:
        return list(rows)
    return [row for row in rows if all(word in _searchable_text(row) for word in wanted)]


def _searchable_text(row: WorkerRow) -> str:
    task = "" if row.task is None else row.task.name
    return f"{row.name} {row.host} {row.capabilities} {row.environment} {state_letters(row.state)} {task}".lower()


def sorted_rows(rows: Sequence[WorkerRow], by: str, is_reversed: bool) -> list[WorkerRow]:
    """The rows sorted by a column in its own direction, or reversed. Equal rows are sorted by name."""
    column = BY_NAME[by]
    return sorted(sorted(rows, key=name_key), key=column.order, reverse=column.descends != is_reversed)
