"""Simulated time: due actions run in the order of their times, one after another."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        """Seconds. It does not start at 0, so that no code can take a time for a flag."""
        self.steps = 0
        self._due: list[tuple[float, int, Action]] = []
        self._count = 0

    def after(self, seconds: float, action: Action) -> None:
        """Call `action` after so many seconds. Actions with the same time run in the order of these calls."""
        self._count += 1
        heapq.heappush(self._due, (self.now + seconds, self._count, action))

    def step(self, limit: float) -> bool:
        """Run the next action. Returns False if none is due up to `limit`; then `limit` is the time."""
        if not self._due or self._due[0][0] > limit:
            self.now = max(self.now, limit)
            return False
        self.now, _, action = heapq.heappop(self._due)
        self.steps += 1
        action()
        return True


UNNOTICED_SECONDS = 2.0
"""A process may be frozen for this long, two heartbeats, without a difference from being busy."""


class Process:
    """A process on a simulated machine. It may be frozen, as by SIGSTOP, and may die at any time."""

    def __init__(self, clock: Clock, name: str) -> None:
        self.clock = clock
        self.name = name
        self.is_alive = True
        self.is_frozen = False
        self._frozen_at = 0.0
        self._frozen_seconds = 0.0
        self._missed: list[Action] = []

    def later(self, seconds: float, action: Action) -> None:
        """Call `action` after so many seconds, if this process lives. If it is frozen then, as soon as it thaws."""
        self.clock.after(seconds, lambda: self._do(action))

    @property
    def run_seconds(self) -> float:
        """A clock that stands still while the process does, as far as the process can notice."""
        now = self._frozen_at if self.is_frozen else self.clock.now
        return now - self._frozen_seconds

    def freeze(self) -> None:
        if not self.is_frozen:
            self.is_frozen = True
            self._frozen_at = self.clock.now

    def thaw(self) -> None:
        if not self.is_frozen:
            return
        self.is_frozen = False
        self._frozen_seconds += max(0.0, self.clock.now - self._frozen_at - UNNOTICED_SECONDS)
        missed, self._missed = self._missed, []
        for action in missed:
            self._do(action)

    def kill(self) -> None:
        self.is_alive = False
        self._missed = []

    def _do(self, action: Action) -> None:
        if not self.is_alive:
            return
        if self.is_frozen:
            self._missed.append(action)
        else:
            action()
