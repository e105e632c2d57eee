"""What becomes of the I/O threads of a process that ends or forks."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class ClosableThread(Protocol):
    def close(self, reason: str) -> None: ...

    def mark_forked(self) -> None:
        """This is a child process."""


_threads: weakref.WeakSet[ClosableThread] = weakref.WeakSet()


def close_at_exit(thread: ClosableThread) -> None:
    """Close it when the interpreter ends; tell it when this is a forked child."""
    _threads.add(thread)
    # Anew, so that it runs before the end of a local cluster that was there first.
    atexit.unregister(_close_all)
    atexit.register(_close_all)


def _close_all() -> None:
    """At the interpreter's exit: a pending future must not keep it from ending."""
    for thread in list(_threads):
        thread.close("the interpreter ends")


def _mark_all_forked() -> None:
    for thread in list(_threads):
        thread.mark_forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_all_forked)
