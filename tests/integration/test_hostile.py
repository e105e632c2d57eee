"""Beside peers that mean harm a client of the real scheduler works on, and the scheduler says what it has noticed."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from tests.integration.commands import Monitor, SchedulerCommand, cluster, monitor, scheduler
from tests.waiting import wait_until

from scaler_client import Client, messages, wire

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
        host, _, port = self.daemon.address.removeprefix("tcp://").rpartition(":")
        return socket.create_connection((host, int(port)), SECONDS)

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
    """The first of this kind."""
    answers: list[Any] = []
    while not answers or not isinstance(answers[-1], kind):
        assert peer.poll(SECONDS * 1000), f"no {kind.__name__} within {SECONDS} s, only {answers}"
        answers.append(wire.decode(peer.recv_multipart()))
    return answers[-1]


def test_connections_that_say_nothing_and_messages_that_stop_in_the_middle(scene: Scene) -> None:
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


def test_who_floods_is_muted_and_asked_for_its_hello_afterwards(scene: Scene) -> None:
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


def test_who_says_the_hello_of_another_is_told_that_it_is_here(scene: Scene) -> None:
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
    assert refused == messages.Error("incarnation 815 is here already, on another connection")
    assert answer_of(owner, messages.HeartbeatEcho).sequence in (0, 7)
    scene.all_is_well()


def test_subscriptions_to_what_is_not_published(scene: Scene) -> None:
    subscriber = scene.peer(scene.daemon.monitor_address, zmq.XSUB)
    for number in range(900):
        subscriber.send(b"\1topic %d" % number)
    scene.all_is_well()
    before = scene.watch.next().sequence
    assert scene.watch.next().sequence > before
    subscriber.send(b"\1snapshot")
    assert subscriber.poll(SECONDS * 1000)


def test_who_subscribes_without_end_is_cut(scene: Scene) -> None:
    flooder = scene.peer(scene.daemon.monitor_address, zmq.XSUB)
    before = scene.watch.next().dropped.get("connections", 0)
    for number in range(5000):
        flooder.send(b"\1topic %d" % number)
    wait_until(lambda: scene.watch.next().dropped.get("connections", 0) > before, SECONDS)
    flooder.close()
    scene.all_is_well()
    scene.daemon.logged(r"(was cut: it subscribes without end)")
