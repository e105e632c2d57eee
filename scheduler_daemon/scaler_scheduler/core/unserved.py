"""Tasks that wait and that no worker there is could serve: the log says so, once, until one could."""

from typing import Dict, Optional, Set, Tuple

from scaler_scheduler.core.dispatcher import Dispatcher
from scaler_scheduler.core.events import Capabilities
from scaler_scheduler.core.notices import Notices
from scaler_scheduler.core.tables import Tables

WORKLESS_SECONDS = 5.0
"""How long tasks wait without any worker until the log says so: a cluster may be just starting."""


class Unserved:
    def __init__(self, tables: Tables, dispatcher: Dispatcher, notices: Notices) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._notices = notices
        self._known: Set[Tuple[int, Capabilities]] = set()
        """What was said, by client."""
        self._workless_since: Optional[float] = None
        """Since when there were tasks and no worker at all."""

    def look(self, now: float) -> None:
        """Say of tasks that no worker could serve that they wait; once, until one could."""
        workers = [worker for worker in self._tables.workers if not worker.is_retiring]
        if workers or not self._tables.counts.waiting:
            self._workless_since = None
        elif self._workless_since is None:
            self._workless_since = now
        elif 0 <= self._workless_since <= now - WORKLESS_SECONDS:
            self._notices.warning(f"{self._tables.counts.waiting} task(s) wait, and there is no worker at all")
            self._workless_since = float("inf")
        lacking: Dict[Tuple[int, Capabilities], int] = {}
        for lanes in self._dispatcher.lanes.values():
            for lane in lanes:
                wanted = lane.capabilities
                if wanted and lane.waiting and workers and not any(worker.can_serve(wanted) for worker in workers):
                    key = lane.client.incarnation, wanted
                    lacking[key] = lacking.get(key, 0) + lane.waiting
        for key, waiting in lacking.items():
            if key not in self._known:
                wanted_text = ", ".join(f"{name}={amount}" for name, amount in sorted(key[1]))
                self._notices.warning(f"{waiting} task(s) wait for a worker with {wanted_text}: there is none")
        self._known = set(lacking)
