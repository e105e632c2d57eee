"""Tells the scheduler about the pools. It says hello as a host agent without workers, and its heartbeats have the
pools; the scheduler publishes them."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import socket
from collections.abc import Sequence

import zmq

from scaler_client.autoscale import PoolCounts
from scaler_client.commands.addresses import Address
from scaler_client.commands.key_files import PeerKeys
from scaler_client.net.curve import apply_keys
from scaler_client.net.sockets import receive
from scaler_client.protocol.encode import encode
from scaler_client.protocol.messages import Goodbye, Heartbeat, Hello, HelloWanted, Message, Refused, Role, Welcome
from scaler_client.protocol.snapshots import PoolState
from scaler_client.protocol.wire import WireError, decode

from .. import __version__

HEARTBEAT_SECONDS = 1.0
CONNECT_TIMEOUT_MILLISECONDS = 5000
LINGER_MILLISECONDS = 500
QUEUE = 16
"""The most messages that wait without a scheduler."""

MAX_NUMBER = (1 << 32) - 1

MAX_PROBLEM_CHARACTERS = 256
"""Of a pool's problem, so much is published: the scheduler takes no longer names."""

_log = logging.getLogger(__name__)


class ReportLink:
    """A connection to the scheduler. Call `tick` several times in a second.

    Args:
        address: the scheduler's.
        keys: a worker's keys; None: none.
        now: seconds of the monotonic clock, as in all calls.
    """

    def __init__(self, address: Address, keys: PeerKeys | None, now: float) -> None:
        self._address = address
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, LINGER_MILLISECONDS)
        self._socket.setsockopt(zmq.IPV6, int(address.is_ipv6))
        self._socket.setsockopt(zmq.CONNECT_TIMEOUT, CONNECT_TIMEOUT_MILLISECONDS)
        self._socket.setsockopt(zmq.SNDHWM, QUEUE)
        apply_keys(self._socket, keys)
        self._socket.connect(str(address))
        host, pid = socket.gethostname(), os.getpid()
        incarnation = secrets.randbelow((1 << 63) - 1) + 1
        name = f"autoscaler-{host}-{pid}"
        self._hello = Hello(Role.AGENT, incarnation, platform.python_version(), __version__, host, pid, name)
        self._is_welcome = False
        self._is_refused = False
        self._sequence = 0
        self._next_at = now

    def tick(self, counts: Sequence[PoolCounts], now: float) -> None:
        """Read the scheduler's messages, and report if it is time."""
        self._read()
        if self._is_refused or now < self._next_at:
            return
        self._next_at = now + HEARTBEAT_SECONDS
        if not self._is_welcome:
            self._send(self._hello)
            return
        self._sequence += 1
        self._send(Heartbeat(self._sequence, pools=[_pool_state(each) for each in counts]))

    def close(self) -> None:
        """Say goodbye and close the socket."""
        if self._is_welcome:
            self._send(Goodbye("the autoscaler ends"))
        self._context.destroy(linger=LINGER_MILLISECONDS)

    def _read(self) -> None:
        while True:
            try:
                frames = receive(self._socket, zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                message = decode(frames)
            except WireError as error:
                _log.warning("dropped a message that can't be decoded: %s", error)
                continue
            if isinstance(message, Welcome):
                self._is_welcome, self._next_at = True, 0.0
            elif isinstance(message, HelloWanted):
                self._is_welcome, self._next_at = False, 0.0
            elif isinstance(message, Refused):
                self._is_refused = True
                _log.error(f"the scheduler at {self._address} takes no report of the pools: {message.text}")

    def _send(self, message: Message) -> None:
        try:
            self._socket.send_multipart(encode(message), zmq.NOBLOCK)
        except zmq.Again:
            _log.debug("not sent, the queue is full: %s", type(message).__name__)


def _pool_state(counts: PoolCounts) -> PoolState:
    return PoolState(
        counts.pool,
        min(counts.wanted, MAX_NUMBER),
        counts.booting,
        counts.there,
        counts.draining,
        counts.failed,
        counts.late,
        counts.left,
        counts.rests,
        _shortened(counts.problem),
        min(int(counts.problem_seconds), MAX_NUMBER),
    )


def _shortened(text: str) -> str:
    """Return a text, or the beginning and the end of a long one: the end of a log says most."""
    if len(text) <= MAX_PROBLEM_CHARACTERS:
        return text
    begin = MAX_PROBLEM_CHARACTERS // 3
    return f"{text[:begin]} ... {text[begin + 5 - MAX_PROBLEM_CHARACTERS :]}"
