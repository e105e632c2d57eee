"""Fake clients and workers: a welcomed DEALER, and the batches that they read and write."""

from __future__ import annotations

import os
import platform
import secrets
from array import array

import zmq

from scaler_client.net.curve import apply_keys, load_keys
from scaler_client.protocol.columns import BatchReader, write_batch
from scaler_client.protocol.messages import Function, Hello, Message, Received, Role, Submit, Welcome
from scaler_client.protocol.wire import decode, encode

from .processes import PATIENCE_SECONDS

# Ordinals of the schema's union.
HEARTBEAT_ECHO, DISPATCH, RESULTS, RESOLVED, CREDIT = 6, 10, 11, 12, 25
FUNCTION_NUMBER = 1

_SAID_EVERY = 1 << 20
_ALL = 1 << 60
"""After so many results a fake client acknowledges all. Otherwise the scheduler would hold results back."""


class Peer:
    """A connection that the scheduler has welcomed. It sends no heartbeats: give the scheduler long leases."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str, role: Role, keys: str = "") -> None:
        """`keys` is a folder of keys; empty means none."""
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        apply_keys(self.socket, load_keys(keys, role.name.lower()))
        self.socket.connect(address)
        self.incarnation = secrets.randbits(62) + 1
        self.send(Hello(role, self.incarnation, platform.python_version(), "bench", "bench", os.getpid()))
        welcome = decode(self.socket.recv_multipart())
        if not isinstance(welcome, Welcome):
            raise RuntimeError(f"{address} did not welcome a {role.name.lower()}: {welcome}")

    def send(self, message: Message) -> None:
        self.socket.send_multipart(encode(message))


class SubmitTemplate:
    """A Submit that is encoded once; later ones differ in the bytes of the ids alone."""

    def __init__(self, rows: int, payload: bytes) -> None:
        self.rows = rows
        ids = range(rows)
        [frame] = encode(Submit(ids, [FUNCTION_NUMBER], [payload] * rows))
        self._head, found, self._tail = bytes(frame).partition(array("Q", ids).tobytes())
        if not found:
            raise RuntimeError("this Submit does not hold its ids as packed little-endian numbers")

    def frame(self, first: int) -> bytes:
        """Return the message with the ids from `first` on."""
        return self._head + array("Q", range(first, first + self.rows)).tobytes() + self._tail


class FakeClient:
    """Submit the same task again and again, and count the answers without decoding them."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], address: str, template: SubmitTemplate, keys: str = ""
    ) -> None:
        self._peer = Peer(context, address, Role.CLIENT, keys)
        self._peer.send(Function(FUNCTION_NUMBER, "nothing", "none", b"nothing"))
        self._template = template
        self._next_id = 0
        self.incarnation = self._peer.incarnation

    def close(self) -> None:
        self._peer.socket.close()

    def run(self, batches: int, window: int) -> None:
        """Send so many Submits and wait for all answers, with about `window` open tasks at any time."""
        rows = self._template.rows
        first = self._next_id
        last = self._next_id = first + batches * rows
        send, receive = self._peer.socket.send, self._peer.socket.recv_multipart
        sent, answered, total = first, first, 0
        said = -_SAID_EVERY
        while answered < last:
            if sent - said >= _SAID_EVERY:
                said = sent
                self._peer.send(Received(_ALL))
            while sent < last and sent - answered < window:
                send(self._template.frame(sent))
                sent += rows
            frames = receive()
            batch = BatchReader(frames[0])
            if batch.tag in (CREDIT, HEARTBEAT_ECHO):
                continue  # far more than the window needs; whether it is there
            if batch.tag != RESOLVED:
                raise RuntimeError(f"not an answer: {decode(frames)}")
            ids = batch.numbers(0, "Q")
            answered += len(ids)
            total += sum(ids)
        if answered != last or total != (first + last - 1) * (last - first) // 2:
            raise RuntimeError("the number of answers is not the number of tasks")


_MAX_ROWS = 1 << 16
_DURATIONS = array("Q", [1000]) * _MAX_ROWS  # full length, as a worker's are


def echo(frame: bytes) -> bytes | None:
    """Return the Results that answer each task of a Dispatch with its arguments; None for any other message."""
    batch = BatchReader(frame)
    if batch.tag != DISPATCH:
        return None
    ids = batch.numbers(1, "Q")
    return write_batch(
        RESULTS,
        [
            ("Q", batch.numbers(0, "Q")),
            ("Q", ids),
            ("I", batch.numbers(2, "I")),
            ("B", (0,)),
            ("Q", _DURATIONS[: len(ids)]),
            ("I", batch.numbers(4, "I")),
            ("I", ()),
            ("B", batch.data(6)),
        ],
    )
