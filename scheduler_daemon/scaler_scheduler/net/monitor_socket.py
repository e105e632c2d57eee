"""The XPUB socket at which the scheduler publishes its state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable

import zmq

from ..commands.addresses import Address
from .bound_socket import EVENTS, IS_CFFI, POLLIN, BindError, BoundSocket, metadata_reader
from .rate_limit import RateLimits

_REBIND_SECONDS = 2.0
"""The longest time that `rebind` tries."""

_MESSAGES_PER_READ = 1000
"""The most messages of subscribers that one call reads, so that the loop is not delayed."""

_SUBSCRIPTION_BURST, _SUBSCRIPTIONS_PER_SECOND = 1000, 10
"""The subscriptions of one connection: the most at once, and the most a second in the long run. A monitor has three,
and one more for each story that it requests."""


class MonitorSocket(BoundSocket):
    """Publishes messages that begin with a topic. A subscription is a prefix of topics.

    Args:
        bind: makes the socket.
        address: the address to bind.
        cut: cuts the connection with this file descriptor, because its peer sends too many subscriptions.

    Raises:
        BindError: the address cannot be bound.
    """

    def __init__(
        self, bind: Callable[[Address], zmq.Socket[bytes]], address: Address, cut: Callable[[int], None]
    ) -> None:
        super().__init__(bind(address))
        self._bind = bind
        self._cut = cut
        self._descriptor_of = metadata_reader("__fd")
        self._subscription_rates = RateLimits(_SUBSCRIPTION_BURST, _SUBSCRIPTIONS_PER_SECOND)
        self._subscriptions: set[bytes] = set()
        self.has_more = False
        """Whether messages of subscribers may still wait after the previous call of `read_subscriptions`."""

    def rebind(self) -> None:
        """Cut all connections by binding again. Peers with an authorized key reconnect. Raises BindError."""
        self.close()
        self._subscriptions.clear()
        deadline = time.monotonic() + _REBIND_SECONDS
        while True:
            try:
                self._socket = self._bind(self.address)
                return
            except BindError:  # ZeroMQ closes the old socket in another thread
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def read_subscriptions(self, topics: Sequence[bytes], request: bytes) -> list[bytes]:
        """Read subscriptions, up to a limit.

        Args:
            topics: the topics that are published to all subscribers.
            request: the prefix of topics that are requests. Each is answered once.

        Returns:
            New subscriptions to topics, and requests.
        """
        found: list[bytes] = []
        self.has_more = False
        for _ in range(_MESSAGES_PER_READ):
            events: Any = self._socket.getsockopt(EVENTS)
            if not events & POLLIN:
                return found
            frame: Any = self._socket.recv(zmq.NOBLOCK, copy=False)
            message = frame.bytes
            # ZeroMQ has stored the subscription already, and its number is not limited.
            if message[:1] == b"\1":
                descriptor = self._descriptor_of(frame)
                if self._subscription_rates.exceeds(descriptor, time.monotonic()):
                    self._cut(int(descriptor))
            if IS_CFFI:
                frame.close()
            subscription = message[1:]
            if message[:1] == b"\0":  # no subscriber is left with this subscription
                self._subscriptions.discard(subscription)
            elif message[:1] == b"\1" and any(topic.startswith(subscription) for topic in topics):
                # Other subscriptions are not stored: a peer can send a million different ones.
                self._subscriptions.add(subscription)
                found.append(subscription)
            elif message[:1] == b"\1" and subscription.startswith(request):
                found.append(subscription)
        self.has_more = True
        return found

    def has_subscribers(self, topic: bytes) -> bool:
        """Whether a topic has subscribers."""
        for subscription in self._subscriptions:
            if topic.startswith(subscription):
                return True
        return False

    def publish(self, topic: bytes, frame: bytes) -> None:
        """Publish a message in one frame, so that subscribers can keep only the newest (ZMQ_CONFLATE).

        A subscriber that does not read misses messages.
        """
        self._socket.send(topic + frame, zmq.NOBLOCK)
