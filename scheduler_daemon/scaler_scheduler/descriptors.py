"""System calls on sockets that are ZeroMQ's, by their numbers.

Python's own socket objects are not for these: PyPy's make a socket wait when they take it over, for whoever else has it
as well, and a thread of ZeroMQ's that waits for one connection serves none.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator

_LONGEST_NAME = 128
_LAST_RECEIVED = 52
"""Where the milliseconds since the last byte are in Linux' `struct tcp_info`."""

_libc = ctypes.CDLL(None, use_errno=True)

_NOTHING = os.open(os.devnull, os.O_RDONLY)
_SPARE = os.dup(_NOTHING)
"""For `duplicate`, from the beginning on."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Name:
    """One end of a connection."""

    raw: bytes
    """As the system has it."""
    address: bytes
    """Of IPv4 4 bytes, of IPv6 16; empty for the sockets of a file."""
    port: int

    @property
    def text(self) -> str:
        return str(ipaddress.ip_address(self.address)) if self.address else "this machine"


def local_name(descriptor: int) -> Name:
    """Raises OSError."""
    return _name(_libc.getsockname, descriptor)


def remote_name(descriptor: int) -> Name:
    """Raises OSError."""
    return _name(_libc.getpeername, descriptor)


def end(descriptor: int) -> None:
    """Both ways, at once. Closing it is ZeroMQ's, which takes this for the other side's end."""
    _libc.shutdown(descriptor, socket.SHUT_RDWR)  # fails where the other side was first


def silent_seconds(descriptor: int) -> float:
    """Since the last byte that has come, or since the connection was made; 0 where the system does not tell.

    Raises:
        OSError: it is no connection of TCP's, or closed.
    """
    if not sys.platform.startswith("linux"):
        return 0.0
    information = ctypes.create_string_buffer(_LAST_RECEIVED + 4)
    length = ctypes.c_uint(len(information))
    wanted = socket.IPPROTO_TCP, socket.TCP_INFO
    _check(_libc.getsockopt(descriptor, *wanted, information, ctypes.byref(length)))
    milliseconds: int = struct.unpack_from("=I", information.raw, _LAST_RECEIVED)[0]
    return milliseconds / 1000


def set_option(descriptor: int, option: int, value: ctypes.Array[ctypes.c_char]) -> None:
    """Of the socket's own level. Raises OSError."""
    _check(_libc.setsockopt(descriptor, socket.SOL_SOCKET, option, value, len(value)))


@contextmanager
def duplicate(descriptor: int) -> Iterator[int]:
    """The same connection by a number of our own, that of no other whatever ZeroMQ closes.

    Needs no further file: when there are too many connections there may be none.

    Raises:
        OSError: it is closed.
    """
    with _lock:
        os.dup2(descriptor, _SPARE)
        try:
            yield _SPARE
        finally:
            os.dup2(_NOTHING, _SPARE)


def _name(call: ctypes._NamedFuncPointer, descriptor: int) -> Name:
    found = ctypes.create_string_buffer(_LONGEST_NAME)
    length = ctypes.c_uint(_LONGEST_NAME)
    _check(call(descriptor, found, ctypes.byref(length)))
    raw = found.raw[: length.value]
    if len(raw) < 4:  # of a file's socket that has no name of its own
        return Name(raw, b"", 0)
    family = struct.unpack_from("=H", raw)[0] if sys.platform.startswith("linux") else raw[1]
    if family not in (socket.AF_INET, socket.AF_INET6):
        return Name(raw, b"", 0)
    port = struct.unpack_from(">H", raw, 2)[0]
    if family == socket.AF_INET:
        return Name(raw, raw[4:8], port)
    mapped = ipaddress.IPv6Address(raw[8:24]).ipv4_mapped
    return Name(raw, mapped.packed if mapped else raw[8:24], port)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
