"""How clients, futures and clusters show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..protocol.snapshots import Snapshot

MAX_CELL_LENGTH = 200
"""Characters of a value."""


def count_text(count: int, noun: str) -> str:
    """As in `1 worker` and `2 workers`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


class Link(str):
    """An address of a page, as a value that can be clicked."""


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """A small table; everything in it is escaped."""
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
    """What a scheduler says of itself, as far as anybody shows it."""
    if snapshot is None:
        return {}
    return {
        "workers": f"{snapshot.workers:,}",
        "tasks": f"{snapshot.waiting:,} waiting, {snapshot.dispatched:,} at workers, {snapshot.resolved:,} done",
    }
