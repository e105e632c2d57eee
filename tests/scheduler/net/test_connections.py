"""Connections beyond the limits, on real sockets, with the events that ZeroMQ reports."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from scaler_scheduler.net.connections import (
    LOCAL_MONITORS,
    ConnectionLimits,
    Connections,
    Listener,
    connections_within_files,
)

LIMITS: dict[str, Any] = {"total": 100, "per_address": 100, "per_second": 100, "idle_timeout_seconds": 60.0}


class Scene:
    """A listening socket. The test accepts its connections in place of ZeroMQ."""

    def __init__(self, family: int, address: Any, **limits: Any) -> None:
        self.connections = Connections(ConnectionLimits(**dict(LIMITS, **limits)))
        self.bound = socket.socket(family)
        self.bound.bind(address)
        self.bound.listen(100)
        self.family = family
        self.listener = Listener(is_for_peers=True)
        self.connections.on_listening(self.listener, self.bound.fileno())
        self.accepted: list[socket.socket] = []

    def connect(self, now: float = 0.0, source: str = "", seconds: float = 5.0) -> socket.socket:
        client = socket.socket(self.family)
        client.settimeout(seconds)
        if source:
            client.bind((source, 0))
        try:
            client.connect(self.bound.getsockname())
        except BaseException:
            client.close()
            raise
        self.accepted.append(self.bound.accept()[0])
        self.connections.on_accepted(self.listener, self.accepted[-1].fileno(), now)
        return client

    def close(self) -> None:
        for each in (self.bound, *self.accepted):
            each.close()


@pytest.fixture
def scenes() -> Iterator[list[Scene]]:
    made: list[Scene] = []
    yield made
    for scene in made:
        scene.close()


def tcp(scenes: list[Scene], **limits: Any) -> Scene:
    scenes.append(Scene(socket.AF_INET, ("127.0.0.1", 0), **limits))
    return scenes[-1]


def is_cut(client: socket.socket) -> bool:
    """Whether the peer has ended the connection."""
    client.settimeout(0.05)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except socket.timeout:
        return False


def test_connection_beyond_the_limit_is_cut(scenes: list[Scene]) -> None:
    scene = tcp(scenes, total=2)
    with scene.connect() as first, scene.connect() as second, scene.connect() as third:
        assert [is_cut(each) for each in (first, second, third)] == [False, False, True]
        assert scene.connections.cut_count == 1 and len(scene.connections) == 2
        [line] = scene.connections.pop_log_lines()
        assert "there are 2 already (--connection-limit, or open files)" in line
        assert scene.connections.pop_log_lines() == []
        scene.connections.on_disconnected(scene.listener, scene.accepted[0].fileno())
        with scene.connect() as fourth:
            assert not is_cut(fourth)


def test_limit_of_one_address_does_not_affect_others(scenes: list[Scene]) -> None:
    scene = tcp(scenes, per_address=1)
    with scene.connect(source="127.0.0.2") as first, scene.connect(source="127.0.0.2") as second:
        with scene.connect(source="127.0.0.3") as other:
            assert [is_cut(each) for each in (first, second, other)] == [False, True, False]
    assert "127.0.0.2 has 1 already (--address-connection-limit)" in scene.connections.pop_log_lines()[0]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere they are cut")
def test_address_that_connects_too_often_is_held(scenes: list[Scene]) -> None:
    scene = tcp(scenes, per_second=2)
    begun = [scene.connect(10.0, "127.0.0.2") for _ in range(3)]
    assert not any(map(is_cut, begun)), "accepted connections are not cut"
    assert "more than 2 connections in a second from 127.0.0.2" in scene.connections.pop_log_lines()[0]
    with pytest.raises(socket.timeout):
        scene.connect(10.1, "127.0.0.2", seconds=0.2)
    with scene.connect(10.1, "127.0.0.3", seconds=0.2) as other:
        assert not is_cut(other)
    begun[0].sendall(b"still")
    assert scene.accepted[0].recv(5) == b"still"
    scene.connections.check(10.9)
    with pytest.raises(socket.timeout):
        scene.connect(10.9, "127.0.0.2", seconds=0.2)
    scene.connections.check(11.0)
    with scene.connect(11.0, "127.0.0.2", seconds=5) as later:
        assert not is_cut(later)
    for each in begun:
        each.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere they are cut")
def test_connections_that_end_at_once_are_counted_for_the_busiest_address(scenes: list[Scene]) -> None:
    scene = tcp(scenes, per_second=5)
    nothing = os.dup(scene.bound.fileno())
    os.close(nothing)
    with scene.connect(1.0, "127.0.0.2"):
        for _ in range(5):
            scene.connections.on_accepted(scene.listener, nothing, 1.0)
        with pytest.raises(socket.timeout):
            scene.connect(1.1, "127.0.0.2", seconds=0.2)
        scene.connect(1.1, "127.0.0.3").close()


def test_ipv6_limits_apply_to_networks(scenes: list[Scene]) -> None:
    try:
        scenes.append(Scene(socket.AF_INET6, ("::1", 0), per_second=1, per_address=2))
    except OSError:
        pytest.skip("no IPv6 here")
    scene = scenes[-1]
    first, second = scene.connect(1.0), scene.connect(1.0)
    if sys.platform.startswith("linux"):
        with pytest.raises(socket.timeout):
            scene.connect(1.0, seconds=0.2)
    scene.connections.check(2.0)
    with scene.connect(2.0) as third:
        assert is_cut(third) and not is_cut(first) and not is_cut(second)
    first.close()
    second.close()


def test_ipc_connections_count_only_in_the_total(scenes: list[Scene], tmp_path: Any) -> None:
    scene = Scene(socket.AF_UNIX, str(tmp_path / "socket"), total=2, per_address=1, per_second=1)
    scenes.append(scene)
    with scene.connect(1.0) as first, scene.connect(1.0) as second, scene.connect(1.0) as third:
        assert [is_cut(each) for each in (first, second, third)] == [False, False, True]


def test_ipc_monitor_can_connect_when_the_limit_is_reached(scenes: list[Scene], tmp_path: Any) -> None:
    scene = Scene(socket.AF_UNIX, str(tmp_path / "monitor"), total=0)
    scenes.append(scene)
    scene.listener.is_for_peers = False
    clients = [scene.connect() for _ in range(LOCAL_MONITORS + 1)]
    assert [is_cut(each) for each in clients] == [False] * LOCAL_MONITORS + [True]
    for each in clients:
        each.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the system does not tell")
def test_silent_connection_is_cut(scenes: list[Scene]) -> None:
    scene = tcp(scenes, idle_timeout_seconds=0.3)
    with scene.connect(0.0) as silent, scene.connect(0.0) as speaking:
        let_pass(0.35)
        speaking.sendall(b"x")
        scene.connections.check(0.35)
        assert is_cut(silent) and not is_cut(speaking)
        assert "nothing has come for 0.3 s" in scene.connections.pop_log_lines()[0]
        assert scene.connections.cut_count == 1
        speaking.sendall(b"x")
        scene.connections.check(0.45)  # ZeroMQ has not said yet that it is gone
        assert scene.connections.cut_count == 1 and not scene.connections.pop_log_lines()


def let_pass(seconds: float) -> None:
    """Wait without traffic, because the code under test reads the system's clock."""
    silent, other = socket.socketpair()
    with silent, other:
        silent.settimeout(seconds)
        with pytest.raises(socket.timeout):
            silent.recv(1)


def test_reused_descriptor_is_left_alone(scenes: list[Scene]) -> None:
    scene, other = tcp(scenes, total=0), tcp(scenes)
    with other.connect() as client:
        scene.connections.on_accepted(scene.listener, other.accepted[0].fileno(), 0.0)
        assert not is_cut(client) and scene.connections.cut_count == 0


def test_sockets_stay_non_blocking(scenes: list[Scene]) -> None:
    """A blocking socket would stop ZeroMQ's thread. PyPy's socket objects make a socket blocking."""
    scene = tcp(scenes, per_second=1, idle_timeout_seconds=0.01)
    scene.bound.setblocking(False)
    numbers = []
    clients = [socket.create_connection(scene.bound.getsockname()) for _ in range(2)]
    for _ in clients:
        select.select([scene.bound], [], [])
        accepted, _ = scene.bound.accept()
        accepted.setblocking(False)
        scene.accepted.append(accepted)
        numbers.append(accepted.fileno())
        scene.connections.on_accepted(scene.listener, numbers[-1], 1.0)
    scene.connections.check(3.0)
    assert [os.get_blocking(each) for each in (scene.bound.fileno(), *numbers)] == [False] * 3
    for client in clients:
        client.close()


def test_closed_listener_removes_its_connections(scenes: list[Scene]) -> None:
    scene = tcp(scenes)
    with scene.connect(), scene.connect():
        assert len(scene.connections) == 2
        scene.connections.on_closed(scene.listener)
        assert len(scene.connections) == 0


def test_open_files_limit_connections() -> None:
    assert connections_within_files(100_000, 1024) == 960
    assert connections_within_files(500, 1024) == 500
    assert connections_within_files(500, 30) == 16
