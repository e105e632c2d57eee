"""The ZAP thread: errors do not end it, and it names the peers of failed handshakes."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
import zmq

from scaler_scheduler.net.connections import ConnectionLimits, Connections, Listener
from scaler_scheduler.net.descriptors import Endpoint
from scaler_scheduler.net.zap import MAIN_DOMAIN, ZapHandler, new_key_pair

SECONDS = 30


class Access:
    """Accepts all keys."""

    def __init__(self) -> None:
        self.public, self.secret = new_key_pair()
        self.allowed = frozenset([b"user"])

    def user(self, domain: bytes, key: bytes) -> bytes:
        return b"user"


def test_error_does_not_stop_authentication(caplog: pytest.LogCaptureFixture) -> None:
    failed: list[str] = []
    has_failed = threading.Event()

    class Failing(Connections):
        def check(self, now: float) -> None:
            if not failed:
                failed.append("look")
                has_failed.set()
                raise ValueError("once")
            super().check(now)

    context: Any = zmq.Context()
    access = Access()
    zap = ZapHandler(context, Failing(ConnectionLimits(100, 100, 100, 60.0)), access)
    try:
        bound, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        zap.watch(bound, is_for_peers=True, has_keys=True)
        zap.require_keys(bound, MAIN_DOMAIN)
        assert has_failed.wait(SECONDS)
        bound.bind("tcp://127.0.0.1:*")
        client.curve_serverkey = access.public
        client.curve_publickey, client.curve_secretkey = new_key_pair()
        client.connect(bound.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
        client.send(b"in")
        assert bound.poll(SECONDS * 1000)
        assert bound.recv_multipart()[1] == b"in"
    finally:
        bound.close(0)
        client.close(0)
        context.term()
    assert "an error in the ZAP thread" in caplog.text


FAILED = struct.pack("=Hi", int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL), 0)
ENDED = struct.pack("=Hi", int(zmq.EVENT_DISCONNECTED), 7)


@pytest.mark.parametrize("batches", [[[FAILED, ENDED]], [[FAILED], [ENDED]]], ids=["at once", "one by one"])
def test_address_of_a_failed_handshake_is_named(batches: list[list[bytes]]) -> None:
    """libzmq reports the end of the connection after the failure. It may come only after the failure was read."""
    context: Any = zmq.Context()
    connections = Connections(ConnectionLimits(100, 100, 100, 60.0))
    zap = ZapHandler(context, connections, Access())
    events, source = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    try:
        events.bind("inproc://events")
        source.connect("inproc://events")
        listener = Listener(is_for_peers=True)
        peer = Endpoint(b"", bytes([192, 0, 2, 1]), 5000)
        connections.on_disconnected = lambda *_: peer  # type: ignore[method-assign]
        for batch in batches:
            for event in batch:
                source.send_multipart([event, b"tcp://"])
            assert events.poll(SECONDS * 1000)
            assert zap._read_events(events, listener)
        assert zap.last_rejection == "192.0.2.1 has no key, or the key of another server"
        assert not listener.has_failed_handshake
    finally:
        events.close(0)
        source.close(0)
        context.term()
