"""The socket of all programs that watch a scheduler. It feeds what the monitor address publishes to a MonitorReader.

A program waits in `wait`, or lets an event loop wait for `fileno` and then calls `read`. ZeroMQ reconnects by itself.
For one thread.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import zmq

from ..commands.addresses import Address
from ..commands.key_files import MONITOR, KeyFileError, PeerKeys, key_error_text
from ..net.curve import apply_monitor_keys, load_keys
from ..net.host_lookup import HostLookup
from ..net.sockets import ReconnectWatcher
from ..protocol.snapshot_decoder import SNAPSHOT_TOPIC
from .reader import MonitorReader

RECONNECT_MILLISECONDS = 100
MAX_RECONNECT_MILLISECONDS = 1000
RECEIVE_QUEUE = 64
"""How many messages may wait here for a slow program. Further messages wait at the scheduler."""
HEARTBEAT_MILLISECONDS = 5000
"""For tcp. A subscriber sends nothing else. So without heartbeats it would not notice that the other host is down."""
TICK_SECONDS = 0.5
"""`read` must be called at least this often, to notice a scheduler that sends nothing."""


OWN_ADDRESS_HINT = "; or this is the scheduler's own address, not its monitor address"
"""A hint for a connection that is closed without a reason: the scheduler's own address rejects a monitor's key this
way.
"""

REJECTED_RETRY_SECONDS, MAX_REJECTED_RETRY_SECONDS = 2.0, 30.0
"""Until the next attempt after the scheduler has rejected the key."""


class MonitorAccessError(Exception):
    """This user cannot receive messages from a monitor address. The text is one line that says why."""


class MonitorKeysError(MonitorAccessError):
    """The folder of keys has no valid keys of a monitor."""


class MonitorSocket:
    """A subscription to a monitor address.

    Args:
        address: where the scheduler publishes. The scheduler may start later.
        topics: topics to subscribe to (`snapshot_decoder.py` has them).
        clock: returns seconds of a monotonic clock.
        keys: the folder with a monitor's keys, for a tcp address. None takes it from SCALER_KEYS; empty means no keys.

    Raises:
        MonitorAccessError: the socket file exists and is not for this user, or the file is not a socket.
        MonitorKeysError: the keys cannot be read. It is a MonitorAccessError.
    """

    def __init__(
        self,
        address: Address,
        topics: Iterable[bytes] = (SNAPSHOT_TOPIC,),
        clock: Callable[[], float] = time.monotonic,
        keys: str | None = None,
    ) -> None:
        check_access(address)
        self.address = address
        self._clock = clock
        self._keys = _keys_for(address, keys)
        self.reader = MonitorReader(clock())
        """The known state of the scheduler at the address."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, RECEIVE_QUEUE)
        self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MILLISECONDS)
        self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, MAX_RECONNECT_MILLISECONDS)
        if address.transport == "tcp":
            self._socket.setsockopt(zmq.IPV6, int(address.is_ipv6))
            self._socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MILLISECONDS)
        for topic in topics:
            self._socket.subscribe(topic)
        apply_monitor_keys(self._socket, address, self._keys)
        self._handshakes = ReconnectWatcher(self._socket, endpoint=str(address), clock=clock)
        self._retry_seconds = REJECTED_RETRY_SECONDS
        self._host = HostLookup(address)
        self._retry_at = 0.0
        self._socket.connect(str(address))

    def fileno(self) -> int:
        """A descriptor for an event loop, which calls `read` when it is readable: a message *may* have come. It becomes
        readable only once for all waiting messages. So call `read` after `subscribe` too, and at least every
        TICK_SECONDS.
        """
        return int(self._socket.getsockopt(zmq.FD))

    def read(self) -> bool:
        """Feed all waiting messages to the reader, without waiting, and detect silence.

        Returns:
            Whether there is something new to show.
        """
        is_new = False
        while True:
            try:
                frame = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            is_new |= self.reader.feed(frame, self._clock())
        self._retry_rejected_key()
        return self.reader.tick(self._clock()) or is_new

    def _retry_rejected_key(self) -> None:
        """Reconnect if the scheduler has rejected the key. ZeroMQ does not, but the key may be authorized later."""
        self._handshakes.retry()
        self._handshakes.has_reconnected()
        failure = self._handshakes.failure
        if failure is None:
            self._retry_seconds = REJECTED_RETRY_SECONDS
        elif failure.is_final and self._clock() >= self._retry_at:
            self._retry_at = self._clock() + self._retry_seconds
            self._retry_seconds = min(2 * self._retry_seconds, MAX_REJECTED_RETRY_SECONDS)
            with suppress(zmq.ZMQError):  # ZeroMQ has already dropped the connection
                self._socket.disconnect(str(self.address))
            self._socket.connect(str(self.address))

    def wait(self, seconds: float) -> bool:
        """Like `read`, but wait up to `seconds` until there is something new to show."""
        deadline = self._clock() + seconds
        while not self.read():
            left = deadline - self._clock()
            if left <= 0:
                return False
            self._socket.poll(max(1, int(1000 * min(left, TICK_SECONDS))))
        return True

    def subscribe(self, topic: bytes) -> None:
        """Subscribe to one more topic."""
        self._socket.subscribe(topic)

    def unsubscribe(self, topic: bytes) -> None:
        """Unsubscribe from a topic. Messages that are on their way still arrive."""
        self._socket.unsubscribe(topic)

    def connection_problem(self) -> str:
        """Why no message can arrive, judged by the keys, the host's name and the socket file; empty if nothing is
        wrong.
        """
        failure = self._handshakes.failure
        if failure is not None:
            is_unknown = self._keys is not None and not failure.is_final
            return failure.text(self._keys) + (OWN_ADDRESS_HINT if is_unknown else "")
        return connection_problem(self.address) or self._host.problem()

    def close(self) -> None:
        """Close the socket. A second call does nothing."""
        if not self._context.closed:
            self._handshakes.close()
            self._context.destroy(linger=0)

    def __enter__(self) -> MonitorSocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _keys_for(address: Address, directory: str | None) -> PeerKeys | None:
    try:
        return load_keys(directory, MONITOR) if address.transport == "tcp" else None
    except KeyFileError as error:
        raise MonitorKeysError(f"{address}: {key_error_text(directory or '', error)}") from None


def check_access(address: Address) -> None:
    """Check that this user can connect to an address.

    Raises:
        MonitorAccessError: the user cannot; the text says why.
    """
    reason, is_final = _check_path(address)
    if is_final:
        raise MonitorAccessError(f"{address}: {reason}")


def connection_problem(address: Address) -> str:
    """Why no message can arrive from an address, judged by the socket file; empty if nothing is wrong."""
    return _check_path(address)[0]


def _check_path(address: Address) -> tuple[str, bool]:
    """What prevents a connection, and whether waiting is useless. ZeroMQ retries for ever and does not report it."""
    path = address.path
    if address.transport != "ipc" or path.startswith("@"):
        return "", False
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno == errno.EACCES:
            return f"permission denied: the folder of {path} cannot be entered{_folder_owner(path)}", True
        return f"{path} does not exist yet: the scheduler does not run, or publishes elsewhere", False
    if not stat.S_ISSOCK(found.st_mode):
        return f"{path} is not a socket", True
    if not os.access(path, os.W_OK):
        return f"permission denied: the socket is for {_owner(found)}", True
    return "", False


def _folder_owner(path: str) -> str:
    try:
        return f", it is for {_owner(os.stat(os.path.dirname(path)))}"
    except OSError:
        return ""


def _owner(found: os.stat_result) -> str:
    import grp  # not on Windows, which has no ipc either
    import pwd

    try:
        user = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        user = str(found.st_uid)
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    if not found.st_mode & 0o020 and stat.S_ISSOCK(found.st_mode):
        return f"the user {user} only"
    return f"the user {user} and the group {group}"
