"""Texts that come in a column, one a row, most of them empty: lines, tracebacks."""

from array import array
from typing import List

from scaler_scheduler.core.lines import LINE_LIMIT, TRACEBACK_BYTES, printable_line
from scaler_scheduler.wire.errors import WireError


def read_lines(text: bytes, sizes: "array[int]") -> List[str]:
    """Each row's line: what people see of it, so without control characters, and not longer than LINE_LIMIT."""
    _check(text, sizes, "lines")
    lines: List[str] = []
    begin = 0
    for size in sizes:
        lines.append(printable_line(text[begin : begin + min(size, 4 * LINE_LIMIT)]) if size else "")
        begin += size
    return lines


def read_tracebacks(text: bytes, sizes: "array[int]") -> List[bytes]:
    """Each row's traceback, of a long one its end."""
    _check(text, sizes, "tracebacks")
    tracebacks: List[bytes] = []
    end = 0
    for size in sizes:
        end += size
        tracebacks.append(text[end - min(size, TRACEBACK_BYTES) : end])
    return tracebacks


def _check(text: bytes, sizes: "array[int]", what: str) -> None:
    if sum(sizes) != len(text):
        raise WireError(f"{what} of {len(text)} bytes where {sum(sizes)} are announced")
