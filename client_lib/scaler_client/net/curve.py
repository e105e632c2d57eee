"""CURVE keys of a socket that connects, and the meaning of its failed handshakes."""

from __future__ import annotations

import logging
import os
import socket as socket_module
from dataclasses import dataclass

import zmq

from ..commands.addresses import Address
from ..commands.key_files import KEYS_VARIABLE, SECRET_SUFFIX, SERVER, PeerKeys, read_peer_keys, unwanted_secrets

MIN_CUT_HANDSHAKES = 5
"""After so many cut handshakes in a row, the keys count as different.

A scheduler that ends cuts a few handshakes, too.
"""

MIN_CUT_SECONDS = 2.0
"""The minimum time between the first and the last of these handshakes, at a client."""

SERVING_CUT_SECONDS = 15.0
"""The same time at workers and agents, which can wait longer. A scheduler at its limit of connections cuts handshakes,
too, until it has dropped the connections that sent nothing for ten seconds."""

_OTHER_MECHANISM = 0x11000002
"""ZeroMQ's error number if one side has keys and the other has none."""

SERVERS = os.sep + SERVER + SECRET_SUFFIX

_log = logging.getLogger(__name__)

FAILURES = int(
    zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


@dataclass(frozen=True)
class HandshakeFailure:
    """A failed handshake: ZeroMQ's event number and the value of that event."""

    event: int
    value: int

    @property
    def is_final(self) -> bool:
        """Whether ZeroMQ gives up after this failure."""
        return self.event != int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)

    def text(self, keys: PeerKeys | None, what: str = "scheduler") -> str:
        """Return what is wrong and what to do, in one line without the address.

        Args:
            keys: this side's keys; None: it has none.
            what: the other side.
        """
        if self.event == int(zmq.EVENT_HANDSHAKE_FAILED_AUTH) and keys is not None:
            path = os.path.join(keys.directory, keys.role + ".key")
            return (
                f"the {what} does not accept the key {keys.public.hex()} of {path} (as {keys.role}). "
                f"Authorize it there: `scaler_scheduler authorize DIR KEY --as {keys.role} --name NAME`, then SIGHUP"
            )
        if keys is None:
            return (
                f"the {what} needs keys, and none were given: name their folder with keys=, --keys or "
                f"{KEYS_VARIABLE}. Or it has reached its limit of connections (see its log)"
            )
        if self.value == _OTHER_MECHANISM and self.is_final:
            return f"the {what} has no keys, but this side has those of {keys.directory}: leave them out here"
        path = os.path.join(keys.directory, "server.key")
        return (
            f"the {what} has another key than {path} ({keys.server.hex()}), or no key, or has reached its limit of "
            "connections (see its log)"
        )


def load_keys(directory: str | None, role: str) -> PeerKeys | None:
    """Read the keys of a program.

    Args:
        directory: the folder of keys; None: the folder in SCALER_KEYS; empty: no keys.
        role: the program's role, for example "client".

    Returns:
        The keys, or None if there is no folder.

    Raises:
        KeyFileError: a file of the folder is missing or wrong.
    """
    directory = os.environ.get(KEYS_VARIABLE, "") if directory is None else directory
    return read_peer_keys(directory, role) if directory else None


def warn_about_secrets(keys: PeerKeys | None, address: Address) -> None:
    """Log a warning if the folder of keys has secrets of other roles, unless the scheduler runs on this machine."""
    unwanted = unwanted_secrets(keys.directory, keys.role) if keys is not None else []
    if keys is None or not unwanted or is_local_address(address):
        return
    why = "a program that reads the first one can pretend to be the scheduler" if unwanted[0].endswith(SERVERS) else ""
    why = why or "tasks that run here may read them"
    _log.warning(
        "the folder of keys %s has secrets that a %s does not use: remove %s from this machine (%s)",
        keys.directory, keys.role, " and ".join(unwanted), why,
    )  # fmt: skip


def is_local_address(address: Address) -> bool:
    """Whether the address belongs to this machine. True if its name is not found."""
    if address.transport != "tcp":
        return True
    try:
        found = socket_module.getaddrinfo(address.host, 0, type=socket_module.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    for family, kind, _protocol, _name, where in found:
        with socket_module.socket(family, kind) as probe:
            try:
                probe.bind(where)  # any free port
                return True
            except OSError:
                pass
    return False


def apply_keys(socket: zmq.Socket[bytes], keys: PeerKeys | None) -> None:
    """Set the keys of a socket, before it connects.

    Args:
        keys: None: the connection is not encrypted.
    """
    if keys is not None:
        socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)


def apply_monitor_keys(socket: zmq.Socket[bytes], address: Address, keys: PeerKeys | None) -> None:
    """Set the keys of a socket for a scheduler's monitor address, before it connects.

    Addresses that are files (ipc) use no keys: the permissions of the file decide who may read.
    """
    apply_keys(socket, keys if address.transport == "tcp" else None)
