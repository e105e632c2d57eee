"""File descriptors that this process may still open. Where libzmq finds none for a context's threads, it aborts.

So a client looks whether there are enough before it makes a context (`tests/client/test_open_files.py`).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FOR_CLIENT = 16
"""Descriptors that a client needs at least: it has 10, and while it looks for its scheduler one more."""


def check_free_files(what: str, count: int = FOR_CLIENT) -> None:
    """Raise where so many can't be opened.

    Args:
        what: what they are for, as in "a client".

    Raises:
        OSError: EMFILE or ENFILE; the text names the limit.
    """
    taken: list[int] = []
    try:
        for _ in range(count):
            taken.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise OSError(error.errno, f"too few file descriptors are left for {what}: {_limit(error)}") from None
    finally:
        for number in taken:
            os.close(number)


def shortage() -> str:
    """Why this process can't open a connection, in one line; empty where it can."""
    try:
        check_free_files("a connection", 2)
    except OSError as error:
        return str(error.strerror)
    return ""


def _limit(error: OSError) -> str:
    if error.errno == errno.ENFILE:
        return "this system has as many files open as it allows (sysctl fs.file-max)"
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = "no" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return (
            f"this process may open {soft:,} files, and has about as many open. Close some, or raise the limit: "
            f"ulimit -n (hard limit: {most})"
        )
    return "this process has as many files open as it may have"
