"""Ends a process that a task has forked, when it returns from the task: it must not become a second worker."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

_log = logging.getLogger(__name__)


def end_process(task: str, error: BaseException | None = None) -> NoReturn:
    """End this process as Python does, but without the exit handlers that its parent has registered.

    Args:
        task: the name of the task's function.
        error: the exception that the task raised in this process; None if the task returned.
    """
    try:
        status, what = _status(error)
        level = logging.INFO if isinstance(error, SystemExit) else logging.WARNING
        text = "process %d, a child that task %s has forked, %s: it ends with status %d. End it with os._exit"
        _log.log(level, text, os.getpid(), task, what, status)
    except BaseException:
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or its pipe has no reader
            stream.flush()
    os._exit(status)


def _status(error: BaseException | None) -> tuple[int, str]:
    if error is None:
        return 0, "returned from it"
    if not isinstance(error, SystemExit):
        traceback.print_exception(error)
        return 1, f"raised {type(error).__name__} in it"
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF, "called sys.exit in it"
    print(error.code, file=sys.stderr)
    return 1, "called sys.exit in it"
