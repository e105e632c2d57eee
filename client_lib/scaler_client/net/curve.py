"""Keys on a socket that connects, and what its failures mean."""

from __future__ import annotations

import logging
import os
import socket as socket_module
from dataclasses import dataclass

import zmq

from ..commands.addresses import Address
from ..commands.key_files import KEYS_VARIABLE, SECRET_SUFFIX, SERVER, PeerKeys, read_peer_keys, unwanted_secrets

MIN_CUT_HANDSHAKES = 5
"""So often in a row must the other side have ended the connection in the handshake to be taken for one with other keys:
a scheduler that is just ended does so as well."""

MIN_CUT_SECONDS = 2.0
"""And for so long, at a client."""

SERVING_CUT_SECONDS = 15.0
"""And for so long at workers and their agents, which have time: a scheduler that has all the connections it may have
cuts handshakes too, until those who have said nothing for ten seconds are cut off."""

_OTHER_MECHANISM = 0x11000002
"""ZeroMQ's number for a side with keys and one without."""

SERVERS = os.sep + SERVER + SECRET_SUFFIX

_log = logging.getLogger(__name__)

FAILURES = int(
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


@dataclass(frozen=True)
class HandshakeFailure:
    """A handshake that did not succeed."""

    event: int
    value: int

    @property
    def is_final(self) -> bool:
        """Whether ZeroMQ does not try again."""
        return self.event != int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)

    def text(self, keys: PeerKeys | None, what: str = "scheduler") -> str:
        """What is wrong, and what to do, in a line that goes on behind the address."""
        if self.event == int(zmq.EVENT_HANDSHAKE_FAILED_AUTH) and keys is not None:
            path = os.path.join(keys.directory, keys.role + ".key")
            return (
                f"the {what} does not let in the key {keys.public.hex()} of {path} (as {keys.role}): there it takes "
                f"`scaler_scheduler authorize DIR KEY --as {keys.role} --name NAME` and SIGHUP"
            )
        if keys is None:
            return (
                f"the {what} wants keys, and none were given: name their folder with keys= or --keys, or in "
                f"{KEYS_VARIABLE}; or it has as many connections as it may have (its log says so)"
            )
        if self.value == _OTHER_MECHANISM and self.is_final:
            return f"the {what} has no keys, and is not talked to with those of {keys.directory}: leave them out here"
        path = os.path.join(keys.directory, "server.key")
        return (
            f"the {what} has another key than {path} ({keys.server.hex()}), or none, or as many connections as it may "
            "have (its log says so)"
        )


def load_keys(directory: str | None, role: str) -> PeerKeys | None:
    """The keys of a program of this role, from the folder that it was given, else that in SCALER_KEYS; None where there
    is none. An empty text means none. Raises KeyFileError."""
    directory = os.environ.get(KEYS_VARIABLE, "") if directory is None else directory
    return read_peer_keys(directory, role) if directory else None


def warn_about_secrets(keys: PeerKeys | None, address: Address) -> None:
    """Log which secrets the folder of these keys has that this machine must not have, unless it is the scheduler's."""
    unwanted = unwanted_secrets(keys.directory, keys.role) if keys is not None else []
    if keys is None or not unwanted or is_local_address(address):
        return
    why = "whoever reads the first one can pretend to be the scheduler" if unwanted[0].endswith(SERVERS) else ""
    why = why or "tasks that run here may read them"
    _log.warning(
        "the folder of keys %s has secrets that a %s does not use: remove %s from this machine (%s)",
        keys.directory, keys.role, " and ".join(unwanted), why,
    )  # fmt: skip


def is_local_address(address: Address) -> bool:
    """Whether the address is one of this machine's own; True where the name is not found."""
    if address.transport != "tcp":
        return True
    try:
        found = socket_module.getaddrinfo(address.host, 0, type=socket_module.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    for family, kind, _protocol, _name, where in found:
        with socket_module.socket(family, kind) as probe:
            try:
                probe.bind(where)  # to any free port of it
                return True
            except OSError:
                pass
    return False


def apply_keys(socket: zmq.Socket[bytes], keys: PeerKeys | None) -> None:
    """Have the socket use these keys, before it connects; None: no keys."""
    if keys is not None:
        socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)


def apply_monitor_keys(socket: zmq.Socket[bytes], address: Address, keys: PeerKeys | None) -> None:
    """The same for a scheduler's monitor address: who may read a socket that is a file, is the file's to say."""
    apply_keys(socket, keys if address.transport == "tcp" else None)
