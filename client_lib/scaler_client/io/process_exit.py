"""Exit, fork and signals of a process that has I/O threads."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from types import FrameType
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


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """SIGINT and SIGTERM, where a Python function handles them, wait for the end of the block.

    A process that is started but not written down yet would be left behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        if callable(signal.getsignal(number)):
            handlers[number] = signal.signal(number, lambda number, frame: pending.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for received, frame in pending:
        waiting = handlers[signal.Signals(received)]
        if callable(waiting):
            waiting(received, frame)
