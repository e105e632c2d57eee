"""Checks how many file descriptors this process may still open.

libzmq aborts the process if a new context gets no descriptors for its threads. So a client checks that enough are free
before it makes a context (`tests/client/net/test_file_limit.py`).
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FOR_CLIENT = 16
"""The descriptors that a client needs: at least 10, and one more while it looks up its scheduler's host."""


def check_free_files(what: str, count: int = FOR_CLIENT) -> None:
    """Check that this process can open `count` more files.

    Args:
        what: what needs them, for example "a client".

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


def file_shortage() -> str:
    """Return why this process can't open a connection, in one line; empty: it can."""
    try:
        check_free_files("a connection", 2)
    except OSError as error:
        return str(error.strerror)
    return ""


def _limit(error: OSError) -> str:
    if error.errno == errno.ENFILE:
        return "this system has reached its limit of open files (sysctl fs.file-max)"
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on every system

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = "no" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return (
            f"this process may open {soft:,} files and has about as many open. Close some, or raise the limit: "
            f"ulimit -n (hard limit: {most})"
        )
    return "this process has reached its limit of open files"
