"""The limit of data before the end of a handshake, on real sockets. The test accepts connections in place of ZeroMQ."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import wait_until

from scaler_scheduler.net import handshake_guard
from scaler_scheduler.net.connections import ConnectionLimits, Connections, Listener
from scaler_scheduler.net.handshake_guard import HANDSHAKE_SECONDS, MAX_HANDSHAKE_BYTES, HandshakeGuard

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system has no such filter")

GREETING = bytes(64)
READY = bytes(43)
MAX_PACKET_BYTES = 64 << 10
ALL = 4 << 20


class Scene:
    def __init__(self, has_keys: bool, family: int = socket.AF_INET) -> None:
        self.connections = Connections(ConnectionLimits(100, 100, 100, 60.0))
        self.bound = socket.socket(family)
        self.bound.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self.bound.listen(100)
        self.listener = Listener(is_for_peers=True, handshakes=HandshakeGuard(has_keys))
        self.connections.on_listening(self.listener, self.bound.fileno())
        self.sockets: list[socket.socket] = [self.bound]

    def connect(self, now: float = 0.0) -> tuple[socket.socket, socket.socket]:
        """Both ends of a connection. The accepted end is the second."""
        client = socket.socket(self.bound.family)
        self.sockets.append(client)
        client.connect(self.bound.getsockname())
        accepted, _ = self.bound.accept()
        self.sockets.append(accepted)
        for each in (client, accepted):
            each.setblocking(False)
        self.connections.on_accepted(self.listener, accepted.fileno(), now)
        return client, accepted

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Scene]]:
    # The tests choose the times of the checks. A check that takes long on a busy machine must not put off the next one.
    monkeypatch.setattr(handshake_guard, "_CHECK_COST_FACTOR", 0)
    made: list[Scene] = []
    yield made
    for scene in made:
        scene.close()


class Flow:
    """A stream of bytes that one end sends and the other end reads."""

    def __init__(self, ends: tuple[socket.socket, socket.socket]) -> None:
        self.client, self.accepted = ends
        self.sent = self.received = 0

    def advance(self) -> bool:
        """Send and read. Returns whether all bytes have arrived."""
        while self.sent < ALL:
            try:
                self.sent += self.client.send(bytes(ALL - self.sent))
            except BlockingIOError:
                break
        self.accepted.settimeout(0.1)
        try:
            while self.received < ALL:
                self.received += len(self.accepted.recv(1 << 20))
        except socket.timeout:
            pass
        return self.received == ALL

    def is_held(self) -> bool:
        for _ in range(5):
            if self.advance():
                return False
        return 0 < self.received < MAX_HANDSHAKE_BYTES + MAX_PACKET_BYTES

    def all_comes(self) -> None:
        wait_until(self.advance, 30)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("has_keys, sent", [(False, 108), (True, 301)])
def test_filter_is_removed_after_more_bytes_than_a_handshake(
    scenes: list[Scene], has_keys: bool, sent: int, family: Any
) -> None:
    try:
        scene = Scene(has_keys, family)
    except OSError:
        pytest.skip("no IPv6 here")
    scenes.append(scene)
    flow = Flow(scene.connect())
    flow.accepted.send(bytes(sent - 1 if not has_keys else 246))
    scene.connections.check(1.0)
    assert flow.is_held()
    flow.accepted.send(bytes(1 if not has_keys else 301 - 246))
    scene.connections.check(2.0)
    flow.all_comes()
    assert len(scene.listener.handshakes) == 0


def test_filters_are_removed_when_all_handshakes_have_succeeded(scenes: list[Scene]) -> None:
    scene = Scene(False)
    scenes.append(scene)
    silent, _ = scene.connect()
    flow = Flow(scene.connect())
    flow.accepted.send(GREETING + READY)
    assert flow.is_held()
    scene.connections.check(1.0)
    assert flow.is_held()
    scene.listener.handshakes.succeeded()
    scene.connections.check(2.0)
    flow.all_comes()
    assert len(scene.listener.handshakes) == 1


def test_ambiguous_success_removes_no_filter(scenes: list[Scene]) -> None:
    scene = Scene(False)
    scenes.append(scene)
    one, other = Flow(scene.connect()), Flow(scene.connect())
    for flow in (one, other):
        flow.accepted.send(GREETING + READY)
        flow.advance()
    scene.listener.handshakes.succeeded()
    scene.connections.check(1.0)
    assert one.is_held() and other.is_held()
    one.accepted.send(b"answer")
    scene.connections.check(2.0)
    one.all_comes()
    scene.connections.check(3.0)
    assert other.is_held()


def test_success_of_an_ended_connection_removes_no_filter(scenes: list[Scene]) -> None:
    scene = Scene(False)
    scenes.append(scene)
    flow = Flow(scene.connect())
    flow.accepted.send(GREETING + READY)
    assert flow.is_held()
    ended, accepted = scene.connect()
    number = accepted.fileno()
    accepted.close()
    scene.connections.on_accepted(scene.listener, number, 0.5)
    scene.listener.handshakes.succeeded()
    scene.connections.check(1.0)
    assert flow.is_held()
    scene.connections.on_disconnected(scene.listener, number)
    scene.connections.check(2.0)
    assert flow.is_held()


def test_late_event_does_not_release_the_next_connection(scenes: list[Scene]) -> None:
    scene = Scene(True)
    scenes.append(scene)
    flow = Flow(scene.connect())
    for _ in range(3):
        scene.connections.on_accepted(scene.listener, flow.accepted.fileno(), 0.1)
    assert flow.is_held()


def test_old_connections_are_released_or_cut(scenes: list[Scene]) -> None:
    scene = Scene(False)
    scenes.append(scene)
    slow, old = Flow(scene.connect()), Flow(scene.connect())
    slow.accepted.send(GREETING + READY)
    old.accepted.send(bytes(12))
    for flow in (slow, old):
        flow.advance()
    scene.connections.check(HANDSHAKE_SECONDS)
    assert slow.is_held() and old.is_held()
    assert "bytes instead of a handshake: more is dropped" in scene.connections.pop_log_lines()[0]
    scene.connections.check(HANDSHAKE_SECONDS + 2)
    slow.all_comes()
    assert scene.connections.cut_count == 1
    assert "127.0.0.1 does not speak ZMTP 3, and was cut" in scene.connections.pop_log_lines()[0]


def test_listener_filter_lets_a_hello_through(scenes: list[Scene]) -> None:
    scene = Scene(False)
    scenes.append(scene)
    client, accepted = scene.connect()
    hello = b"h" * 8000
    client.send(hello)
    accepted.settimeout(30)
    assert accepted.recv(len(hello), socket.MSG_WAITALL) == hello
