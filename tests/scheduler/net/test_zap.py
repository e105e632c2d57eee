"""Errors do not end the ZAP thread."""

from __future__ import annotations

import threading
from typing import Any, List

import pytest
import zmq

from scaler_scheduler.net.connections import ConnectionLimits, Connections
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
    failed: List[str] = []
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
