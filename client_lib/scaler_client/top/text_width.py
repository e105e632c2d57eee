"""Fits texts to a width on the screen. Names come from users and may have any characters.

A line is a list of pieces: a style (see the palette in `terminal.py`; empty for none) and a text.
"""

from __future__ import annotations

import re

from urwid import calc_text_pos, calc_width, get_encoding_mode

Line = list[tuple[str, str]]

ELLIPSIS = "…" if get_encoding_mode() == "utf8" else "~"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters, characters that change the direction of text, and invisible characters."""


def clean(text: str) -> str:
    """The text without characters that a terminal would interpret."""
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub("?", text)


def width_of(text: str) -> int:
    """The columns that a text takes on the screen."""
    return len(text) if text.isascii() else calc_width(text, 0, len(text))


def align_left(text: str, width: int) -> str:
    """The text left-aligned in `width` columns. The end of a longer text is cut."""
    text = clean(text)
    used = width_of(text)
    if used > width:
        end, used = calc_text_pos(text, 0, len(text), max(0, width - 1))
        text, used = (text[:end] + ELLIPSIS, used + 1) if width > 0 else ("", 0)
    return text + " " * (width - used)


def align_right(text: str, width: int) -> str:
    """The text right-aligned in `width` columns. The beginning of a longer text is cut: workers differ at the end."""
    text = clean(text)
    used = width_of(text)
    while used > width:
        text = text[2:] if text.startswith(ELLIPSIS) else text[1:]
        text = ELLIPSIS + text if width > 0 else ""
        used = width_of(text)
    return " " * (width - used) + text


def plain(line: Line) -> str:
    """The text of a line without styles."""
    return "".join(text for _, text in line)


def padded(line: Line, width: int) -> Line:
    """The line at exactly this width, without characters that a terminal would interpret."""
    kept: Line = []
    for style, text in line:
        text = clean(text)
        used = width_of(text)
        if used > width:
            kept.append((style, align_left(text, width)))
            return kept
        kept.append((style, text))
        width -= used
    return [*kept, ("", " " * width)] if width else kept


def join_columns(blocks: list[tuple[list[Line], int]], height: int, separator: str = " | ") -> list[Line]:
    """Blocks of lines side by side.

    Args:
        blocks: lines with the width of their block.
    """
    lines: list[Line] = []
    for row in range(height):
        line: Line = []
        for number, (block, width) in enumerate(blocks):
            if number:
                line.append(("rule", separator))
            line.extend(padded(block[row] if row < len(block) else [], width))
        lines.append(line)
    return lines
