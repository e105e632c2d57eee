"""The scheduler's sockets. Only this file, `bound_socket.py`, `monitor_socket.py`, `zap.py` and `key_files.py`
(to make keys) import zmq."""

from __future__ import annotations

import errno
import os
from typing import Any, Callable, List, Optional, Set

import zmq

from ..commands.addresses import Address
from .bound_socket import EVENTS, IS_CFFI, POLLIN, BindError, BoundSocket, check_path_is_free, metadata_reader
from .connections import ConnectionLimits, Connections
from .handshake_guard import HANDSHAKE_SECONDS
from .monitor_socket import MonitorSocket
from .zap import MAIN_DOMAIN, MONITOR_DOMAIN, Access, ZapHandler

ZMQ_VERSION = zmq.zmq_version()

WAIT_MILLISECONDS = 250
"""The longest wait for a message: how late a timer can be."""

# A plain number: pyzmq's enumerations cost as much as the calls that they are for.
_RCVMORE = int(zmq.RCVMORE)
_ROUTER_QUEUE = 500_000
"""Messages that are kept for a peer that does not read; one that has so many is given up. An honest client that stands
still for its lease, while its tasks end at the rate of 5,000 messages a second, has 300,000."""

_STUCK_MILLISECONDS = 120_000
"""A connection that takes no byte for so long is cut: its peer has lost its lease."""

_BACKLOG = 4096
"""Connections that may wait to be accepted: after a restart all peers come at once."""

_LONGEST_SUBSCRIPTION = 1024
"""In bytes."""

_MONITOR_QUEUE = 8
"""Messages that are kept for a subscriber that does not read."""

_SOCKET_FILE_MASK = 0o077
"""An ipc socket is its owner's alone: whoever can connect can run code on the workers."""

_MONITOR_FILE_MASK = 0o007
"""Whoever can connect there can only watch: that is for the group as well."""

_REJECTED_PER_CALL = 256
"""One call passes over so many messages of senders without an authorized key at most."""

_ROUTE_BYTES = 5
"""Of ZeroMQ's own names of connections, which begin with a zero."""


class ZmqContext:
    """ZeroMQ's threads, and the sockets made in them.

    Args:
        limits: of connections.
        access: who may connect; None: whoever reaches the addresses.
    """

    def __init__(self, io_threads: int, limits: ConnectionLimits, access: Optional[Access]) -> None:
        self._context = zmq.Context(io_threads)
        self.zap = ZapHandler(self._context, Connections(limits), access)

    def bind_router(self, address: Address, longest_frame: int) -> Router:
        """`longest_frame` in bytes: a connection that announces more is cut."""
        bound = self._bind(zmq.ROUTER, address, longest_frame, MAIN_DOMAIN)
        return Router(bound, self.zap.access)

    def bind_monitor(self, address: Address) -> MonitorSocket:
        # Who may connect to a file is the file's to say.
        domain = b"" if address.transport == "ipc" else MONITOR_DOMAIN

        def bind(wanted: Address) -> zmq.Socket[bytes]:
            return self._bind(zmq.XPUB, wanted, _LONGEST_SUBSCRIPTION, domain)

        return MonitorSocket(bind, address, self.zap.connections.cut_flooding_subscriber)

    def _bind(self, kind: int, address: Address, longest_frame: int, domain: bytes) -> zmq.Socket[bytes]:
        check_path_is_free(address)
        bound = self._context.socket(kind)
        bound.setsockopt(zmq.LINGER, 0)
        bound.setsockopt(zmq.IPV6, int(address.is_ipv6))
        bound.setsockopt(zmq.TCP_KEEPALIVE, 1)
        bound.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
        bound.setsockopt(zmq.MAXMSGSIZE, longest_frame)
        bound.setsockopt(zmq.HANDSHAKE_IVL, int(HANDSHAKE_SECONDS * 1000))
        bound.setsockopt(zmq.TCP_MAXRT, _STUCK_MILLISECONDS)
        bound.setsockopt(zmq.BACKLOG, _BACKLOG)
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
        has_keys = bool(domain) and self.zap.access is not None
        self.zap.watch(bound, kind == zmq.ROUTER, has_keys)
        if has_keys:
            self.zap.guard(bound, domain)
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
    """The socket where clients, workers and agents connect. A message is a list of frames, the route first.

    A route without keys is ZeroMQ's name of the connection. With keys it is that name followed by the user of the key,
    so a connection that has the name of another one, but another key, has another route.

    Every message leaves the socket through `_read`: without keys it is the socket's own method, with keys it is
    `UserCheck.read`. No other code may receive from the socket (tests/scheduler/net/test_router.py).

    Args:
        access: who may connect; None: peers have no keys.
    """

    def __init__(self, bound: zmq.Socket[bytes], access: Optional[Access]) -> None:
        super().__init__(bound)
        self._stuck: Set[bytes] = set()
        self._check = None if access is None else UserCheck(bound, access)
        # The socket's method itself, as a method of ours around it would cost each message one more call. It copies:
        # under PyPy frames that borrow ZeroMQ's memory are slower, and hold it until a collection.
        self._read: Callable[[int], Optional[List[bytes]]]
        self._read = bound.recv_multipart if self._check is None else self._check.read

    @property
    def rejected(self) -> int:
        """Messages that were dropped because no authorized key sent them."""
        return 0 if self._check is None else self._check.rejected

    @property
    def last_rejected_user(self) -> str:
        """The user of the last one of them; empty where none was dropped, or its connection has no user."""
        return "" if self._check is None else self._check.last_rejected_user.decode(errors="replace")

    def wait(self) -> Optional[List[bytes]]:
        """The next message, waited for at most WAIT_MILLISECONDS; None when none came."""
        try:
            return self._read(0)
        except zmq.Again:
            return None

    def wait_up_to(self, milliseconds: int) -> Optional[List[bytes]]:
        """The next message, waited for at most so long; None when none came."""
        return self.receive() if self._socket.poll(milliseconds) else None

    def receive(self) -> Optional[List[bytes]]:
        """The next message if one has come, else None."""
        for _ in range(_REJECTED_PER_CALL):
            # Asking first: the exception of a receive that finds nothing costs three times as much.
            events: Any = self._socket.getsockopt(EVENTS)
            if not events & POLLIN:
                return None
            frames = self._read(zmq.NOBLOCK)
            if frames is not None:
                return frames
        return None

    def user(self, route: bytes) -> str:
        """The user whose key this connection has; empty without keys."""
        return "" if self._check is None else route[_ROUTE_BYTES:].decode()

    def send(self, route: bytes, frames: List[bytes]) -> bool:
        """Queue a message for a connection; False where there is no such connection any more, or too much waits for it,
        which `pop_stuck` then names."""
        name = route if self._check is None else route[:_ROUTE_BYTES]
        try:
            self._socket.send_multipart([name, *frames], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno == zmq.EAGAIN:
                self._stuck.add(route)
            elif error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def pop_stuck(self) -> Set[bytes]:
        """Connections for which there was no room, since the last call."""
        stuck, self._stuck = self._stuck, set()
        return stuck


class UserCheck:
    """Receives messages where peers have keys: ZeroMQ tells of each message which user's connection it came from."""

    def __init__(self, bound: zmq.Socket[bytes], access: Access) -> None:
        self.rejected = 0
        self.last_rejected_user = b""
        self._socket = bound
        self._access = access
        self._user_of = metadata_reader("User-Id")  # that the ZAP handler has named

    def read(self, flags: int) -> Optional[List[bytes]]:
        """The next message, its user in the route; None where its sender may not speak.

        Raises:
            zmq.Again: there is none (with zmq.NOBLOCK), or none came within the socket's RCVTIMEO.
        """
        route = self._socket.recv(flags)
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
            self.rejected += 1
            self.last_rejected_user = user
            return None
        frames[0] = route + user
        return frames
