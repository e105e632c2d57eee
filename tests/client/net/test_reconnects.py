"""The pauses between attempts to connect to a scheduler that cuts handshakes."""

from __future__ import annotations

import select
import socket

import zmq
from tests.waiting import wait_until

from scaler_client.net.curve import MIN_CUT_HANDSHAKES
from scaler_client.net.sockets import FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, ReconnectWatcher

QUIET_SECONDS = 0.5
"""Five times the pause between ZeroMQ's own attempts."""


class CuttingServer:
    """A server that ends each connection at once."""

    def __init__(self) -> None:
        self._bound = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._bound.getsockname()[1]}"
        self.count = 0

    def cut_next(self, seconds: float) -> bool:
        """Return whether a connection came within the time."""
        if not select.select([self._bound], [], [], seconds)[0]:
            return False
        connection, _ = self._bound.accept()
        connection.recv(10)
        connection.close()
        self.count += 1
        return True

    def close(self) -> None:
        self._bound.close()


def test_attempts_slow_down_while_the_scheduler_cuts_handshakes() -> None:
    now = 100.0
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    watched = context.socket(zmq.DEALER)
    watched.setsockopt(zmq.LINGER, 0)
    server = CuttingServer()
    reconnects = ReconnectWatcher(watched, 2.0, server.endpoint, lambda: now)
    try:
        watched.connect(server.endpoint)
        pause = FIRST_PAUSE_SECONDS
        for tries in (MIN_CUT_HANDSHAKES, 1, 1, 1, 1, 1):
            for _ in range(tries):
                assert server.cut_next(30)

            def is_paused() -> bool:
                reconnects.has_reconnected()
                return reconnects._retry_at is not None

            wait_until(is_paused)
            # ZeroMQ may have tried once more before the pause began. It ends a connection only when the socket is used.
            while watched.poll(int(QUIET_SECONDS * 500)) or server.cut_next(0.0):
                pass
            now += 0.99 * pause
            reconnects.retry()
            assert not watched.poll(int(QUIET_SECONDS * 1000)) and not server.cut_next(0.0)
            now += 0.02 * pause
            reconnects.retry()
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        assert reconnects.failure is not None and server.cut_next(30)
    finally:
        reconnects.close()
        watched.close()
        context.term()
        server.close()


def test_without_an_endpoint_the_socket_keeps_its_connection() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    watched = context.socket(zmq.DEALER)
    watched.setsockopt(zmq.LINGER, 0)
    server = CuttingServer()
    reconnects = ReconnectWatcher(watched)
    try:
        watched.connect(server.endpoint)
        for _ in range(MIN_CUT_HANDSHAKES + 3):
            assert server.cut_next(30)
            reconnects.has_reconnected()
    finally:
        reconnects.close()
        watched.close()
        context.term()
        server.close()
