"""Limits what a connection may send before its ZeroMQ handshake is over.

libzmq limits a frame of the handshake only by ZMQ_MAXMSGSIZE, which must be large for the messages of peers. So without
this module a connection without a key could make the scheduler store large frames. Here a packet filter on the
connection's socket makes the kernel drop everything beyond MAX_HANDSHAKE_BYTES. The filter is removed when the
handshake is over. TCP sends dropped bytes again, so nothing is lost if the filter is removed late.

libzmq reports that a handshake has succeeded, but not of which connection. Three rules find the connection. A rule that
fails to find it is harmless: the filter only stays longer.

1. The scheduler has sent more bytes than it sends within a handshake. With keys this is true at the end of the
   handshake, which sends READY. Without keys it is true after the answer to the first message.
2. Without keys: the number of successful handshakes equals the number of open connections that have sent enough bytes
   for a handshake.
3. The connection is older than ZMQ_HANDSHAKE_IVL: libzmq ends connections whose handshake is not over by then.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from . import syn_filter
from .descriptors import Endpoint, duplicate, initial_sequence, remote_endpoint, traffic

HANDSHAKE_SECONDS = 10.0
"""ZMQ_HANDSHAKE_IVL of the bound sockets."""

MAX_HANDSHAKE_BYTES = 64 << 10
"""A connection may send this many bytes before its handshake is over, and up to one packet more. A handshake takes less
than 1 KiB. The rest is room for first messages that arrive before this module sees the end of the handshake."""

MAX_UNLIMITED_HANDSHAKE_BYTES = 1 << 20
"""A connection that sends more before its handshake is over is cut. This happens only to connections without a filter.
The system did not keep their first packet, because it came before the listener's filter or in a flood."""

_TIMEOUT_SECONDS = HANDSHAKE_SECONDS + 1.0

_GREETING_BYTES = 64
_MIN_HANDSHAKE_BYTES = _GREETING_BYTES + 2 + len(b"\5READY")
"""A peer without keys has sent at least this many bytes when its handshake is over."""

_PLAIN_BYTES = _GREETING_BYTES + 43
"""Bytes that a ROUTER sends in a handshake without keys: its greeting and READY. An XPUB sends fewer."""

_KEYED_BYTES = _GREETING_BYTES + 170 + 12
"""Bytes sent in a handshake with keys that is not over: greeting, WELCOME, and the ERROR for a refused key. With READY,
which ends the handshake, they are 301."""

_SUSPICIOUS_SECONDS = 1.0
"""A connection that is older and has used up its bytes is logged: honest handshakes take less time."""

_MIN_CHECK_SECONDS, _UNLIMITED_CHECK_SECONDS, _MAX_CHECK_SECONDS = 0.001, 0.005, 1.0
_CHECK_COST_FACTOR = 10
"""The pause after a check is at least this many times its cost, so checks take at most a tenth of the thread's time."""


@dataclass
class _Handshake:
    began: float
    peer: Endpoint | None = None
    """None if the connection has ended or is about to be cut."""
    is_limited: bool = True
    is_reported: bool = False


class HandshakeViolation(NamedTuple):
    """A connection that does not send a handshake."""

    descriptor: int
    text: str
    """What the connection does: the text that follows its address in the log."""
    must_cut: bool
    """Whether to cut the connection."""


class HandshakeGuard:
    """The open handshakes of one listening socket. One thread uses it. Times are in seconds of the monotonic clock.

    Args:
        has_keys: whether the handshakes use CURVE.
    """

    def __init__(self, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._open: dict[int, _Handshake] = {}
        """By file descriptor."""
        self._first: dict[int, tuple[Endpoint, int]] = {}
        """By file descriptor, the newest connection of this number and the sequence number of its first byte."""
        self._succeeded = 0
        """Successful handshakes whose connections are not found yet. Too small after an open connection has ended;
        never too large."""
        self._next_check = self._earliest_check = 0.0
        self._pause = _MIN_CHECK_SECONDS

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds_to_next_check(self) -> float:
        """Call `check` again within this time."""
        return self._pause if self._open else float("inf")

    def begin(self, descriptor: int, now: float) -> None:
        """A connection was accepted."""
        if not self._open:
            self._succeeded = 0
        self._open[descriptor] = _Handshake(now)

    def limit(self, descriptor: int, connection: int, peer: Endpoint, now: float) -> None:
        """Limit what an accepted tcp connection may send; `connection` is a duplicate of its descriptor."""
        try:
            traffic(connection)
        except OSError:
            syn_filter.remove_filter(connection)  # no limit is possible: it has ended, or the system counts no bytes
            return
        first = initial_sequence(connection)
        if first is None and descriptor in self._first:
            # The system returns the number only once for each connection. Events may be late: for an earlier connection
            # with the same descriptor, this module may have got this connection's number already.
            whose, found = self._first[descriptor]
            first = found if whose == peer else None
        if first is not None:
            self._first[descriptor] = peer, first
        # Otherwise the connection keeps its listener's filter, which makes it slow. It is cut after
        # MAX_UNLIMITED_HANDSHAKE_BYTES.
        is_limited = first is not None and syn_filter.limit_bytes(connection, first, MAX_HANDSHAKE_BYTES)
        self._open[descriptor] = _Handshake(now, peer, is_limited)
        if not is_limited:
            self._pause = _MIN_CHECK_SECONDS

    def succeeded(self) -> None:
        """libzmq has reported a successful handshake."""
        self._succeeded += 1
        self._pause = _MIN_CHECK_SECONDS
        self._next_check = self._earliest_check

    def ended(self, descriptor: int) -> Endpoint | None:
        """The connection has ended. Returns its other end if its handshake was not known to be over."""
        handshake = self._open.pop(descriptor, None)
        if handshake is None:
            return None
        if self._succeeded > 0:
            self._succeeded -= 1  # one of these handshakes may be of this connection
        return handshake.peer

    def check(self, now: float) -> list[HandshakeViolation]:
        """Find handshakes that are over and remove the filters of their connections.

        Call it after all waiting events of libzmq were handled.

        Returns:
            The connections that do not send a handshake.
        """
        if not self._open or now < self._next_check:
            return []
        began = time.monotonic()
        violations: list[HandshakeViolation] = []
        candidates: list[int] = []
        all_counted = is_limited = True
        for descriptor, handshake in list(self._open.items()):
            age = now - handshake.began
            is_limited = is_limited and handshake.is_limited
            if handshake.peer is None:
                all_counted = False
                if age > _TIMEOUT_SECONDS:
                    del self._open[descriptor]
                continue
            try:
                sent, received = _traffic(descriptor, handshake.peer)
            except OSError:
                all_counted = False  # it has ended; the event of libzmq is still to come
                continue
            if sent > (_KEYED_BYTES if self._has_keys else _PLAIN_BYTES):
                self._finish(descriptor)
            elif age > _TIMEOUT_SECONDS and sent > _GREETING_BYTES:
                self._finish(descriptor)
            elif age > _TIMEOUT_SECONDS:  # a version of the protocol that has no handshake
                violations.append(HandshakeViolation(descriptor, "does not speak ZMTP 3, and was cut", True))
            elif received > MAX_UNLIMITED_HANDSHAKE_BYTES:
                what = f"sent {received:,} bytes instead of a handshake, and was cut"
                violations.append(HandshakeViolation(descriptor, what, True))
            else:
                if not self._has_keys and received >= _MIN_HANDSHAKE_BYTES:
                    candidates.append(descriptor)
                if received >= MAX_HANDSHAKE_BYTES and age > _SUSPICIOUS_SECONDS and not handshake.is_reported:
                    handshake.is_reported = True
                    what = f"sent {received:,} bytes instead of a handshake: more is dropped, and it will be cut"
                    violations.append(HandshakeViolation(descriptor, what, False))
        if all_counted and len(candidates) == self._succeeded:
            for descriptor in candidates:
                self._finish(descriptor)
        self._earliest_check = now + _CHECK_COST_FACTOR * (time.monotonic() - began)
        self._next_check = max(now + self._pause, self._earliest_check)
        self._pause = min(2 * self._pause, _MAX_CHECK_SECONDS if is_limited else _UNLIMITED_CHECK_SECONDS)
        return violations

    def _finish(self, descriptor: int) -> None:
        handshake = self._open.pop(descriptor)
        self._succeeded -= 1  # below zero until libzmq reports this handshake too
        try:
            with duplicate(descriptor) as connection:
                if remote_endpoint(connection) == handshake.peer:
                    syn_filter.remove_filter(connection)
        except OSError:
            pass  # it has ended


def _traffic(descriptor: int, peer: Endpoint) -> tuple[int, int]:
    with duplicate(descriptor) as connection:
        if remote_endpoint(connection) != peer:
            raise OSError("the descriptor is that of another file now")
        return traffic(connection)
