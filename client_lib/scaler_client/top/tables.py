"""A table of rows: the columns that fit, the header and the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Generic, TypeVar

from .text_width import Line, align_left, align_right, width_of

Row = TypeVar("Row")

MIN_NAME_WIDTH = 20
"""Columns reserved for a long name before optional columns are shown."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    name: str
    width: int
    """Columns on the screen with a space before it. For the stretching column this is the minimum."""
    text: Callable[[Row], str]
    order: Callable[[Row], Any]
    """The sort key of a row."""
    key: str = ""
    """The keyboard key that sorts by it."""
    drop_order: int = 0
    """Columns with a higher number are left out first."""
    stretches: bool = False
    is_text: bool = False
    """Whether the column is left-aligned."""
    descends: bool = True
    """Whether its first sort has the largest value first."""


PlacedColumns = list[tuple["Column[Row]", int]]


def place(columns: Sequence[Column[Row]], width: int, longest: int) -> PlacedColumns[Row]:
    """The columns that fit, with their widths.

    Args:
        width: columns on the screen.
        longest: the longest text in the stretching column. It gets no more width as long as other columns need room.
    """
    shown: dict[int, Column[Row]] = {}
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
    gap = int(free >= len(placed) + longest)  # one more space between columns if there is room
    free -= gap * len(placed)
    stretching = [column for column in placed if column.stretches]
    extra: dict[str, int] = {}
    for column in stretching:  # the first one takes what its texts need, the last one takes the rest
        is_last = column is stretching[-1]
        extra[column.name] = free if is_last else max(0, min(free, longest + 1 - column.width))
        free -= extra[column.name]
    return [(column, column.width + gap + extra.get(column.name, 0)) for column in placed]


MAX_REQUESTED_WIDTH = 24
"""A stretching column may request this width before other tables get less."""


def requested_width(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> int:
    """The width of a table with all columns and the full texts of the stretching ones."""
    width = 2 * len(columns) + 1
    for column in columns:
        longest = max((width_of(column.text(one)) for one in rows), default=0) if column.stretches else 0
        width += max(column.width, min(longest, MAX_REQUESTED_WIDTH) + 1)
    return width


def header(placed: PlacedColumns[Row], sorted_by: str) -> Line:
    """The column names. The sort column's name is in brackets. The header is one column wider than the rows."""
    text = ""
    at = 0, 0
    for column, width in placed:
        start = len(text) + 1 if column.is_text else len(text) + width - len(column.name)
        text += align_left(" " + column.name, width) if column.is_text else align_right(column.name, width)
        if column.name == sorted_by:
            at = start, start + len(column.name)
    text += " "
    start, end = at
    if end:  # each name has a space on both sides
        text = f"{text[: start - 1]}[{text[start:end]}]{text[end + 1 :]}"
    return [("header", text)]


def row(placed: PlacedColumns[Row], one: Row, style: str = "") -> Line:
    text = ""
    for column, width in placed:
        cell = column.text(one)
        text += " " + align_left(cell, width - 1) if column.is_text else align_right(cell, width)
    return [(style, text)]
