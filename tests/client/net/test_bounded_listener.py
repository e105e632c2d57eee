"""The bound of the connections to a data address, with real sockets."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
import zmq
from tests.waiting import wait_until

from scaler_client.net.bounded_listener import PAUSE_SECONDS, BoundedListener, is_file_shortage

MOST = 4


class Port:
    """A bound socket that answers each message."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.now = 0.0
        self.socket = context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.number = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{self.number}"
        self.listener = BoundedListener(self.socket, self.endpoint, MOST, lambda: self.now)

    def is_closed(self) -> bool:
        self.listener.check()
        return self.listener.bind_at != float("inf")

    def is_open(self) -> bool:
        self.now += PAUSE_SECONDS  # ZeroMQ may need more than one attempt
        return not self.is_closed()

    def serve(self) -> None:
        self.listener.check()
        with suppress(zmq.Again):
            while True:
                self.socket.send_multipart(self.socket.recv_multipart(zmq.NOBLOCK))


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def port(context: zmq.Context[zmq.Socket[bytes]]) -> Iterator[Port]:
    port = Port(context)
    yield port
    port.listener.close()


def connect(port: Port, count: int, scan: ExitStack) -> list[socket.socket]:
    return [scan.enter_context(socket.create_connection(("127.0.0.1", port.number), 10)) for _ in range(count)]


def test_too_many_connections_end_and_the_address_opens_again(
    port: Port, context: zmq.Context[zmq.Socket[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    honest = context.socket(zmq.DEALER)
    honest.setsockopt(zmq.RCVTIMEO, 50)
    honest.connect(port.endpoint)

    def is_answered() -> bool:
        honest.send(b"x")
        port.serve()
        with suppress(zmq.Again):
            return bool(honest.recv() == b"x")
        return False

    wait_until(is_answered)
    for _ in range(2):
        with ExitStack() as scan:
            cut = connect(port, MOST + 1, scan)
            wait_until(port.is_closed)
            for each in cut:
                each.settimeout(10)
                with suppress(ConnectionResetError):
                    while each.recv(100):  # ZeroMQ's greeting
                        pass
        wait_until(port.is_open)
        wait_until(is_answered, what="the peer has connected again")
    assert len(caplog.records) == 1, "it is logged at most once a minute"
    assert "more than 4 connections" in caplog.text


def test_connections_that_have_ended_do_not_count(port: Port) -> None:
    for _ in range(5):
        with ExitStack() as scan:
            connect(port, MOST, scan)
            wait_until(lambda: not port.is_closed() and len(port.listener._open) == MOST)
        wait_until(lambda: not port.is_closed() and not port.listener._open)


def test_another_process_has_the_port_meanwhile(port: Port) -> None:
    port.listener.end_connections("a test")
    port.listener.end_connections("it is closed already")

    def is_taken() -> bool:
        with suppress(OSError):
            other.bind(("127.0.0.1", port.number))
            return True
        return False

    with socket.socket() as other:
        wait_until(is_taken)
        other.listen()
        for _ in range(3):
            assert not port.is_open()
    wait_until(port.is_open)


def test_which_errors_are_a_shortage() -> None:
    assert is_file_shortage(OSError(errno.EMFILE, "x")) and is_file_shortage(OSError(errno.ENFILE, "x"))
    assert not is_file_shortage(OSError(errno.ENOENT, "x"))
