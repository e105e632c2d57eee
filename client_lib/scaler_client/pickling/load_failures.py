"""Error texts for functions, arguments and results that can't be unpickled, and notes that name the failed task."""

from __future__ import annotations

import socket
import sys
from typing import Any

from ..commands.options import interpreter
from ..protocol.utf8_text import escaped


def this_process() -> str:
    """Return host and interpreter of this process, for error texts."""
    return escaped(f"host {socket.gethostname()}, {interpreter()}, {sys.executable}")


def load_failure(what: str, place: str, error_text: str, error: BaseException) -> str:
    """Return the text of an unpickling error: what, where, why, and what to do.

    Args:
        what: for example "the arguments of f".
        place: for example "in this process".
        error_text: type and text of the error.
        error: the error that unpickling raised.
    """
    return escaped(f"{what} can't be unpickled {place}: {error_text}{_advice(error)}")


def _advice(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return (
            f". Install {error.name!r} there; a module of your own can travel with the task instead: "
            f"cloudpickle.register_pickle_by_value({error.name})"
        )
    if isinstance(error, (ImportError, AttributeError)):
        return ". Both sides need the same version of the module"
    return ""


RAISED_BY = "raised by"
"""The beginning of a worker's note. The word "task", the task's name, its worker and host follow."""


def with_note(text: str, note: str) -> str:
    """Return a failure's text with the note as its last line, as it travels."""
    return f"{text.rstrip()}\n{note}" if note else text


def split_note(text: str) -> tuple[str, str]:
    """Split a text of `with_note` into text and note. The note is empty if there is none."""
    before, _, last = text.rpartition("\n")
    return (before, last) if last.startswith(f"{RAISED_BY} task ") else (text, "")


def name_task(error: BaseException, task: str) -> None:
    """Add a note with the failed task, unless its worker has added one.

    Args:
        task: the task's name, for example "square#3".
    """
    notes = getattr(error, "__notes__", ())
    if not (isinstance(notes, list) and any(str(note).startswith(f"{RAISED_BY} task ") for note in notes)):
        add_note(error, f"of task {task}")


def add_note(error: BaseException, note: str) -> None:
    """Add a note (PEP 678) to an exception, even if its class refuses attributes."""
    # Not by `add_note`: Python 3.10 has none, and a class may define its own.
    try:
        notes: Any = BaseException.__getattribute__(error, "__notes__")
    except AttributeError:
        notes = []
        BaseException.__setattr__(error, "__notes__", notes)
    if isinstance(notes, list) and note not in notes:
        notes.append(note)
