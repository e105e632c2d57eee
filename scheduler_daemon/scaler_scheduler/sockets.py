"""The scheduler's sockets. Only this file, `bound_socket.py`, `monitor_socket.py`, `doorkeeper.py` and `key_files.py`
(to make keys) import zmq."""

from __future__ import annotations

import errno
import os
from typing import Any, List, Optional, Set

import zmq

from .addresses import Address
from .bound_socket import EVENTS, IS_CFFI, POLLIN, BoundSocket, reader
from .connections import ConnectionLimits, Connections
from .doorkeeper import MAIN_DOMAIN, MONITOR_DOMAIN, Access, Doorkeeper
from .monitor_socket import Monitor
from .taken_paths import BindError, refuse_taken_path

ZMQ_VERSION = zmq.zmq_version()

WAIT_MILLISECONDS = 250
"""The longest wait for a message: how late a timer can be."""

# A plain number: pyzmq's enumerations cost as much as the calls that they are for.
_RCVMORE = int(zmq.RCVMORE)
_ROUTER_QUEUE = 500_000
"""Messages that are kept for a peer that does not read; one that has so many is given up. An honest client that stands
still for its lease, while its tasks end at the rate of 5,000 messages a second, has 300,000."""

_HANDSHAKE_MILLISECONDS = 10_000
"""Until when whoever has connected must have said that it speaks ZeroMQ's protocol."""

_STUCK_MILLISECONDS = 120_000
"""A connection that takes no byte for so long is cut: its peer has lost its lease."""

_CONNECTING = 4096
"""Connections that may wait to be accepted: after a restart all peers come at once."""

_LONGEST_SUBSCRIPTION = 1024
"""In bytes."""

_MONITOR_QUEUE = 8
"""Messages that are kept for a subscriber that does not read."""

_SOCKET_FILE_MASK = 0o077
"""An ipc socket is its owner's alone: whoever can connect can run code on the workers."""

_MONITOR_FILE_MASK = 0o007
"""Whoever can connect there can only watch: that is for the group as well."""

_REFUSED_AT_ONCE = 256
"""Messages of who may not speak are passed over so many at once."""

_ROUTE_BYTES = 5
"""Of ZeroMQ's own names of connections, which begin with a zero."""


class Context:
    """ZeroMQ's threads, and the sockets made in them.

    Args:
        limits: of connections.
        access: who may connect; None: whoever reaches the addresses.
    """

    def __init__(self, io_threads: int, limits: ConnectionLimits, access: Optional[Access]) -> None:
        self._context = zmq.Context(io_threads)
        self.doorkeeper = Doorkeeper(self._context, Connections(limits), access)

    def bind_router(self, address: Address, longest_frame: int) -> Router:
        """`longest_frame` in bytes: a connection that announces more is cut."""
        bound = self._bind(zmq.ROUTER, address, longest_frame, MAIN_DOMAIN)
        access = self.doorkeeper.access
        return Router(bound) if access is None else KeyedRouter(bound, access)

    def bind_monitor(self, address: Address) -> Monitor:
        # Who may connect to a file is the file's to say.
        domain = b"" if address.transport == "ipc" else MONITOR_DOMAIN

        def bind(wanted: Address) -> zmq.Socket[bytes]:
            return self._bind(zmq.XPUB, wanted, _LONGEST_SUBSCRIPTION, domain)

        return Monitor(bind, address, self.doorkeeper.connections.cut_flooding)

    def _bind(self, kind: int, address: Address, longest_frame: int, domain: bytes) -> zmq.Socket[bytes]:
        refuse_taken_path(address)
        bound = self._context.socket(kind)
        bound.setsockopt(zmq.LINGER, 0)
        bound.setsockopt(zmq.IPV6, int(address.is_ipv6))
        bound.setsockopt(zmq.TCP_KEEPALIVE, 1)
        bound.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
        bound.setsockopt(zmq.MAXMSGSIZE, longest_frame)
        bound.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MILLISECONDS)
        bound.setsockopt(zmq.TCP_MAXRT, _STUCK_MILLISECONDS)
        bound.setsockopt(zmq.BACKLOG, _CONNECTING)
        if kind == zmq.ROUTER:
            # What is queued for a peer is bounded by what it asked for (prefetch, its own tasks) and its lease: this
            # bound is for those who go on asking and never read.
            bound.setsockopt(zmq.SNDHWM, _ROUTER_QUEUE)
            bound.setsockopt(zmq.RCVHWM, 1000)
            bound.setsockopt(zmq.ROUTER_MANDATORY, 1)
            bound.setsockopt(zmq.RCVTIMEO, WAIT_MILLISECONDS)
        else:
            bound.setsockopt(zmq.SNDHWM, _MONITOR_QUEUE)
            bound.setsockopt(zmq.XPUB_VERBOSE, 1)  # also say of the second one with a subscription that it has come
        self.doorkeeper.watch(bound, kind == zmq.ROUTER)
        if domain:
            self.doorkeeper.guard(bound, domain)
        mask = os.umask(_SOCKET_FILE_MASK if kind == zmq.ROUTER else _MONITOR_FILE_MASK)
        try:
            bound.bind(str(address))
        except zmq.ZMQError as error:
            bound.close()
            why = "no such host or interface" if error.errno == errno.ENODEV else os.strerror(error.errno or 0)
            raise BindError(f"can't bind {address}: {why}") from None
        finally:
            os.umask(mask)
        return bound

    def close(self) -> None:
        self._context.term()


class Router(BoundSocket):
    """Where clients, workers and agents connect. A message is a list of frames, the route first."""

    refused = 0
    """Messages that were dropped as nobody may say them."""

    def __init__(self, bound: zmq.Socket[bytes]) -> None:
        super().__init__(bound)
        self._stuck: Set[bytes] = set()

    def wait(self) -> Optional[List[bytes]]:
        """The next message, waited for at most WAIT_MILLISECONDS; None when none came."""
        # Copied: under PyPy frames that borrow ZeroMQ's memory are slower, and hold it until a collection.
        try:
            return self._socket.recv_multipart()
        except zmq.Again:
            return None

    def wait_briefly(self, milliseconds: int) -> Optional[List[bytes]]:
        """The same, waited for at most so long."""
        return self._socket.recv_multipart() if self._socket.poll(milliseconds) else None

    def receive(self) -> Optional[List[bytes]]:
        """The next message, or None where there is none."""
        # Asking first: the exception of a receive that finds nothing costs three times as much.
        events: Any = self._socket.getsockopt(EVENTS)
        if not events & POLLIN:
            return None
        return self._socket.recv_multipart(zmq.NOBLOCK)

    def user(self, route: bytes) -> str:
        """Who speaks on this connection; empty where nobody has keys."""
        return ""

    def send(self, route: bytes, frames: List[bytes]) -> bool:
        """Queue a message for a connection; False where there is no such connection any more, or too much waits for it,
        which `take_stuck` then names."""
        try:
            self._socket.send_multipart([self._name(route), *frames], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno == zmq.EAGAIN:
                self._stuck.add(route)
            elif error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def _name(self, route: bytes) -> bytes:
        """ZeroMQ's own name of the connection."""
        return route

    def take_stuck(self) -> Set[bytes]:
        """Connections for which there was no room, since the last call."""
        stuck, self._stuck = self._stuck, set()
        return stuck


class KeyedRouter(Router):
    """The same where peers have keys. A route is ZeroMQ's name of the connection and behind it the user, so that what
    somebody else says on a connection of that name is a stranger's; who says it is told by ZeroMQ, for each message."""

    def __init__(self, bound: zmq.Socket[bytes], access: Access) -> None:
        super().__init__(bound)
        self._access = access
        self._user_of = reader("User-Id")  # that the doorkeeper has named

    def user(self, route: bytes) -> str:
        return route[_ROUTE_BYTES:].decode()

    def wait(self) -> Optional[List[bytes]]:
        try:
            return self._take(self._socket.recv())
        except zmq.Again:
            return None

    def receive(self) -> Optional[List[bytes]]:
        events: Any = self._socket.getsockopt(EVENTS)
        for _ in range(_REFUSED_AT_ONCE):
            if not events & POLLIN:
                return None
            frames = self._take(self._socket.recv(zmq.NOBLOCK))
            if frames is not None:
                return frames
            events = self._socket.getsockopt(EVENTS)
        return None

    def _name(self, route: bytes) -> bytes:
        return route[:_ROUTE_BYTES]

    def _take(self, route: bytes) -> Optional[List[bytes]]:
        frames = [route]
        user = b""
        while self._socket.getsockopt(_RCVMORE):
            if user:
                frames.append(self._socket.recv())
                continue
            frame: Any = self._socket.recv(copy=False)
            user = self._user_of(frame)
            frames.append(frame.bytes)
            if IS_CFFI:
                frame.close()  # under PyPy it would hold ZeroMQ's memory until a collection
        # A name that the peer has chosen may be one that was somebody else's.
        if user not in self._access.allowed or len(route) != _ROUTE_BYTES or route[0]:
            self.refused += 1
            return None
        frames[0] = route + user
        return frames
