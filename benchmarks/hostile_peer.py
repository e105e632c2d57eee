"""`python -m benchmarks.hostile_peer BEHAVIOUR ADDRESS MONITOR VICTIM RATE`: a peer that behaves in one bad way.

VICTIM is the incarnation of a working client. RATE is in messages a second; 0: as many as possible. Once the process is
ready it runs at niceness `NICENESS`, because a peer on another machine would take no processor time of this one.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import zmq

from scaler_client.protocol.messages import Cancel, Function, Heartbeat, Hello, Message, Role, Submit
from scaler_client.protocol.wire import encode

from .peers import FUNCTION_NUMBER, Peer
from .processes import allow_many_files

HALF_OPEN = 200
"""The number of connections that send nothing."""

HALF_SAID = 50
"""The number of connections that begin a message."""

UNREAD_RESULTS, UNREAD_BYTES = 2000, 16 << 10
"""The number of tasks of the client that never reads, and the size of their results."""

DEAF = 20
"""The number of subscribers that never read."""

LONG_FRAME = 256 << 20
"""Bytes of the frame that is sent instead of a handshake."""

SENT_SECONDS = 3.0
"""How long this frame is sent before the peer reports that it is ready."""

NICENESS = 19

CANCELLED = 1000
"""Unknown tasks in one Cancel."""

_VARIANTS = 500
"""Messages that are made in advance and sent repeatedly."""

_STEP_SECONDS = 0.01
"""The time between two bursts of a limited rate."""

_MAX_LAG_SECONDS = 0.02
"""Messages that are later than this are dropped: a stopped peer must not save up messages."""


def _greeting(mechanism: bytes) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)


_READY_BODY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
_READY = bytes([4, len(_READY_BODY)]) + _READY_BODY
_HALF = b"\x02" + struct.pack(">Q", 64 << 20) + bytes(32 << 20)
"""The header of a frame of 64 MiB, of which half is sent."""

LONG_HANDSHAKES = {"long_handshakes": b"NULL", "long_keyed_handshakes": b"CURVE"}
"""The mechanism in the greeting, by behaviour. RATE is the number of connections."""

Context = zmq.Context[zmq.Socket[bytes]]


def half_open(address: str, stack: ExitStack) -> None:
    for _ in range(HALF_OPEN):
        stack.enter_context(_tcp(address))


def half_message(address: str, stack: ExitStack) -> None:
    for _ in range(HALF_SAID):
        connection = stack.enter_context(_tcp(address))
        connection.sendall(_greeting(b"NULL") + _READY + _HALF)


def long_handshakes(address: str, count: int, mechanism: bytes, stack: ExitStack) -> None:
    """Open connections that send a long frame instead of a handshake, as fast as they can."""
    connections = [stack.enter_context(_tcp(address)) for _ in range(count)]
    for connection in connections:
        connection.sendall(_greeting(mechanism) + b"\x02" + struct.pack(">Q", LONG_FRAME))
        connection.setblocking(False)
    send_long(connections, time.monotonic() + SENT_SECONDS)


def send_long(connections: list[socket.socket], until: float) -> int:
    """Send zeros on all connections until this time of the monotonic clock; return the number of bytes."""
    content = bytes(1 << 20)
    sent = 0
    left = dict.fromkeys(connections, LONG_FRAME)
    while left and time.monotonic() < until:
        for connection in select.select([], left, [], 0.1)[1]:
            try:
                count = connection.send(content[: left[connection]])
            except BlockingIOError:
                continue
            except OSError:  # cut
                count = left[connection]
            else:
                sent += count
            left[connection] -= count
            if not left[connection]:
                del left[connection]
    return sent


def unread(context: Context, address: str) -> None:
    """A client with large results that reads none of them."""
    peer = Peer(context, address, Role.CLIENT)
    peer.send(Function(FUNCTION_NUMBER, "nothing", "none", b"nothing"))
    for begin in range(0, UNREAD_RESULTS, 100):
        peer.send(Submit(range(begin, begin + 100), [FUNCTION_NUMBER], [bytes(UNREAD_BYTES)] * 100))


def deaf(context: Context, monitor: str) -> None:
    """Subscribers to all topics that never read."""
    for _ in range(DEAF):
        subscriber = context.socket(zmq.SUB)
        subscriber.setsockopt(zmq.LINGER, 0)
        subscriber.setsockopt(zmq.RCVHWM, 1)
        subscriber.subscribe(b"")
        subscriber.connect(monitor)


def _tcp(address: str) -> socket.socket:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)))


def heartbeats(peer: Peer) -> Iterator[bytes]:
    return _one(Heartbeat(1))


def hellos(peer: Peer) -> Iterator[bytes]:
    return itertools.cycle([_frame(_hello(secrets.randbits(62) + 1)) for _ in range(_VARIANTS)])


def malformed(peer: Peer) -> Iterator[bytes]:
    chance = random.Random(1)
    return itertools.cycle([chance.randbytes(chance.randrange(300)) for _ in range(_VARIANTS)])


def submits(peer: Peer) -> Iterator[bytes]:
    """Submits of one tiny task each, by a client that reads no answers."""
    peer.send(Function(FUNCTION_NUMBER, "nothing", "none", b"nothing"))
    for number in itertools.count():
        yield _frame(Submit([number], [FUNCTION_NUMBER], [b"tiny"]))


def cancels(peer: Peer) -> Iterator[bytes]:
    return _one(Cancel(list(range(CANCELLED))))


FLOODS: dict[str, Callable[[Peer], Iterator[bytes]]] = {
    "heartbeats": heartbeats,
    "hellos": hellos,
    "malformed": malformed,
    "submits": submits,
    "cancels": cancels,
}


def _one(message: Message) -> Iterator[bytes]:
    return itertools.repeat(_frame(message))


def _frame(message: Message) -> bytes:
    [frame] = encode(message)
    return bytes(frame)


def flood(context: Context, address: str, kind: str, rate: int) -> None:
    """A client that sends messages of one kind and never reads the answers."""
    peer = Peer(context, address, Role.CLIENT)
    frames = FLOODS[kind](peer)
    _ready()
    _send(peer.socket.send, frames, rate)


def strangers(context: Context, address: str, rate: int) -> None:
    """Messages of a peer that never sent a hello."""
    stranger = _dealer(context, address)
    _ready()
    _send(stranger.send, _one(Submit(range(100), [FUNCTION_NUMBER], [b"tiny"] * 100)), rate)


def replays(context: Context, address: str, victim: int, rate: int) -> None:
    """The hello of a working client, sent on another connection."""
    thief = _dealer(context, address)
    _ready()
    _send(thief.send, _one(_hello(victim)), rate)


def subscriptions(context: Context, monitor: str, rate: int) -> None:
    """Subscriptions to more and more topics at the monitor address."""
    subscriber = context.socket(zmq.XSUB)
    subscriber.setsockopt(zmq.LINGER, 0)
    subscriber.setsockopt(zmq.SNDHWM, 1000)
    subscriber.connect(monitor)
    _ready()
    _send(subscriber.send, (b"\1" + secrets.token_bytes(8) for _ in itertools.repeat(None)), rate)


def connects(address: str, rate: int) -> None:
    """Connections that are closed at once."""
    _ready()
    _send(lambda _: _tcp(address).close(), itertools.repeat(b""), rate)


def spinning(gives_way: bool) -> None:
    """No peer: a program that computes, at niceness 19 or 0, for comparison."""
    if gives_way:
        _give_way()
    print("ready", flush=True)
    for _ in itertools.repeat(None):
        pass


def _hello(incarnation: int) -> Hello:
    return Hello(Role.CLIENT, incarnation, "3", "bench", "bench", 1)


def _dealer(context: Context, address: str) -> zmq.Socket[bytes]:
    dealer = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.connect(address)
    return dealer


def _send(send: Callable[[bytes], object], frames: Iterator[bytes], rate: int) -> None:
    """Yield for ever, `rate` times a second."""
    if not rate:
        for frame in frames:
            send(frame)
    share = max(1, int(rate * _STEP_SECONDS))
    due = time.monotonic()
    while True:
        for frame in itertools.islice(frames, share):
            send(frame)
        due = max(due + share / rate, time.monotonic() - _MAX_LAG_SECONDS)
        time.sleep(max(0.0, due - time.monotonic()))


def _ready() -> None:
    _give_way()
    print("ready", flush=True)


def _give_way() -> None:
    """Not before the peer is ready: on a busy machine that would take it minutes."""
    for thread in os.listdir("/proc/self/task"):
        os.setpriority(os.PRIO_PROCESS, int(thread), NICENESS)
    try:
        with open("/proc/self/autogroup", "w") as group:  # where sessions share the processors
            group.write(str(NICENESS))
    except OSError:
        pass


def main(behaviour: str, address: str, monitor: str, victim: int, rate: int) -> None:
    allow_many_files()
    context: Context = zmq.Context()
    with ExitStack() as stack:
        if behaviour in FLOODS:
            flood(context, address, behaviour, rate)
        elif behaviour == "strangers":
            strangers(context, address, rate)
        elif behaviour == "replays":
            replays(context, address, victim, rate)
        elif behaviour == "subscriptions":
            subscriptions(context, monitor, rate)
        elif behaviour == "connects":
            connects(address, rate)
        elif behaviour == "unread":
            unread(context, address)
        elif behaviour == "deaf":
            deaf(context, monitor)
        elif behaviour in ("spinning", "competing"):
            spinning(gives_way=behaviour == "spinning")
        elif behaviour == "half_open":
            half_open(address, stack)
        elif behaviour == "half_message":
            half_message(address, stack)
        elif behaviour in LONG_HANDSHAKES:
            long_handshakes(address, rate, LONG_HANDSHAKES[behaviour], stack)
        else:
            raise ValueError(f"no such behaviour: {behaviour}")
        _ready()
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
