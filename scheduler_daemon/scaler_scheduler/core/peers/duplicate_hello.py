"""A hello with the incarnation of a peer that has another connection. It comes from the same peer, or from another
peer.

A peer that reconnects has lost its old connection, and its hello is accepted at once. The old connection may exist
although its peer cannot reach the scheduler by it (a cut cable). So the hello waits for some seconds. If the old
connection sends a message meanwhile, its peer is alive: the new one is rejected, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Callable

from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import AGENT, CLIENT, Hello
from scaler_scheduler.core.tables import Tables

READ_DELAY_SECONDS = 1.0
"""The scheduler may read a message of the old connection this long after it was sent. Such messages prove nothing."""

_CHECK_SECONDS = 0.25
"""The time between two probes of the old connections."""

WAIT_SECONDS = 4.0
"""How long a hello waits for a message of the old connection. Heartbeats come every two seconds."""


class DuplicateHello:
    """A hello that waits, because its incarnation has another connection."""

    __slots__ = ("event", "is_old_alive", "old_route", "since")

    def __init__(self, event: Hello, old_route: bytes, since: float) -> None:
        self.event = event
        self.old_route = old_route
        self.since = since
        self.is_old_alive = False


class DuplicateHellos:
    """The waiting hellos, and the decision about each."""

    def __init__(self, tables: Tables, is_connected: Callable[[bytes], bool]) -> None:
        self._tables = tables
        self._is_connected = is_connected
        self._waiting: dict[int, DuplicateHello] = {}
        """Waiting hellos by their incarnation."""
        self.contested: dict[bytes, list[DuplicateHello]] = {}
        """Waiting hellos by the old connection. A connection that changes its incarnation may have several."""
        self._next_check = 0.0

    def defer(self, event: Hello, now: float) -> bool:
        """Whether the hello must wait for a decision.

        Raises:
            ProtocolError: another hello with this incarnation already waits.
        """
        old_route = self._route_of(event)
        if old_route is None or old_route == event.route or not self._is_connected(old_route):
            return False
        duplicate = self._waiting.get(event.incarnation)
        if duplicate is not None and duplicate.event.route != event.route:
            raise ProtocolError(duplicate_text(duplicate))
        if duplicate is None:
            duplicate = self._waiting[event.incarnation] = DuplicateHello(event, old_route, now)
            self.contested.setdefault(old_route, []).append(duplicate)
        return True

    def note_message(self, route: bytes, now: float) -> None:
        """Note a message of an old connection."""
        for duplicate in self.contested[route]:
            if now >= duplicate.since + READ_DELAY_SECONDS:
                duplicate.is_old_alive = True

    def pop_decided(self, now: float) -> list[DuplicateHello]:
        """Remove and return the hellos that are decided."""
        if now < self._next_check or not self._waiting:
            return []
        self._next_check = now + _CHECK_SECONDS
        decided = [duplicate for duplicate in self._waiting.values() if self._is_decided(duplicate, now)]
        self._remove(decided)
        return decided

    def drop(self, users: Container[str]) -> None:
        """Forget the hellos of these users."""
        self._remove([duplicate for duplicate in self._waiting.values() if duplicate.event.user in users])

    def _remove(self, duplicates: list[DuplicateHello]) -> None:
        for duplicate in duplicates:
            del self._waiting[duplicate.event.incarnation]
            contesting = self.contested[duplicate.old_route]
            contesting.remove(duplicate)
            if not contesting:
                del self.contested[duplicate.old_route]

    def _is_decided(self, duplicate: DuplicateHello, now: float) -> bool:
        if duplicate.is_old_alive or now >= duplicate.since + WAIT_SECONDS:
            return True
        return self._route_of(duplicate.event) != duplicate.old_route or not self._is_connected(duplicate.old_route)

    def _route_of(self, event: Hello) -> bytes | None:
        """Return the connection of the peer with this incarnation."""
        tables = self._tables
        if event.role == CLIENT:
            client = tables.clients.find(event.incarnation)
            return None if client is None or client.is_gone else client.route
        if event.role == AGENT:
            agent = tables.agents.find(event.incarnation)
            return None if agent is None else agent.route
        worker = tables.workers.find(event.incarnation)
        return None if worker is None else worker.route


def duplicate_text(duplicate: DuplicateHello) -> str:
    """Return the error text for the new connection."""
    return f"incarnation {duplicate.event.incarnation} is already connected by another connection"
