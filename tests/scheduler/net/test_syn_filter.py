"""The packet filters, interpreted on packets that the test makes."""

from __future__ import annotations

import ipaddress
import struct

import pytest

from scaler_scheduler.net import syn_filter

SYN, ACK = 0x02, 0x10
NETWORK_HEADER = 0xFFF00000


def network(address: str) -> bytes:
    packed = ipaddress.ip_address(address).packed
    return packed if len(packed) == 4 else packed[:8]


def passes(networks: list[bytes], source: str, flags: int) -> bool:
    """Whether a TCP packet with these flags passes. Interprets the instructions of classic BPF that the filters use."""
    address = ipaddress.ip_address(source)
    if address.version == 4:
        header = bytes([0x45]) + bytes(11) + address.packed + bytes(4)
    else:
        header = bytes([0x60]) + bytes(7) + address.packed + bytes(16)
    segment = bytes(13) + bytes([flags]) + bytes(6)
    return lets_through(syn_filter._hold_program(networks), header, segment)


def lets_through(program: list[syn_filter.Instruction], header: bytes, segment: bytes) -> bool:
    """Run the program on a packet: IP header and TCP segment."""
    assert len(program) <= 4096, "the system accepts no longer programs"
    position = accumulator = index = 0
    while True:
        code, if_true, if_false, value = program[position]
        assert max(if_true, if_false) < 256
        position += 1
        packet, offset = (header, value - NETWORK_HEADER) if value >= NETWORK_HEADER else (segment, value)
        if code == 0x30:
            accumulator = packet[offset]
        elif code == 0x20:
            accumulator = struct.unpack_from(">I", packet, offset)[0]
        elif code == 0x80:
            accumulator = len(segment)
        elif code == 0x07:
            index = accumulator
        elif code == 0x54:
            accumulator &= value
        elif code in (0x14, 0x1C):
            accumulator = (accumulator - (value if code == 0x14 else index)) & 0xFFFFFFFF
        elif code == 0x74:
            accumulator >>= value
        elif code == 0x35:
            position += if_true if accumulator >= value else if_false
        elif code == 0x15:
            position += if_true if accumulator == value else if_false
        elif code == 0x45:
            position += if_true if accumulator & value else if_false
        else:
            assert code == 0x06
            return value > 0


HELD = [network(each) for each in ("10.0.0.1", "2001:db8:1:2::7", "192.168.7.9", "2001:db8::1")]


@pytest.mark.parametrize(
    "source, is_held",
    [
        ("10.0.0.1", True),
        ("192.168.7.9", True),
        ("10.0.0.2", False),
        ("2001:db8:1:2::1", True),
        ("2001:db8:1:2:ffff::1", True),
        ("2001:db8:1:3::1", False),
        ("2001:db9:1:2::1", False),
        ("2001:db8::99", True),
    ],
)
def test_first_packets_of_held_networks_are_dropped(source: str, is_held: bool) -> None:
    assert passes(HELD, source, SYN) is not is_held
    assert passes(HELD, source, ACK), "established connections are not affected"


def test_too_many_networks_hold_all() -> None:
    most = [network(f"10.0.{number}.1") for number in range(syn_filter.MAX_NETWORKS)]
    assert not passes(most, "10.0.63.1", SYN) and passes(most, "10.0.64.1", SYN) and passes(most, "::1", SYN)
    ipv6_rules = [network(f"2001:db8:{number}::") for number in range(syn_filter.MAX_NETWORKS)]
    assert not passes(ipv6_rules, "2001:db8:63::1", SYN) and passes(ipv6_rules, "10.0.0.1", SYN)
    assert not passes([*most, network("10.1.0.1")], "10.2.0.1", SYN)


def test_unknown_network_holds_all() -> None:
    assert not passes([b"", network("10.0.0.1")], "::1", SYN) and passes([b""], "10.0.0.9", ACK)


@pytest.mark.parametrize("first", [0, 1, 5000, 0x7FFFFFFF, 0xFFFFFFF0])
def test_limited_connection_passes_packets_that_begin_within_the_limit(first: int) -> None:
    program = syn_filter._limit_program(first, 1000)

    def comes(offset: int, content: int, options: int = 3) -> bool:
        sequence = struct.pack(">I", (first + offset) & 0xFFFFFFFF)
        words = 5 + options
        segment = bytes(4) + sequence + bytes(4) + bytes([words << 4]) + bytes(words * 4 - 13 + content)
        return lets_through(program, bytes(20), segment)

    assert [comes(offset, 1) for offset in (0, 1, 999, 1000, 1 << 20, 0x7FFFFFFF)] == [True] * 3 + [False] * 3
    assert comes(-1, 1) and comes(-5000, 100), "a repeated packet"
    assert comes(0, 60_000) and comes(500, 60_000, options=10)
    assert comes(2000, 0) and comes(2000, 0, options=0), "an acknowledgement"
