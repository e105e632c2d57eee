"""Waiting for things instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.005
MOST_POLL_SECONDS = 0.1
REST = 5
"""The share of rests: a look that takes long, as one at all processes, takes a sixth of the processor at most."""


def wait_until(condition: Callable[[], object], seconds: float = 20.0, what: str = "") -> None:
    """Return once the condition holds; fail when it doesn't in time. `what` is for the failure's text."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.thread_time()
        if condition():
            return
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain{f' for {what}' if what else ''}"
        time.sleep(min(max(POLL_SECONDS, REST * (time.thread_time() - began)), MOST_POLL_SECONDS))
