"""The connected peers, found by the connection of a message."""

from __future__ import annotations

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import ProtocolError
from scaler_scheduler.core.state.counts import WASTED_MESSAGE_US
from scaler_scheduler.core.state.records import Agent, Client, Worker


class Peers:
    """Finds the peer that has sent a message."""

    def __init__(self, core: CoreState) -> None:
        self._tables = core.tables
        self._outbox = core.outbox

    def client(self, route: bytes) -> Client | None:
        """Return the client on this connection. None if it must say hello first."""
        client = self._tables.clients.by_route.get(route)
        if client is None:
            self._check_unknown(route, "client")
        return client

    def worker(self, route: bytes) -> Worker | None:
        """Return the worker on this connection. None if it must say hello first."""
        worker = self._tables.workers.by_route.get(route)
        if worker is None:
            self._check_unknown(route, "worker")
        return worker

    def agent(self, route: bytes) -> Agent | None:
        """Return the host agent on this connection. None if it must say hello first."""
        agent = self._tables.agents.by_route.get(route)
        if agent is None:
            self._check_unknown(route, "host agent")
        return agent

    def _check_unknown(self, route: bytes, wanted: str) -> None:
        if self.is_known(route):
            raise ProtocolError(f"only a {wanted} may send this message")
        self._tables.counts.wasted_us += WASTED_MESSAGE_US
        self._outbox.add(effects.HelloWanted(route))

    def is_known(self, route: bytes) -> bool:
        """Whether a peer was welcomed on this connection."""
        tables = self._tables
        return route in tables.clients.by_route or route in tables.workers.by_route or route in tables.agents.by_route

    def name(self, route: bytes) -> str:
        """The role and name of the peer on this connection, for people."""
        tables = self._tables
        client = tables.clients.by_route.get(route)
        worker = tables.workers.by_route.get(route)
        agent = tables.agents.by_route.get(route)
        for role, peer in (("client", client), ("worker", worker), ("agent", agent)):
            if peer is not None:
                return f"{role} {peer.name}"
        return "a peer that has not said hello"
