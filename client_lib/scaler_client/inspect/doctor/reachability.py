"""Checks whether something listens at an address, and whether it speaks ZeroMQ: name, connection, greeting.

The greeting of ZeroMQ's protocol (ZMTP 3) is read from a plain socket: it tells the mechanism, NULL or CURVE, before
any key is used. Without keys the type of the other socket follows, which tells a monitor address from the scheduler's.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from ...commands.addresses import Address
from .report import Check, error, ok, warning

GREETING_BYTES = 64
_SIGNATURE_BYTES = 10
_VERSION = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x01"
_MECHANISM_BYTES = 20
_REST = b"NULL".ljust(_MECHANISM_BYTES, b"\0") + b"\0" + bytes(31)
_SOCKET_TYPE = b"\x0bSocket-Type\0\0\0"
_READY_BODY = b"\x05READY" + _SOCKET_TYPE + b"\x06DEALER"
_READY = b"\x04" + bytes([len(_READY_BODY)]) + _READY_BODY
_MAX_READY_BYTES = 255

NEEDS_KEYS = "CURVE"
SCHEDULER_TYPE = "ROUTER"


@dataclass
class Endpoint:
    """What was found at an address."""

    mechanism: str = ""
    """NULL or CURVE; empty: nothing that speaks ZeroMQ was reached."""
    socket_type: str = ""
    """SCHEDULER_TYPE for a scheduler; empty: not known."""

    @property
    def may_be_scheduler(self) -> bool:
        """Whether it is worth while to join."""
        return self.mechanism == NEEDS_KEYS or self.socket_type == SCHEDULER_TYPE


def check_reachable(address: Address, seconds: float, found: Endpoint) -> Iterator[Check]:
    """Check name, connection and greeting. It stops after the first that fails.

    Args:
        address: where the scheduler should be.
        seconds: how long to wait for each.
        found: is filled with what was found.
    """
    numbers: list[str] = []
    if address.transport == "ipc":
        problem = _path_problem(address.path)
        if problem is not None:
            yield problem
            return
    else:
        name_check = _name_check(address, seconds, numbers)
        yield name_check
        if name_check.status:
            return
    try:
        connection = (
            _connect_path(address.path, seconds)
            if address.transport == "ipc"
            else _connect_tcp(numbers, address, seconds)
        )
    except OSError as failure:
        yield _connection_error(address, failure, seconds)
        return
    with connection:
        yield ok("connection", f"something listens at {address}")
        yield _greeting_check(connection, seconds, found)


def _path_problem(path: str) -> Check | None:
    name = "connection"
    if path.startswith("@"):  # a name in Linux's abstract namespace is no file
        return None
    try:
        found = os.stat(path)
    except FileNotFoundError:
        advice = "start the scheduler, or correct the address: the first lines of the scheduler's log have it"
        return error(name, f"the socket {path} does not exist", advice)
    except OSError as failure:
        return error(name, f"the socket {path} cannot be reached: {failure.strerror}", "ask for access to its folder")
    if not stat.S_ISSOCK(found.st_mode):
        return error(name, f"{path} is no socket", "correct the address")
    if not os.access(path, os.W_OK):
        return error(name, f"this user may not connect to {path}", "ask its owner for access, or use a tcp address")
    return None


def _name_check(address: Address, seconds: float, numbers: list[str]) -> Check:
    """Look up the host in a thread, because a lookup cannot be interrupted.

    Args:
        address: where the scheduler should be.
        seconds: how long to wait.
        numbers: gets the host's addresses, of the family that ZeroMQ uses.
    """
    name = "host name"
    answers: list[Check] = []
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET

    def look() -> None:
        try:
            found = socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
            numbers.extend(dict.fromkeys(str(each[4][0]) for each in found))
            answers.append(ok(name, f"{address.host} is {', '.join(numbers[:4])}"))
        except (OSError, UnicodeError) as failure:
            reason = getattr(failure, "strerror", None) or failure
            advice = f"correct the name in the address; `getent hosts {address.host}` must find it"
            answers.append(error(name, f"the host {address.host} can't be found: {reason}", advice))

    thread = threading.Thread(target=look, name="host name", daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        text = f"the name server has not answered within {seconds:g} s for {address.host}"
        return error(name, text, "check /etc/resolv.conf, or use the host's number in the address")
    return answers[0]


def _connect_tcp(numbers: list[str], address: Address, seconds: float) -> socket.socket:
    """Connect to the first of the host's addresses that answers. ZeroMQ tries only one family of addresses."""
    failure: OSError = OSError("the host has no address")
    for number in numbers:
        try:
            return socket.create_connection((number, address.port), timeout=seconds)
        except OSError as refused:
            failure = refused
    raise failure


def _connect_path(path: str, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect("\0" + path[1:] if path.startswith("@") else path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connection_error(address: Address, failure: OSError, seconds: float) -> Check:
    name = "connection"
    if isinstance(failure, ConnectionRefusedError):
        advice = (
            "start the scheduler, or correct the port; a scheduler at tcp://127.0.0.1:PORT can be reached from its own "
            "host only"
            if address.transport == "tcp"
            else "start the scheduler: the socket is left from one that has ended"
        )
        return error(name, f"nothing listens at {address}", advice)
    if isinstance(failure, TimeoutError):
        text = f"no answer from {address} within {seconds:g} s"
        return error(name, text, "a packet filter drops the packets, or the host is down: check both")
    text = f"{address} cannot be reached: {failure.strerror or failure}"
    return error(name, text, "check the network between this machine and the scheduler's host")


def _greeting_check(connection: socket.socket, seconds: float, found: Endpoint) -> Check:
    name = "protocol"
    advice = "correct the address: another program listens there"
    try:
        connection.settimeout(seconds)
        connection.sendall(_VERSION)
        greeting = _receive(connection, GREETING_BYTES)
    except TimeoutError:
        hangs = "if the scheduler listens there, its process is stopped or hangs: look at its log; else "
        return error(name, f"it has sent no greeting of ZeroMQ within {seconds:g} s", hangs + advice)
    except OSError as failure:
        greeting = b""
        reason = failure.strerror or str(failure)
    else:
        reason = "it has closed the connection"
    if not greeting:
        limits = "or raise the scheduler's --connection-limit: at its limit it cuts connections (see its log)"
        return error(name, f"no greeting of ZeroMQ: {reason}", f"{advice}; {limits}")
    if len(greeting) < GREETING_BYTES or greeting[0] != 0xFF or greeting[_SIGNATURE_BYTES - 1] != 0x7F:
        return error(name, f"it does not speak ZeroMQ; it has sent {greeting[:20]!r}", advice)
    mechanism = greeting[_SIGNATURE_BYTES + 2 :][:_MECHANISM_BYTES].rstrip(b"\0").decode("ascii", "replace")
    found.mechanism = mechanism
    if mechanism == "NULL":
        found.socket_type = _socket_type(connection)
        if found.socket_type != SCHEDULER_TYPE:
            text = f"it speaks ZeroMQ, but it takes no clients (socket type: {found.socket_type or 'not told'})"
            return error(name, text, "give the scheduler's address, not its monitor address: its log has both")
    elif mechanism != NEEDS_KEYS:
        return warning(name, f"it uses the mechanism {mechanism}, which no scheduler has", advice)
    encrypted = "encrypted, with keys" if mechanism == NEEDS_KEYS else "not encrypted, without keys"
    return ok(name, f"it speaks ZeroMQ: {encrypted}")


def _receive(connection: socket.socket, count: int) -> bytes:
    """Receive `count` bytes, fewer if the other side closes."""
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            break
        data += more
        if data[0] != 0xFF:  # another protocol, which may wait for more from here
            break
    return data


def _socket_type(connection: socket.socket) -> str:
    """End the handshake as a client would, and return the type of the other socket.

    Empty: it does not tell. A socket of a type that takes no clients closes the connection.
    """
    data = b""
    try:
        connection.sendall(_REST + _READY)
        while len(data) < 2 or len(data) < 2 + data[1]:
            more = connection.recv(_MAX_READY_BYTES)
            if not more:
                break
            data += more
    except OSError:
        return ""
    _, _, rest = data.partition(_SOCKET_TYPE)
    return rest[1 : 1 + rest[0]].decode("ascii", "replace") if rest else ""
