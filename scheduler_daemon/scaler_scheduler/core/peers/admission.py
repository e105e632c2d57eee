"""Which peers may join: which roles a key allows, and which user an incarnation belongs to. With keys, a hello has the
user of its connection, `role:key`, which the peer cannot choose. All other fields of the hello are claims of the peer.
Without keys all users are empty, and this module refuses no peer.
"""

from __future__ import annotations

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import NotAdmittedError
from scaler_scheduler.core.ids import INCARNATION_LIMIT
from scaler_scheduler.core.peers.quotas import Quotas
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.tables import Tables

CLIENT_USER = "client:"
WORKER_USER = "worker:"


class Admission:
    """Decides whether a peer may join."""

    def __init__(self, core: CoreState, quotas: Quotas, protocol_version: int) -> None:
        self._tables = core.tables
        self._quotas = quotas
        self._protocol_version = protocol_version

    def check(self, event: events.Hello, now: float) -> None:
        """Check a hello.

        Args:
            event: the hello.
            now: seconds of the monotonic clock.

        Raises:
            NotAdmittedError: the peer has another protocol version, or a key that does not allow its role or
                incarnation.
            ProtocolError: too many hellos in this second, or too many peers.
        """
        self._quotas.check_hello(event, now)
        if event.protocol_version != self._protocol_version:
            text = f"protocol version {event.protocol_version} is not {self._protocol_version}"
            raise NotAdmittedError(text, effects.REFUSED_PROTOCOL_VERSION)
        if not 0 < event.incarnation < INCARNATION_LIMIT:
            text = f"incarnation {event.incarnation} is not between 1 and 2^63"
            raise NotAdmittedError(text, effects.REFUSED_MALFORMED_HELLO)
        text = self.refusal_text(event)
        if text:
            raise NotAdmittedError(text, effects.REFUSED_NOT_AUTHORIZED)

    def refusal_text(self, event: events.Hello) -> str:
        """Return why this peer may not join in its role. Empty if it may."""
        return (_wrong_role(event) if event.user else "") or _foreign_incarnation(event, self._tables)


def _wrong_role(event: events.Hello) -> str:
    role = events.ROLE_NAMES[event.role]
    if event.user.startswith(WORKER_USER):
        # A nested client lives in a worker and has only the worker's key.
        if event.role == events.CLIENT and not event.worker:
            return "this is a worker's key: clients outside of tasks need a client's key (authorize --as client)"
        return ""
    if not event.user.startswith(CLIENT_USER):
        return "this key is neither a client's nor a worker's"
    if event.role != events.CLIENT:
        return f"this is a client's key: {role}s need a worker's key (authorize --as worker)"
    return "this is a client's key: a client inside a worker has the worker's key" if event.worker else ""


def _foreign_incarnation(event: events.Hello, tables: Tables) -> str:
    """Return why this user may not use an incarnation. It belongs to the first key that used it, as worker, agent or
    client."""
    named = [("worker", _user(tables.workers.find(event.worker))), ("agent", _user(tables.agents.find(event.agent)))]
    if event.role == events.CLIENT:
        named.append(("client", _user(tables.clients.find(event.incarnation))))
    elif event.role == events.WORKER:
        named.append(("worker", _user(tables.workers.find(event.incarnation))))
    else:
        named.append(("agent", _user(tables.agents.find(event.incarnation))))
    for what, user in named:
        if user is not None and user != event.user:
            return f"a {what} with another key has this incarnation"
    # Workers may join before their agent: they have one key, and the agent has this key too.
    agent = event.incarnation if event.role == events.AGENT else event.agent
    sibling = next(iter(tables.workers.of_agent(agent)), None) if agent else None
    is_foreign = sibling is not None and sibling.user != event.user
    return "the workers of this agent have another key" if is_foreign else ""


def _user(peer: Client | Worker | Agent | None) -> str | None:
    return None if peer is None else peer.user
