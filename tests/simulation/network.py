"""The network between peers and scheduler. It has only the guarantees of ZeroMQ over TCP.

A connection keeps order and loses nothing while it lasts. It may break at any time. Messages on their way are then
lost, except that an early part of each direction may have arrived. The peer's socket connects again, on a new route,
and sends the messages of the meantime on the new connection. There is no order between connections. A connection may
fall silent both ways for a while, and then deliver everything late, or break.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from .clock import Clock
from .trace import Trace

RECONNECT_SECONDS = 0.6
"""The longest time between two attempts to connect."""

Frames = list[bytes]
Item = TypeVar("Item")


class Listener(Protocol):
    """The scheduler's side."""

    def arrived(self, route: bytes, frames: Frames) -> None: ...


@dataclass
class LinkFaults:
    """The latencies and faults of a run's links, in seconds and probabilities."""

    latency: float = 0.0005
    spike_share: float = 0.0
    """The share of messages that take up to `spike_seconds` longer. The messages behind them wait."""
    spike_seconds: float = 0.0
    duplicated_share: float = 0.0
    duplicated_kinds: frozenset[str] = field(default_factory=frozenset)


class Pipe(Generic[Item]):
    """One direction of one connection."""

    def __init__(self, network: Network, latency: float, deliver: Callable[[Item], None]) -> None:
        self._network = network
        self._clock = network.clock
        self._latency = latency
        self._deliver = deliver
        self._queue: deque[tuple[float, Item]] = deque()
        self._last = 0.0
        self._is_held = False

    def put(self, item: Item) -> None:
        now = self._clock.now
        at = max(self._last, now + self._network.delay(self._latency))
        self._last = at
        self._queue.append((at, item))
        if not self._is_held:
            self._clock.after(at - now, self._pump)

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        """Deliver the held messages, still in order."""
        self._is_held = False
        waiting, self._queue, self._last = self._queue, deque(), 0.0
        for _, item in waiting:
            self.put(item)

    def cut(self, kept: int) -> list[Item]:
        """Cut the pipe. Only the first `kept` messages arrive; the others are returned."""
        while len(self._queue) > kept:
            self._queue.pop()
        return [item for _, item in self._queue]

    def __len__(self) -> int:
        return len(self._queue)

    def _pump(self) -> None:
        # Compared with a margin: the clock's time is a sum, and a rounding error may make it too small.
        while self._queue and not self._is_held and self._queue[0][0] <= self._clock.now + 1e-9:
            self._deliver(self._queue.popleft()[1])


class Connection:
    def __init__(self, network: Network, route: bytes, link: Link) -> None:
        self.route = route
        listener = network.listener

        def deliver(frames: Frames) -> None:
            if listener is not None and network.listener is listener:  # and no later message
                listener.arrived(route, frames)

        def deliver_to_peer(frames: Frames) -> None:
            if link.connection is self:  # the scheduler may not have noticed the end yet
                link.arrived(frames)

        self.up: Pipe[Frames] = Pipe(network, link.latency, deliver)
        self.down: Pipe[Frames] = Pipe(network, link.latency, deliver_to_peer)


class Link:
    """One peer's socket. It reconnects by itself."""

    def __init__(
        self, network: Network, name: str, arrived: Callable[[Frames], None], latency: float, pause: float = 0.0
    ) -> None:
        """`pause`: seconds that pass in addition before the socket connects, also after a lost connection."""
        self.name = name
        self.pause = pause
        self.arrived = arrived
        self.latency = latency
        self.connection: Connection | None = None
        self.reconnected: Callable[[], None] | None = None
        """Called when there is a new connection, for peers that watch their socket."""
        self._has_connected = False
        self.is_silent = False
        self.is_closed = False
        self._network = network
        self._unsent: list[tuple[Frames, int]] = []

    def send(self, frames: Frames, copies: int = 1) -> None:
        if self.is_closed:
            return
        if self.connection is None:
            self._unsent.append((frames, copies))
            return
        for _ in range(copies):
            self.connection.up.put(frames)

    def connect(self) -> None:
        """Try to connect. It succeeds when the scheduler listens and the link is not silent."""
        if self.is_closed or self.connection is not None:
            return
        network = self._network
        if network.listener is None or self.is_silent:
            network.clock.after(network.chance.uniform(0.05, RECONNECT_SECONDS), self.connect)
            return
        self.connection = network.new_connection(self)
        unsent, self._unsent = self._unsent, []
        for frames, copies in unsent:
            self.send(frames, copies)
        if self._has_connected and self.reconnected is not None:
            self.reconnected()
        self._has_connected = True

    def cut(self, is_scheduler_gone: bool = False) -> None:
        """Break the connection. The peer reconnects after a while."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        network = self._network
        network.drop(connection, 0 if is_scheduler_gone else network.part_of(len(connection.up)))
        for frames in connection.down.cut(network.part_of(len(connection.down))):
            self.arrived(frames)
        connection.down.cut(0)
        network.clock.after(network.chance.uniform(0.0, RECONNECT_SECONDS) + self.pause, self.connect)

    def set_silent(self, is_silent: bool) -> None:
        self.is_silent = is_silent
        if self.connection is not None:
            for pipe in (self.connection.up, self.connection.down):
                if is_silent:
                    pipe.hold()
                else:
                    pipe.release()

    def close(self, lingers: bool) -> None:
        """Close the socket. With `lingers` the messages that the peer has sent still arrive."""
        self.is_closed = True
        connection, self.connection = self.connection, None
        if connection is not None:
            up = len(connection.up)
            self._network.drop(connection, up if lingers else self._network.part_of(up))
            connection.down.cut(0)
        self._unsent = []


class Network:
    def __init__(self, clock: Clock, chance: random.Random, trace: Trace, link_faults: LinkFaults) -> None:
        self.clock = clock
        self.chance = chance
        self.trace = trace
        self.link_faults = link_faults
        self.listener: Listener | None = None
        """The scheduler, while it lives."""
        self.links: list[Link] = []
        self._routes: dict[bytes, Connection] = {}
        self._next_route = 1

    def open(
        self, name: str, arrived: Callable[[Frames], None], latency_factor: float = 1.0, pause: float = 0.0
    ) -> Link:
        """Make a peer's socket, which begins to connect. `pause`: see `Link`."""
        self.links = [link for link in self.links if not link.is_closed]
        link = Link(self, name, arrived, self.link_faults.latency * latency_factor, pause)
        self.links.append(link)
        self.clock.after(self.delay(link.latency) + link.pause, link.connect)
        return link

    def send(self, route: bytes, frames: Frames) -> bool:
        """Send a message of the scheduler. Returns False if the scheduler knows that the connection has ended."""
        connection = self._routes.get(route)
        if connection is None:
            return False
        connection.down.put(frames)
        return True

    def scheduler_died(self) -> None:
        self.listener = None
        for link in self.links:
            link.cut(is_scheduler_gone=True)
        self._routes.clear()

    def new_connection(self, link: Link) -> Connection:
        route = b"%s/%d" % (link.name.encode(), self._next_route)
        self._next_route += 1
        connection = self._routes[route] = Connection(self, route, link)
        return connection

    def drop(self, connection: Connection, arriving: int) -> None:
        """End a connection. The scheduler's socket notices it at once or after a while."""
        self.trace.count("messages lost", len(connection.up) - arriving)
        connection.up.cut(arriving)
        if self.chance.random() < 0.5:
            self._forget(connection.route)
        else:
            self.clock.after(self.chance.uniform(0.0, 2.0), lambda: self._forget(connection.route))

    def _forget(self, route: bytes) -> None:
        self._routes.pop(route, None)

    def part_of(self, count: int) -> int:
        return self.chance.randint(0, count) if count else 0

    def delay(self, latency: float) -> float:
        link_faults = self.link_faults
        seconds = latency * (0.3 + self.chance.expovariate(1.0))
        if link_faults.spike_share and self.chance.random() < link_faults.spike_share:
            seconds += self.chance.uniform(0.0, link_faults.spike_seconds)
        return seconds

    def copies(self, kind: str) -> int:
        """How often a message of this kind arrives: sometimes twice."""
        link_faults = self.link_faults
        if kind in link_faults.duplicated_kinds and self.chance.random() < link_faults.duplicated_share:
            self.trace.count("messages duplicated")
            return 2
        return 1
