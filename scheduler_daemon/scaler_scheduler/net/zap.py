"""Who wants in: ZeroMQ's questions who may (ZAP), and what it tells of connections (its sockets' monitors).

All of it in a thread of its own, as nobody shall wait for the loop's next turn to be let in.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
from typing import FrozenSet, List, Optional, Protocol, Tuple

import zmq

from .connections import Connections, Listener
from .handshake_guard import HandshakeGuard

MAIN_DOMAIN, MONITOR_DOMAIN = b"main", b"monitor"
"""What ZeroMQ calls the two addresses when it asks who may connect."""

REQUESTS_PER_ROUND = 64
ROUND_SECONDS = 0.01
"""So many answers are given in that time to those who want to connect: a flood of them takes an eighth of the
interpreter at most, and a question of somebody else's waits for what ZeroMQ's own threads are slower with anyway."""

EVENTS_PER_ROUND = 500
"""Taken in one look at a socket: a question in between waits no longer."""

_EVENT_QUEUE = 100_000
"""ZeroMQ's thread stands still where there is no room for what it tells."""

_FAILED_AUTH = int(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
_FAILURES = _FAILED_AUTH | int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
_LISTENING, _ACCEPTED = int(zmq.EVENT_LISTENING), int(zmq.EVENT_ACCEPTED)
_SUCCEEDED = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
_DISCONNECTED, _STOPPED = int(zmq.EVENT_DISCONNECTED), int(zmq.EVENT_MONITOR_STOPPED)
_EVENTS = _LISTENING | _ACCEPTED | _SUCCEEDED | _DISCONNECTED | _STOPPED | _FAILURES
_EVENT = struct.Struct("=Hi")
_POLLIN = int(zmq.POLLIN)

_RETRY_SECONDS = 0.1
"""After a failure, until it is tried again."""

_log = logging.getLogger(__name__)


class Access(Protocol):
    """Who may connect."""

    secret: bytes
    """The server's."""
    allowed: FrozenSet[bytes]
    """The users of all keys that may speak."""

    def user(self, domain: bytes, key: bytes) -> bytes:
        """Who has this public key; empty where it may not connect there."""


def new_key_pair() -> Tuple[bytes, bytes]:
    """A public key and its secret."""
    public, secret = zmq.curve_keypair()
    return decode_z85(public.decode()), decode_z85(secret.decode())


def decode_z85(text: str) -> bytes:
    """A key as ZeroMQ writes it. Raises ValueError or KeyError where it is none."""
    from zmq.utils import z85

    return z85.decode(text)


class ZapHandler:
    """Counts those who could not get in, and tells `connections` of those who are.

    Args:
        access: who may connect; None: whoever reaches the addresses.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], connections: Connections, access: Optional[Access]
    ) -> None:
        self.access = access
        self.rejected = 0
        """Connections."""
        self.last_rejection = ""
        """About the last one of them, for the log."""
        self._context = context
        self.connections = connections
        self._requests = context.socket(zmq.REP)
        self._requests.setsockopt(zmq.LINGER, 0)
        if access is not None:
            self._requests.bind("inproc://zeromq.zap.01")
        self._monitors: List[Tuple[zmq.Socket[bytes], Listener]] = []
        """Sockets that tell of others."""
        self._wakeup_receiver, self._wakeup_sender = os.pipe()
        """Readable when there is one more of them."""
        _warm_up_cffi(context)
        threading.Thread(target=self._run, name="zap", daemon=True).start()

    def watch(self, bound: zmq.Socket[bytes], is_for_peers: bool, has_keys: bool) -> None:
        """Before the socket is bound."""
        address = f"inproc://connections-{id(bound)}-{time.monotonic_ns()}"
        bound.monitor(address, _EVENTS)
        told = self._context.socket(zmq.PAIR)
        told.setsockopt(zmq.LINGER, 0)
        told.setsockopt(zmq.RCVHWM, _EVENT_QUEUE)
        told.connect(address)
        self._monitors.append((told, Listener(is_for_peers, HandshakeGuard(has_keys))))
        os.write(self._wakeup_sender, b"\0")

    def guard(self, bound: zmq.Socket[bytes], domain: bytes) -> None:
        """Have those alone connect who may; before the socket is bound."""
        if self.access is not None:
            bound.setsockopt(zmq.CURVE_SERVER, 1)
            bound.setsockopt(zmq.CURVE_SECRETKEY, self.access.secret)
            bound.setsockopt(zmq.ZAP_DOMAIN, domain)

    def _run(self) -> None:
        """Whatever fails, somebody must be there to let others in."""
        while True:
            try:
                self._serve()
            except zmq.ContextTerminated:
                for one in (self._requests, *(told for told, _ in self._monitors)):
                    one.close()
                os.close(self._wakeup_sender)
                os.close(self._wakeup_receiver)
                return
            except Exception:
                _log.exception("failed at who connects; going on")
                time.sleep(_RETRY_SECONDS)

    def _serve(self) -> None:
        watched: Optional[List[Tuple[zmq.Socket[bytes], Listener]]] = None
        while True:
            if watched != self._monitors:
                poller = zmq.Poller()
                poller.register(self._requests, zmq.POLLIN)
                poller.register(self._wakeup_receiver, zmq.POLLIN)
                watched = list(self._monitors)
                for told, _ in watched:
                    poller.register(told, zmq.POLLIN)
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

    def _answer(self, request: List[bytes]) -> None:
        version, number, domain, address, _identity, mechanism, *credentials = request
        key = credentials[0] if mechanism == b"CURVE" and credentials else b""
        user = self.access.user(domain, key) if self.access is not None else b""
        if not user:
            self.last_rejection = f"the key {key.hex()} from {address.decode(errors='replace')} is not authorized there"
        verdict = [b"200", b"OK"] if user else [b"400", b"not authorized"]
        self._requests.send_multipart([version, number, *verdict, user, b""])

    def _read_events(self, told: zmq.Socket[bytes], listener: Listener) -> bool:
        """Take what ZeroMQ tells of a socket; returns False where that is closed."""
        now = time.monotonic()
        connections = self.connections
        has_failed = False
        for _ in range(EVENTS_PER_ROUND):
            if not told.getsockopt(zmq.EVENTS) & _POLLIN:  # type: ignore[operator]
                break
            event, value = _EVENT.unpack(told.recv_multipart()[0])
            if event == _ACCEPTED:
                connections.on_accepted(listener, value, now)
            elif event == _SUCCEEDED:
                listener.handshakes.succeeded()
            elif event == _DISCONNECTED:
                peer = connections.on_disconnected(listener, value)
                if has_failed and peer is not None:
                    self.last_rejection = f"{peer.text} has no key, or the key of another server"
                has_failed = False
            elif event & _FAILURES:
                self.rejected += 1
                # ZAP's answer has named the one whose key is not authorized. Of all others libzmq does not tell the
                # address, but says next which connection has ended.
                has_failed = event != _FAILED_AUTH
                if has_failed:
                    self.last_rejection = "somebody has no key, or the key of another server"
            elif event == _LISTENING:
                connections.on_listening(listener, value)
            elif event == _STOPPED:
                connections.on_closed(listener)
                return False
        return True


def _warm_up_cffi(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    """Each that the thread makes, before it is there: PyPy's cffi reads the name of a type at its first use, and two
    threads that do so at once may get each other's type, for good."""
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
