"""The addresses that the processes of a local cluster bind, and the addresses to reach them."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import secrets
import socket
import stat
import time
from contextlib import suppress
from typing import Any

from ..commands.addresses import (
    Address,
    AddressError,
    default_monitor_address,
    make_socket_directory,
    parse_bind_address,
)

LEFT_SECONDS = 60.0
"""Younger socket files are not taken for left ones: a scheduler that starts has its file before it listens."""

_NAME = re.compile(r"scaler_(\d{1,9})_[0-9a-f]{8}(_monitor)?")
"""The names of socket files, with the process that runs the cluster."""


def checked_bind_address(address: Any) -> Address:
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address must be a string, not {address!r}")
    folder = _socket_folder()  # the scheduler publishes there too
    return _default_address(folder) if address is None else _choose_port(parse_bind_address(address))


def _socket_folder() -> str:
    """Return the folder of this user's sockets; empty where there is none."""
    if os.name == "posix":
        with suppress(OSError):
            return make_socket_directory()
    return ""


def _default_address(folder: str) -> Address:
    """Return the address of a new socket file, or a free local port where there are no such files.

    A round trip through a file is a tenth faster than through tcp (decision 60), and only this user can connect.
    """
    if folder:
        _remove_left_files(folder)
        return Address("ipc", "", 0, f"{folder}/scaler_{os.getpid()}_{secrets.token_hex(4)}")
    return Address("tcp", "127.0.0.1", free_port(), "")


def _remove_left_files(folder: str) -> None:
    """Remove the socket files of local clusters whose program and scheduler were both killed."""
    names: list[str] = []
    with suppress(OSError):  # the folder may be unreadable
        names = os.listdir(folder)
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            with suppress(OSError):  # for example the file of another user
                _remove_if_left(os.path.join(folder, name), int(match[1]))


def _remove_if_left(path: str, pid: int) -> None:
    status = os.lstat(path)
    if not stat.S_ISSOCK(status.st_mode) or time.time() < status.st_mtime + LEFT_SECONDS:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:  # the program may be in another container
        probe.setblocking(False)
        if probe.connect_ex(path) == errno.ECONNREFUSED:
            os.unlink(path)


def remove_socket_files(bound: Address) -> None:
    """Remove the socket files of a scheduler that was killed, so that it could not remove them itself."""
    if bound.transport == "ipc":
        for path in (bound.path, default_monitor_address(bound).path):
            with suppress(OSError):
                os.unlink(path)


def choose_monitor_port(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with a port number in `monitor_address`.

    If the address asks for any free port, this function chooses one.
    """
    try:
        monitor = parse_bind_address(options["monitor_address"])
    except (KeyError, TypeError, AttributeError, AddressError):  # the scheduler reports the error
        return options
    return {**options, "monitor_address": str(_choose_port(monitor))}


def _choose_port(bind: Address) -> Address:
    return dataclasses.replace(bind, port=free_port()) if bind.transport == "tcp" and bind.port == 0 else bind


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def reachable_address(bind: Address) -> Address:
    """Return the address to connect to from this machine.

    If the scheduler binds all interfaces, it is the loopback interface.
    """
    return dataclasses.replace(bind, host="127.0.0.1") if bind.host == "*" else bind


def is_local(bind: Address) -> bool:
    """Return whether only this machine can reach the address, judged by its text."""
    return bind.transport == "ipc" or bind.host in ("127.0.0.1", "::1", "localhost")


def is_listening(address: Address) -> bool:
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
    target: Any = (address.host, address.port)
    if address.transport == "ipc":
        family = socket.AF_UNIX
        target = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(target) == 0
