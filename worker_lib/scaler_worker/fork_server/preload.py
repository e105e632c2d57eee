"""Functions that the user names on the command line: `--preload` is called before the first task, `--offer` by
tasks."""

from __future__ import annotations

import importlib
import traceback
from operator import attrgetter
from typing import Any

MAX_SUMMARY_LENGTH = 300  # characters
MODULES_HINT = "modules are searched in PYTHONPATH, and among the installed packages of this Python"


class PreloadError(Exception):
    """A named function failed, or does not exist. The text is the option and the name; the cause says why."""


def find(option: str, name: str) -> Any:
    """Import what `module:function` names.

    Raises:
        PreloadError: it does not exist, or its module fails.
    """
    module, _, function = name.partition(":")
    try:
        return attrgetter(function)(importlib.import_module(module))
    except BaseException as error:  # sys.exit as well
        raise PreloadError(f"{option} {name}") from error


def preload(name: str) -> None:
    """Call the function that `module:function` names.

    Raises:
        PreloadError: the function does not exist, or it or its module fails.
    """
    function = find("--preload", name)
    try:
        function()
    except BaseException as error:  # sys.exit as well
        raise PreloadError(f"--preload {name}") from error


def error_summary(error: BaseException) -> str:
    """One line about an exception, with the file and line nearest to it."""
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
    return f"{text[:MAX_SUMMARY_LENGTH]} ({places[-1]})" if places else text[:MAX_SUMMARY_LENGTH]
