"""Functions of the user's that are named on the command line: found, and called before the first task (`--preload`)."""

from __future__ import annotations

import importlib
import traceback
from operator import attrgetter
from typing import Any

LONGEST_SUMMARY = 300  # characters
MODULES_HINT = "modules are looked for in PYTHONPATH, and where those of this Python are installed"


class PreloadError(Exception):
    """It failed, or is not there. The text is the option and its name, the cause says why."""


def find(option: str, name: str) -> Any:
    """What `module:function` names.

    Raises:
        PreloadError: it is not there, or its module fails.
    """
    module, _, function = name.partition(":")
    try:
        return attrgetter(function)(importlib.import_module(module))
    except BaseException as error:  # sys.exit as well
        raise PreloadError(f"{option} {name}") from error


def preload(name: str) -> None:
    """Call the function that `module:function` names.

    Raises:
        PreloadError: whatever went wrong.
    """
    function = find("--preload", name)
    try:
        function()
    except BaseException as error:  # sys.exit as well
        raise PreloadError(f"--preload {name}") from error


def error_summary(error: BaseException) -> str:
    """An exception, with the place in the code that is nearest to it."""
    if isinstance(error, PreloadError):
        hint = f" ({MODULES_HINT})" if isinstance(error.__cause__, ModuleNotFoundError) else ""
        return f"{error}: {error_summary(error.__cause__ or error)}{hint}"
    if isinstance(error, SystemExit) and isinstance(error.code, (int, type(None))):
        return f"sys.exit({error.code})"
    if isinstance(error, SystemExit):
        return " ".join(str(error.code).split())
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    places = [
        f"{frame.f_code.co_filename}:{number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not frame.f_globals.get("__name__", "").startswith(("importlib", __name__))
    ]
    return f"{text[:LONGEST_SUMMARY]} ({places[-1]})" if places else text[:LONGEST_SUMMARY]
