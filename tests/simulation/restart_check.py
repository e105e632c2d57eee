"""Checks that a scheduler leaves workers the time to come back before it dispatches resubmitted tasks."""

from __future__ import annotations

from scaler_scheduler.core import events
from scaler_scheduler.core.peers import restart_hold

from .held_tasks import TaskId
from .trace import SimulationError


class RestartCheck:
    """The clients of one scheduler that another scheduler has welcomed before.

    Args:
        scheduler: the incarnation of this scheduler.
    """

    def __init__(self, scheduler: int) -> None:
        self._scheduler = scheduler
        self._clients: set[int] = set()
        self._until = float("inf")

    def note_hello(self, event: events.Hello, now: float) -> None:
        """Note the hello of a client that the scheduler does not know."""
        self._clients.discard(event.incarnation)
        if event.scheduler not in (0, self._scheduler):
            self._clients.add(event.incarnation)
            self._until = min(self._until, now + restart_hold.HOLD_SECONDS)

    def check_dispatch(self, name: TaskId, now: float) -> None:
        """Check that a task may be dispatched now."""
        if name[0] in self._clients and now < self._until:
            raise SimulationError(f"dispatched {self._until - now:.3f} s before workers have had their time: {name}")
