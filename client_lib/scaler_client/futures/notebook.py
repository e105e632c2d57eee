"""How clients, futures and clusters are shown in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..protocol.snapshots import Snapshot

MAX_CELL_LENGTH = 200
"""The most characters of a value that are shown."""


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: `1 worker`, `2 workers`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


class Link(str):
    """A value that is shown as a link to a page."""


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """Return a small HTML table. All values are escaped."""
    lines = [f"<tr><th style='text-align:left'>{escape(name)}</th>{_cell(value)}</tr>" for name, value in rows.items()]
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table></div>"


def _cell(value: object) -> str:
    text = str(value)
    if len(text) > MAX_CELL_LENGTH:
        text = text[:MAX_CELL_LENGTH] + "..."
    shown = escape(text)
    if isinstance(value, Link):
        shown = f'<a href="{escape(value)}" target="_blank">{shown}</a>'
    return f"<td style='text-align:left'>{shown}</td>"


def snapshot_rows(snapshot: Snapshot | None) -> dict[str, str]:
    """Return the rows of a table that show the scheduler's state; none without a snapshot."""
    if snapshot is None:
        return {}
    return {
        "workers": f"{snapshot.workers:,}",
        "tasks": f"{snapshot.waiting:,} waiting, {snapshot.dispatched:,} at workers, {snapshot.resolved:,} done",
    }
