"""What others say, as a line that people see."""

LINE_LIMIT = 200
"""Longest line, in characters, that is kept to say of what a task failed."""


def as_line(text: bytes) -> str:
    """The begin of this UTF-8 text, without control characters."""
    said = text[: 4 * LINE_LIMIT].decode("utf-8", "replace")[:LINE_LIMIT]
    return said if said.isprintable() else "".join([letter if letter.isprintable() else " " for letter in said])
