"""Text for messages, which is sent as UTF-8. UTF-8 has no lone surrogates, but strings from `os.fsdecode` may."""

from __future__ import annotations


def checked_text(what: str, text: str) -> str:
    """The text as an exact `str`; `what` names it in the error.

    Raises:
        ValueError: it has lone surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} must be text that UTF-8 can encode, not {text!r}: character {error.start} is a lone surrogate, as "
            'from os.fsdecode. To replace it: text.encode("utf-8", "backslashreplace").decode()'
        ) from None
    return str.__str__(text)  # a subclass may override methods; this takes its text only


def escaped(text: str) -> str:
    """The text with each lone surrogate escaped (`\\udcff`). For names that are only shown."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
