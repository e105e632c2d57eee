"""CURVE at both scripted ends: whom the listener lets in, what a peer connects with. Folders are keygen's."""

from __future__ import annotations

import struct
from typing import Any

import zmq
from tests.conformance.findings import WrongError, must
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from scaler_client.commands.key_files import CLIENT, SERVER, WORKER, PeerKeys, read_pair, read_peer_keys
from scaler_scheduler.auth import authorized_keys

SUCCEEDED, CUT, OTHER_MECHANISM, NOT_LET_IN = (
    int(zmq.EVENT_HANDSHAKE_SUCCEEDED),
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL),
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL),
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH),
)
FAILURES = CUT | OTHER_MECHANISM | NOT_LET_IN


def keys_for(folder: str, role: str, worker: int) -> PeerKeys | None:
    """What a scripted peer of this role connects with; `worker` as in its hello. None without a folder.

    Raises:
        KeyFileError: the folder has not what it needs.
    """
    return read_peer_keys(folder, CLIENT if role == "client" and not worker else WORKER) if folder else None


def events_of(socket: zmq.Socket[bytes], which: int) -> zmq.Socket[bytes]:
    """What becomes of a socket's handshakes; before it binds or connects."""
    events = socket.get_monitor_socket(which)
    events.setsockopt(zmq.LINGER, 0)
    return events


def next_event(events: zmq.Socket[bytes], seconds: float) -> tuple[int, int]:
    """Number and value of the next event; zeros where none comes in time."""
    if not events.poll(round(seconds * 1000)):
        return 0, 0
    number, value = struct.unpack("=HI", events.recv_multipart()[0])
    return number, value


class Guard:
    """Lets in whom the folder lists, and says of each message whose key its connection has.

    Raises:
        KeyFileError: the folder has not what a scheduler needs.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: str) -> None:
        self._folder = folder
        _public, self._secret = read_pair(folder, SERVER)
        self._entries = authorized_keys.read(folder)
        self._turned_away: list[str] = []
        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback("*", self)

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether this public key (Z85) may connect. Called by the authenticator's thread."""
        public = z85.decode(key).hex()
        if public not in self._entries:
            self._turned_away.append(f"{public} is not in {self._folder}/{authorized_keys.FILE_NAME}")
        return public in self._entries

    def secure(self, bound: zmq.Socket[bytes]) -> None:
        """Before the socket is bound."""
        bound.setsockopt(zmq.CURVE_SERVER, 1)
        bound.setsockopt(zmq.CURVE_SECRETKEY, self._secret)

    def objection(self, handshake_failed: bool) -> str:
        """Why somebody was turned away since the last call; empty where nobody was."""
        if handshake_failed:
            self._turned_away.append(f"no handshake by CURVE with the key of {self._folder}/server.key")
        return self._turned_away.pop() if self._turned_away else ""

    def check_role(self, user: str, role: str, worker: int) -> None:
        """Raise WrongError where the key of a connection is not for this hello."""
        entry = self._entries[z85.decode(user.encode()).hex()]
        wanted = CLIENT if role == "client" and not worker else WORKER
        must(entry.role == wanted, f"{role} by the key of {entry.name}, which is a {entry.role}'s")

    def close(self) -> None:
        self._authenticator.stop()


def user_of(frame: Any) -> str:
    """Whose key the connection of this frame has; empty where nobody has keys."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


def check_route(route: bytes) -> None:
    """Raise WrongError where a peer has named its connection itself."""
    if len(route) != 5 or route[0]:
        raise WrongError(f"its routing id is {route!r}, and not ZeroMQ's own")
