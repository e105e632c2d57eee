"""Error texts: a function, argument or result can't be unpickled; the place where a task failed."""

from __future__ import annotations

import socket
import sys
from typing import Any

from ..commands.options import interpreter
from ..protocol.utf8_text import escaped


def this_process() -> str:
    """Host and interpreter of this process, for errors."""
    return escaped(f"host {socket.gethostname()}, {interpreter()}, {sys.executable}")


def load_failure(what: str, place: str, error_text: str, error: BaseException) -> str:
    """The text of an error that something can't be unpickled: what, where, why, and what to do.

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
"""How a worker's note begins: behind it are the word "task", the task's name, its worker and host."""


def with_note(text: str, note: str) -> str:
    """A failure's text as it travels: the note is its last line."""
    return f"{text.rstrip()}\n{note}" if note else text


def split_note(text: str) -> tuple[str, str]:
    """Text and note of what `with_note` has made; the note is empty where there is none."""
    before, _, last = text.rpartition("\n")
    return (before, last) if last.startswith(f"{RAISED_BY} task ") else (text, "")


def name_task(error: BaseException, task: str) -> None:
    """Note which task has failed, as in "square#3", where its worker has not."""
    notes = getattr(error, "__notes__", ())
    if not (isinstance(notes, list) and any(str(note).startswith(f"{RAISED_BY} task ") for note in notes)):
        add_note(error, f"of task {task}")


def add_note(error: BaseException, note: str) -> None:
    """Add a note (PEP 678) to an exception, also if its class refuses attributes."""
    # Python 3.10 has no `add_note`, and a class may have its own method of this name.
    try:
        notes: Any = BaseException.__getattribute__(error, "__notes__")
    except AttributeError:
        notes = []
        BaseException.__setattr__(error, "__notes__", notes)
    if isinstance(notes, list) and note not in notes:
        notes.append(note)
