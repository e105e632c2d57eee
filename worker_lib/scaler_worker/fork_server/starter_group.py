"""The fork servers of one agent: its own, and one for each environment that has another interpreter."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from .client import ForkServerLost, WorkerStarter
from .process_events import ProcessEnded, ProcessEvent, ProcessStarted
from .task_processes import end_processes
from .worker_settings import WorkerSettings

UNUSED_SECONDS = 60.0
"""A fork server of an environment ends after so long without a worker."""

FORK_SERVER_LOST = "the fork server of its environment died"

_log = logging.getLogger(__name__)


class _Further:
    """The fork server of one environment."""

    def __init__(self, starter: WorkerStarter) -> None:
        self.starter = starter
        self.workers: dict[int, ProcessStarted] = {}
        """Its workers by incarnation. The pid is 0 until the start is known."""
        self.unused_since: float | None = None


class StarterGroup:
    """Starts workers through the fork server that suits their environment."""

    def __init__(self, own: WorkerStarter) -> None:
        self._own = own
        self._further: dict[str, _Further] = {}
        """By the name of the environment."""
        self._events: list[ProcessEvent] = []

    def filenos(self) -> list[tuple[int, bool]]:
        """The descriptors to poll, each with whether it is polled for writing too."""
        starters = [self._own, *(further.starter for further in self._further.values())]
        return [(starter.fileno(), starter.wants_write) for starter in starters]

    def flush(self) -> None:
        """Send the requests that did not fit into the sockets."""
        self._own.flush()
        for further in self._further.values():
            further.starter.flush()

    def start(self, slot: int, settings: WorkerSettings, launch: Callable[[], WorkerStarter] | None = None) -> None:
        """Start a worker.

        Args:
            slot: its slot of the state page.
            settings: its settings.
            launch: starts the fork server of the worker's environment; None: the agent's own fork server suits.
        """
        if launch is None:
            self._own.start(slot, settings)
            return
        further = self._further.get(settings.environment)
        if further is None:
            try:
                further = self._further[settings.environment] = _Further(launch())
            except OSError as error:
                text = f"the interpreter of its environment cannot be started: {error}"
                self._events.append(ProcessEnded(slot, settings.incarnation, pid=0, error=text))
                return
        further.workers[settings.incarnation] = ProcessStarted(slot, settings.incarnation, 0)
        further.unused_since = None
        further.starter.start(slot, settings)

    def end(self, incarnation: int, kill: bool) -> None:
        """Send SIGTERM or SIGKILL to a worker. Does nothing if it has ended already."""
        for further in self._further.values():
            if incarnation in further.workers:
                further.starter.end(incarnation, kill)
                return
        self._own.end(incarnation, kill)

    def receive(self) -> list[ProcessEvent]:
        """The events since the last call.

        Raises:
            ForkServerLost: the agent's own fork server has ended.
        """
        events, self._events = self._events, []
        for name, further in list(self._further.items()):
            try:
                received = further.starter.receive()
            except ForkServerLost:
                received = [
                    ProcessEnded(worker.slot, worker.incarnation, worker.pid, error=FORK_SERVER_LOST)
                    for worker in further.workers.values()
                ]
                end_processes(further.workers, os.getpid())
                self._close(name)
            for event in received:
                if isinstance(event, ProcessEnded):
                    further.workers.pop(event.incarnation, None)
                elif event.incarnation in further.workers:
                    further.workers[event.incarnation] = event
            events += received
        return events + self._own.receive()

    @property
    def has_events(self) -> bool:
        """Whether `receive` returns events that no descriptor announces."""
        return bool(self._events)

    def close_unused(self, now: float) -> None:
        """End the fork servers that had no worker for long."""
        for name, further in list(self._further.items()):
            if further.workers:
                further.unused_since = None
            elif further.unused_since is None:
                further.unused_since = now
            elif now >= further.unused_since + UNUSED_SECONDS:
                _log.info("the fork server of environment %s ends: it had no worker for long", name[:12])
                self._close(name)

    def close(self) -> None:
        """End the further fork servers. The agent's own one is ended by its maker."""
        for name in list(self._further):
            self._close(name)

    def _close(self, name: str) -> None:
        started = time.monotonic()
        self._further.pop(name).starter.close()
        _log.debug("a fork server took %.3f s to end", time.monotonic() - started)
