"""A table of rows by columns: which of them fit, its header, its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, List, Sequence, Tuple, TypeVar

from .text_width import Line, left, right, width_of

Row = TypeVar("Row")

MIN_NAME_WIDTH = 20
"""Columns that a name gets before further columns are shown, where it is that long."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    name: str
    width: int
    """On the screen, with a space before it. Of the column that takes what is left: the least."""
    text: Callable[[Row], str]
    order: Callable[[Row], Any]
    """What it is sorted by."""
    key: str = ""
    """That sorts by it."""
    drop_order: int = 0
    """Those of a higher one are left out first where there is no room."""
    stretches: bool = False
    is_text: bool = False
    """Left-aligned."""
    descends: bool = True
    """The largest first, when it is chosen."""


PlacedColumns = List[Tuple["Column[Row]", int]]


def place(columns: Sequence[Column[Row]], width: int, longest: int) -> PlacedColumns[Row]:
    """The columns that are shown in so much room, with their widths.

    Args:
        longest: of what is in the column that stretches; more it does not get as long as others can be shown.
    """
    shown: Dict[int, Column[Row]] = {}
    free = width
    first = next(column for column in columns if column.stretches)
    for_name = max(0, min(longest, MIN_NAME_WIDTH) + 1 - first.width)
    for drop_order in sorted({column.drop_order for column in columns}):
        for number, column in enumerate(columns):
            need = column.width
            if column.drop_order == drop_order and need <= free - (for_name if drop_order else 0):
                shown[number] = column
                free -= need
    placed = [shown[number] for number in sorted(shown)]
    gap = int(free >= len(placed) + longest)  # one more between columns, where there is room
    free -= gap * len(placed)
    stretching = [column for column in placed if column.stretches]
    extra: Dict[str, int] = {}
    for column in stretching:  # the first one takes what its texts need, the last one all that is left then
        is_last = column is stretching[-1]
        extra[column.name] = free if is_last else max(0, min(free, longest + 1 - column.width))
        free -= extra[column.name]
    return [(column, column.width + gap + extra.get(column.name, 0)) for column in placed]


MAX_REQUESTED_WIDTH = 24
"""Columns that a stretching column may ask for before others are pushed aside."""


def requested_width(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> int:
    """How wide a table is to be for all of its columns, and for the texts of those that stretch."""
    width = 2 * len(columns) + 1
    for column in columns:
        longest = max((width_of(column.text(one)) for one in rows), default=0) if column.stretches else 0
        width += max(column.width, min(longest, MAX_REQUESTED_WIDTH) + 1)
    return width


def header(placed: PlacedColumns[Row], sorted_by: str) -> Line:
    """The names, that of the column which the rows are sorted by in brackets; one wider than the rows."""
    text = ""
    at = 0, 0
    for column, width in placed:
        start = len(text) + 1 if column.is_text else len(text) + width - len(column.name)
        text += left(" " + column.name, width) if column.is_text else right(column.name, width)
        if column.name == sorted_by:
            at = start, start + len(column.name)
    text += " "
    start, end = at
    if end:  # there is a space on both sides of each name
        text = f"{text[: start - 1]}[{text[start:end]}]{text[end + 1 :]}"
    return [("header", text)]


def row(placed: PlacedColumns[Row], one: Row, style: str = "") -> Line:
    text = ""
    for column, width in placed:
        cell = column.text(one)
        text += " " + left(cell, width - 1) if column.is_text else right(cell, width)
    return [(style, text)]
