"""The socket at which the scheduler publishes."""

from __future__ import annotations

import time
from typing import Any, Callable, List, Sequence, Set

import zmq

from ..commands.addresses import Address
from .bound_socket import EVENTS, IS_CFFI, POLLIN, BindError, BoundSocket, metadata_reader
from .rate_limit import RateLimits

_REBIND_SECONDS = 2.0

_MESSAGES_PER_READ = 1000
"""Taken in one look: more would keep the loop from its work."""

_SUBSCRIPTION_BURST, _SUBSCRIPTIONS_PER_SECOND = 1000, 10
"""Of one connection, at once and in the long run: who watches has three, and one more for a question."""


class MonitorSocket(BoundSocket):
    """Where the scheduler publishes. What it publishes begins with a topic; subscriptions are beginnings of topics.

    Args:
        bind: makes the socket.
        cut: ends the connection of this number, whose peer subscribes without end.
    """

    def __init__(
        self, bind: Callable[[Address], zmq.Socket[bytes]], address: Address, cut: Callable[[int], None]
    ) -> None:
        super().__init__(bind(address))
        self._bind = bind
        self._cut = cut
        self._descriptor_of = metadata_reader("__fd")
        self._subscription_rates = RateLimits(_SUBSCRIPTION_BURST, _SUBSCRIPTIONS_PER_SECOND)
        self._subscriptions: Set[bytes] = set()
        self.has_more = False
        """Whether subscribers may have said more than was taken at the last look."""

    def rebind(self) -> None:
        """Cut everybody off: whoever may connect does so again. Raises BindError."""
        self.close()
        self._subscriptions.clear()
        deadline = time.monotonic() + _REBIND_SECONDS
        while True:
            try:
                self._socket = self._bind(self.address)
                return
            except BindError:  # ZeroMQ closes in a thread of its own
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def read_subscriptions(self, topics: Sequence[bytes], question: bytes) -> List[bytes]:
        """Take what subscribers have said, up to a bound.

        Args:
            topics: what is published to whoever has subscribed.
            question: the begin of topics that are questions, which are answered once.

        Returns:
            New subscriptions to topics, and questions.
        """
        found: List[bytes] = []
        self.has_more = False
        for _ in range(_MESSAGES_PER_READ):
            events: Any = self._socket.getsockopt(EVENTS)
            if not events & POLLIN:
                return found
            frame: Any = self._socket.recv(zmq.NOBLOCK, copy=False)
            message = frame.bytes
            # ZeroMQ has kept it already, and would keep any number of them.
            if message[:1] == b"\1":
                whose = self._descriptor_of(frame)
                if self._subscription_rates.exceeds(whose, time.monotonic()):
                    self._cut(int(whose))
            if IS_CFFI:
                frame.close()
            subscription = message[1:]
            if message[:1] == b"\0":  # of the last one that had this subscription
                self._subscriptions.discard(subscription)
            elif message[:1] == b"\1" and any(topic.startswith(subscription) for topic in topics):
                # Of all others nothing is kept here: anybody may subscribe to anything, a million times.
                self._subscriptions.add(subscription)
                found.append(subscription)
            elif message[:1] == b"\1" and subscription.startswith(question):
                found.append(subscription)
        self.has_more = True
        return found

    def has_subscribers(self, topic: bytes) -> bool:
        """Whether anybody has subscribed to it."""
        for subscription in self._subscriptions:
            if topic.startswith(subscription):
                return True
        return False

    def publish(self, topic: bytes, frame: bytes) -> None:
        """In one frame, as ZeroMQ keeps the newest only of such; whoever does not read misses it."""
        self._socket.send(topic + frame, zmq.NOBLOCK)
