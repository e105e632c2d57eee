"""Connections of a worker process: all its clients share one connection to each scheduler.

The connection to the worker's own scheduler is the worker's nested client. Its tasks are children of the tasks that
submit them. It belongs to the process and ends with it.
"""

from __future__ import annotations

import os
import threading

from ..commands.addresses import Address, parse_connect_address
from ..errors import UnauthorizedError
from ..nested import task_host
from ..nested.task_host import TaskHost
from .connection import Connection

_OWN_SCHEDULER = ""
"""Stands for the address of the worker's own scheduler, which may have several names."""

_lock = threading.RLock()
_connections: dict[str, Connection] = {}
"""Connections by the address that a client asked for."""


def attach(
    host: TaskHost,
    address: str,
    timeout_seconds: float,
    heartbeat_interval_seconds: float,
    *,
    scheduler: int = 0,
    keys: str | None = None,
) -> Connection:
    """Return this worker process's connection to a scheduler; make it if necessary.

    Args:
        host: the worker that runs in this process.
        address: the scheduler's address, for example `tcp://127.0.0.1:2345`; empty: the worker's own scheduler.
        timeout_seconds: for a new connection, see `Connection`.
        heartbeat_interval_seconds: for a new connection, see `Connection`.
        scheduler: the incarnation of the scheduler of a pickled client; 0: unknown. The worker may know its own
            scheduler by a different address than the client.
        keys: the folder of keys for another scheduler. The worker's own keys are used for its own scheduler.

    Raises:
        ConnectionError: as for Connection.
    """
    known = _connections.get(address)
    if known is not None and not known.io_thread.is_closed:
        return known
    with _lock:
        own = _connections.get(_OWN_SCHEDULER)
        if own is None or own.io_thread.is_closed:
            own_address = parse_connect_address(host.address)
            own = Connection(
                own_address,
                timeout_seconds,
                heartbeat_interval_seconds,
                worker=host.worker,
                keys=host.keys,
                environment=host.environment,
            )
            _connections[_OWN_SCHEDULER] = _connections[own.address] = own
            task_host.stop_children = own.io_thread.stop_children
            own.io_thread.forward_output(host.forward_output)
        if address in ("", own.address) or (scheduler and scheduler == own.scheduler):
            _connections[address] = own
            return own
        known = _connections.get(address)
        if known is None or known.io_thread.is_closed:
            where = parse_connect_address(address)
            known = None
            if (
                host.keys and keys is None
            ):  # this may be another address of the worker's own scheduler, which needs the worker's key
                known = _own_elsewhere(host, where, own, timeout_seconds, heartbeat_interval_seconds)
            known = known or Connection(where, timeout_seconds, heartbeat_interval_seconds, keys=keys)
            if known is not own and known.scheduler == own.scheduler:
                known.io_thread.close("the worker's own client serves this scheduler")
                known = own
            _connections[address] = known
        return known


def _own_elsewhere(
    host: TaskHost, where: Address, own: Connection, timeout_seconds: float, heartbeat_interval_seconds: float
) -> Connection | None:
    """Return the worker's own connection if this address is another name of its scheduler; else None."""
    try:
        other = Connection(where, timeout_seconds, heartbeat_interval_seconds, worker=host.worker, keys=host.keys)
    except UnauthorizedError:
        return None
    other.io_thread.close("the worker's own client serves this scheduler")
    return own if other.scheduler == own.scheduler else None


def _forget_all() -> None:
    """Forget the parent's connections in a forked child."""
    global _lock
    _lock = threading.RLock()
    _connections.clear()
    task_host.stop_children = None
    task_host.is_forked_by_task = task_host.is_forked_by_task or task_host.host is not None
    task_host.host = None  # the child runs no task of the worker's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
