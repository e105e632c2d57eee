"""Keeping Ctrl-C out of the few lines that it must not cut in two."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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
