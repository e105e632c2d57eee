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
from .descriptors import Endpoint, duplicate, idle_seconds, local_endpoint, remote_endpoint, save_syn_packets, shut_down
from .handshake_guard import HandshakeGuard

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
    per_address: int
    """From one address (of IPv6 a network of 64 bits)."""
    per_second: int
    """New ones from one address."""
    idle_timeout_seconds: float
    """A peer that sends nothing for longer is cut off."""


def raise_file_limit() -> int:
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


def connections_within_files(wanted: int, files: int) -> int:
    """How many connections there may be where so many files may be open."""
    return wanted if files == resource.RLIM_INFINITY else min(wanted, max(LEAST_CONNECTIONS, files - RESERVED_FILES))


@dataclass
class Listener:
    """A bound socket."""

    is_for_peers: bool
    """Who connects here is to send something now and then."""
    handshakes: HandshakeGuard = field(default_factory=lambda: HandshakeGuard(has_keys=False))
    descriptor: int = -1
    name: Optional[Endpoint] = None
    """As the system has it; None before it is bound."""


@dataclass
class _Connection:
    listener: Listener
    peer: Endpoint
    network: bytes
    next_check: float


class Connections:
    """Used by one thread; others read `cut_count` and call `pop_log_lines`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.cut_count = 0
        """Connections that were ended from here."""
        self._open: Dict[int, _Connection] = {}
        self._count_by_network: Dict[bytes, int] = {}
        self._listeners: List[Listener] = []
        self._window_began = 0.0
        """When the one began whose new connections are counted."""
        self._new_by_network: Dict[bytes, int] = {}
        self._held_networks: Set[bytes] = set()
        self._next_sweep = 0.0
        self._log_lines: Dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds_to_next_check(self) -> float:
        """Within which `look` is to be called again."""
        longest = HOLD_SECONDS / 20 if self._held_networks or not self._listeners else HOLD_SECONDS
        return min([longest, *(each.handshakes.seconds_to_next_check for each in self._listeners)])

    def pop_log_lines(self) -> List[str]:
        """What is worth a line in the log, since the last call."""
        lines, self._log_lines = self._log_lines, {}
        return list(lines.values())

    # ------------------------------------------------------------------------------------------ what ZeroMQ says it did

    def on_listening(self, listener: Listener, descriptor: int) -> None:
        try:
            listener.name = local_endpoint(descriptor)
        except OSError:
            return  # closed by now
        listener.descriptor = descriptor
        self._listeners.append(listener)
        if listener.name.address:
            try:
                save_syn_packets(descriptor)
            except OSError:
                return  # a system that can't; handshakes are bounded by time alone then
            syn_filter.hold_networks(descriptor, self._held_networks)

    def on_closed(self, listener: Listener) -> None:
        """With all of its connections."""
        self._listeners = [each for each in self._listeners if each is not listener]
        for descriptor in [number for number, each in self._open.items() if each.listener is listener]:
            self.on_disconnected(listener, descriptor)

    def on_accepted(self, listener: Listener, descriptor: int, now: float) -> None:
        self.on_disconnected(listener, descriptor)  # it is a new one, whatever was known of that number
        if listener.name is not None and listener.name.address:
            listener.handshakes.begin(descriptor, now)
        try:
            with duplicate(descriptor) as connection:
                self._admit(listener, descriptor, connection, now)
        except OSError:
            # It is over already, and nobody can say whose it was: somebody who has made many was it rather than others.
            self._count_new_connection(
                max(self._new_by_network, key=self._new_by_network.__getitem__, default=b""), now
            )

    def on_disconnected(self, listener: Listener, descriptor: int) -> Optional[Endpoint]:
        """Returns its other end where its handshake was not known to be over."""
        failed = listener.handshakes.gone(descriptor)
        gone = self._open.pop(descriptor, None)
        if gone is not None:
            left = self._count_by_network[gone.network] = self._count_by_network[gone.network] - 1
            if not left:
                del self._count_by_network[gone.network]
        return failed

    def _admit(self, listener: Listener, descriptor: int, connection: int, now: float) -> None:
        local = local_endpoint(connection)
        if listener.name is None or (len(local.raw), local.port) != (len(listener.name.raw), listener.name.port):
            raise OSError("the number is another file's by now")
        limits = self.limits
        peer = remote_endpoint(connection)
        network = _network(peer)
        is_within_rate = not network or self._count_new_connection(network, now)
        is_local_monitor = not network and not listener.is_for_peers
        if len(self._open) >= limits.total + (LOCAL_MONITORS if is_local_monitor else 0):
            self._reject(connection, "total", f"there are {limits.total} already (--connection-limit, or open files)")
        elif network and self._count_by_network.get(network, 0) >= limits.per_address:
            self._reject(
                connection, "address", f"{peer.text} has {limits.per_address} already (--address-connection-limit)"
            )
        elif not is_within_rate:
            self._reject(
                connection,
                "rate",
                f"{peer.text} makes more than {limits.per_second} a second (--connection-rate-limit)",
            )
        else:
            self._count_by_network[network] = self._count_by_network.get(network, 0) + 1
            self._open[descriptor] = _Connection(listener, peer, network, now + limits.idle_timeout_seconds)
            if network:
                listener.handshakes.limit(descriptor, connection, peer, now)

    def _reject(self, connection: int, kind: str, why: str) -> None:
        shut_down(connection)
        self.cut_count += 1
        self._log_lines[kind] = f"a connection was cut as soon as it was made: {why}"

    def cut_flooding_subscriber(self, descriptor: int) -> None:
        """End this one, whose peer subscribes without end. Called by other threads as well."""
        known = self._open.get(descriptor)
        if known is not None and self._end(descriptor):
            self._log_lines["flooding"] = f"a connection from {known.peer.text} was cut: it subscribes without end"

    def _end(self, descriptor: int) -> bool:
        """Cut this connection; returns whether it was there still."""
        known = self._open.get(descriptor)
        if known is None:
            return False
        try:
            with duplicate(descriptor) as connection:
                if remote_endpoint(connection) != known.peer:
                    return False  # another one by now, of which ZeroMQ is about to tell
                shut_down(connection)
        except OSError:
            return False  # over by now
        self.cut_count += 1
        return True

    # ----------------------------------------------------------------------------------------------- how many a second

    def _count_new_connection(self, network: bytes, now: float) -> bool:
        """Returns whether it may stay."""
        if now - self._window_began >= HOLD_SECONDS:
            self._begin_rate_window(now)
        count = self._new_by_network[network] = self._new_by_network.get(network, 0) + 1
        if count <= self.limits.per_second:
            return True
        if network in self._held_networks:
            return True  # was on its way when it was held: the system has kept others of it away since
        self._held_networks.add(network)
        self._log_lines["held"] = (
            f"more than {self.limits.per_second} connections in a second from {_text(network)} "
            "(--connection-rate-limit): more have to wait"
        )
        if self._apply_hold():
            return True
        self._held_networks.discard(network)
        return False

    def _begin_rate_window(self, now: float) -> None:
        self._window_began = now
        self._new_by_network.clear()
        if self._held_networks:
            self._held_networks.clear()
            self._apply_hold()

    def _apply_hold(self) -> bool:
        """Returns whether the system can do it at all."""
        can = True
        for listener in self._listeners:
            try:
                name = local_endpoint(listener.descriptor)
                if name.address and name == listener.name:
                    can = syn_filter.hold_networks(listener.descriptor, self._held_networks) and can
            except OSError:
                pass  # closed by now
        return can

    # ------------------------------------------------------------------------------------------------- who says nothing

    def check(self, now: float) -> None:
        if self._held_networks and now - self._window_began >= HOLD_SECONDS:
            self._begin_rate_window(now)
        for listener in self._listeners:
            for violation in listener.handshakes.check(now):
                whose = self._open[violation.descriptor].peer.text
                self._log_lines["handshake"] = f"a connection from {whose} {violation.text}"
                if violation.must_cut:
                    self._end(violation.descriptor)
        if now >= self._next_sweep:
            self._next_sweep = now + min(10.0, self.limits.idle_timeout_seconds / 10)
            for descriptor, each in list(self._open.items()):
                if now >= each.next_check and each.listener.is_for_peers and each.network:
                    self._check_idle(descriptor, each, now)

    def _check_idle(self, descriptor: int, known: _Connection, now: float) -> None:
        try:
            with duplicate(descriptor) as connection:
                if remote_endpoint(connection) != known.peer:
                    return  # another one by now, of which ZeroMQ is about to tell
                left = self.limits.idle_timeout_seconds - idle_seconds(connection)
                known.next_check = now + max(left, 0.0)
                if left <= 0:
                    shut_down(connection)
                    self.cut_count += 1
                    self._log_lines["silent"] = (
                        f"a connection from {known.peer.text} was cut: nothing has come for "
                        f"{self.limits.idle_timeout_seconds:g} s"
                    )
        except OSError:
            pass  # over by now


def _network(name: Endpoint) -> bytes:
    """Whose connections are counted together; empty for the sockets of a file, whose mode says who may connect."""
    return name.address if len(name.address) <= 4 else name.address[:8]


def _text(network: bytes) -> str:
    if not network:
        return "somebody"
    return str(ipaddress.ip_address(network if len(network) == 4 else network.ljust(16, b"\0")))
