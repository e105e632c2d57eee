"""Error texts for functions, arguments and results that can't be unpickled, and notes that name the failed task."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from typing import Any

from ..commands.options import interpreter
from ..protocol.messages import Payload
from ..protocol.utf8_text import escaped
from .package_versions import is_package_name, packages_in


def this_process() -> str:
    """Return host and interpreter of this process, for error texts."""
    return escaped(f"host {socket.gethostname()}, {interpreter()}, {sys.executable}")


def load_failure(what: str, place: str, error_text: str) -> str:
    """Return the first line of the text of an unpickling error: what, where and why.

    Args:
        what: for example "the arguments of f".
        place: for example "in this process".
        error_text: type and text of the error.
    """
    return escaped(f"{what} can't be unpickled {place}: {error_text}")


def imported_packages(payload: Payload, error: BaseException) -> list[str]:
    """Return the packages that a pickle names, and the module that was not found when it was unpickled.

    Args:
        payload: the pickle.
        error: the error that unpickling raised.
    """
    names = packages_in(payload)
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return sorted({*names, missing}) if is_package_name(missing) else names


_VERSIONS = "versions there: "


def with_versions(text: str, versions: Mapping[str, str]) -> str:
    """Return a worker's error text with its versions as the last line, as it travels.

    Args:
        text: the text of `load_failure`.
        versions: of the worker, as `local_versions` returns them.
    """
    import json  # not at the top: only errors need it

    return f"{text}\n{_VERSIONS}{json.dumps(versions)}"


def split_versions(text: str) -> tuple[str, dict[str, str]]:
    """Split a text of `with_versions` into text and versions. Without versions, the dict is empty."""
    before, _, last = text.rpartition("\n")
    if not last.startswith(_VERSIONS):
        return text, {}
    import json  # as above

    try:
        versions = json.loads(last[len(_VERSIONS) :])
        return before, {str(name): str(version) for name, version in versions.items()}
    except (ValueError, AttributeError):
        return text, {}


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
