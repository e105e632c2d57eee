"""Packet filters on sockets: the kernel drops packets before they wake a thread. Linux lets any process put such
filters on its own sockets.

On a listening socket a filter drops the first packets of addresses that may not connect for a while. TCP sends a first
packet again after a second, so these peers wait and get no error. Established connections send no first packets and are
not affected. On a connection whose handshake is not over, a filter drops all data beyond a number of bytes.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterable

from . import descriptors

MAX_NETWORKS = 64
"""The most networks in one filter. If there are more, new connections from all networks wait."""

_ATTACH, _DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER
_LOAD_BYTE, _LOAD_WORD, _LOAD_LENGTH, _TO_INDEX = 0x30, 0x20, 0x80, 0x07
_SHIFT_RIGHT, _AND, _SUBTRACT, _SUBTRACT_INDEX = 0x74, 0x54, 0x14, 0x1C
_IF_EQUAL, _IF_NOT_LESS, _IF_SET, _RETURN = 0x15, 0x35, 0x45, 0x06
_KEEP = (_RETURN, 0, 0, 0xFFFFFFFF)
_DROP = (_RETURN, 0, 0, 0)
_SEQUENCE, _HEADER_WORDS, _FLAGS, _SYN = 4, 12, 13, 0x02  # offsets in the TCP header; the flag of a first packet

_MAX_PACKET_BYTES = 8192
_SHORTEN = (_RETURN, 0, 0, _MAX_PACKET_BYTES)
"""A packet is cut to this many bytes. A new connection has its listener's filter until `limit_bytes` or `remove_filter`
is called for it. In this time a handshake and a hello get through, and larger messages arrive slowly."""

_HALF_OF_ALL = 0x80000000
_NETWORK_HEADER = 0xFFF00000  # offsets from here on are in the IP header
_SOURCE_4, _SOURCE_6 = _NETWORK_HEADER + 12, _NETWORK_HEADER + 8

Instruction = tuple[int, int, int, int]


def hold_networks(listener: int, networks: Iterable[bytes]) -> bool:
    """Hold new connections from these networks, and from no others.

    Connections that are made from now on inherit the filter, which lets little of their data through. Call
    `limit_bytes` or `remove_filter` for each of them.

    Args:
        listener: the descriptor of a listening tcp socket.
        networks: each is the 4 bytes of an IPv4 address, or the first 8 bytes of an IPv6 address. An empty one stands
            for all networks.

    Returns:
        Whether this system supports it.
    """
    wanted = list(networks)
    return _attach(listener, _hold_program(wanted)) or not wanted


def limit_bytes(connection: int, first: int, most: int) -> bool:
    """Drop what a connection sends beyond `most` bytes. A packet that begins before the limit passes whole.

    Args:
        connection: its descriptor.
        first: the sequence number of its first byte.
        most: the limit in bytes.

    Returns:
        Whether this system supports it.
    """
    return _attach(connection, _limit_program(first, most))


def remove_filter(socket: int) -> None:
    """Remove the filter of a socket."""
    if sys.platform.startswith("linux"):
        try:
            descriptors.set_socket_option(socket, _DETACH, _buffer(bytes(4)))
        except OSError:
            pass  # there was no filter, or the system does not support filters


def _attach(socket: int, instructions: list[Instruction]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    program = [struct.pack("HBBI", *each) for each in instructions]
    memory = ctypes.create_string_buffer(b"".join(program))
    described = struct.pack("HP", len(program), ctypes.addressof(memory))
    try:
        descriptors.set_socket_option(socket, _ATTACH, _buffer(described))
    except OSError:
        return False
    return True


def _buffer(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))


def _hold_program(networks: list[bytes]) -> list[Instruction]:
    """A filter that drops only first packets. It must pass all others, because new connections inherit it."""
    begin = [(_LOAD_BYTE, 0, 0, _FLAGS), (_IF_SET, 1, 0, _SYN), _SHORTEN]
    if b"" in networks or len(networks) > MAX_NETWORKS:
        return [*begin, _DROP]
    ipv4_rules = [(_LOAD_WORD, 0, 0, _SOURCE_4)]
    ipv6_rules: list[Instruction] = []
    for network in networks:
        words = struct.unpack(f">{len(network) // 4}I", network)
        if len(words) == 1:
            ipv4_rules += [(_IF_EQUAL, 0, 1, words[0]), _DROP]
        else:
            for number, word in enumerate(words):
                others = 2 * (len(words) - number) - 1
                ipv6_rules += [(_LOAD_WORD, 0, 0, _SOURCE_6 + 4 * number), (_IF_EQUAL, 0, others, word)]
            ipv6_rules.append(_DROP)
    ipv4_rules.append(_KEEP)
    version = [(_LOAD_BYTE, 0, 0, _NETWORK_HEADER), (_SHIFT_RIGHT, 0, 0, 4), (_IF_EQUAL, 0, len(ipv4_rules), 4)]
    return [*begin, *version, *ipv4_rules, *ipv6_rules, _KEEP]


def _limit_program(first: int, most: int) -> list[Instruction]:
    """A filter by sequence number. Packets without content (acknowledgements, ends) always pass."""
    return [
        (_LOAD_BYTE, 0, 0, _HEADER_WORDS),  # the upper half of the byte
        (_SHIFT_RIGHT, 0, 0, 2),
        (_AND, 0, 0, 0x3C),
        (_TO_INDEX, 0, 0, 0),
        (_LOAD_LENGTH, 0, 0, 0),
        (_SUBTRACT_INDEX, 0, 0, 0),
        (_IF_EQUAL, 4, 0, 0),
        (_LOAD_WORD, 0, 0, _SEQUENCE),
        (_SUBTRACT, 0, 0, first),
        (_IF_NOT_LESS, 0, 1, most),
        (_IF_NOT_LESS, 0, 1, _HALF_OF_ALL),  # a repeated packet from before the first byte
        _KEEP,
        _DROP,
    ]
