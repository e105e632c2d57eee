"""What a key is good for, and to whom an incarnation belongs.

Where peers have keys a hello comes with its connection's user, `role:key`, which the peer did not choose. Everything
else that it says is its own word. Without keys all users are the empty one, and nobody is refused here.
"""

from typing import Optional, Union

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.core_state import CoreState
from scaler_scheduler.core.errors import NotAdmittedError
from scaler_scheduler.core.ids import INCARNATION_LIMIT
from scaler_scheduler.core.peers.quotas import Quotas
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.state.tables import Tables

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

        Raises:
            NotAdmittedError: the peer may not join: of another protocol version, or with a key that does not allow it.
            ProtocolError: too many hellos in this second, or too many peers.
        """
        self._quotas.check_hello(event, now)
        if event.protocol_version != self._protocol_version:
            text = f"protocol version {event.protocol_version} is not {self._protocol_version}"
            raise NotAdmittedError(text, effects.REFUSED_PROTOCOL_VERSION)
        if not 0 < event.incarnation < INCARNATION_LIMIT:
            text = f"incarnation {event.incarnation} is not between 1 and 2^63"
            raise NotAdmittedError(text, effects.REFUSED_MALFORMED_HELLO)
        text = _objection(event, self._tables)
        if text:
            raise NotAdmittedError(text, effects.REFUSED_NOT_AUTHORIZED)


def _objection(event: events.Hello, tables: Tables) -> str:
    """Why this peer may not join as what it says that it is; empty where it may."""
    return (_wrong_role(event) if event.user else "") or _anothers(event, tables)


def _wrong_role(event: events.Hello) -> str:
    role = events.ROLE_NAMES[event.role]
    if event.user.startswith(WORKER_USER):
        # Tasks that submit tasks have their client in their worker, which has no other key.
        if event.role == events.CLIENT and not event.worker:
            return "its key is a worker's: clients but those of tasks need a client's (authorize --as client)"
        return ""
    if not event.user.startswith(CLIENT_USER):
        return "its key is neither a client's nor a worker's"
    if event.role != events.CLIENT:
        return f"its key is a client's: {role}s need a worker's (authorize --as worker)"
    return "its key is a client's, and so it doesn't live in a worker" if event.worker else ""


def _anothers(event: events.Hello, tables: Tables) -> str:
    """Incarnations belong to the key that was first to use them, and so do workers and agents that others name."""
    named = [("worker", _user(tables.workers.find(event.worker))), ("agent", _user(tables.agents.find(event.agent)))]
    if event.role == events.CLIENT:
        named.append(("client", _user(tables.clients.find(event.incarnation))))
    elif event.role == events.WORKER:
        named.append(("worker", _user(tables.workers.find(event.incarnation))))
    else:
        named.append(("agent", _user(tables.agents.find(event.incarnation))))
    for what, user in named:
        if user is not None and user != event.user:
            return f"there is a {what} of this incarnation with another key"
    return ""


def _user(peer: Optional[Union[Client, Worker, Agent]]) -> Optional[str]:
    return None if peer is None else peer.user
