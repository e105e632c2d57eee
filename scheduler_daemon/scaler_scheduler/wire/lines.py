"""Lines of text that come in a column, one a row, most of them empty."""

from array import array
from typing import List

from scaler_scheduler.core.lines import LINE_LIMIT, as_line
from scaler_scheduler.wire.errors import WireError


def read_lines(text: bytes, sizes: "array[int]") -> List[str]:
    """Each row's line: what people see of it, so without control characters, and not longer than LINE_LIMIT."""
    if sum(sizes) != len(text):
        raise WireError(f"lines of {len(text)} bytes where {sum(sizes)} are announced")
    lines: List[str] = []
    begin = 0
    for size in sizes:
        lines.append(as_line(text[begin : begin + min(size, 4 * LINE_LIMIT)]) if size else "")
        begin += size
    return lines
