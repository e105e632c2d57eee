"""Functions of the user's that are named on the command line: found, and called before the first task (`--preload`)."""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import Any


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
