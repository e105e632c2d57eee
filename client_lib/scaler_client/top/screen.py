"""The whole screen as lines, from a snapshot and the screen's state. It does not use the terminal.

Only visible rows are formatted. A thousand workers cost one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..monitor.snapshot_view import SnapshotView
from .detail import Entries, detail_lines, worker_entries
from .help_text import SORTING, help_lines
from .number_format import clock, count
from .screen_state import WORKERS, ScreenState
from .side_detail import side_entries
from .side_tables import (
    CLIENTS,
    FUNCTIONS,
    KEYS,
    LOWER,
    OBJECTS,
    SORTED_BY,
    all_rows,
    side_columns,
    side_rows,
    total_rows,
)
from .summary import summary, summary_height
from .tables import Column, header, place, requested_width, row
from .text_width import Line, align_left, align_right, clean, join_columns, padded, width_of
from .worker_table import WORKER_COLUMNS, filtered, sorted_rows

BESIDE_COLUMNS = 180
"""From this width on, functions and clients are beside the workers. With so many lines for tables they are below
them."""
BELOW_LINES = 24
MIN_SIDE = 58
BELOW_SHARE = 0.3
MIN_BELOW = 6
HEAD_LINES = 2
"""The lines above a table's rows: the number of rows, and the header."""
GAP = " | "
MAX_NAME_LENGTH = 60


def render(
    state: ScreenState,
    view: SnapshotView | None,
    *,
    address: str,
    message: tuple[str, str],
    width: int,
    height: int,
) -> list[Line]:
    """The screen: exactly `height` lines, each exactly `width` columns wide.

    Args:
        state: what is shown. Its scroll positions are limited to the rows that exist.
        view: the newest snapshot as rows, or None.
        address: the monitor address.
        message: style and text of the message about the scheduler; an empty text shows none.
        width: columns of the screen.
        height: lines of the screen.
    """
    lines = [_title(view, address, width)]
    if view is None:
        lines.append([])
    elif state.is_help:
        lines += _visible_lines(state, help_lines(), height - 2)
    elif state.detail is not None:
        lines += _visible_lines(state, _detail_lines(state, view), height - 2)
    else:
        upper = summary(view, width, summary_height(view, max(7, height // 4)))
        lines += upper
        lines.append([("rule", "-" * width)])
        lines.append([("shortcuts", SORTING if width < 90 else f"Shortcuts: {SORTING}")])
        lines += _tables(state, view, width, height - len(lines) - 1)
    lines = [padded(line, width) for line in lines[: height - 1]]
    lines += [[("", " " * width)]] * (height - 1 - len(lines))
    lines.append(padded(_last_line(state, view, width), width))
    if message[1]:
        style, words = message
        at = 1 if view is None else 0
        where = f" {address} " if view is not None and width_of(words) + len(address) + 4 <= width else ""
        lines[at] = [(style, align_left(f" {clean(words)}", width - len(where)) + where)]
    return lines


def _title(view: SnapshotView | None, address: str, width: int) -> Line:
    if view is None:
        return [("title", align_left(f" scaler_top  {address}", width))]
    snapshot = view.snapshot
    start = f" scaler_top  {snapshot.address}"
    end = f"{snapshot.process.host}/{snapshot.process.pid}  up {clock(snapshot.uptime_seconds)} "
    return [("title", align_left(start, width - width_of(clean(end)) - 1) + " " + clean(end))]


def _last_line(state: ScreenState, view: SnapshotView | None, width: int) -> Line:
    if state.is_typing:
        return [
            ("title", align_left(f" Filter {state.focus}: {state.filter_text}_   Enter keeps it, Esc drops it", width))
        ]
    if view is None:
        keys = "q quit"
    elif state.is_help or state.detail is not None:
        keys = "Esc back  arrows scroll  q quit"
    else:
        other = OBJECTS if state.side == FUNCTIONS else FUNCTIONS
        following = LOWER[(LOWER.index(state.lower) + 1) % len(LOWER)]
        keys = f"Enter detail  / filter {state.focus}  Tab next  o {other}  s {following}  ? help  q quit"
    words = f"filter: {state.filter_text}  " if state.filter_text else ""
    return [("keys", align_left(f" {words}{keys}", width))]


def _visible_lines(state: ScreenState, lines: Sequence[Line], height: int) -> list[Line]:
    shown = state.page.place(len(lines), height)
    return [lines[number] for number in shown]


def _detail_lines(state: ScreenState, view: SnapshotView) -> list[Line]:
    assert state.detail is not None
    table, key = state.detail
    found: Entries | None
    found = worker_entries(view, key) if table == WORKERS else side_entries(view, table, key)
    return [[("bad", f" this {table[:-1]} is not connected any more ")]] if found is None else detail_lines(found)


def _tables(state: ScreenState, view: SnapshotView, width: int, height: int) -> list[Line]:
    """The tables below the summary.

    Each table gets the lines that its rows need. Lines that the workers do not need go to the other tables.
    """
    state.shown = [WORKERS, state.side, state.lower]
    workers = len(view.workers) + HEAD_LINES
    if width >= BESIDE_COLUMNS:
        return _tables_beside(state, view, width, height, workers)
    least = MIN_BELOW if height >= BELOW_LINES else HEAD_LINES + 2
    below = max(int(height * BELOW_SHARE) if height >= BELOW_LINES else 0, height - workers - 1)
    if below >= least:
        half = (width - len(GAP)) // 2
        tables = [(_side_table(state, view, name, half, below), half) for name in (state.side, state.lower)]
        return [
            *_pad_lines(_worker_table(state, view, width, height - below - 1), height - below - 1),
            [("rule", "-" * width)],
            *join_columns(tables, below, GAP),
        ]
    if state.focus == WORKERS:
        return _worker_table(state, view, width, height)
    return _side_table(state, view, state.focus, width, height)


def _tables_beside(state: ScreenState, view: SnapshotView, width: int, height: int, workers: int) -> list[Line]:
    """Workers on the left with another table below them, functions and clients on the right."""
    side = max(MIN_SIDE, min(width // 2, width - len(GAP) - requested_width(WORKER_COLUMNS, view.workers)))
    main = width - side - len(GAP)
    other = OBJECTS if state.side == FUNCTIONS else FUNCTIONS
    below = height - workers - 1
    if below >= MIN_BELOW:
        state.shown = [WORKERS, other, state.side, state.lower]
        left_side = [
            *_pad_lines(_worker_table(state, view, main, workers), workers + 1),
            *_side_table(state, view, other, main, below),
        ]
    else:
        left_side = _worker_table(state, view, main, height)
    needs = [len(side_rows(view, name, "")) + HEAD_LINES for name in (state.side, state.lower)]
    upper = min(needs[0], height - 1 - min(needs[1], (height - 1) // 2))
    right_side = [
        *_pad_lines(_side_table(state, view, state.side, side, upper), upper + 1),
        *_side_table(state, view, state.lower, side, height - upper - 1),
    ]
    return join_columns([(left_side, main), (right_side, side)], height, GAP)


def _pad_lines(lines: list[Line], height: int) -> list[Line]:
    return lines + [[("", "")]] * (height - len(lines))


def _worker_table(state: ScreenState, view: SnapshotView, width: int, height: int) -> list[Line]:
    words = state.filters.get(WORKERS, "")
    rows = sorted_rows(filtered(view.workers, words), state.sorted_by, state.is_reversed)
    total = f"Total {count(len(view.workers))} worker(s)"
    if words:
        total += f", {count(len(rows))} of them with {words!r}"
    table = _Table(WORKERS, WORKER_COLUMNS, rows, state.sorted_by, total)
    lines = _table_lines(state, table, width, height)
    _update_selected(state, WORKERS, [row.incarnation for row in rows])
    return lines


def _side_table(state: ScreenState, view: SnapshotView, name: str, width: int, height: int) -> list[Line]:
    rows = side_rows(view, name, state.filters.get(name, ""))
    total = f"Total {count(total_rows(view, name))} {name[:-1]}(s)"
    words = state.filters.get(name, "")
    if words:
        total += f", {count(len(rows))} of them with {words!r}"
    table = _Table(name, side_columns(name, rows), rows, SORTED_BY[name], total)
    lines = _table_lines(state, table, width, height)
    _update_selected(state, name, list(map(KEYS[name], rows)))
    return lines


def _update_selected(state: ScreenState, name: str, keys: Sequence[Any]) -> None:
    if keys:
        state.selected[name] = keys[state.scrolls[name].selected]
    else:
        state.selected.pop(name, None)


@dataclass(frozen=True)
class _Table:
    """One table of the screen, before its layout."""

    name: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Any]
    sorted_by: str
    total: str
    """The line above the header, with the number of rows."""


def _table_lines(state: ScreenState, table: _Table, width: int, height: int) -> list[Line]:
    """The line with the number of rows, the header, and the visible rows."""
    rows = table.rows
    stretching = next(column for column in table.columns if column.stretches)
    longest = max((min(MAX_NAME_LENGTH, width_of(stretching.text(one))) for one in rows), default=0)
    placed = place(table.columns, width - 1, longest)
    has_focus = state.focus == table.name
    scroll = state.scrolls[table.name]
    shown = scroll.place(len(rows), height - 2)
    below = f"{count(shown.start + 1)}-{count(shown.stop)} of {count(len(rows))} " if len(shown) < len(rows) else ""
    label = f"{'>' if has_focus else ' '}{table.total}"
    lines: list[Line] = [
        [
            ("focus" if has_focus else "section", align_left(label, width - len(below) - 1)),
            ("rule", align_right(below, len(below) + 1)),
        ],
        header(placed, table.sorted_by),
    ]
    for number in shown:
        is_selected = has_focus and number == scroll.selected
        lines.append(padded(row(placed, rows[number], "selected" if is_selected else ""), width - 1) + [("", " ")])
    return lines


def render_plain(state: ScreenState, view: SnapshotView, address: str, width: int) -> list[Line]:
    """The screen for a pipe: all rows, without selection and keys."""
    state.focus = ""
    lower = [name for name in LOWER if name == CLIENTS or all_rows(view, name)]
    everything = max(len(view.workers), *(len(all_rows(view, name)) for name in (FUNCTIONS, OBJECTS, *lower)))
    tables = [
        _worker_table(state, view, width, everything + 2),
        *(_side_table(state, view, name, width, everything + 2) for name in (FUNCTIONS, OBJECTS, *lower)),
    ]
    lines = [_title(view, address, width), *summary(view, width, summary_height(view, everything + 100))]
    for table in tables:
        lines += [[], *table]
    return lines
