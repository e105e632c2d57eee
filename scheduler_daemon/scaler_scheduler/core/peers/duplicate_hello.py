"""A hello in the name of a peer that is here already, on another connection: that peer again, or somebody else.

A peer that reconnects has lost its old connection: then the hello is taken at once. Where the old one is still there,
its peer may just not be able to reach us by it (a cut cable), so that the hello waits for some seconds. When the old
connection speaks meanwhile it is alive, and the newcomer has another's name: it is told so, and nothing changes.
"""

from typing import Callable, Dict, List, Optional

from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.events import AGENT, CLIENT, Hello
from scaler_scheduler.core.state.tables import Tables

UNREAD_SECONDS = 1.0
"""What the old connection has said before may be read so much later: it proves nothing."""

_LOOK_SECONDS = 0.25
"""How often is looked whether the old connections are still there."""

WAIT_SECONDS = 4.0
"""Heartbeats come every two seconds."""


class DuplicateHello:
    __slots__ = ("event", "is_old_alive", "old_route", "since")

    def __init__(self, event: Hello, old_route: bytes, since: float) -> None:
        self.event = event
        self.old_route = old_route
        self.since = since
        self.is_old_alive = False


class DuplicateHellos:
    def __init__(self, tables: Tables, is_connected: Callable[[bytes], bool]) -> None:
        self._tables = tables
        self._is_connected = is_connected
        self._waiting: Dict[int, DuplicateHello] = {}
        """By the incarnation that is claimed."""
        self.contested: Dict[bytes, DuplicateHello] = {}
        """The same by the connection of the peer that is here."""
        self._next_check = 0.0

    def defer(self, event: Hello, now: float) -> bool:
        """Whether the hello is kept for later.

        Raises:
            ProtocolError: another one of the same name waits already.
        """
        old_route = self._route_of(event)
        if old_route is None or old_route == event.route or not self._is_connected(old_route):
            return False
        duplicate = self._waiting.get(event.incarnation)
        if duplicate is not None and duplicate.event.route != event.route:
            raise ProtocolError(duplicate_text(duplicate))
        if duplicate is None:
            duplicate = self._waiting[event.incarnation] = self.contested[old_route] = DuplicateHello(
                event, old_route, now
            )
        return True

    def note_message(self, route: bytes, now: float) -> None:
        """A contested connection has said something."""
        duplicate = self.contested[route]
        if now >= duplicate.since + UNREAD_SECONDS:
            duplicate.is_old_alive = True

    def pop_decided(self, now: float) -> "List[DuplicateHello]":
        """Those about which is decided."""
        if now < self._next_check:
            return []
        self._next_check = now + _LOOK_SECONDS
        decided = [duplicate for duplicate in self._waiting.values() if self._is_decided(duplicate, now)]
        for duplicate in decided:
            del self._waiting[duplicate.event.incarnation]
            del self.contested[duplicate.old_route]
        return decided

    def _is_decided(self, duplicate: DuplicateHello, now: float) -> bool:
        if duplicate.is_old_alive or now >= duplicate.since + WAIT_SECONDS:
            return True
        return self._route_of(duplicate.event) != duplicate.old_route or not self._is_connected(duplicate.old_route)

    def _route_of(self, event: Hello) -> Optional[bytes]:
        """Where the peer of this name is."""
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
    """What the newcomer is told."""
    return f"incarnation {duplicate.event.incarnation} is here already, on another connection"
