"""Text for messages, which is sent as UTF-8. Strings from `os.fsdecode` may have lone surrogates, UTF-8 has none."""

from __future__ import annotations


def checked_text(what: str, text: str) -> str:
    """Return the text as an exact `str`.

    Args:
        what: names the text in the error.
        text: a string, or an instance of a subclass.

    Raises:
        ValueError: the text has lone surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} must be text that UTF-8 can encode, not {text!r}: character {error.start} is a lone surrogate, as "
            'from os.fsdecode. To replace it: text.encode("utf-8", "backslashreplace").decode()'
        ) from None
    return str.__str__(text)  # the text alone: a subclass may override methods


def escaped(text: str) -> str:
    """Return the text with each lone surrogate escaped (`\\udcff`). For names that are only displayed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
