"""ZeroMQ's context, and the ROUTER socket of clients, workers and host agents.

Only this file, `bound_socket.py`, `monitor_socket.py`, `zap.py` and `commands/key_files.py` (to check keys) import zmq.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Callable

import zmq

from ..commands.addresses import Address, bind_error_text
from .bound_socket import EVENTS, IS_CFFI, POLLIN, BindError, BoundSocket, check_path_is_free, metadata_reader
from .connections import ConnectionLimits, Connections
from .handshake_guard import HANDSHAKE_SECONDS
from .monitor_socket import MonitorSocket
from .zap import MAIN_DOMAIN, MONITOR_DOMAIN, Access, ZapHandler

ZMQ_VERSION = zmq.zmq_version()

WAIT_MILLISECONDS = 250
"""The longest wait for a message. The check of leases may be this late."""

# A plain number: pyzmq's enumerations cost as much as the calls that take them.
_RCVMORE = int(zmq.RCVMORE)
_ROUTER_QUEUE = 500_000
"""The most messages that are queued for a peer that does not read. A peer with a full queue is lost. An honest client
that does not read for its lease has 300,000, if its tasks end at the rate of 5,000 messages a second."""

_STUCK_MILLISECONDS = 120_000
"""A connection that accepts no byte for this time is cut. Its peer's lease has expired before."""

_BACKLOG = 4096
"""Connections that may wait to be accepted. After a restart all peers connect at once."""

_MAX_SUBSCRIPTION_BYTES = 1024
"""The longest message of a subscriber, in bytes."""

_MONITOR_QUEUE = 8
"""Messages that are queued for a subscriber that does not read."""

_SOCKET_FILE_MASK = 0o177
"""Only the owner may connect to an ipc socket, because a client can run code on the workers."""

_MONITOR_FILE_MASK = 0o117
"""The group may connect to the monitor's ipc socket as well, because a monitor can only watch."""

_REJECTED_PER_CALL = 256
"""The most messages without an authorized key that one call of `receive` drops."""

_ROUTE_BYTES = 5
"""The length of ZeroMQ's own connection names, which begin with a zero byte."""


class ZmqContext:
    """ZeroMQ's context with its threads, and the factory of bound sockets.

    Args:
        io_threads: the number of ZeroMQ's I/O threads.
        limits: the limits of connections.
        access: the authorized keys; None: peers have no keys.
    """

    def __init__(self, io_threads: int, limits: ConnectionLimits, access: Access | None) -> None:
        self._context = zmq.Context(io_threads)
        self.zap = ZapHandler(self._context, Connections(limits), access)

    def bind_router(self, address: Address, longest_frame: int) -> Router:
        """Bind the ROUTER. A connection that announces a frame of more than `longest_frame` bytes is cut."""
        bound = self._bind(zmq.ROUTER, address, longest_frame, MAIN_DOMAIN)
        return Router(bound, self.zap.access)

    def bind_monitor(self, address: Address) -> MonitorSocket:
        """Bind the XPUB socket for monitors."""
        # The file mode of an ipc socket decides which users may connect.
        domain = b"" if address.transport == "ipc" else MONITOR_DOMAIN

        def bind(wanted: Address) -> zmq.Socket[bytes]:
            return self._bind(zmq.XPUB, wanted, _MAX_SUBSCRIPTION_BYTES, domain)

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
            # The messages for an honest peer are limited by its requests (prefetch, its own tasks) and its lease. This
            # limit applies to peers that send requests and never read.
            bound.setsockopt(zmq.SNDHWM, _ROUTER_QUEUE)
            bound.setsockopt(zmq.RCVHWM, 1000)
            bound.setsockopt(zmq.ROUTER_MANDATORY, 1)
            bound.setsockopt(zmq.RCVTIMEO, WAIT_MILLISECONDS)
        else:
            bound.setsockopt(zmq.SNDHWM, _MONITOR_QUEUE)
            bound.setsockopt(zmq.XPUB_VERBOSE, 1)  # report every subscriber, not only the first one of a topic
        has_keys = bool(domain) and self.zap.access is not None
        self.zap.watch(bound, kind == zmq.ROUTER, has_keys)
        if has_keys:
            self.zap.require_keys(bound, domain)
        mask = os.umask(_SOCKET_FILE_MASK if kind == zmq.ROUTER else _MONITOR_FILE_MASK)
        try:
            bound.bind(str(address))
        except zmq.ZMQError as error:
            bound.close()
            why = "no such host or interface" if error.errno == errno.ENODEV else bind_error_text(error.errno or 0)
            raise BindError(f"can't bind {address}: {why}") from None
        finally:
            os.umask(mask)
        return bound

    def close(self) -> None:
        """End ZeroMQ's threads. All sockets must be closed before."""
        self._context.term()


class Router(BoundSocket):
    """The socket of clients, workers and host agents. A message is a list of frames, the route first.

    A route without keys is ZeroMQ's name of the connection. With keys the user of the key follows the name. So two
    connections with the same name but different keys have different routes.

    Every message leaves the socket through `_read`. Without keys this is the socket's own method, with keys it is
    `UserCheck.read`. No other code may receive from the socket (tests/scheduler/net/test_router.py).

    Args:
        access: the authorized keys; None: peers have no keys.
    """

    def __init__(self, bound: zmq.Socket[bytes], access: Access | None) -> None:
        super().__init__(bound)
        self._stuck: set[bytes] = set()
        self._check = None if access is None else UserCheck(bound, access)
        # The socket's own method: a wrapper would cost each message one more call. It copies frames, because under PyPy
        # frames that borrow ZeroMQ's memory are slower and hold the memory until a collection.
        self._read: Callable[[int], list[bytes] | None]
        self._read = bound.recv_multipart if self._check is None else self._check.read

    @property
    def rejected(self) -> int:
        """Messages that were dropped because their sender has no authorized key."""
        return 0 if self._check is None else self._check.rejected

    @property
    def last_rejected_user(self) -> str:
        """The user of the last dropped message. Empty if none was dropped, or if its connection has no user."""
        return "" if self._check is None else self._check.last_rejected_user.decode(errors="replace")

    def wait(self) -> list[bytes] | None:
        """The next message. Waits at most WAIT_MILLISECONDS; None if none has come."""
        try:
            return self._read(0)
        except zmq.Again:
            return None

    def wait_up_to(self, milliseconds: int) -> list[bytes] | None:
        """The next message. Waits at most this long; None if none has come."""
        return self.receive() if self._socket.poll(milliseconds) else None

    def receive(self) -> list[bytes] | None:
        """The next message that has come already, else None."""
        for _ in range(_REJECTED_PER_CALL):
            # Ask first: the exception of a receive without a message costs three times as much.
            events: Any = self._socket.getsockopt(EVENTS)
            if not events & POLLIN:
                return None
            frames = self._read(zmq.NOBLOCK)
            if frames is not None:
                return frames
        return None

    def user(self, route: bytes) -> str:
        """The user of a route; empty without keys."""
        return "" if self._check is None else route[_ROUTE_BYTES:].decode()

    def send(self, route: bytes, frames: list[bytes]) -> bool:
        """Queue a message for a connection.

        Returns:
            False if the connection has ended, or if its queue is full. `pop_stuck` returns connections with a full
            queue.
        """
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

    def pop_stuck(self) -> set[bytes]:
        """The connections whose queue was full since the previous call."""
        stuck, self._stuck = self._stuck, set()
        return stuck


class UserCheck:
    """Receives messages if peers have keys. ZeroMQ's metadata names the user of each message."""

    def __init__(self, bound: zmq.Socket[bytes], access: Access) -> None:
        self.rejected = 0
        self.last_rejected_user = b""
        self._socket = bound
        self._access = access
        self._user_of = metadata_reader("User-Id")  # the name that the ZAP handler has returned

    def read(self, flags: int) -> list[bytes] | None:
        """The next message with the user in its route. None if its sender is not authorized.

        Raises:
            zmq.Again: there is no message (with zmq.NOBLOCK), or none has come within the socket's RCVTIMEO.
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
                frame.close()  # otherwise the frame holds ZeroMQ's memory until a collection
        # A routing id that the peer has chosen may be the former name of another connection.
        if user not in self._access.allowed or len(route) != _ROUTE_BYTES or route[0]:
            self.rejected += 1
            self.last_rejected_user = user
            return None
        frames[0] = route + user
        return frames
