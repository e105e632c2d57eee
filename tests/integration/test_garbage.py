"""Garbage on the port is counted, dropped, and logged at a limited rate. Meanwhile a client works without errors."""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import zmq
from tests.integration.commands import Monitor, SchedulerCommand, cluster, monitor, scheduler
from tests.schema_messages import message_of
from tests.waiting import wait_until

import scaler_client
from scaler_client import Client
from scaler_client.protocol import messages, wire

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def square(x: int) -> int:
    return x * x


class Port:
    """The scheduler, its snapshots, a client that works, and a peer that misbehaves."""

    def __init__(self, daemon: SchedulerCommand, watch: Monitor, client: Client) -> None:
        self.daemon = daemon
        self.watch = watch
        self.client = client
        self._context = zmq.Context()
        self.peer = self._context.socket(zmq.DEALER)
        self.peer.setsockopt(zmq.LINGER, 0)
        self.peer.connect(daemon.address)

    def dropped(self) -> int:
        return self.watch.next().dropped.get("malformed", 0)

    def settled(self) -> int:
        """A snapshot after the last of the sent bytes was counted: ZeroMQ may take random bytes for messages."""
        counts = [self.dropped()]
        wait_until(lambda: counts.append(self.dropped()) or counts[-1] == counts[-2])
        return counts[-1]

    def answer(self) -> Any:
        """The scheduler's next message to the peer."""
        assert self.peer.poll(SECONDS * 1000), "the scheduler says nothing"
        return wire.decode(self.peer.recv_multipart())

    def all_is_well(self) -> None:
        assert self.client.map(square, [(i,) for i in range(500)]) == [i * i for i in range(500)]
        assert self.daemon.process.poll() is None
        assert "Traceback" not in self.daemon.log()

    def close(self) -> None:
        self._context.destroy(linger=0)


@contextmanager
def a_port(folder: Path) -> Iterator[Port]:
    with (
        scheduler(folder) as daemon,
        cluster(folder, daemon.address, 2),
        monitor(daemon.monitor_address) as watch,
        Client(daemon.address, timeout_seconds=SECONDS) as client,
    ):
        port = Port(daemon, watch, client)
        try:
            port.all_is_well()
            yield port
        finally:
            port.close()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    with a_port(tmp_path_factory.mktemp("garbage")) as port:
        yield port


@pytest.fixture
def bare_port(tmp_path: Path) -> Iterator[Port]:
    """A separate scene for tests that send bytes.

    ZeroMQ may take some bytes for frames of its first protocol, which are counted late.
    """
    with a_port(tmp_path) as port:
        yield port


def hello(version: int = 1, incarnation: int = 4711) -> list[Any]:
    message = messages.Hello(messages.Role.CLIENT, incarnation, "3", "0", "host", 1, protocol_version=version)
    return list(wire.encode(message))


def test_random_bytes_on_the_tcp_port(bare_port: Port) -> None:
    host, _, number = bare_port.daemon.address.removeprefix("tcp://").rpartition(":")
    rng = random.Random(1)
    for _ in range(30):
        with socket.create_connection((host, int(number))) as connection:
            try:
                connection.sendall(rng.randbytes(rng.randrange(1, 100_000)))
                connection.sendall(b"\xff" + struct.pack(">Q", 1 << 60) + b"\x7f")
            except OSError:
                continue  # the scheduler has closed the connection
    bare_port.all_is_well()


def test_a_zmtp_frame_of_a_huge_announced_size(bare_port: Port) -> None:
    host, _, number = bare_port.daemon.address.removeprefix("tcp://").rpartition(":")
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)
    ready = b"\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
    with socket.create_connection((host, int(number))) as connection:
        connection.sendall(greeting + ready + b"\x02" + struct.pack(">Q", 1 << 62) + b"x" * 1000)
        bare_port.all_is_well()


@pytest.mark.parametrize("connected", [False, True], ids=["stranger", "known client"])
def test_random_frames_are_counted(port: Port, connected: bool) -> None:
    rng = random.Random(2)
    before = port.settled()
    if connected:
        port.peer.send_multipart(hello())
        assert isinstance(port.answer(), messages.Welcome)
    for number in range(300):
        port.peer.send_multipart([rng.randbytes(rng.randrange(0, 200)) for _ in range(1 + number % 3)])
        answer = port.answer()
        while isinstance(answer, messages.HeartbeatEcho):
            answer = port.answer()
        assert isinstance(answer, messages.Error)
    port.all_is_well()
    wait_until(lambda: port.dropped() - before == 300)


ROOT = 1 << 32 | 1 << 48
"""The pointer to a Message: a struct of one data and one pointer word."""
RESULTS: dict[str, Any] = {"clients": [1], "ids": [1], "attempts": [1], "durations": [1], "sizes": [0]}

HOSTILE = {
    "empty": b"",
    "header alone": struct.pack("<II", 0, 0),
    "half a header": b"\0\0\0",
    "huge segment count": struct.pack("<II", 0xFFFFFFFF, 1),
    "huge segment size": struct.pack("<II", 0, 0xFFFFFFFF) + bytes(64),
    "pointer to itself": struct.pack("<IIQ", 0, 1, 0xFFFFFFFC | 1 << 32 | 1 << 48),
    "pointer beyond the end": struct.pack("<IIQ", 0, 1, 0x1FFFFFFF << 2 | 1 << 32 | 1 << 48),
    "far pointer to nowhere": struct.pack("<IIQ", 0, 1, 2 | 5 << 3 | 77 << 32),
    "unknown union tag": struct.pack("<IIQQQ", 0, 3, ROOT, 999, 0),
    "submit with a list of 2^29 ids": struct.pack("<IIQQQQ", 0, 4, ROOT, 9, 1 << 48, 1 | (0x1FFFFFFF << 3 | 5) << 32),
    "submit with a list of 2^29 voids": struct.pack("<IIQQQQ", 0, 4, ROOT, 9, 1 << 48, 1 | (0x1FFFFFFF << 3 | 0) << 32),
    "heartbeat with 2^29 workers": struct.pack(
        "<IIQQQQQQQ", 0, 7, ROOT, 5, 3 << 32 | 1 << 48, 0, 0, 0, 1 | (0x1FFFFFFF << 3 | 7) << 32
    ),
    "submit without rows": message_of("submit", ids=[]),
    "ids that descend": message_of("submit", ids=[2, 1], functions=[1], sizes=[0]),
    "an id of 64 bits": message_of("submit", ids=[(1 << 64) - 1], functions=[1], sizes=[0]),
    "sizes that lie": message_of("submit", ids=[1, 2], functions=[1], sizes=[0xFFFFFFFF], payload=b"x"),
    "columns that differ": message_of("submit", ids=[1, 2, 3], functions=[1, 1], sizes=[0]),
    "large payloads that are not there": message_of("submit", ids=[1], functions=[1], sizes=[0], large=[0]),
    "large row out of range": message_of("submit", ids=[1], functions=[1], sizes=[0], large=[0xFFFFFFFF]),
    "an unknown outcome": message_of("results", **RESULTS, outcomes=[200]),
    "a message for peers": message_of("resolved", ids=[1], outcomes=[0], sizes=[0]),
    "a function without its bytes": message_of("function", number=1, name="f", kind="cloudpickle"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_messages(port: Port, name: str) -> None:
    port.peer.send(HOSTILE[name])
    answer = port.answer()
    assert isinstance(answer, messages.Error) and answer.text
    port.all_is_well()


def test_hostile_messages_are_counted(port: Port) -> None:
    before = port.dropped()
    for hostile in HOSTILE.values():
        port.peer.send(hostile)
    wait_until(lambda: port.dropped() - before == len(HOSTILE))
    for _ in HOSTILE:
        port.answer()
    port.all_is_well()


def test_truncated_messages(port: Port) -> None:
    whole = bytes(wire.encode(messages.Submit([1, 2, 3], [1, 2, 3], [b"a", b"bb", b"ccc"]))[0])
    for length in range(0, len(whole), 4):
        port.peer.send(whole[:length])
        assert isinstance(port.answer(), messages.Error)
    port.all_is_well()


LEGAL_BUT_WRONG = {
    "a function never sent": [message_of("submit", ids=[1], functions=[99], sizes=[0])],
    "a worker's message": [message_of("results", **RESULTS, outcomes=[0])],
    "an agent's message": [message_of("workerDied", incarnation=3, pid=1, cause="none")],
}


@pytest.mark.parametrize("name", LEGAL_BUT_WRONG)
def test_legal_messages_in_a_wrong_state_get_an_error(port: Port, name: str) -> None:
    port.peer.send_multipart(hello())
    assert isinstance(port.answer(), messages.Welcome)
    port.peer.send_multipart(LEGAL_BUT_WRONG[name])
    answer = port.answer()
    assert isinstance(answer, messages.Error) and answer.text
    port.all_is_well()


def test_another_protocol_version_is_refused_by_name(port: Port) -> None:
    port.peer.send_multipart(hello(version=99))
    refused = port.answer()
    assert isinstance(refused, messages.Refused)
    assert refused.protocol_version == 1 and "99" in refused.text and "1" in refused.text


def test_a_client_of_another_protocol_version(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    real = scaler_client.io.connection._hello

    def newer(worker: int) -> messages.Hello:
        message = real(worker)
        message.protocol_version = 99
        return message

    monkeypatch.setattr(scaler_client.io.connection, "_hello", newer)
    with pytest.raises(ConnectionError, match=r"protocol version 1\b.*protocol version 99 is not 1"):
        Client(port.daemon.address, timeout_seconds=SECONDS)


def test_a_peer_writes_no_lines_of_its_own_into_the_log(port: Port) -> None:
    name = "app\n[ERROR]2026-03-19 12:16:10-0400: all is lost\x1b[2J"
    message = messages.Hello(messages.Role.CLIENT, 4712, "3", "0", "host\r", 1, name=name)
    for _ in range(2):
        port.peer.send_multipart(wire.encode(message))
        assert isinstance(port.answer(), messages.Welcome)
    assert port.daemon.log().count("client app") == 1, "a repeated hello is logged once"
    line = port.daemon.logged(r"(.*app.*)")
    assert r"client app\n[ERROR]2026" in line and r"lost\x1b[2J" in line and line.endswith(r" on host\r")


def test_the_log_is_not_flooded(bare_port: Port) -> None:
    for _ in range(5000):
        bare_port.peer.send(b"junk")
    wait_until(lambda: bare_port.dropped() == 5000)
    assert 1 <= bare_port.daemon.log().count("malformed") < 60
    for _ in range(5000):
        bare_port.answer()
    bare_port.all_is_well()


def test_the_scheduler_never_unpickles(port: Port) -> None:
    """A function's bytes that end the process that unpickles them."""
    port.peer.send_multipart(hello())
    port.answer()
    bomb = b"cos\n_exit\n(I1\ntR."
    port.peer.send_multipart([message_of("function", number=1, name="bomb", kind="cloudpickle"), bomb])
    port.peer.send_multipart([message_of("heartbeat", sequence=5)])
    answer = port.answer()
    assert isinstance(answer, messages.HeartbeatEcho) and answer.sequence == 5
    port.all_is_well()


def test_random_large_frames_behind_a_message(port: Port) -> None:
    port.peer.send_multipart([bytes(wire.encode(messages.Heartbeat(1))[0]), os.urandom(1 << 20)])
    port.answer()
    port.all_is_well()
