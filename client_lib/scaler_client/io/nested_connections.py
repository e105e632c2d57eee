"""Clients inside a worker process: handles, however many, on one connection to each scheduler.

The one to the worker's own scheduler is the worker's nested client, whose tasks are children of the tasks that submit
them. It belongs to the process, and ends with it.
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
"""In the place of an address: the worker's own scheduler, by whatever name."""

_lock = threading.Lock()
_connections: dict[str, Connection] = {}
"""By the address that was asked for."""


def attach(
    host: TaskHost,
    address: str,
    timeout_seconds: float,
    heartbeat_interval_seconds: float,
    *,
    scheduler: int = 0,
    keys: str | None = None,
) -> Connection:
    """The connection of this worker process for a client that asks for this scheduler.

    Args:
        address: the scheduler's, as in `tcp://127.0.0.1:2345`; empty for the worker's own.
        timeout_seconds, heartbeat_interval_seconds: for a connection that is not there yet.
        scheduler: its incarnation where the client came from. Schedulers have several names: a worker may know its own
            by another one than the client does.
        keys: the folder of keys for another scheduler; the worker's own is talked to with the worker's.

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
                own_address, timeout_seconds, heartbeat_interval_seconds, worker=host.worker, keys=host.keys
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
            if host.keys and keys is None:  # it may be the worker's own by another name, where others have no key
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
    """The worker's own connection, where this is its scheduler by another name and knows its key."""
    try:
        other = Connection(where, timeout_seconds, heartbeat_interval_seconds, worker=host.worker, keys=host.keys)
    except UnauthorizedError:
        return None
    other.io_thread.close("the worker's own client serves this scheduler")
    return own if other.scheduler == own.scheduler else None


def _forget_all() -> None:
    """In a forked child: nothing of its parent's is the child's."""
    global _lock
    _lock = threading.Lock()
    _connections.clear()
    task_host.stop_children = None
    task_host.is_forked_by_task = task_host.is_forked_by_task or task_host.host is not None
    task_host.host = None  # the child runs no task of the worker's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
