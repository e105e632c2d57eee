"""Hostile peers of the real scheduler: a client continues to work, and the scheduler logs the attacks."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq
from tests.integration.commands import Monitor, SchedulerCommand, cluster, key_command, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.protocol import messages, wire

SECONDS = 60
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"

pytestmark = pytest.mark.timeout(180)


class Scene:
    def __init__(self, daemon: SchedulerCommand, watch: Monitor, client: Client) -> None:
        self.daemon = daemon
        self.watch = watch
        self.client = client
        self._context = zmq.Context()

    def all_is_well(self) -> None:
        assert self.client.map(pow, [(i, 2) for i in range(2000)]) == [i * i for i in range(2000)]
        assert self.daemon.process.poll() is None
        assert "Traceback" not in self.daemon.log()

    def peer(self, address: str = "", kind: int = zmq.DEALER) -> Any:
        peer = self._context.socket(kind)
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.SNDHWM, 0)
        peer.connect(address or self.daemon.address)
        return peer

    def connection(self) -> socket.socket:
        return connection(self.daemon.address)

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("hostile")
    with (
        scheduler(folder, "--message-size-limit", "64M") as daemon,
        cluster(folder, daemon.address, 2),
        monitor(daemon.monitor_address) as watch,
        Client(daemon.address, timeout_seconds=SECONDS) as client,
    ):
        scene = Scene(daemon, watch, client)
        try:
            yield scene
        finally:
            scene.close()


def hello(incarnation: int) -> list[Any]:
    return list(wire.encode(messages.Hello(messages.Role.CLIENT, incarnation, "3", "0", "host", 1)))


def answer_of(peer: Any, kind: type) -> Any:
    """Return the first message of this kind."""
    answers: list[Any] = []
    while not answers or not isinstance(answers[-1], kind):
        assert peer.poll(SECONDS * 1000), f"no {kind.__name__} within {SECONDS} s, only {answers}"
        answers.append(wire.decode(peer.recv_multipart()))
    return answers[-1]


def test_silent_connections_and_unfinished_messages(scene: Scene) -> None:
    silent = [scene.connection() for _ in range(50)]
    halves = [scene.connection() for _ in range(20)]
    for half in halves:
        half.sendall(GREETING + bytes([4, len(READY)]) + READY + b"\x02" + struct.pack(">Q", 32 << 20) + bytes(1 << 20))
    scene.all_is_well()
    for connection in [*silent, *halves]:
        connection.close()


def test_a_frame_beyond_the_limit_cuts_its_connection(scene: Scene) -> None:
    with scene.connection() as connection:
        connection.sendall(GREETING + bytes([4, len(READY)]) + READY + b"\x02" + struct.pack(">Q", (64 << 20) + 1))
        connection.settimeout(SECONDS)
        try:
            while connection.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
    scene.all_is_well()


def test_a_flooding_peer_is_muted_and_asked_for_its_hello_afterwards(scene: Scene) -> None:
    flooder = scene.peer()
    flooder.send_multipart(hello(4711))
    answer_of(flooder, messages.Welcome)
    beat = list(wire.encode(messages.Heartbeat(1)))
    for _ in range(12_000):
        flooder.send_multipart(beat)
    wait_until(lambda: scene.watch.next().dropped.get("ignored", 0) > 0, SECONDS)
    scene.all_is_well()
    answer_of(flooder, messages.HelloWanted)
    flooder.send_multipart(hello(4711))
    answer_of(flooder, messages.Welcome)
    log = scene.daemon.log()
    assert log.count("wastes the scheduler's time: its messages are dropped for a second") == 1, log


def test_a_hello_with_the_identity_of_a_connected_peer_is_refused(scene: Scene) -> None:
    owner, thief = scene.peer(), scene.peer()
    owner.send_multipart(hello(815))
    answer_of(owner, messages.Welcome)
    thief.send_multipart(hello(815))
    refused = None
    deadline = time.monotonic() + SECONDS
    while refused is None and time.monotonic() < deadline:
        owner.send_multipart(list(wire.encode(messages.Heartbeat(7))))
        if thief.poll(500):
            refused = wire.decode(thief.recv_multipart())
    assert refused == messages.Error("incarnation 815 is already connected by another connection")
    assert answer_of(owner, messages.HeartbeatEcho).sequence in (0, 7)
    scene.all_is_well()


def test_subscriptions_to_unknown_topics(scene: Scene) -> None:
    subscriber = scene.peer(scene.daemon.monitor_address, zmq.XSUB)
    for number in range(900):
        subscriber.send(b"\1topic %d" % number)
    scene.all_is_well()
    before = scene.watch.next().sequence
    assert scene.watch.next().sequence > before
    subscriber.send(b"\1snapshot")
    assert subscriber.poll(SECONDS * 1000)


def test_a_peer_that_subscribes_endlessly_is_cut(scene: Scene) -> None:
    flooder = scene.peer(scene.daemon.monitor_address, zmq.XSUB)
    before = scene.watch.next().dropped.get("connections", 0)
    for number in range(5000):
        flooder.send(b"\1topic %d" % number)
    wait_until(lambda: scene.watch.next().dropped.get("connections", 0) > before, SECONDS)
    flooder.close()
    scene.all_is_well()
    scene.daemon.logged(r"(was cut: it sends too many subscriptions)")


LONG_FRAME = 256 << 20
FIRST_FRAMES = [  # behind a greeting
    GREETING + b"\x02" + struct.pack(">Q", LONG_FRAME),  # NULL, a message
    GREETING + b"\x06" + struct.pack(">Q", LONG_FRAME),  # NULL, a command
    GREETING.replace(b"NULL\0", b"CURVE") + b"\x06" + struct.pack(">Q", LONG_FRAME),  # CURVE
    b"\xff" + struct.pack(">Q", LONG_FRAME) + b"\0",  # ZMTP 1
    b"\xff" + bytes(8) + b"\x7f\x01\x05\x02" + struct.pack(">Q", LONG_FRAME),  # ZMTP 2
]
MAX_GROWTH_BYTES = 48 << 20
"""Bytes of memory for a hundred frames: less than the size of one frame."""


@pytest.mark.parametrize("has_keys", [False, True], ids=["no keys", "keys"])
@pytest.mark.parametrize("is_monitor", [False, True], ids=["router", "monitor"])
def test_long_frames_in_the_place_of_a_handshake_fill_no_memory(
    tmp_path: Path, has_keys: bool, is_monitor: bool
) -> None:
    keys = str(tmp_path / "keys") if has_keys else ""
    options = ["--monitor-address", "tcp://127.0.0.1:*", "--message-size-limit", "512M"]
    if keys:
        key_command("keygen", keys)
        options += ["--keys", keys]
    of_keys = ["--keys", keys] if keys else []
    with (
        scheduler(tmp_path, *options) as daemon,
        cluster(tmp_path, daemon.address, 1, *of_keys),
        Client(daemon.address, timeout_seconds=SECONDS, keys=keys) as client,
        ExitStack() as stack,
    ):
        assert client.map(abs, [(-each,) for each in range(2000)]) == list(range(2000))
        process = psutil.Process(daemon.process.pid)
        before = most = process.memory_info().rss
        address = daemon.monitor_address if is_monitor else daemon.address
        for first in FIRST_FRAMES:
            left = [stack.enter_context(connection(address)) for _ in range(20)]
            for each in left:
                each.sendall(first)
                each.setblocking(False)
            began = time.monotonic()
            while left and time.monotonic() < began + 1.0:  # as long as the attack lasts
                for each in select.select([], left, [], 0.1)[1]:
                    try:
                        each.send(bytes(1 << 20))
                    except BlockingIOError:
                        continue
                    except OSError:
                        left.remove(each)  # cut
                most = max(most, process.memory_info().rss)
            future = client.submit(pow, 3, 2)
            assert future.result(SECONDS) == 9
        with Client(daemon.address, timeout_seconds=SECONDS, keys=keys) as other:  # new clients are accepted
            data = bytes(20 << 20)
            assert other.submit(len, data).result(SECONDS) == len(data)
        assert most - before < MAX_GROWTH_BYTES, f"{(most - before) / 1e6:.0f} MB"
        assert "Traceback" not in daemon.log()


@pytest.mark.parametrize("has_keys", [False, True], ids=["no keys", "keys"])
def test_a_handshake_that_does_not_end_is_cut(tmp_path: Path, has_keys: bool) -> None:
    keys = str(tmp_path / "keys")
    key_command("keygen", keys)
    mechanism = b"CURVE" if has_keys else b"NULL\0"
    with scheduler(tmp_path, *(["--keys", keys] if has_keys else [])) as daemon, ExitStack() as stack:
        beginnings = [b"", GREETING[:20], GREETING, GREETING + b"\x06" + struct.pack(">Q", LONG_FRAME) + bytes(90_000)]
        beginnings.append(b"\xff" + bytes(8) + b"\x7f\x01\x05\x02" + struct.pack(">Q", LONG_FRAME))  # ZMTP 2
        connections = [stack.enter_context(connection(daemon.address)) for _ in beginnings]
        for each, beginning in zip(connections, beginnings, strict=True):
            each.sendall(beginning.replace(b"NULL\0", mechanism))
        for each in connections:
            each.settimeout(SECONDS)
            try:
                while each.recv(1 << 16):
                    pass
            except ConnectionResetError:
                pass
        if not has_keys:
            daemon.logged(r"(a connection from 127\.0\.0\.1 does not speak ZMTP 3, and was cut)")


def connection(address: str) -> socket.socket:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), SECONDS)
