"""The open connections by their file descriptors, and their limits.

ZeroMQ accepts and closes connections by itself, and reports both afterwards. This module has two means. It ends a
connection by a system call; to ZeroMQ this looks as if the peer had ended it. It also makes the kernel hold new
connections from an address (`syn_filter.py`).
"""

from __future__ import annotations

import ipaddress
import resource
from dataclasses import dataclass, field

from . import syn_filter
from .descriptors import Endpoint, duplicate, idle_seconds, local_endpoint, remote_endpoint, save_syn_packets, shut_down
from .handshake_guard import HandshakeGuard

RESERVED_FILES = 64
"""Open files besides connections: log files, keys, ZeroMQ's own, and one to end a connection. Without a free file
ZeroMQ would try to accept again and again."""

MIN_CONNECTIONS = 16
"""The least number of connections that is allowed, even if the limit of open files is lower."""

LOCAL_MONITORS = 16
"""Connections to a monitor's ipc address above the limit, so that the operator can watch a full scheduler."""

HOLD_SECONDS = 1.0
"""The window in which new connections are counted, and the longest time that an address is held."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the connections to the scheduler."""

    total: int
    """Connections at one time, from all addresses together."""
    per_address: int
    """Connections at one time from one address (IPv6: one /64 network)."""
    per_second: int
    """New connections a second from one address."""
    idle_timeout_seconds: float
    """A connection is cut if nothing has come from it for longer."""


def connections_within_files(wanted: int, files: int) -> int:
    """The number of connections that the limit of open files allows, at most `wanted`."""
    return wanted if files == resource.RLIM_INFINITY else min(wanted, max(MIN_CONNECTIONS, files - RESERVED_FILES))


@dataclass
class Listener:
    """A bound socket."""

    is_for_peers: bool
    """Whether its peers must send messages regularly."""
    handshakes: HandshakeGuard = field(default_factory=lambda: HandshakeGuard(has_keys=False))
    descriptor: int = -1
    endpoint: Endpoint | None = None
    """The address as the system has it; None before the socket is bound."""
    has_failed_handshake: bool = False
    """Whether a handshake has failed whose connection is not known yet: libzmq's next event tells its end."""


@dataclass
class _Connection:
    listener: Listener
    peer: Endpoint
    network: bytes
    next_check: float


class Connections:
    """Tracks and limits connections. One thread uses it; others only read `cut_count` and call `pop_log_lines`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.cut_count = 0
        """Connections that this object has cut."""
        self._open: dict[int, _Connection] = {}
        self._count_by_network: dict[bytes, int] = {}
        self._listeners: list[Listener] = []
        self._window_began = 0.0
        """When the current window of new connections began."""
        self._new_by_network: dict[bytes, int] = {}
        self._held_networks: set[bytes] = set()
        self._next_sweep = 0.0
        self._log_lines: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def seconds_to_next_check(self) -> float:
        """Call `check` again within this time."""
        longest = HOLD_SECONDS / 20 if self._held_networks or not self._listeners else HOLD_SECONDS
        return min([longest, *(each.handshakes.seconds_to_next_check for each in self._listeners)])

    def pop_log_lines(self) -> list[str]:
        """The lines for the log since the previous call, at most one of each kind."""
        lines, self._log_lines = self._log_lines, {}
        return list(lines.values())

    # ------------------------------------------------------------------------------------------------ events of ZeroMQ

    def on_listening(self, listener: Listener, descriptor: int) -> None:
        """A socket listens at this descriptor."""
        try:
            listener.endpoint = local_endpoint(descriptor)
        except OSError:
            return  # the socket is closed already
        listener.descriptor = descriptor
        self._listeners.append(listener)
        if listener.endpoint.address:
            try:
                save_syn_packets(descriptor)
            except OSError:
                return  # not supported by this system: only time limits handshakes
            syn_filter.hold_networks(descriptor, self._held_networks)

    def on_closed(self, listener: Listener) -> None:
        """Forget the socket and all of its connections."""
        self._listeners = [each for each in self._listeners if each is not listener]
        for descriptor in [number for number, each in self._open.items() if each.listener is listener]:
            self.on_disconnected(listener, descriptor)

    def on_accepted(self, listener: Listener, descriptor: int, now: float) -> None:
        """A connection was accepted. Cut it if it exceeds a limit."""
        self.on_disconnected(listener, descriptor)  # an older connection had this number
        if listener.endpoint is not None and listener.endpoint.address:
            listener.handshakes.begin(descriptor, now)
        try:
            with duplicate(descriptor) as connection:
                self._admit(listener, descriptor, connection, now)
        except OSError:
            # It has ended, and its peer is not known. Count it for the network with the most new connections.
            self._count_new_connection(
                max(self._new_by_network, key=self._new_by_network.__getitem__, default=b""), now
            )

    def on_disconnected(self, listener: Listener, descriptor: int) -> Endpoint | None:
        """Forget a connection. Returns its other end if its handshake was not known to be over."""
        failed = listener.handshakes.ended(descriptor)
        gone = self._open.pop(descriptor, None)
        if gone is not None:
            left = self._count_by_network[gone.network] = self._count_by_network[gone.network] - 1
            if not left:
                del self._count_by_network[gone.network]
        return failed

    def _admit(self, listener: Listener, descriptor: int, connection: int, now: float) -> None:
        local = local_endpoint(connection)
        if listener.endpoint is None or (len(local.raw), local.port) != (
            len(listener.endpoint.raw),
            listener.endpoint.port,
        ):
            raise OSError("the descriptor is that of another file now")
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
        self._log_lines[kind] = f"a new connection was cut: {why}"

    def cut_flooding_subscriber(self, descriptor: int) -> None:
        """Cut a connection whose peer sends too many subscriptions. Other threads may call this method."""
        known = self._open.get(descriptor)
        if known is not None and self._end(descriptor):
            self._log_lines["flooding"] = (
                f"a connection from {known.peer.text} was cut: it sends too many subscriptions"
            )

    def _end(self, descriptor: int) -> bool:
        """Cut a connection. Returns whether it was still open."""
        known = self._open.get(descriptor)
        if known is None:
            return False
        try:
            with duplicate(descriptor) as connection:
                if remote_endpoint(connection) != known.peer:
                    return False  # another connection has this number now; ZeroMQ's event is still to come
                shut_down(connection)
        except OSError:
            return False  # it has ended
        self.cut_count += 1
        return True

    # -------------------------------------------------------------------------------------- rate of new connections

    def _count_new_connection(self, network: bytes, now: float) -> bool:
        """Count a new connection of a network. Returns whether it may stay."""
        if now - self._window_began >= HOLD_SECONDS:
            self._begin_rate_window(now)
        count = self._new_by_network[network] = self._new_by_network.get(network, 0) + 1
        if count <= self.limits.per_second:
            return True
        if network in self._held_networks:
            return True  # its first packet came before the hold; the system holds further ones
        self._held_networks.add(network)
        self._log_lines["held"] = (
            f"more than {self.limits.per_second} connections in a second from {_text(network)} "
            "(--connection-rate-limit): further ones wait"
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
        """Tell the system which networks to hold. Returns whether the system supports it."""
        is_supported = True
        for listener in self._listeners:
            try:
                endpoint = local_endpoint(listener.descriptor)
                if endpoint.address and endpoint == listener.endpoint:
                    is_held = syn_filter.hold_networks(listener.descriptor, self._held_networks)
                    is_supported = is_supported and is_held
            except OSError:
                pass  # the socket is closed
        return is_supported

    # -------------------------------------------------------------------------------------------- silent connections

    def check(self, now: float) -> None:
        """End holds, and cut connections without a handshake or without traffic."""
        if self._held_networks and now - self._window_began >= HOLD_SECONDS:
            self._begin_rate_window(now)
        for listener in self._listeners:
            for violation in listener.handshakes.check(now):
                address = self._open[violation.descriptor].peer.text
                self._log_lines["handshake"] = f"a connection from {address} {violation.text}"
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
                    return  # another connection has this number now; ZeroMQ's event is still to come
                left = self.limits.idle_timeout_seconds - idle_seconds(connection)
                known.next_check = now + max(left, 0.0)
                if left <= 0:
                    shut_down(connection)
                    known.next_check = float("inf")  # ZeroMQ's event may be late: count it once
                    self.cut_count += 1
                    self._log_lines["silent"] = (
                        f"a connection from {known.peer.text} was cut: nothing has come for "
                        f"{self.limits.idle_timeout_seconds:g} s"
                    )
        except OSError:
            pass  # it has ended


def _network(peer: Endpoint) -> bytes:
    """The network that a connection is counted for. Empty for an ipc socket: its file mode says who may connect."""
    return peer.address if len(peer.address) <= 4 else peer.address[:8]


def _text(network: bytes) -> str:
    if not network:
        return "an unknown address"
    return str(ipaddress.ip_address(network if len(network) == 4 else network.ljust(16, b"\0")))
