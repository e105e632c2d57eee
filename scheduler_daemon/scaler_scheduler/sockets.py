"""The scheduler's sockets. The only file that imports zmq."""

from __future__ import annotations

import errno
import os
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

_SUBSCRIPTIONS = 1000
"""Taken in one look: more would keep the loop from its work."""

_MONITOR_QUEUE = 8
"""Messages that are kept for a subscriber that does not read."""

_SOCKET_FILE_MASK = 0o077
"""An ipc socket is its owner's alone: whoever can connect can run code on the workers."""

_MONITOR_FILE_MASK = 0o007
"""Whoever can connect there can only watch: that is for the group as well."""


class BindError(Exception):
    """The address can't be bound; the text is one line that says why."""


class Context:
    """ZeroMQ's threads, and the sockets made in them."""

    def __init__(self, io_threads: int) -> None:
        self._context = zmq.Context(io_threads)

    def bind_router(self, address: Address) -> Router:
        return Router(self._bind(zmq.ROUTER, address))

    def bind_monitor(self, address: Address) -> Monitor:
        return Monitor(self._bind(zmq.XPUB, address))

    def _bind(self, kind: int, address: Address) -> zmq.Socket[bytes]:
        _refuse_taken_path(address)
        bound = self._context.socket(kind)
        bound.setsockopt(zmq.LINGER, 0)
        bound.setsockopt(zmq.IPV6, int(address.is_ipv6))
        bound.setsockopt(zmq.TCP_KEEPALIVE, 1)
        bound.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
        if kind == zmq.ROUTER:
            # What is queued for a peer is bounded by what it asked for (prefetch, its own tasks), not by a count of
            # messages: at ZeroMQ's own limit a ROUTER drops.
            bound.setsockopt(zmq.SNDHWM, 0)
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
        events: Any = self._socket.getsockopt(_EVENTS)
        if not events & _POLLIN:
            return None
        return self._socket.recv_multipart(zmq.NOBLOCK)

    def send(self, route: bytes, frames: List[bytes]) -> bool:
        """Queue a message for a connection; False where there is no such connection any more."""
        try:
            self._socket.send_multipart([route, *frames], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise
        return True


class Monitor(BoundSocket):
    """Where the scheduler publishes. What it publishes begins with a topic; subscriptions are beginnings of topics."""

    def __init__(self, bound: zmq.Socket[bytes]) -> None:
        super().__init__(bound)
        self._subscriptions: Set[bytes] = set()
        self.has_more = False
        """Whether subscribers may have said more than was taken at the last look."""

    def look(self, topics: Sequence[bytes], question: bytes) -> List[bytes]:
        """Take what subscribers have said, up to a bound.

        Args:
            topics: what is published to whoever has subscribed.
            question: the begin of topics that are questions, which are answered once.

        Returns:
            New subscriptions to topics, and questions.
        """
        found: List[bytes] = []
        self.has_more = False
        for _ in range(_SUBSCRIPTIONS):
            events: Any = self._socket.getsockopt(_EVENTS)
            if not events & _POLLIN:
                return found
            message = self._socket.recv(zmq.NOBLOCK)
            subscription = message[1:]
            if message[:1] == b"\0":  # of the last one that had this subscription
                self._subscriptions.discard(subscription)
            elif message[:1] == b"\1" and any(topic.startswith(subscription) for topic in topics):
                # Of all others nothing is kept here: anybody may subscribe to anything, a million times.
                self._subscriptions.add(subscription)
                found.append(subscription)
            elif message[:1] == b"\1" and subscription.startswith(question):
                found.append(subscription)
        self.has_more = True
        return found

    def is_wanted(self, topic: bytes) -> bool:
        """Whether anybody has subscribed to it."""
        for subscription in self._subscriptions:
            if topic.startswith(subscription):
                return True
        return False

    def publish(self, topic: bytes, frame: bytes) -> None:
        """In one frame, as ZeroMQ keeps the newest only of such; whoever does not read misses it."""
        self._socket.send(topic + frame, zmq.NOBLOCK)
