"""Reports the state of a host agent to the service manager (systemd)."""

from __future__ import annotations

from scaler_client.commands.systemd_notify import SystemdNotifier

from .session import AgentSession

STATUS_SECONDS = 1.0
"""Between two reports of the status."""


class ServiceReport:
    """The reports of one agent. The agent is ready as soon as its workers are being started.

    Reason: hosts may be started in any order. Whether a scheduler answers is part of the status.
    """

    def __init__(self, manager: SystemdNotifier, now: float) -> None:
        self._manager = manager
        self._next_status = now
        self._is_ready = self._is_stopping = False
        self.next_beat = now if manager.watchdog_seconds else float("inf")
        """When `tell` is to be called next, at the latest."""

    def update(self, session: AgentSession, now: float) -> None:
        """Send the reports that are due. The agent calls this in every turn of its loop."""
        if not self._manager.is_connected:
            return
        if not self._is_ready:
            self._is_ready = True
            self._manager.ready()
        if now >= self.next_beat:
            self.next_beat = now + self._manager.watchdog_seconds
            self._manager.watchdog()
        if now >= self._next_status:
            self._next_status = now + STATUS_SECONDS
            self._manager.status(session.status())
        if not session.is_serving and not self._is_stopping:
            self._is_stopping = True
            self._manager.stopping()
