"""What others say, as a line that people see."""

LINE_LIMIT = 200
"""Longest line, in characters, that is kept to say of what a task failed."""


TRACEBACK_BYTES = 4096
"""Longest traceback that is kept. Of a longer one the end is kept: it names the error and the innermost frames."""


def printable_line(text: bytes) -> str:
    """The begin of this UTF-8 text, without control characters."""
    return _printable(text[: 4 * LINE_LIMIT].decode("utf-8", "replace")[:LINE_LIMIT])


def printable_text(text: bytes) -> str:
    """This UTF-8 text, its lines without control characters."""
    return "\n".join([_printable(line) for line in text.decode("utf-8", "replace").split("\n")])


def _printable(said: str) -> str:
    return said if said.isprintable() else "".join([letter if letter.isprintable() else " " for letter in said])
