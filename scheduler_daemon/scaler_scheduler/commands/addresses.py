"""ZeroMQ addresses as users write them: `tcp://HOST:PORT` and `ipc://PATH`.

scaler_client has a link to this file.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import sys
from dataclasses import dataclass

from .options import quoted

ADDRESS_VARIABLE = "SCALER_ADDRESS"
DATA_ADDRESS_VARIABLE = "SCALER_DATA_ADDRESS"
DATA_ADDRESS_AUTO = "auto"
"""A data address: a free port of the interface that leads to the scheduler."""
# The size of struct sockaddr_un's path, without the closing zero byte.
MAX_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103
MAX_PORT = 65535
SOCKET_PARENT = "/tmp"
"""Where users have the folders of their sockets. A name there is short enough for a socket, unlike many in TMPDIR."""
ADDRESS_IN_USE = f"{os.strerror(errno.EADDRINUSE)} by another process (`ss -lntxp` lists them)"
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_IPV4_LIKE = re.compile(r"[0-9.]+")
_SOCKET_DIRECTORY = re.compile(r"scaler-sockets-(\d+)(-[0-9a-f]+)?")


def bind_error_text(number: int) -> str:
    """Why an address cannot be bound, and what to do. `number` is the error number of the system."""
    return ADDRESS_IN_USE if number == errno.EADDRINUSE else os.strerror(number)


class AddressError(ValueError):
    """A bad address. The text is one line with the address and its error."""


@dataclass(frozen=True)
class Address:
    """One address. `str()` of it is the text that ZeroMQ binds or connects to."""

    transport: str
    """`tcp` or `ipc`."""
    host: str
    """For tcp: a name, an IPv4 address, an IPv6 address without brackets, or `*`. Else empty."""
    port: int
    """For tcp: 1 to 65535, or 0 for any free port. Else 0."""
    path: str
    """For ipc: a file's path, or `@name` for an abstract name of Linux. Else empty."""

    @property
    def is_ipv6(self) -> bool:
        """Whether a socket needs ZeroMQ's option IPV6 for this address."""
        return ":" in self.host

    def __str__(self) -> str:
        if self.transport == "ipc":
            return f"ipc://{self.path}"
        return f"tcp://{f'[{self.host}]' if self.is_ipv6 else self.host}:{self.port or '*'}"


def parse_bind_address(text: str) -> Address:
    """An address to bind: host `*` is every interface, port 0 or `*` is any free port. Raises AddressError."""
    transport, separator, rest = text.strip().partition("://")
    if separator and transport == "ipc":
        return Address("ipc", "", 0, _checked_path(text, rest))
    if separator and transport == "tcp":
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            raise _wrong(text, "the port is missing, as in tcp://HOST:2345")
        return Address("tcp", _checked_host(text, host), _checked_port(text, port), "")
    raise _wrong(text, "it must be tcp://HOST:PORT or ipc://PATH")


def parse_connect_address(text: str) -> Address:
    """An address to connect to, with a host and a port. Raises AddressError."""
    address = parse_bind_address(text)
    if address.transport == "tcp" and address.host == "*":
        raise _wrong(text, "the host * is only for binding")
    if address.transport == "tcp" and address.port == 0:
        raise _wrong(text, "any free port is only for binding")
    return address


def parse_data_address(text: str) -> Address | str:
    """An address where host agents get object files, to bind; or `auto`, or empty: none.

    Raises:
        ValueError: it is none of these. The text is one line.
    """
    if text in ("", DATA_ADDRESS_AUTO):
        return text
    address = parse_bind_address(text)
    if address.transport != "tcp":
        raise ValueError(f"{quoted(text)} is not tcp://HOST:PORT: agents of other hosts connect to it")
    return address


def socket_directories() -> list[str]:
    """The folders of this user's sockets, without others that only have such a name. For root: those of all users.

    Only its user may enter such a folder, so the kernel keeps all other users from the sockets there.
    """
    if not hasattr(os, "getuid"):
        return []
    uid = os.getuid()
    try:
        found = [f"{SOCKET_PARENT}/{name}" for name in sorted(os.listdir(SOCKET_PARENT))]
    except OSError:  # it may be entered, but not listed
        found = [usual_socket_directory()]
    owners = {path: _private_owner(path) for path in found}
    return [path for path, owner in owners.items() if owner is not None and uid in (0, owner)]


def make_socket_directory() -> str:
    """Return the folder of this user's sockets. It is made if there is none.

    Another user may have taken its name. Then it has another name, which `socket_directories` finds.

    Raises:
        OSError: it cannot be made.
    """
    path = usual_socket_directory()
    for each in (path, *socket_directories()):
        if _private_owner(each) == os.getuid():
            return each
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if _private_owner(path) != os.getuid():  # else another process has made it just now
            path = f"{path}-{os.urandom(4).hex()}"
            os.mkdir(path, 0o700)
    return path


def usual_socket_directory() -> str:
    """The folder of this user's sockets, unless another user has taken its name."""
    return f"{SOCKET_PARENT}/scaler-sockets-{os.getuid() if hasattr(os, 'getuid') else 0}"


def _private_owner(path: str) -> int | None:
    """The user that this folder of sockets is named after, if it belongs to this user and no other may enter it."""
    named = _SOCKET_DIRECTORY.fullmatch(os.path.basename(path))
    if named is None:
        return None
    try:
        status = os.lstat(path)
    except OSError:
        return None
    is_private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    return status.st_uid if is_private and int(named[1]) == status.st_uid else None


def default_monitor_address(bound: Address, runtime_directories: str = "", socket_directory: str = "") -> Address:
    """Where a scheduler publishes its state if `--monitor-address` is not given.

    `<host>_<port>_monitor` in the folder of its user's sockets; for an ipc socket `<path>_monitor`. A systemd service
    has a private /tmp that other processes do not see, so there it is the file `monitor` in the first of its runtime
    directories.

    Args:
        bound: the scheduler's address, with the port that it has.
        runtime_directories: systemd's $RUNTIME_DIRECTORY, separated by colons.
        socket_directory: the folder of its user's sockets; empty: the usual one.

    Raises:
        AddressError: the path is longer than a socket's path may be.
    """
    if runtime_directories.startswith("/"):
        path = f"{runtime_directories.split(':')[0]}/monitor"
    elif bound.transport == "ipc":
        path = f"{bound.path}_monitor"
    else:
        path = f"{socket_directory or usual_socket_directory()}/{bound.host}_{bound.port}_monitor"
    return Address("ipc", "", 0, _checked_path(f"ipc://{path}", path))


def _wrong(text: str, complaint: str) -> AddressError:
    return AddressError(f"bad address {quoted(text)}: {complaint}")


def _checked_path(text: str, path: str) -> str:
    if path in ("", "*", "@"):
        raise _wrong(text, "the path is missing, as in ipc:///tmp/scaler")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _wrong(text, "the path must be UTF-8 text") from None
    if "\0" in path or len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise _wrong(text, f"the path must have at most {MAX_PATH_BYTES} bytes, none of them zero")
    if os.path.isdir(path):
        raise _wrong(text, "the path is a directory")
    return path


def _checked_port(text: str, port: str) -> int:
    if port == "*":
        return 0
    if not (port.isascii() and port.isdigit()) or len(port) > len(str(MAX_PORT)) or int(port) > MAX_PORT:
        raise _wrong(text, f"the port must be a number from 0 to {MAX_PORT} or *")
    return int(port)


def _checked_host(text: str, host: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        bare = host[1:-1]
        number, percent, zone = bare.partition("%")
        if not _is_numeric(socket.AF_INET6, number) or (percent and not _HOST_NAME.fullmatch(zone)):
            raise _wrong(text, f"{quoted(bare)} is not an IPv6 address")
        return bare
    if _is_numeric(socket.AF_INET6, host):
        raise _wrong(text, f"an IPv6 address needs brackets, as in tcp://[{host}]:2345")
    if not host:
        raise _wrong(text, "the host is missing, as in tcp://127.0.0.1:2345")
    if _IPV4_LIKE.fullmatch(host):
        if not _is_numeric(socket.AF_INET, host):
            raise _wrong(text, f"{quoted(host)} is not an IPv4 address")
    elif host != "*" and not _HOST_NAME.fullmatch(host):
        raise _wrong(text, f"{quoted(host)} is not a host name")
    return host


def _is_numeric(family: int, host: str) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True
