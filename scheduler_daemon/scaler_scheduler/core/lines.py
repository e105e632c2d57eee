"""Texts of peers, made printable for logs and pages."""

LINE_LIMIT = 200
"""The most characters that are kept of a task's error line."""

ENDS_LIMIT = 1000
"""The most characters that are kept of a long error in one line of the log."""

_GAP = " ... "

TRACEBACK_BYTES = 4096
"""The most bytes that are kept of a traceback. The end is kept, because it names the error and the innermost frames."""


def printable_line(text: bytes) -> str:
    """Return the first LINE_LIMIT characters of UTF-8 text, without control characters."""
    return _printable(text[: 4 * LINE_LIMIT].decode("utf-8", "replace")[:LINE_LIMIT])


def printable_ends(text: str) -> str:
    """Return both ends of a text, without control characters: what failed, and how it ended.

    The text has at most ENDS_LIMIT characters.
    """
    if len(text) > ENDS_LIMIT:
        half = (ENDS_LIMIT - len(_GAP)) // 2
        text = text[:half] + _GAP + text[-half:]
    return _printable(text)


def printable_text(text: bytes) -> str:
    """Return UTF-8 text whose lines have no control characters."""
    return "\n".join([_printable(line) for line in text.decode("utf-8", "replace").split("\n")])


def _printable(said: str) -> str:
    return said if said.isprintable() else "".join([letter if letter.isprintable() else " " for letter in said])
