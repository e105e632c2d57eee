"""System calls on ZeroMQ's sockets by their file descriptors.

Python's socket objects cannot be used. PyPy makes a socket blocking when it takes over a descriptor, also for ZeroMQ,
and a ZeroMQ thread that blocks on one connection serves none.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_MAX_ENDPOINT_BYTES = 128
_LAST_RECEIVED, _BYTES_RECEIVED, _BYTES_SENT, _BYTES_RETRANSMITTED = 52, 128, 200, 208
"""Offsets in Linux's `struct tcp_info`: milliseconds since the last byte, and numbers of bytes."""

_SAVE_SYN, _SAVED_SYN = 27, 28  # TCP_SAVE_SYN, TCP_SAVED_SYN
_MAX_SYN_BYTES = 256

_libc = ctypes.CDLL(None, use_errno=True)

_DEV_NULL = os.open(os.devnull, os.O_RDONLY)
_SPARE = os.dup(_DEV_NULL)
"""The descriptor for `duplicate`, open from the start."""
_lock = threading.Lock()


@dataclass(frozen=True)
class Endpoint:
    """One end of a connection."""

    raw: bytes
    """The address in the system's form."""
    address: bytes
    """4 bytes for IPv4, 16 bytes for IPv6, empty for an ipc socket."""
    port: int

    @property
    def text(self) -> str:
        """The IP address for logs, or `this machine` for an ipc socket."""
        return str(ipaddress.ip_address(self.address)) if self.address else "this machine"


def local_endpoint(descriptor: int) -> Endpoint:
    """The local end of a connection, or the address of a listening socket. Raises OSError."""
    return _endpoint(_libc.getsockname, descriptor)


def remote_endpoint(descriptor: int) -> Endpoint:
    """The peer's end of a connection. Raises OSError."""
    return _endpoint(_libc.getpeername, descriptor)


def shut_down(descriptor: int) -> None:
    """End a connection in both directions. ZeroMQ sees this as the end by the peer, and closes the descriptor."""
    _libc.shutdown(descriptor, socket.SHUT_RDWR)  # fails if the peer has ended it already


def idle_seconds(descriptor: int) -> float:
    """Seconds since the last received byte, or since the start of the connection; 0: unknown.

    Raises:
        OSError: it is not a TCP connection, or it is closed.
    """
    if not sys.platform.startswith("linux"):
        return 0.0
    information = _tcp_option(descriptor, socket.TCP_INFO, _LAST_RECEIVED + 4)
    milliseconds: int = struct.unpack_from("=I", information, _LAST_RECEIVED)[0]
    return milliseconds / 1000


def traffic(descriptor: int) -> tuple[int, int]:
    """Bytes sent and bytes received on a TCP connection. Each byte counts once.

    Raises:
        OSError: it is closed, or the system does not count bytes (Linux does since 4.19).
    """
    information = _tcp_option(descriptor, socket.TCP_INFO, _BYTES_RETRANSMITTED + 8)
    if len(information) < _BYTES_RETRANSMITTED + 8:
        raise OSError("this system does not count a connection's bytes")
    sent: int = struct.unpack_from("=Q", information, _BYTES_SENT)[0]
    sent -= struct.unpack_from("=Q", information, _BYTES_RETRANSMITTED)[0]
    received: int = struct.unpack_from("=Q", information, _BYTES_RECEIVED)[0]
    return sent, received


def save_syn_packets(listener: int) -> None:
    """Make the system keep the first packet of each new connection, for `initial_sequence`. Raises OSError."""
    value = ctypes.c_int(1)
    _check(_libc.setsockopt(listener, socket.IPPROTO_TCP, _SAVE_SYN, ctypes.byref(value), ctypes.sizeof(value)))


def initial_sequence(descriptor: int) -> int | None:
    """The TCP sequence number of the first byte that the peer sends. The system returns it only once for each
    connection.

    Returns:
        None if the system has not kept the first packet.
    """
    try:
        packet = _tcp_option(descriptor, _SAVED_SYN, _MAX_SYN_BYTES)
    except OSError:
        return None
    if not packet:
        return None
    is_ipv4 = packet[0] >> 4 == 4
    header = (packet[0] & 15) * 4 if is_ipv4 else 40
    protocol = packet[9 if is_ipv4 else 6 : 10 if is_ipv4 else 7]
    if protocol != bytes([socket.IPPROTO_TCP]) or len(packet) < header + 8:
        return None
    sequence: int = struct.unpack_from(">I", packet, header + 4)[0]
    return (sequence + 1) & 0xFFFFFFFF


def set_socket_option(descriptor: int, option: int, value: ctypes.Array[ctypes.c_char]) -> None:
    """Set an option of level SOL_SOCKET. Raises OSError."""
    _check(_libc.setsockopt(descriptor, socket.SOL_SOCKET, option, value, len(value)))


def _tcp_option(descriptor: int, option: int, size: int) -> bytes:
    content = ctypes.create_string_buffer(size)
    length = ctypes.c_uint(size)
    _check(_libc.getsockopt(descriptor, socket.IPPROTO_TCP, option, content, ctypes.byref(length)))
    return content.raw[: length.value]


@contextmanager
def duplicate(descriptor: int) -> Iterator[int]:
    """A duplicate of a connection's descriptor. It stays valid when ZeroMQ closes the original and its number is
    reused. It uses a reserved descriptor, because with too many connections no other may be free.

    Raises:
        OSError: the descriptor is closed.
    """
    with _lock:
        os.dup2(descriptor, _SPARE)
        try:
            yield _SPARE
        finally:
            os.dup2(_DEV_NULL, _SPARE)


def _endpoint(call: ctypes._NamedFuncPointer, descriptor: int) -> Endpoint:
    found = ctypes.create_string_buffer(_MAX_ENDPOINT_BYTES)
    length = ctypes.c_uint(_MAX_ENDPOINT_BYTES)
    _check(call(descriptor, found, ctypes.byref(length)))
    raw = found.raw[: length.value]
    if len(raw) < 4:  # an ipc socket without a name
        return Endpoint(raw, b"", 0)
    family = struct.unpack_from("=H", raw)[0] if sys.platform.startswith("linux") else raw[1]
    if family not in (socket.AF_INET, socket.AF_INET6):
        return Endpoint(raw, b"", 0)
    port = struct.unpack_from(">H", raw, 2)[0]
    if family == socket.AF_INET:
        return Endpoint(raw, raw[4:8], port)
    mapped = ipaddress.IPv6Address(raw[8:24]).ipv4_mapped
    return Endpoint(raw, mapped.packed if mapped else raw[8:24], port)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
