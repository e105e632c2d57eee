"""Addresses that may not connect for a while: the system drops their first packet before anybody is woken by it.

TCP sends that packet again after a second, and then again: nobody is refused, they wait. Linux lets a process put such
a filter on a socket of its own, without any right. What stands already is not touched: it sends no such packets.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Iterable, List, Tuple

from . import descriptors

MOST_NETWORKS = 64
"""In one filter; of more, all wait."""

_ATTACH, _DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER
_LOAD_BYTE, _LOAD_WORD, _SHIFT_RIGHT = 0x30, 0x20, 0x74
_IF_EQUAL, _IF_SET, _RETURN = 0x15, 0x45, 0x06
_KEEP = (_RETURN, 0, 0, 0xFFFFFFFF)
_DROP = (_RETURN, 0, 0, 0)
_FLAGS, _SYN = 13, 0x02  # where they are in TCP's header, and that of a first packet
_NETWORK_HEADER = 0xFFF00000  # from here on offsets are of IP's header
_SOURCE_4, _SOURCE_6 = _NETWORK_HEADER + 12, _NETWORK_HEADER + 8

Instruction = Tuple[int, int, int, int]


def hold(listener: int, networks: Iterable[bytes]) -> bool:
    """Let nobody connect from these networks any more, from all others everybody.

    Args:
        listener: the number of a listening socket of TCP's.
        networks: each 4 bytes of an IPv4 address, or the first 8 of IPv6 ones; an empty one is everybody's.

    Returns:
        Whether that can be done here.
    """
    if not sys.platform.startswith("linux"):
        return False
    wanted = list(networks)
    program = [struct.pack("HBBI", *each) for each in _program(wanted)]
    memory = ctypes.create_string_buffer(b"".join(program))
    described = struct.pack("HP", len(program), ctypes.addressof(memory))
    try:
        descriptors.set_option(listener, _ATTACH if wanted else _DETACH, _exactly(described))
    except OSError:
        return not wanted  # there was none, or it is a system that has none
    return True


def _exactly(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))


def _program(networks: List[bytes]) -> List[Instruction]:
    """Drops first packets alone, as connections that are being made while it is put in place inherit it."""
    begin = [(_LOAD_BYTE, 0, 0, _FLAGS), (_IF_SET, 1, 0, _SYN), _KEEP]
    if b"" in networks or len(networks) > MOST_NETWORKS:
        return [*begin, _DROP]
    fours = [(_LOAD_WORD, 0, 0, _SOURCE_4)]
    sixes: List[Instruction] = []
    for network in networks:
        words = struct.unpack(f">{len(network) // 4}I", network)
        if len(words) == 1:
            fours += [(_IF_EQUAL, 0, 1, words[0]), _DROP]
        else:
            for number, word in enumerate(words):
                others = 2 * (len(words) - number) - 1
                sixes += [(_LOAD_WORD, 0, 0, _SOURCE_6 + 4 * number), (_IF_EQUAL, 0, others, word)]
            sixes.append(_DROP)
    fours.append(_KEEP)
    version = [(_LOAD_BYTE, 0, 0, _NETWORK_HEADER), (_SHIFT_RIGHT, 0, 0, 4), (_IF_EQUAL, 0, len(fours), 4)]
    return [*begin, *version, *fours, *sixes, _KEEP]
