"""Connections whose ZeroMQ handshake is not over: the system lets only some kilobytes of each through.

libzmq bounds a frame of the handshake by ZMQ_MAXMSGSIZE alone, which has to be large for the messages of peers. So a
connection could have the scheduler store frames of any size before it has shown a key. Here the kernel drops what such
a connection sends beyond MOST_BYTES: a packet filter on its socket, which is taken off when its handshake is over. TCP
sends dropped bytes again, so nothing is lost where the filter is taken off late.

libzmq does not tell whose handshake has succeeded, only that one has. It is found out in one of these ways, which all
fail in the safe direction:

1. The scheduler has sent more than it sends within a handshake. With keys this is so with the handshake's end, as the
   READY command is then encoded; without keys it is so with the answer to the first message.
2. Without keys, as many handshakes have succeeded as connections are open that have sent enough for one.
3. The connection is older than ZMQ_HANDSHAKE_IVL: libzmq ends those whose handshake is not over by then.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import syn_filter
from .descriptors import Name, duplicate, first_sequence, remote_name, traffic

HANDSHAKE_SECONDS = 10.0
"""ZMQ_HANDSHAKE_IVL of the bound sockets."""

MOST_BYTES = 64 << 10
"""A connection may send so many before its handshake is over, and up to one packet more. A handshake takes less than
1 KiB; the rest is room for the first messages, which are on their way before it is seen that the handshake is over."""

MOST_BYTES_UNLIMITED = 1 << 20
"""A connection that has sent more before its handshake is over is cut. Only one can whose first packet the system has
not kept: it came before the filter, or in a flood of first packets."""

_LATEST_SECONDS = HANDSHAKE_SECONDS + 1.0

_GREETING_BYTES = 64
_LEAST_HANDSHAKE_BYTES = _GREETING_BYTES + 2 + len(b"\5READY")
"""A peer without keys has sent at least so many when its handshake is over."""

_PLAIN_BYTES = _GREETING_BYTES + 43
"""Sent by a ROUTER within a handshake without keys: its greeting and READY. An XPUB sends fewer."""

_KEYED_BYTES = _GREETING_BYTES + 170 + 12
"""Sent within a handshake with keys that is not over: greeting, WELCOME and the ERROR of a key that may not connect.
With READY, which ends the handshake, it is 301."""

_ODD_SECONDS = 1.0
"""What has used up its bytes for so long is logged: an honest handshake is over by then."""

_SOONEST_LOOK_SECONDS, _UNLIMITED_LOOK_SECONDS, _LATEST_LOOK_SECONDS = 0.001, 0.005, 1.0
_REST = 10
"""Times what a look has cost until the next one: many open handshakes take a tenth of the thread's time at most."""


@dataclass
class _Handshake:
    began: float
    peer: Optional[Name] = None
    """None where nothing can be said of the connection, as it has ended or is about to be cut."""
    is_limited: bool = True
    has_complained: bool = False


class Complaint(NamedTuple):
    descriptor: int
    text: str
    """What the connection does, for the log; goes on behind its address."""
    is_to_end: bool
    """Whether the connection is to be cut."""


class Handshakes:
    """The open handshakes of one listening socket. Used by one thread; times are in seconds of the monotonic clock.

    Args:
        has_keys: whether they are CURVE's.
    """

    def __init__(self, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._open: Dict[int, _Handshake] = {}
        """By file descriptor."""
        self._first: Dict[int, Tuple[Name, int]] = {}
        """By file descriptor, the newest connection of this number and the sequence number of its first byte."""
        self._succeeded = 0
        """Handshakes that have succeeded, less the connections that were found to be these. Too small where an open one
        has ended, never too large."""
        self._next_look = self._rested = 0.0
        self._pause = _SOONEST_LOOK_SECONDS

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds_to_look(self) -> float:
        """Within which `look` is to be called again."""
        return self._pause if self._open else float("inf")

    def begin(self, descriptor: int, now: float) -> None:
        """A connection was accepted."""
        if not self._open:
            self._succeeded = 0
        self._open[descriptor] = _Handshake(now)

    def limit(self, descriptor: int, connection: int, peer: Name, now: float) -> None:
        """Bound what an accepted connection of TCP's may send; `connection` is another descriptor of it."""
        try:
            traffic(connection)
        except OSError:
            syn_filter.take_off(connection)  # it has ended, or the system does not count: then it can't be bounded
            return
        first = first_sequence(connection)
        if first is None and descriptor in self._first:
            # Told once for each connection, and events may be late: this one was looked at for one before it that has
            # had the same number.
            whose, found = self._first[descriptor]
            first = found if whose == peer else None
        if first is not None:
            self._first[descriptor] = peer, first
        # Else it keeps its listener's filter, which makes it slow, and is cut beyond MOST_BYTES_UNLIMITED.
        is_limited = first is not None and syn_filter.limit(connection, first, MOST_BYTES)
        self._open[descriptor] = _Handshake(now, peer, is_limited)
        if not is_limited:
            self._pause = _SOONEST_LOOK_SECONDS

    def succeeded(self) -> None:
        """libzmq has told that a handshake has succeeded."""
        self._succeeded += 1
        self._pause = _SOONEST_LOOK_SECONDS
        self._next_look = self._rested

    def gone(self, descriptor: int) -> Optional[Name]:
        """The connection is over. Returns its other end where its handshake was not known to be over."""
        handshake = self._open.pop(descriptor, None)
        if handshake is None:
            return None
        if self._succeeded > 0:
            self._succeeded -= 1  # it may have been one of these
        return handshake.peer

    def look(self, now: float) -> List[Complaint]:
        """Find those that are over and let through all that they send. All that libzmq has told must have been taken.

        Returns:
            Connections that do what is no handshake.
        """
        if not self._open or now < self._next_look:
            return []
        began = time.monotonic()
        complaints: List[Complaint] = []
        candidates: List[int] = []
        is_all_read = is_limited = True
        for descriptor, handshake in list(self._open.items()):
            age = now - handshake.began
            is_limited = is_limited and handshake.is_limited
            if handshake.peer is None:
                is_all_read = False
                if age > _LATEST_SECONDS:
                    del self._open[descriptor]
                continue
            try:
                sent, received = _traffic(descriptor, handshake.peer)
            except OSError:
                is_all_read = False  # over, of which libzmq is about to tell
                continue
            if sent > (_KEYED_BYTES if self._has_keys else _PLAIN_BYTES):
                self._over(descriptor)
            elif age > _LATEST_SECONDS and sent > _GREETING_BYTES:
                self._over(descriptor)
            elif age > _LATEST_SECONDS:  # a version of the protocol that has no handshake
                complaints.append(Complaint(descriptor, "speaks no ZMTP 3, and was cut", True))
            elif received > MOST_BYTES_UNLIMITED:
                what = f"sent {received:,} bytes in the place of a handshake, and was cut"
                complaints.append(Complaint(descriptor, what, True))
            else:
                if not self._has_keys and received >= _LEAST_HANDSHAKE_BYTES:
                    candidates.append(descriptor)
                if received >= MOST_BYTES and age > _ODD_SECONDS and not handshake.has_complained:
                    handshake.has_complained = True
                    what = f"sent {received:,} bytes in the place of a handshake: more is dropped, and it will be cut"
                    complaints.append(Complaint(descriptor, what, False))
        if is_all_read and len(candidates) == self._succeeded:
            for descriptor in candidates:
                self._over(descriptor)
        self._rested = now + _REST * (time.monotonic() - began)
        self._next_look = max(now + self._pause, self._rested)
        self._pause = min(2 * self._pause, _LATEST_LOOK_SECONDS if is_limited else _UNLIMITED_LOOK_SECONDS)
        return complaints

    def _over(self, descriptor: int) -> None:
        handshake = self._open.pop(descriptor)
        self._succeeded -= 1  # below zero where this is seen before libzmq has told it, which it then does
        try:
            with duplicate(descriptor) as connection:
                if remote_name(connection) == handshake.peer:
                    syn_filter.take_off(connection)
        except OSError:
            pass  # over by now


def _traffic(descriptor: int, peer: Name) -> Tuple[int, int]:
    with duplicate(descriptor) as connection:
        if remote_name(connection) != peer:
            raise OSError("the number is another file's by now")
        return traffic(connection)
