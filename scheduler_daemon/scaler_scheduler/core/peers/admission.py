"""What a key is good for, and to whom an incarnation belongs.

Where peers have keys a hello comes with its connection's user, `role:key`, which the peer did not choose. Everything
else that it says is its own word. Without keys all users are the empty one, and nobody is refused here.
"""

from typing import Optional, Union

from scaler_scheduler.core import events
from scaler_scheduler.core.state.records import Agent, Client, Worker
from scaler_scheduler.core.state.tables import Tables

CLIENT_USER = "client:"
WORKER_USER = "worker:"


def objection(event: events.Hello, tables: Tables) -> str:
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
