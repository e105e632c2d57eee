"""After a restart: what clients submit again is not given out before workers have had the time to come back.

Some of it runs, on workers that say so in their hello. A free worker whose hello comes first would be given it to run
once more. Only clients that another scheduler has welcomed before can have such tasks: what others submit is not held.
"""

from typing import List

from scaler_scheduler.core.dispatch.dispatcher import Dispatcher
from scaler_scheduler.core.state.records import PAUSE_RESTART_HOLD, Client

HOLD_SECONDS = 1.0
"""From the first client that comes back. Our workers try to connect every 250 ms, and look for it every 200 ms."""


class RestartHold:
    def __init__(self, dispatcher: Dispatcher, incarnation: int) -> None:
        """`incarnation` is this scheduler's own."""
        self._dispatcher = dispatcher
        self._incarnation = incarnation
        self._end = float("inf")
        """When workers have had their time."""
        self._held: List[Client] = []

    @property
    def deadline(self) -> float:
        """When `let_go` is due."""
        return self._end if self._held else float("inf")

    def hold(self, client: Client, scheduler: int, now: float) -> None:
        """This client, which nobody here knew, was welcomed last by that scheduler; 0: by none."""
        if scheduler in (0, self._incarnation):
            return
        self._end = min(self._end, now + HOLD_SECONDS)
        if now < self._end:
            self._dispatcher.pause(client, PAUSE_RESTART_HOLD)
            self._held.append(client)

    def release(self) -> None:
        """What was held is given out from now on."""
        held, self._held = self._held, []
        for client in held:
            self._dispatcher.resume(client, PAUSE_RESTART_HOLD)
