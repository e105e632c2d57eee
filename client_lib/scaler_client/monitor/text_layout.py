"""Formats numbers, times and tables for a terminal, or 80 columns wide for a file."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

MIN_COLUMNS = 80
GAP = 2
"""Spaces between the columns of a table."""

BOLD = "1"
GOOD = "32"
BAD = "31"


@dataclass(frozen=True)
class OutputFormat:
    """Where text is written to: its width, and whether it shows colours."""

    columns: int = MIN_COLUMNS
    has_colours: bool = False

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.has_colours and text else text


def output_format(stream: TextIO) -> OutputFormat:
    """The format of a stream: a terminal's own width; for a pipe or a file 80 columns, or COLUMNS."""
    columns = max(MIN_COLUMNS, shutil.get_terminal_size((MIN_COLUMNS, 24)).columns)
    is_plain = "NO_COLOR" in os.environ and os.environ["NO_COLOR"] != ""
    return OutputFormat(columns, stream.isatty() and not is_plain and os.environ.get("TERM") != "dumb")


def clean(text: str) -> str:
    """A text from outside, with control characters made visible: it cannot begin a line or control the terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def truncate(text: str, width: int) -> str:
    """The text, or its beginning with "..." if it is longer than `width`."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def count(number: float) -> str:
    """For example `1,204`."""
    return f"{number:,.0f}"


def size(number: float) -> str:
    """For example `1.5 GiB`."""
    if number < 1024:
        return f"{number:.0f} B"
    units = ["PiB", "TiB", "GiB", "MiB", "KiB"]
    number /= 1024
    while number >= 999.5 and len(units) > 1:
        number /= 1024
        units.pop()
    return f"{number:.{0 if number >= 99.95 else 1}f} {units[-1]}"


def truncate_middle(text: str, width: int) -> str:
    """The text, with "..." in the middle if it is longer than `width`. Similar names often differ only at the end."""
    if len(text) <= width:
        return text
    end = max(0, width - 3) * 2 // 3
    return text[: max(0, width - 3 - end)] + "..."[:width] + text[len(text) - end :]


def rate(number: float) -> str:
    """A number per second."""
    return f"{number:,.0f}" if number >= 99.95 or not number else f"{number:.1f}"


def percent(number: float) -> str:
    return f"{number:.0f}%"


def duration(seconds: float) -> str:
    """A duration with at most two units: `350 us`, `1.5 s`, `2 h 5 min`."""
    seconds = max(0.0, seconds)
    if not seconds:
        return "0 s"
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for name, one, below, other in (("d", 86400, 3600, "h"), ("h", 3600, 60, "min"), ("min", 60, 1, "s")):
        if whole >= one:
            rest = whole % one // below
            return f"{whole // one:,} {name}" + (f" {rest} {other}" if rest else "")
    return f"{whole} s"


def moment(unix_seconds: float) -> str:
    """For example `2026-03-19 12:16:10`, in this machine's time zone."""
    return datetime.datetime.fromtimestamp(unix_seconds).strftime("%Y-%m-%d %H:%M:%S")


def clock(unix_seconds: float) -> str:
    """For example `12:16:10.123`."""
    return datetime.datetime.fromtimestamp(unix_seconds).strftime("%H:%M:%S.%f")[:-3]


def plural(number: int, one: str, several: str = "") -> str:
    """For example `1 worker`, `2 workers`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:B|[KMGT]iB|us|ms|s|min|h|d)\b)")


def labelled_lines(output: OutputFormat, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Labels on the left, texts on the right, wrapped to several lines."""
    wide = max((len(name) for name, _ in rows), default=0) + 2
    lines = []
    for name, text in rows:
        first, *more = wrapped(text, output.columns - wide)
        lines.append(output.styled(name, BOLD) + " " * (wide - len(name)) + first)
        lines += [" " * wide + line for line in more]
    return [line.rstrip() for line in lines]


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`. Longer words are split. A number stays with its unit."""
    import textwrap

    joined = _BEFORE_UNIT.sub("\0", text)  # not a space for textwrap
    return [line.replace("\0", " ") for line in textwrap.wrap(joined, width)] or [""]


def table(output: OutputFormat, titles: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> list[str]:
    """A table whose columns are as wide as their contents. The last column takes the rest.

    Args:
        left: the columns that are left-aligned. The others are right-aligned.
    """
    widths = [max(len(title), *(len(row[at]) for row in rows), 0) for at, title in enumerate(titles)]
    last = len(titles) - 1
    taken = sum(widths[:last]) + GAP * last
    widths[last] = max(len(titles[last]), output.columns - taken)
    lines = []
    for row in (titles, *rows):
        cells = [truncate(cell, width) for cell, width in zip(row, widths)]
        aligned = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths))
        ]
        lines.append((" " * GAP).join(aligned).rstrip())
    return [output.styled(lines[0], BOLD), *lines[1:]]


def print_lines(lines: Sequence[str]) -> None:
    """Print lines to standard output. Ignores a reader that closes the pipe early."""
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        # Otherwise Python would report the broken pipe again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
