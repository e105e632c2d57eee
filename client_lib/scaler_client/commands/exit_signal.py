"""Services that run until a signal ends them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exit_signal() -> Iterator[threading.Event]:
    """Yield an event that is set by SIGTERM or SIGINT. The end of the block restores the handlers from before. Only the
    main thread may call this."""
    exit_requested = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: exit_requested.set()) for number in numbers]
    try:
        yield exit_requested
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
