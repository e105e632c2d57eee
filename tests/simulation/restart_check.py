"""Whether a scheduler leaves workers the time to come back before it gives out what clients submit again."""

from __future__ import annotations

from scaler_scheduler.core import events
from scaler_scheduler.core.peers import restart_hold

from .held_tasks import TaskId
from .trace import SimulationError


class RestartCheck:
    """The clients of one scheduler that another one has welcomed before.

    Args:
        scheduler: the incarnation of this one.
    """

    def __init__(self, scheduler: int) -> None:
        self._scheduler = scheduler
        self._clients: set[int] = set()
        self._until = float("inf")

    def note_hello(self, event: events.Hello, now: float) -> None:
        """A client, which the scheduler does not know."""
        self._clients.discard(event.incarnation)
        if event.scheduler not in (0, self._scheduler):
            self._clients.add(event.incarnation)
            self._until = min(self._until, now + restart_hold.HOLD_SECONDS)

    def check_dispatch(self, name: TaskId, now: float) -> None:
        """A task is given out."""
        if name[0] in self._clients and now < self._until:
            raise SimulationError(f"given out {self._until - now:.3f} s before workers have had their time: {name}")
