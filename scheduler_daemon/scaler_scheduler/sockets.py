"""The scheduler's sockets. The only file that imports zmq."""

from __future__ import annotations

import errno
import os
import resource
import socket
import stat
from typing import Any, List, Optional, Sequence, Set

import zmq

from .addresses import Address, parse_bind_address

ZMQ_VERSION = zmq.zmq_version()

WAIT_MILLISECONDS = 250
"""The longest wait for a message: how late a timer can be."""

# Plain numbers: pyzmq's enumerations cost as much as the calls that they are for.
_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)

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
_SUBSCRIPTIONS_A_LOOK = 1000
"""What subscribers say is read so far at once: there is other work."""

_MONITOR_QUEUE = 8
"""Messages that are kept for a subscriber that does not read."""

_SOCKET_FILE_MASK = 0o077
"""An ipc socket is its owner's alone: whoever can connect can run code on the workers."""

_MONITOR_FILE_MASK = 0o007
"""Whoever can connect there can only watch: that is for the group as well."""


class BindError(Exception):
    """The address can't be bound; the text is one line that says why."""


def allow_many_connections() -> None:
    """Each is a file descriptor, of which many systems allow a process a thousand unless it asks for more."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        pass  # some systems say that there is no limit, and set one


class Context:
    """ZeroMQ's threads, and the sockets made in them."""

    def __init__(self, io_threads: int) -> None:
        self._context = zmq.Context(io_threads)

    def bind_router(self, address: Address, longest_frame: int) -> Router:
        """`longest_frame` in bytes: a connection that announces more is cut."""
        return Router(self._bind(zmq.ROUTER, address, longest_frame))

    def bind_monitor(self, address: Address, topics: Sequence[bytes], most_subscriptions: int) -> Monitor:
        """Subscriptions to these topics are always kept, of others at most so many."""
        return Monitor(self._bind(zmq.XPUB, address, _LONGEST_SUBSCRIPTION), topics, most_subscriptions)

    def _bind(self, kind: int, address: Address, longest_frame: int) -> zmq.Socket[bytes]:
        _refuse_taken_path(address)
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


def _refuse_taken_path(address: Address) -> None:
    """ZeroMQ takes an ipc path away from whoever listens there, and removes any file that is there, without a word."""
    if address.transport != "ipc":
        return
    if not address.path.startswith("@") and os.path.lexists(address.path):
        if not stat.S_ISSOCK(os.lstat(address.path).st_mode):
            raise BindError(f"can't bind {address}: the path exists and is not a socket")
    path = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
    raise BindError(f"can't bind {address}: Address already in use")


class BoundSocket:
    def __init__(self, bound: zmq.Socket[bytes]) -> None:
        self._socket = bound
        endpoint: Any = bound.getsockopt(zmq.LAST_ENDPOINT)
        self.address = parse_bind_address(endpoint.rstrip(b"\0").decode())
        """As bound: with the port that was free."""

    @property
    def fileno(self) -> int:
        """A file descriptor that becomes readable, edge-triggered, when there may be something to receive."""
        descriptor: Any = self._socket.getsockopt(zmq.FD)
        return int(descriptor)

    def close(self, linger_milliseconds: int = 0) -> None:
        self._socket.close(linger_milliseconds)
        if self.address.transport == "ipc" and not self.address.path.startswith("@"):
            try:
                os.unlink(self.address.path)
            except OSError:
                pass  # ZeroMQ may have removed it already


class Router(BoundSocket):
    """Where clients, workers and agents connect. A message is a list of frames, the route first."""

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

    def receive(self) -> Optional[List[bytes]]:
        """The next message, or None where there is none."""
        # Asking first: the exception of a receive that finds nothing costs three times as much.
        events: Any = self._socket.getsockopt(_EVENTS)
        if not events & _POLLIN:
            return None
        return self._socket.recv_multipart(zmq.NOBLOCK)

    def send(self, route: bytes, frames: List[bytes]) -> bool:
        """Queue a message for a connection; False where there is no such connection any more, or too much waits for it,
        which `take_stuck` then names."""
        try:
            self._socket.send_multipart([route, *frames], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno == zmq.EAGAIN:
                self._stuck.add(route)
            elif error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def take_stuck(self) -> Set[bytes]:
        """Connections for which there was no room, since the last call."""
        stuck, self._stuck = self._stuck, set()
        return stuck


class Monitor(BoundSocket):
    """Where the scheduler publishes. What it publishes begins with a topic; subscriptions are beginnings of topics."""

    def __init__(self, bound: zmq.Socket[bytes], topics: Sequence[bytes], most_subscriptions: int) -> None:
        super().__init__(bound)
        self._topics = topics
        self._most_subscriptions = most_subscriptions
        self._subscriptions: Set[bytes] = set()

    def look(self) -> bool:
        """Take what subscribers have said; returns whether there is a new one."""
        is_new = False
        events: Any = self._socket.getsockopt(_EVENTS)
        for _ in range(_SUBSCRIPTIONS_A_LOOK):
            if not events & _POLLIN:
                break
            message = self._socket.recv(zmq.NOBLOCK)
            if message[:1] == b"\1":
                if self._may_keep(message[1:]):
                    is_new = True
                    self._subscriptions.add(message[1:])
            elif message[:1] == b"\0":  # of the last one that had this subscription
                self._subscriptions.discard(message[1:])
            events = self._socket.getsockopt(_EVENTS)
        return is_new

    def _may_keep(self, subscription: bytes) -> bool:
        """Not of any number, but for those to what is published: nobody shall keep others from watching."""
        if len(self._subscriptions) < self._most_subscriptions:
            return True
        return any(topic.startswith(subscription) for topic in self._topics)

    def is_wanted(self, topic: bytes) -> bool:
        """Whether anybody has subscribed to it."""
        for subscription in self._subscriptions:
            if topic.startswith(subscription):
                return True
        return False

    def publish(self, topic: bytes, frame: bytes) -> None:
        """In one frame, as ZeroMQ keeps the newest only of such; whoever does not read misses it."""
        self._socket.send(topic + frame, zmq.NOBLOCK)
