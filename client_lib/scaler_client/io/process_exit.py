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
    """An I/O thread, as its process sees it."""

    def close(self, reason: str) -> None:
        """Leave the scheduler and end the thread."""

    def mark_forked(self) -> None:
        """Note that this process is a forked child: thread and connection belong to the parent."""


_threads: weakref.WeakSet[ClosableThread] = weakref.WeakSet()


def close_at_exit(thread: ClosableThread) -> None:
    """Close the thread when the interpreter ends, and mark it in forked children."""
    _threads.add(thread)
    # Registered again each time, so that it runs before the exit handler of a local cluster that was started earlier.
    atexit.unregister(_close_all)
    atexit.register(_close_all)


def _close_all() -> None:
    """Close all I/O threads at the interpreter's exit, so that a pending future does not block the exit."""
    for thread in list(_threads):
        thread.close("the interpreter ends")


def _mark_all_forked() -> None:
    for thread in list(_threads):
        thread.mark_forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_all_forked)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Delay SIGINT and SIGTERM until the end of the block, if Python functions handle them.

    Example: an interrupt after a process was started, but before its id is stored, would leave that process running.
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
