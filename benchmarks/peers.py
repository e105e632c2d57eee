"""Fake clients and workers: a welcomed DEALER, and the batches that they read and write."""

from __future__ import annotations

import os
import platform
import secrets
from array import array
from collections.abc import Iterator, Sequence

import zmq

from scaler_client.net.curve import apply_keys, load_keys
from scaler_client.protocol.columns import BatchReader, write_batch
from scaler_client.protocol.messages import (
    Function,
    Heartbeat,
    HeartbeatEcho,
    Hello,
    HostResource,
    Message,
    Options,
    Received,
    Role,
    Submit,
    Welcome,
)
from scaler_client.protocol.wire import decode, encode

from .processes import PATIENCE_SECONDS

# Ordinals of the schema's union.
HEARTBEAT_ECHO, DISPATCH, RESULTS, RESOLVED, STARTED, CREDIT = 6, 10, 11, 12, 13, 25
FUNCTION_NUMBER = 1

_SAID_EVERY = 1 << 20
_ALL = 1 << 60
"""After so many results a fake client acknowledges all. Otherwise the scheduler would hold results back."""


class Peer:
    """A connection that the scheduler has welcomed. It sends no heartbeats: give the scheduler long leases."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        address: str,
        role: Role,
        keys: str = "",
        *,
        agent: int = 0,
        resources: Sequence[HostResource] = (),
        waits: bool = True,
    ) -> None:
        """Connect and say hello.

        Args:
            keys: a folder of keys; empty means none.
            agent: the incarnation of a worker's host agent; 0: it has none.
            resources: what the host of an agent has.
            waits: whether to wait for the welcome. Otherwise call `await_welcome` before all else.
        """
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, int(PATIENCE_SECONDS * 1000))
        apply_keys(self.socket, load_keys(keys, role.name.lower()))
        self.socket.connect(address)
        self.incarnation = secrets.randbits(62) + 1
        who = self.incarnation, platform.python_version(), "bench", "bench", os.getpid()
        self.send(Hello(role, *who, agent=agent, resources=tuple(resources)))
        if waits:
            self.await_welcome()

    def await_welcome(self) -> None:
        """Wait until the scheduler has welcomed this peer.

        Raises:
            RuntimeError: the scheduler has answered something else.
        """
        welcome = decode(self.socket.recv_multipart())
        if not isinstance(welcome, Welcome):
            raise RuntimeError(f"the scheduler did not welcome a peer: {welcome}")

    def send(self, message: Message) -> None:
        self.socket.send_multipart(encode(message))


class SubmitTemplate:
    """A Submit that is encoded once; later ones differ in the bytes of the ids alone."""

    def __init__(self, rows: int, payload: bytes, options: Options | None = None) -> None:
        self.rows = rows
        ids = range(rows)
        [frame] = encode(Submit(ids, [FUNCTION_NUMBER], [payload] * rows, options))
        self._head, found, self._tail = bytes(frame).partition(array("Q", ids).tobytes())
        if not found:
            raise RuntimeError("this Submit does not hold its ids as packed little-endian numbers")

    def frame(self, first: int) -> bytes:
        """Return the message with the ids from `first` on."""
        return self._head + array("Q", range(first, first + self.rows)).tobytes() + self._tail


NOTHING = Function(FUNCTION_NUMBER, "nothing", "none", b"nothing")
"""A function that only fake workers can run."""


class FakeClient:
    """Submit the same task again and again, and count the answers without decoding them."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        address: str,
        template: SubmitTemplate,
        keys: str = "",
        function: Function = NOTHING,
    ) -> None:
        self._peer = Peer(context, address, Role.CLIENT, keys)
        self._peer.send(function)
        self._template = template
        self._next_id = 0
        self.socket = self._peer.socket
        self.incarnation = self._peer.incarnation

    def close(self) -> None:
        self._peer.socket.close()

    def worker_count(self) -> int:
        """Ask the scheduler how many workers are connected. No task may be open."""
        self._peer.send(Heartbeat(1))
        while not isinstance(message := decode(self.socket.recv_multipart()), HeartbeatEcho):
            pass
        return message.workers

    def run(self, batches: int, window: int) -> None:
        """Send so many Submits and wait for all answers, with about `window` open tasks at any time."""
        for _ in self.steps(batches, window):
            pass

    def steps(self, batches: int, window: int) -> Iterator[None]:
        """Do what `run` does. Each step ends before the next message is received."""
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
            yield
            frames = receive()
            batch = BatchReader(frames[0])
            if batch.tag in (CREDIT, HEARTBEAT_ECHO, STARTED):
                continue  # far more than the window needs; whether it is there; a task takes long on a busy machine
            if batch.tag != RESOLVED:
                raise RuntimeError(f"not an answer: {decode(frames)}")
            ids = batch.numbers(0, "Q")
            answered += len(ids)
            total += sum(ids)
        if answered != last or total != (first + last - 1) * (last - first) // 2:
            raise RuntimeError("the number of answers is not the number of tasks")


def run_together(clients: Sequence[FakeClient], batches: int, window: int) -> None:
    """Have each client do so many Submits, with about `window` open tasks of all clients at any time."""
    poller = zmq.Poller()
    steps = {client.socket: client.steps(batches, window // len(clients)) for client in clients}
    for socket, step in steps.items():
        poller.register(socket, zmq.POLLIN)
        next(step)
    while steps:
        for socket, _ in poller.poll(int(PATIENCE_SECONDS * 1000)):
            try:
                next(steps[socket])
            except StopIteration:
                poller.unregister(socket)
                del steps[socket]


_MAX_ROWS = 1 << 16
_DURATIONS = array("Q", [1000]) * _MAX_ROWS  # full length, as a worker's are
_LONG_DURATIONS = array("Q", [100_000_000]) * _MAX_ROWS


def echo(frame: bytes, long_function: int = 0) -> bytes | None:
    """Return the Results that answer each task of a Dispatch with its arguments; None for any other message.

    Args:
        long_function: the scheduler's number of a function whose tasks pretend to take 100 ms.
    """
    batch = BatchReader(frame)
    if batch.tag != DISPATCH:
        return None
    ids = batch.numbers(1, "Q")
    durations = _LONG_DURATIONS if long_function and batch.numbers(3, "I")[0] == long_function else _DURATIONS
    return write_batch(
        RESULTS,
        [
            ("Q", batch.numbers(0, "Q")),
            ("Q", ids),
            ("I", batch.numbers(2, "I")),
            ("B", (0,)),
            ("Q", durations[: len(ids)]),
            ("I", batch.numbers(4, "I")),
            ("I", ()),
            ("B", batch.data(6)),
        ],
    )
