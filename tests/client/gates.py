"""Gates: let tasks that run in the test's process wait for the test."""

from __future__ import annotations

import threading
from typing import Any

PATIENCE_SECONDS = 20.0


class Gates:
    """Gates by key. The test opens them, tasks wait at them."""

    def __init__(self) -> None:
        self._events: dict[Any, threading.Event] = {}
        self._lock = threading.Lock()
        self.passed: list[Any] = []
        """The keys of the gates that tasks reached, in order."""

    def _event(self, key: Any) -> threading.Event:
        with self._lock:
            return self._events.setdefault(key, threading.Event())

    def open(self, *keys: Any) -> None:
        for key in keys:
            self._event(key).set()

    def wait(self, key: Any) -> Any:
        self.passed.append(key)
        assert self._event(key).wait(PATIENCE_SECONDS), f"no one opened the gate {key}"
        return key

    def close_down(self) -> None:
        """Open all gates and forget them, at the end of a test."""
        with self._lock:
            for event in self._events.values():
                event.set()
            self._events.clear()
            self.passed.clear()


gates = Gates()


def wait_at_gate(key: Any) -> Any:
    """Wait until a gate is open, and return its key. Used as a task."""
    return gates.wait(key)
