"""Waiting for things instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.005


def wait_until(condition: Callable[[], object], seconds: float = 20.0, what: str = "") -> None:
    """Return once the condition holds; fail when it doesn't in time. `what` is for the failure's text."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain{f' for {what}' if what else ''}"
        time.sleep(POLL_SECONDS)
