"""Authentication of new connections (ZAP), and the events of ZeroMQ's socket monitors.

Both run in one thread of their own, so that a new connection does not wait for the next turn of the loop.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from typing import Protocol

import zmq

from .connections import Connections, Listener
from .handshake_guard import HandshakeGuard

MAIN_DOMAIN, MONITOR_DOMAIN = b"main", b"monitor"
"""The ZAP domains of the two addresses."""

REQUESTS_PER_ROUND = 64
ROUND_SECONDS = 0.01
"""The thread answers at most this many ZAP requests in this time. So a flood of requests takes at most an eighth of the
interpreter's time. In such a flood, ZeroMQ's own threads delay an honest request as long."""

EVENTS_PER_ROUND = 500
"""The most events that are read from a socket at once, because ZAP requests wait meanwhile."""

_EVENT_QUEUE = 100_000
"""The length of the queue of events. ZeroMQ's thread blocks when the queue is full."""

_FAILED_AUTH = int(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
_FAILURES = _FAILED_AUTH | int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
_LISTENING, _ACCEPTED = int(zmq.EVENT_LISTENING), int(zmq.EVENT_ACCEPTED)
_SUCCEEDED = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
_DISCONNECTED, _STOPPED = int(zmq.EVENT_DISCONNECTED), int(zmq.EVENT_MONITOR_STOPPED)
_EVENTS = _LISTENING | _ACCEPTED | _SUCCEEDED | _DISCONNECTED | _STOPPED | _FAILURES
_EVENT = struct.Struct("=Hi")
_POLLIN = int(zmq.POLLIN)

_RETRY_SECONDS = 0.1
"""The pause after an error."""

_log = logging.getLogger(__name__)


class Access(Protocol):
    """The server's secret key and the authorized keys."""

    secret: bytes
    """The server's secret key."""
    allowed: frozenset[bytes]
    """The users of all authorized keys."""

    def user(self, domain: bytes, key: bytes) -> bytes:
        """The user of a public key; empty if the key is not authorized in this domain."""


def new_key_pair() -> tuple[bytes, bytes]:
    """A new public key and its secret key, 32 bytes each."""
    public, secret = zmq.curve_keypair()
    return decode_z85(public.decode()), decode_z85(secret.decode())


def decode_z85(text: str) -> bytes:
    """The bytes of a key in ZeroMQ's text form. Raises ValueError or KeyError if it is not a key."""
    from zmq.utils import z85

    return z85.decode(text)


class ZapHandler:
    """Answers ZAP requests, counts rejected connections, and reports events to `connections`.

    Args:
        access: the authorized keys; None: any peer may connect.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], connections: Connections, access: Access | None
    ) -> None:
        self.access = access
        self.rejected = 0
        """Rejected connections."""
        self.last_rejection = ""
        """The reason of the last rejection, for the log."""
        self._context = context
        self.connections = connections
        self._requests = context.socket(zmq.REP)
        self._requests.setsockopt(zmq.LINGER, 0)
        if access is not None:
            self._requests.bind("inproc://zeromq.zap.01")
        self._monitors: list[tuple[zmq.Socket[bytes], Listener]] = []
        """The sockets that deliver the events of the bound sockets."""
        self._wakeup_receiver, self._wakeup_sender = os.pipe()
        """Readable when a socket was added."""
        _warm_up_cffi(context)
        threading.Thread(target=self._run, name="zap", daemon=True).start()

    def watch(self, bound: zmq.Socket[bytes], is_for_peers: bool, has_keys: bool) -> None:
        """Watch the connections of a socket. Call it before the socket is bound.

        Args:
            bound: the socket.
            is_for_peers: whether its peers must send messages regularly.
            has_keys: whether its handshakes use CURVE.
        """
        address = f"inproc://connections-{id(bound)}-{time.monotonic_ns()}"
        bound.monitor(address, _EVENTS)
        events_socket = self._context.socket(zmq.PAIR)
        events_socket.setsockopt(zmq.LINGER, 0)
        events_socket.setsockopt(zmq.RCVHWM, _EVENT_QUEUE)
        events_socket.connect(address)
        self._monitors.append((events_socket, Listener(is_for_peers, HandshakeGuard(has_keys))))
        os.write(self._wakeup_sender, b"\0")

    def require_keys(self, bound: zmq.Socket[bytes], domain: bytes) -> None:
        """Require authorized keys at a socket. Call it before the socket is bound."""
        if self.access is not None:
            bound.setsockopt(zmq.CURVE_SERVER, 1)
            bound.setsockopt(zmq.CURVE_SECRETKEY, self.access.secret)
            bound.setsockopt(zmq.ZAP_DOMAIN, domain)

    def _run(self) -> None:
        """Serve until the context ends. No error may end this thread, because without it no peer can connect."""
        while True:
            try:
                self._serve()
            except zmq.ContextTerminated:
                for one in (self._requests, *(events_socket for events_socket, _ in self._monitors)):
                    one.close()
                os.close(self._wakeup_sender)
                os.close(self._wakeup_receiver)
                return
            except Exception:
                _log.exception("an error in the ZAP thread; it continues")
                time.sleep(_RETRY_SECONDS)

    def _serve(self) -> None:
        watched: list[tuple[zmq.Socket[bytes], Listener]] | None = None
        while True:
            if watched != self._monitors:
                poller = zmq.Poller()
                poller.register(self._requests, zmq.POLLIN)
                poller.register(self._wakeup_receiver, zmq.POLLIN)
                watched = list(self._monitors)
                for events_socket, _ in watched:
                    poller.register(events_socket, zmq.POLLIN)
            if (self._wakeup_receiver, _POLLIN) in poller.poll(int(self.connections.seconds_to_next_check * 1000)):
                os.read(self._wakeup_receiver, 1)
            if self._answer_requests() == REQUESTS_PER_ROUND:
                time.sleep(ROUND_SECONDS)
            for entry in watched:
                if not self._read_events(*entry):
                    self._monitors.remove(entry)
                    entry[0].close()
            self.connections.check(time.monotonic())

    def _answer_requests(self) -> int:
        for answered in range(REQUESTS_PER_ROUND):
            if not self._requests.getsockopt(zmq.EVENTS) & _POLLIN:  # type: ignore[operator]
                return answered
            self._answer(self._requests.recv_multipart())
        return REQUESTS_PER_ROUND

    def _answer(self, request: list[bytes]) -> None:
        version, number, domain, address, _identity, mechanism, *credentials = request
        key = credentials[0] if mechanism == b"CURVE" and credentials else b""
        user = self.access.user(domain, key) if self.access is not None else b""
        if not user:
            self.last_rejection = f"the key {key.hex()} from {address.decode(errors='replace')} is not authorized there"
        verdict = [b"200", b"OK"] if user else [b"400", b"not authorized"]
        self._requests.send_multipart([version, number, *verdict, user, b""])

    def _read_events(self, events_socket: zmq.Socket[bytes], listener: Listener) -> bool:
        """Read the events of a socket. Returns False if the socket is closed."""
        now = time.monotonic()
        connections = self.connections
        for _ in range(EVENTS_PER_ROUND):
            if not events_socket.getsockopt(zmq.EVENTS) & _POLLIN:  # type: ignore[operator]
                break
            event, value = _EVENT.unpack(events_socket.recv_multipart()[0])
            if event == _ACCEPTED:
                connections.on_accepted(listener, value, now)
            elif event == _SUCCEEDED:
                listener.handshakes.succeeded()
            elif event == _DISCONNECTED:
                peer = connections.on_disconnected(listener, value)
                if listener.has_failed_handshake and peer is not None:
                    self.last_rejection = f"{peer.text} has no key, or the key of another server"
                listener.has_failed_handshake = False
            elif event & _FAILURES:
                self.rejected += 1
                # ZAP's answer has already named a key that is not authorized. For all other failures libzmq reports no
                # address, but its next event, which may come later, names the connection that has ended.
                listener.has_failed_handshake = event != _FAILED_AUTH
                if listener.has_failed_handshake:
                    self.last_rejection = "a peer has no key, or the key of another server"
            elif event == _LISTENING:
                connections.on_listening(listener, value)
            elif event == _STOPPED:
                connections.on_closed(listener)
                return False
        return True


def _warm_up_cffi(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    """Make each call of the thread once, before the thread starts.

    PyPy's cffi reads the name of a type at its first use. If two threads do that at once, each may permanently get the
    other's type.
    """
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    address = f"inproc://once-{time.monotonic_ns()}"
    one.bind(address)
    other.connect(address)
    poller = zmq.Poller()
    poller.register(other, zmq.POLLIN)
    one.send_multipart([b"", b""])
    poller.poll()
    other.getsockopt(zmq.EVENTS)
    other.recv_multipart()
    one.close(0)
    other.close(0)
