"""The connections that there are, known by their file descriptors, and what there may be of them.

ZeroMQ makes and ends them, says so afterwards, and lets nobody choose. What can be done from here: end one, by a word
to the system that ZeroMQ takes for the other side's end, and have the system keep somebody waiting (`syn_filter.py`).
"""

from __future__ import annotations

import ipaddress
import resource
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Set

from . import syn_filter
from .descriptors import Name, duplicate, end, local_name, remote_name, save_first_packets, silent_seconds
from .handshake_guard import Handshakes

RESERVED_FILES = 64
"""Kept for all but connections: log files, keys, ZeroMQ's own, and one to end a connection by. Without any left ZeroMQ
would try to accept again and again."""

LEAST_CONNECTIONS = 16

LOCAL_MONITORS = 16
"""Connections to a monitor's ipc address beyond those that there may be: its operator can look, then above all."""

HOLD_SECONDS = 1.0
"""For which rates are counted, and an address that has had its share waits at the most."""


@dataclass(frozen=True)
class ConnectionLimits:
    total: int
    """Connections at one time, at all addresses together."""
    of_address: int
    """From one address (of IPv6 a network of 64 bits)."""
    a_second: int
    """New ones from one address."""
    silence_seconds: float
    """A peer that sends nothing for longer is cut off."""


def allow_many_files() -> int:
    """Each connection is a file descriptor, of which many systems allow a process a thousand unless it asks for more.

    Returns:
        How many there may be.
    """
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError):
        return soft  # some systems say that there is no limit, and set one
    return most


def limit_by_files(wanted: int, files: int) -> int:
    """How many connections there may be where so many files may be open."""
    return wanted if files == resource.RLIM_INFINITY else min(wanted, max(LEAST_CONNECTIONS, files - RESERVED_FILES))


@dataclass
class Listener:
    """A bound socket."""

    is_for_peers: bool
    """Who connects here is to send something now and then."""
    handshakes: Handshakes = field(default_factory=lambda: Handshakes(has_keys=False))
    descriptor: int = -1
    name: Optional[Name] = None
    """As the system has it; None before it is bound."""


@dataclass
class _Connection:
    listener: Listener
    peer: Name
    network: bytes
    next_look: float


class Connections:
    """Used by one thread; others read `cut` and take the news."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.cut = 0
        """Connections that were ended from here."""
        self._open: Dict[int, _Connection] = {}
        self._of_network: Dict[bytes, int] = {}
        self._listeners: List[Listener] = []
        self._second = 0.0
        """When the one began whose new connections are counted."""
        self._new: Dict[bytes, int] = {}
        self._held: Set[bytes] = set()
        self._next_sweep = 0.0
        self._news: Dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds_to_look(self) -> float:
        """Within which `look` is to be called again."""
        longest = HOLD_SECONDS / 20 if self._held or not self._listeners else HOLD_SECONDS
        return min([longest, *(each.handshakes.seconds_to_look for each in self._listeners)])

    def take_news(self) -> List[str]:
        """What is worth a line in the log, since the last call."""
        news, self._news = self._news, {}
        return list(news.values())

    # ------------------------------------------------------------------------------------------ what ZeroMQ says it did

    def listening(self, listener: Listener, descriptor: int) -> None:
        try:
            listener.name = local_name(descriptor)
        except OSError:
            return  # closed by now
        listener.descriptor = descriptor
        self._listeners.append(listener)
        if listener.name.address:
            try:
                save_first_packets(descriptor)
            except OSError:
                return  # a system that can't; handshakes are bounded by time alone then
            syn_filter.hold(descriptor, self._held)

    def closed(self, listener: Listener) -> None:
        """With all of its connections."""
        self._listeners = [each for each in self._listeners if each is not listener]
        for descriptor in [number for number, each in self._open.items() if each.listener is listener]:
            self.disconnected(listener, descriptor)

    def accepted(self, listener: Listener, descriptor: int, now: float) -> None:
        self.disconnected(listener, descriptor)  # it is a new one, whatever was known of that number
        if listener.name is not None and listener.name.address:
            listener.handshakes.begin(descriptor, now)
        try:
            with duplicate(descriptor) as connection:
                self._take(listener, descriptor, connection, now)
        except OSError:
            # It is over already, and nobody can say whose it was: somebody who has made many was it rather than others.
            self._count_new(max(self._new, key=self._new.__getitem__, default=b""), now)

    def disconnected(self, listener: Listener, descriptor: int) -> Optional[Name]:
        """Returns its other end where its handshake was not known to be over."""
        failed = listener.handshakes.gone(descriptor)
        gone = self._open.pop(descriptor, None)
        if gone is not None:
            left = self._of_network[gone.network] = self._of_network[gone.network] - 1
            if not left:
                del self._of_network[gone.network]
        return failed

    def _take(self, listener: Listener, descriptor: int, connection: int, now: float) -> None:
        local = local_name(connection)
        if listener.name is None or (len(local.raw), local.port) != (len(listener.name.raw), listener.name.port):
            raise OSError("the number is another file's by now")
        limits = self.limits
        peer = remote_name(connection)
        network = _network(peer)
        is_waved_through = not network or self._count_new(network, now)
        is_local_monitor = not network and not listener.is_for_peers
        if len(self._open) >= limits.total + (LOCAL_MONITORS if is_local_monitor else 0):
            self._refuse(connection, "total", f"there are {limits.total} already (--connection-limit, or open files)")
        elif network and self._of_network.get(network, 0) >= limits.of_address:
            self._refuse(
                connection, "address", f"{peer.text} has {limits.of_address} already (--address-connection-limit)"
            )
        elif not is_waved_through:
            self._refuse(
                connection, "rate", f"{peer.text} makes more than {limits.a_second} a second (--connection-rate-limit)"
            )
        else:
            self._of_network[network] = self._of_network.get(network, 0) + 1
            self._open[descriptor] = _Connection(listener, peer, network, now + limits.silence_seconds)
            if network:
                listener.handshakes.limit(descriptor, connection, peer, now)

    def _refuse(self, connection: int, kind: str, why: str) -> None:
        end(connection)
        self.cut += 1
        self._news[kind] = f"a connection was cut as soon as it was made: {why}"

    def cut_flooding(self, descriptor: int) -> None:
        """End this one, whose peer subscribes without end. Called by other threads as well."""
        known = self._open.get(descriptor)
        if known is not None and self._end(descriptor):
            self._news["flooding"] = f"a connection from {known.peer.text} was cut: it subscribes without end"

    def _end(self, descriptor: int) -> bool:
        """Cut this connection; returns whether it was there still."""
        known = self._open.get(descriptor)
        if known is None:
            return False
        try:
            with duplicate(descriptor) as connection:
                if remote_name(connection) != known.peer:
                    return False  # another one by now, of which ZeroMQ is about to tell
                end(connection)
        except OSError:
            return False  # over by now
        self.cut += 1
        return True

    # ----------------------------------------------------------------------------------------------- how many a second

    def _count_new(self, network: bytes, now: float) -> bool:
        """Returns whether it may stay."""
        if now - self._second >= HOLD_SECONDS:
            self._begin_second(now)
        count = self._new[network] = self._new.get(network, 0) + 1
        if count <= self.limits.a_second:
            return True
        if network in self._held:
            return True  # was on its way when it was held: the system has kept others of it away since
        self._held.add(network)
        self._news["held"] = (
            f"more than {self.limits.a_second} connections in a second from {_text(network)} "
            "(--connection-rate-limit): more have to wait"
        )
        if self._hold():
            return True
        self._held.discard(network)
        return False

    def _begin_second(self, now: float) -> None:
        self._second = now
        self._new.clear()
        if self._held:
            self._held.clear()
            self._hold()

    def _hold(self) -> bool:
        """Returns whether the system can do it at all."""
        can = True
        for listener in self._listeners:
            try:
                name = local_name(listener.descriptor)
                if name.address and name == listener.name:
                    can = syn_filter.hold(listener.descriptor, self._held) and can
            except OSError:
                pass  # closed by now
        return can

    # ------------------------------------------------------------------------------------------------- who says nothing

    def look(self, now: float) -> None:
        if self._held and now - self._second >= HOLD_SECONDS:
            self._begin_second(now)
        for listener in self._listeners:
            for complaint in listener.handshakes.look(now):
                whose = self._open[complaint.descriptor].peer.text
                self._news["handshake"] = f"a connection from {whose} {complaint.text}"
                if complaint.is_to_end:
                    self._end(complaint.descriptor)
        if now >= self._next_sweep:
            self._next_sweep = now + min(10.0, self.limits.silence_seconds / 10)
            for descriptor, each in list(self._open.items()):
                if now >= each.next_look and each.listener.is_for_peers and each.network:
                    self._look_at(descriptor, each, now)

    def _look_at(self, descriptor: int, known: _Connection, now: float) -> None:
        try:
            with duplicate(descriptor) as connection:
                if remote_name(connection) != known.peer:
                    return  # another one by now, of which ZeroMQ is about to tell
                left = self.limits.silence_seconds - silent_seconds(connection)
                known.next_look = now + max(left, 0.0)
                if left <= 0:
                    end(connection)
                    self.cut += 1
                    self._news["silent"] = (
                        f"a connection from {known.peer.text} was cut: nothing has come for "
                        f"{self.limits.silence_seconds:g} s"
                    )
        except OSError:
            pass  # over by now


def _network(name: Name) -> bytes:
    """Whose connections are counted together; empty for the sockets of a file, whose mode says who may connect."""
    return name.address if len(name.address) <= 4 else name.address[:8]


def _text(network: bytes) -> str:
    if not network:
        return "somebody"
    return str(ipaddress.ip_address(network if len(network) == 4 else network.ljust(16, b"\0")))
