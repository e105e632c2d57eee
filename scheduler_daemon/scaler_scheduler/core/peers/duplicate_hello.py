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


class Claim:
    __slots__ = ("event", "is_contradicted", "old_route", "since")

    def __init__(self, event: Hello, old_route: bytes, since: float) -> None:
        self.event = event
        self.old_route = old_route
        self.since = since
        self.is_contradicted = False


class Claims:
    def __init__(self, tables: Tables, is_connected: Callable[[bytes], bool]) -> None:
        self._tables = tables
        self._is_connected = is_connected
        self._claims: Dict[int, Claim] = {}
        """By the incarnation that is claimed."""
        self.contested: Dict[bytes, Claim] = {}
        """The same by the connection of the peer that is here."""
        self._next_look = 0.0

    def must_wait(self, event: Hello, now: float) -> bool:
        """Whether the hello is kept for later.

        Raises:
            ProtocolError: another one of the same name waits already.
        """
        old_route = self._route_of(event)
        if old_route is None or old_route == event.route or not self._is_connected(old_route):
            return False
        claim = self._claims.get(event.incarnation)
        if claim is not None and claim.event.route != event.route:
            raise ProtocolError(claimed_twice(claim))
        if claim is None:
            claim = self._claims[event.incarnation] = self.contested[old_route] = Claim(event, old_route, now)
        return True

    def hear(self, route: bytes, now: float) -> None:
        """A contested connection has said something."""
        claim = self.contested[route]
        if now >= claim.since + UNREAD_SECONDS:
            claim.is_contradicted = True

    def take_settled(self, now: float) -> "List[Claim]":
        """Those about which is decided."""
        if now < self._next_look:
            return []
        self._next_look = now + _LOOK_SECONDS
        settled = [claim for claim in self._claims.values() if self._is_settled(claim, now)]
        for claim in settled:
            del self._claims[claim.event.incarnation]
            del self.contested[claim.old_route]
        return settled

    def _is_settled(self, claim: Claim, now: float) -> bool:
        if claim.is_contradicted or now >= claim.since + WAIT_SECONDS:
            return True
        return self._route_of(claim.event) != claim.old_route or not self._is_connected(claim.old_route)

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


def claimed_twice(claim: Claim) -> str:
    """What the newcomer is told."""
    return f"incarnation {claim.event.incarnation} is here already, on another connection"
