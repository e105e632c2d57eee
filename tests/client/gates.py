"""Tasks that wait for the test, where they run in its process."""

from __future__ import annotations

import threading
from typing import Any

PATIENCE_SECONDS = 20.0


class Gates:
    """Opened by the test, passed by tasks. It travels by name."""

    def __init__(self) -> None:
        self._events: dict[Any, threading.Event] = {}
        self._making = threading.Lock()
        self.passed: list[Any] = []
        """The keys of those that tasks came to, in that order."""

    def _event(self, key: Any) -> threading.Event:
        with self._making:
            return self._events.setdefault(key, threading.Event())

    def open(self, *keys: Any) -> None:
        for key in keys:
            self._event(key).set()

    def wait(self, key: Any) -> Any:
        self.passed.append(key)
        assert self._event(key).wait(PATIENCE_SECONDS), f"nobody opens {key}"
        return key

    def close_down(self) -> None:
        """After a test: whoever still waits goes on, and the next test begins anew."""
        with self._making:
            for event in self._events.values():
                event.set()
            self._events.clear()
            self.passed.clear()


gates = Gates()


def through(key: Any) -> Any:
    """A task that returns its key once its gate is open."""
    return gates.wait(key)
