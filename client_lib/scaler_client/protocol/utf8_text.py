"""Text for messages. It travels as UTF-8, which has no lone surrogates; `os.fsdecode` makes strings that have some."""

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
            'os.fsdecode makes it; text.encode("utf-8", "backslashreplace").decode() has none'
        ) from None
    return str.__str__(text)  # of a subclass, whose methods may be anything, the text alone


def escaped(text: str) -> str:
    """The text with each lone surrogate as an escape, as in `\\udcff`: for names that are only shown."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
