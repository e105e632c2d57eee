"""The user's function that each worker calls before its first task (`--preload`)."""

from __future__ import annotations

import importlib
from operator import attrgetter


class PreloadError(Exception):
    """It failed, or is not there. The text is its name, the cause says why."""


def preload(name: str) -> None:
    """Call the function that `module:function` names.

    Raises:
        PreloadError: whatever went wrong.
    """
    module, _, function = name.partition(":")
    try:
        attrgetter(function)(importlib.import_module(module))()
    except BaseException as error:  # sys.exit as well
        raise PreloadError(name) from error
