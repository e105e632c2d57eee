"""CURVE for scripted listeners and peers. Folders of keys are made by `scaler_scheduler keygen`."""

from __future__ import annotations

import struct
from itertools import count
from typing import Any

import zmq
from tests.conformance.findings import WrongError, must
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from scaler_client.commands.key_files import CLIENT, SERVER, WORKER, PeerKeys, read_pair, read_peer_keys
from scaler_scheduler.auth import authorized_keys

SUCCEEDED, CUT, OTHER_MECHANISM, REJECTED = (
    int(zmq.EVENT_HANDSHAKE_SUCCEEDED),
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL),
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL),
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH),
)
FAILURES = CUT | OTHER_MECHANISM | REJECTED

_numbers = count()
"""Of the sockets with events."""


def keys_for(folder: str, role: str, worker: int) -> PeerKeys | None:
    """Return the keys of a scripted peer; None if there is no folder. `worker` is as in the peer's hello.

    Raises:
        KeyFileError: the folder lacks a file.
    """
    return read_peer_keys(folder, CLIENT if role == "client" and not worker else WORKER) if folder else None


def events_of(socket: zmq.Socket[bytes], which: int) -> zmq.Socket[bytes]:
    """Return a socket with the handshake events of `socket`. Must be called before that one binds or connects.

    The address is a new one each time. pyzmq's own has the number of a file descriptor. A socket that is just being
    closed may have the same one: then it is in use.
    """
    address = f"inproc://events-{next(_numbers)}"
    socket.monitor(address, which)
    events: zmq.Socket[bytes] = socket.context.socket(zmq.PAIR)
    events.setsockopt(zmq.LINGER, 0)
    events.connect(address)
    return events


def next_event(events: zmq.Socket[bytes], seconds: float) -> tuple[int, int]:
    """Return number and value of the next event; zeros if none comes in time."""
    if not events.poll(round(seconds * 1000)):
        return 0, 0
    number, value = struct.unpack("=HI", events.recv_multipart()[0])
    return number, value


class Guard:
    """Accepts the keys in the folder's list of authorized keys, and checks the roles of connections.

    Raises:
        KeyFileError: the folder lacks a file that a scheduler needs.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: str) -> None:
        self._folder = folder
        _public, self._secret = read_pair(folder, SERVER)
        self._entries = authorized_keys.read(folder)
        self._rejections: list[str] = []
        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback("*", self)

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether this public key (Z85) may connect. The thread of the authenticator calls this."""
        public = z85.decode(key).hex()
        if public not in self._entries:
            self._rejections.append(f"{public} is not in {self._folder}/{authorized_keys.FILE_NAME}")
        return public in self._entries

    def apply_keys(self, bound: zmq.Socket[bytes]) -> None:
        """Make a socket use CURVE. Must be called before it binds."""
        bound.setsockopt(zmq.CURVE_SERVER, 1)
        bound.setsockopt(zmq.CURVE_SECRETKEY, self._secret)

    def objection(self, handshake_failed: bool) -> str:
        """Return why a connection was rejected since the last call; empty: none was."""
        if handshake_failed:
            self._rejections.append(f"no CURVE handshake with the key of {self._folder}/server.key")
        return self._rejections.pop() if self._rejections else ""

    def check_role(self, user: str, role: str, worker: int) -> None:
        """Check that a connection's key has the role of its hello.

        Raises:
            WrongError: it has a different role.
        """
        entry = self._entries[z85.decode(user.encode()).hex()]
        wanted = CLIENT if role == "client" and not worker else WORKER
        must(entry.role == wanted, f"a {role} has the key of {entry.name}, which is a {entry.role}'s key")

    def close(self) -> None:
        self._authenticator.stop()


def user_of(frame: Any) -> str:
    """Return the key (Z85) of the connection that sent this frame; empty: no keys are in use."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


def check_route(route: bytes) -> None:
    """Check that ZeroMQ chose the routing id of a connection.

    Raises:
        WrongError: the peer chose it.
    """
    if len(route) != 5 or route[0]:
        raise WrongError(f"the peer set the routing id {route!r}")
