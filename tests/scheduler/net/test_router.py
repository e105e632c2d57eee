"""Every method that receives from the ROUTER socket adds the sender's user, and drops messages of unknown users."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

import scaler_scheduler
from scaler_scheduler.commands.addresses import parse_bind_address
from scaler_scheduler.net.connections import ConnectionLimits
from scaler_scheduler.net.router import Router, ZmqContext
from scaler_scheduler.net.zap import new_key_pair

SECONDS = 30
ARGUMENTS: dict[str, tuple[int, ...]] = {"wait_up_to": (1,)}
"""The arguments of methods, by name."""


def receiving_methods() -> list[str]:
    """The public methods of the router that return a message."""
    methods = inspect.getmembers(Router, lambda each: callable(each) or isinstance(each, property))
    wanted = ("list[bytes]", "list[bytes] | None")
    return [
        name
        for name, method in methods
        if not name.startswith("_")
        and not isinstance(method, property)
        and inspect.signature(method).return_annotation in wanted
    ]


class Access:
    """Accepts all keys. A user is its public key. Only messages of users in `allowed` are accepted."""

    def __init__(self) -> None:
        self.public, self.secret = new_key_pair()
        self.allowed: frozenset[bytes] = frozenset()

    def user(self, domain: bytes, key: bytes) -> bytes:
        return key.hex().encode()


class Scene:
    def __init__(self) -> None:
        self.access = Access()
        self._context = ZmqContext(1, ConnectionLimits(100, 100, 1000, 60.0), self.access)
        self.router = self._context.bind_router(parse_bind_address("tcp://127.0.0.1:*"), 1 << 20)
        self._peers: Any = zmq.Context()

    def peer(self) -> tuple[Any, bytes]:
        """A connected socket and its user."""
        peer = self._peers.socket(zmq.DEALER)
        public, secret = new_key_pair()
        peer.curve_serverkey = self.access.public
        peer.curve_publickey, peer.curve_secretkey = public, secret
        peer.connect(str(self.router.address))
        return peer, public.hex().encode()

    def next(self, way: str) -> list[bytes]:
        """The next message that this method returns."""
        for _ in range(SECONDS * 1000):
            frames: list[bytes] | None = getattr(self.router, way)(*ARGUMENTS.get(way, ()))
            if frames is not None:
                return frames
            self.router._socket.poll(1)
        raise AssertionError(f"{way} returned no message")

    def close(self) -> None:
        self._peers.destroy(linger=0)
        self.router.close()
        self._context.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def test_all_receiving_methods_are_tested() -> None:
    assert set(receiving_methods()) == {"wait", "wait_up_to", "receive"}


@pytest.mark.parametrize("way", receiving_methods())
def test_route_contains_the_user_and_unknown_users_are_rejected(scene: Scene, way: str) -> None:
    stranger, _ = scene.peer()
    peer, user = scene.peer()
    scene.access.allowed = frozenset([user])
    for _ in range(3):
        stranger.send_multipart([b"of a stranger", b"of two frames"])
    while not scene.router.rejected:
        assert getattr(scene.router, way)(*ARGUMENTS.get(way, ())) is None
    peer.send_multipart([b"of a user", b"of two frames"])
    route, *frames = scene.next(way)
    assert frames == [b"of a user", b"of two frames"]
    assert scene.router.user(route) == user.decode()
    assert scene.router.send(route, [b"answer"])
    assert peer.poll(SECONDS * 1000) and peer.recv_multipart() == [b"answer"]


def test_user_of_the_last_rejected_message(scene: Scene) -> None:
    peer, user = scene.peer()
    peer.send(b"not yet")
    assert scene.router.last_rejected_user == ""
    while not scene.router.rejected:
        scene.router.wait_up_to(10)
    assert scene.router.last_rejected_user == user.decode()


def test_connection_with_a_name_of_its_own_is_rejected(scene: Scene) -> None:
    peer, user = scene.peer()
    scene.access.allowed = frozenset([user])
    peer.disconnect(str(scene.router.address))
    peer.setsockopt(zmq.ROUTING_ID, b"12345")
    peer.connect(str(scene.router.address))
    peer.send(b"by another's name")
    while not scene.router.rejected:
        assert scene.router.wait_up_to(1) is None


def test_only_known_classes_receive_from_sockets() -> None:
    """Another call that receives would bypass the check of users."""
    found = set()
    for path in Path(scaler_scheduler.__file__).parent.rglob("*.py"):
        for owner in ast.parse(path.read_text()).body:
            for node in ast.walk(owner):
                if isinstance(node, ast.Attribute) and node.attr.startswith("recv"):
                    found.add((path.name, getattr(owner, "name", "")))
    assert found == {
        ("router.py", "Router"),  # names the method of the socket, once
        ("router.py", "UserCheck"),
        ("monitor_socket.py", "MonitorSocket"),
        ("zap.py", "ZapHandler"),
        ("zap.py", "_warm_up_cffi"),
    }
    assert inspect.getsource(Router).count("recv") == 1
