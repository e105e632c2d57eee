"""The whole screen as lines, from what is known of the scheduler and what is looked at. No terminal in here.

Only the rows that are seen are made: a thousand workers cost a sort.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from ..monitor.snapshot_view import Picture
from .detail import Entries, page_of, worker_entries
from .figures import clock, count
from .fitting import Line, beside, clean, left, padded, right, width_of
from .help_text import SORTING, help_lines
from .sections import how_high, sections
from .side_detail import side_entries
from .side_tables import CLIENTS, FUNCTIONS, KEYS, OBJECTS, SORTED_BY, how_many, side_columns, side_rows
from .tables import Column, header, place, row, wanted_width
from .view import WORKERS, View
from .worker_table import WORKER_COLUMNS, filtered, sorted_rows

BESIDE_COLUMNS = 180
"""From here on functions and clients stand beside the workers, and from so many lines for tables on below them."""
BELOW_LINES = 24
LEAST_SIDE = 58
BELOW_SHARE = 0.3
LEAST_BELOW = 6
HEAD_LINES = 2
"""Of a table: how many rows it has, and the names of its columns."""
GAP = " | "
LONGEST_NAME = 60


def page(
    view: View, picture: Optional[Picture], address: str, said: Tuple[str, str], width: int, height: int
) -> List[Line]:
    """Exactly so many lines, each exactly so wide.

    Args:
        view: where tables are scrolled is brought within what there is.
        picture: the newest one, if there is any.
        address: the monitor's, as one connects to it.
        said: the look and the words of what is to be said of the scheduler; empty words: nothing.
    """
    lines = [_title(picture, address, width)]
    if picture is None:
        lines.append([])
    elif view.is_help:
        lines += _paged(view, help_lines(), height - 2)
    elif view.detail is not None:
        lines += _paged(view, _detail_lines(view, picture), height - 2)
    else:
        upper = sections(picture, width, how_high(picture, max(7, height // 4)))
        lines += upper
        lines.append([("rule", "-" * width)])
        lines.append([("shortcuts", SORTING if width < 90 else f"Shortcuts: {SORTING}")])
        lines += _tables(view, picture, width, height - len(lines) - 1)
    lines = [padded(line, width) for line in lines[: height - 1]]
    lines += [[("", " " * width)]] * (height - 1 - len(lines))
    lines.append(padded(_last_line(view, picture, width), width))
    if said[1]:
        look, words = said
        at = 1 if picture is None else 0
        where = f" {address} " if picture is not None and width_of(words) + len(address) + 4 <= width else ""
        lines[at] = [(look, left(f" {clean(words)}", width - len(where)) + where)]
    return lines


def _title(picture: Optional[Picture], address: str, width: int) -> Line:
    if picture is None:
        return [("title", left(f" scaler_top  {address}", width))]
    snapshot = picture.snapshot
    begin = f" scaler_top  {snapshot.address}"
    end = f"{snapshot.process.host}/{snapshot.process.pid}  up {clock(snapshot.uptime_seconds)} "
    return [("title", left(begin, width - width_of(clean(end)) - 1) + " " + clean(end))]


def _last_line(view: View, picture: Optional[Picture], width: int) -> Line:
    if view.is_typing:
        return [("title", left(f" Filter {view.focus}: {view.words}_   Enter keeps it, Esc drops it", width))]
    if picture is None:
        keys = "q quit"
    elif view.is_help or view.detail is not None:
        keys = "Esc back  arrows scroll  q quit"
    else:
        other = OBJECTS if view.side == FUNCTIONS else FUNCTIONS
        keys = f"Enter detail  / filter {view.focus}  Tab next table  o {other}  ? help  q quit"
    words = f"filter: {view.words}  " if view.words else ""
    return [("keys", left(f" {words}{keys}", width))]


def _paged(view: View, lines: Sequence[Line], height: int) -> List[Line]:
    shown = view.page.place(len(lines), height)
    return [lines[number] for number in shown]


def _detail_lines(view: View, picture: Picture) -> List[Line]:
    assert view.detail is not None
    table, key = view.detail
    found: Optional[Entries]
    found = worker_entries(picture, key) if table == WORKERS else side_entries(picture, table, key)
    return [[("bad", f" this {table[:-1]} is gone ")]] if found is None else page_of(found)


def _tables(view: View, picture: Picture, width: int, height: int) -> List[Line]:
    """Every table gets the lines that its rows need; what workers leave free goes to the others."""
    view.shown = [WORKERS, view.side, CLIENTS]
    workers = len(picture.workers) + HEAD_LINES
    if width >= BESIDE_COLUMNS:
        return _tables_beside(view, picture, width, height, workers)
    least = LEAST_BELOW if height >= BELOW_LINES else HEAD_LINES + 2
    below = max(int(height * BELOW_SHARE) if height >= BELOW_LINES else 0, height - workers - 1)
    if below >= least:
        half = (width - len(GAP)) // 2
        tables = [(_side_table(view, picture, name, half, below), half) for name in (view.side, CLIENTS)]
        return [
            *_filled(_worker_table(view, picture, width, height - below - 1), height - below - 1),
            [("rule", "-" * width)],
            *beside(tables, below, GAP),
        ]
    if view.focus == WORKERS:
        return _worker_table(view, picture, width, height)
    return _side_table(view, picture, view.focus, width, height)


def _tables_beside(view: View, picture: Picture, width: int, height: int, workers: int) -> List[Line]:
    """Workers on the left, and below them what else there is; functions and clients on the right."""
    side = max(LEAST_SIDE, min(width // 2, width - len(GAP) - wanted_width(WORKER_COLUMNS, picture.workers)))
    main = width - side - len(GAP)
    other = OBJECTS if view.side == FUNCTIONS else FUNCTIONS
    below = height - workers - 1
    if below >= LEAST_BELOW:
        view.shown = [WORKERS, other, view.side, CLIENTS]
        left_side = [
            *_filled(_worker_table(view, picture, main, workers), workers + 1),
            *_side_table(view, picture, other, main, below),
        ]
    else:
        left_side = _worker_table(view, picture, main, height)
    needs = [len(side_rows(picture, name, "")) + HEAD_LINES for name in (view.side, CLIENTS)]
    upper = min(needs[0], height - 1 - min(needs[1], (height - 1) // 2))
    right_side = [
        *_filled(_side_table(view, picture, view.side, side, upper), upper + 1),
        *_side_table(view, picture, CLIENTS, side, height - upper - 1),
    ]
    return beside([(left_side, main), (right_side, side)], height, GAP)


def _filled(lines: List[Line], height: int) -> List[Line]:
    return lines + [[("", "")]] * (height - len(lines))


def _worker_table(view: View, picture: Picture, width: int, height: int) -> List[Line]:
    words = view.filters.get(WORKERS, "")
    rows = sorted_rows(filtered(picture.workers, words), view.sorted_by, view.is_reversed)
    total = f"Total {count(len(picture.workers))} worker(s)"
    if words:
        total += f", {count(len(rows))} of them with {words!r}"
    lines = _table(view, WORKERS, WORKER_COLUMNS, rows, view.sorted_by, total, width, height)
    _note_chosen(view, WORKERS, [row.incarnation for row in rows])
    return lines


def _side_table(view: View, picture: Picture, name: str, width: int, height: int) -> List[Line]:
    rows = side_rows(picture, name, view.filters.get(name, ""))
    total = f"Total {count(how_many(picture, name))} {name[:-1]}(s)"
    words = view.filters.get(name, "")
    if words:
        total += f", {count(len(rows))} of them with {words!r}"
    lines = _table(view, name, side_columns(name, rows), rows, SORTED_BY, total, width, height)
    _note_chosen(view, name, list(map(KEYS[name], rows)))
    return lines


def _note_chosen(view: View, name: str, keys: Sequence[Any]) -> None:
    if keys:
        view.chosen[name] = keys[view.scrolls[name].chosen]
    else:
        view.chosen.pop(name, None)


def _table(
    view: View,
    name: str,
    columns: Sequence[Column[Any]],
    rows: Sequence[Any],
    sorted_by: str,
    total: str,
    width: int,
    height: int,
) -> List[Line]:
    """A line with their number, the header, and the rows that are seen."""
    stretching = next(column for column in columns if column.stretches)
    longest = max((min(LONGEST_NAME, width_of(stretching.text(one))) for one in rows), default=0)
    placed = place(columns, width - 1, longest)
    has_focus = view.focus == name
    scroll = view.scrolls[name]
    shown = scroll.place(len(rows), height - 2)
    below = f"{count(shown.start + 1)}-{count(shown.stop)} of {count(len(rows))} " if len(shown) < len(rows) else ""
    label = f"{'>' if has_focus else ' '}{total}"
    lines: List[Line] = [
        [
            ("focus" if has_focus else "section", left(label, width - len(below) - 1)),
            ("rule", right(below, len(below) + 1)),
        ],
        header(placed, sorted_by),
    ]
    for number in shown:
        is_chosen = has_focus and number == scroll.chosen
        lines.append(padded(row(placed, rows[number], "chosen" if is_chosen else ""), width - 1) + [("", " ")])
    return lines


def printed(view: View, picture: Picture, address: str, width: int) -> List[Line]:
    """The same for a pipe: every row there is, no bar, no keys."""
    view.focus = ""
    tables_of = picture.workers, picture.functions, picture.objects, picture.clients
    everything = max(len(rows) for rows in tables_of)
    tables = [
        _worker_table(view, picture, width, everything + 2),
        *(_side_table(view, picture, name, width, everything + 2) for name in (FUNCTIONS, OBJECTS, CLIENTS)),
    ]
    lines = [_title(picture, address, width), *sections(picture, width, how_high(picture, everything + 100))]
    for table in tables:
        lines += [[], *table]
    return lines
