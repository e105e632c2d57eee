"""The socket of all programs that watch a scheduler: what its monitor address publishes, in a MonitorReader.

One may wait in it (`wait`), or have an event loop wait (`fileno`, then `read`). ZeroMQ connects again by itself when
there is a scheduler again. For one thread.
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
from ..commands.key_files import MONITOR, KeyFileError, PeerKeys
from ..net.curve import given_keys, secure_monitor
from ..net.host_lookup import HostLook
from ..net.sockets import Reconnects
from ..protocol.snapshot_decoder import SNAPSHOT_TOPIC
from .reader import MonitorReader

RECONNECT_MILLISECONDS = 100
MAX_RECONNECT_MILLISECONDS = 1000
RECEIVE_QUEUE = 64
"""Messages that wait for a program that does not read, beside those that the scheduler keeps."""
HEARTBEAT_MILLISECONDS = 5000
"""Of tcp: a subscriber sends nothing else, and would never learn that the other host was switched off."""
TICK_SECONDS = 0.5
"""How often, at the least, `read` is to be called: nothing comes when the scheduler falls silent."""


OWN_ADDRESS_HINT = "; or this is no monitor address, but the scheduler's own"
"""To be said where the other side hangs up without a word: to a monitor's key the scheduler's own address does so."""

REJECTED_RETRY_SECONDS, MAX_REJECTED_RETRY_SECONDS = 2.0, 30.0
"""Until it is tried again where the scheduler has refused the key."""


class MonitorAccessError(Exception):
    """Nobody of this user will ever hear anything at a monitor address; the text is one line that says why."""


class MonitorKeysError(MonitorAccessError):
    """The folder of keys that was given has not what a monitor needs."""


class MonitorSocket:
    """Subscribed to a monitor address.

    Args:
        address: where the scheduler publishes, there already or not.
        topics: what is wanted (`snapshot_decoder.py` has them).
        clock: seconds of a monotonic clock.
        keys: the folder with a monitor's keys, for an address of tcp; None takes it from SCALER_KEYS, empty means none.

    Raises:
        MonitorAccessError: the socket's file is there and not for this user, or is none; MonitorKeysError, which is
            one: the keys can't be read.
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
        """What is known of the scheduler there."""
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
        secure_monitor(self._socket, address, self._keys)
        self._handshakes = Reconnects(self._socket, endpoint=str(address), clock=clock)
        self._retry_seconds = REJECTED_RETRY_SECONDS
        self._host = HostLook(address)
        self._retry_at = 0.0
        self._socket.connect(str(address))

    def fileno(self) -> int:
        """What an event loop waits for, to call `read`: readable when something *may* have come.

        It is readable once for all that is there, so that `read` is to be called after `subscribe` too, and twice a
        second (TICK_SECONDS) anyway.
        """
        return int(self._socket.getsockopt(zmq.FD))

    def read(self) -> bool:
        """Take all that has come, without waiting, and notice silence.

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
        """ZeroMQ does not by itself where the scheduler has refused the key: it may be authorized later."""
        self._handshakes.retry()
        self._handshakes.take()
        failure = self._handshakes.failure
        if failure is None:
            self._retry_seconds = REJECTED_RETRY_SECONDS
        elif failure.is_final and self._clock() >= self._retry_at:
            self._retry_at = self._clock() + self._retry_seconds
            self._retry_seconds = min(2 * self._retry_seconds, MAX_REJECTED_RETRY_SECONDS)
            with suppress(zmq.ZMQError):  # it has forgotten it already
                self._socket.disconnect(str(self.address))
            self._socket.connect(str(self.address))

    def wait(self, seconds: float) -> bool:
        """As `read`, and waits up to so many seconds until there is something new to show."""
        deadline = self._clock() + seconds
        while not self.read():
            left = deadline - self._clock()
            if left <= 0:
                return False
            self._socket.poll(max(1, int(1000 * min(left, TICK_SECONDS))))
        return True

    def subscribe(self, topic: bytes) -> None:
        """Want one more topic, from now on."""
        self._socket.subscribe(topic)

    def unsubscribe(self, topic: bytes) -> None:
        """Want a topic no more; what is under way still comes."""
        self._socket.unsubscribe(topic)

    def connection_problem(self) -> str:
        """Why nothing may come, as far as keys, the host's name or the socket's file show it; empty where nothing is
        seen (yet)."""
        failure = self._handshakes.failure
        if failure is not None:
            is_unknown = self._keys is not None and not failure.is_final
            return failure.text(self._keys) + (OWN_ADDRESS_HINT if is_unknown else "")
        return connection_problem(self.address) or self._host.complaint()

    def close(self) -> None:
        """Leave. A second call does nothing."""
        if not self._context.closed:
            self._handshakes.close()
            self._context.destroy(linger=0)

    def __enter__(self) -> MonitorSocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _keys_for(address: Address, directory: str | None) -> PeerKeys | None:
    try:
        return given_keys(directory, MONITOR) if address.transport == "tcp" else None
    except KeyFileError as error:
        raise MonitorKeysError(f"{address}: {error}") from None


def check_access(address: Address) -> None:
    """Whether one can ever hear something there.

    Raises:
        MonitorAccessError: no, and why.
    """
    reason, is_final = _check_path(address)
    if is_final:
        raise MonitorAccessError(f"{address}: {reason}")


def connection_problem(address: Address) -> str:
    """Why nothing may come from there, as far as the socket's file shows it; empty where nothing is seen."""
    return _check_path(address)[0]


def _check_path(address: Address) -> tuple[str, bool]:
    """What is in the way, and whether waiting won't help: ZeroMQ tries again for ever, and does not say why."""
    path = address.path
    if address.transport != "ipc" or path.startswith("@"):
        return "", False
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno == errno.EACCES:
            return f"permission denied: the folder of {path} can't be entered{_folder_owner(path)}", True
        return f"there is no {path} yet: the scheduler does not run, or publishes elsewhere", False
    if not stat.S_ISSOCK(found.st_mode):
        return f"{path} is no socket", True
    if not os.access(path, os.W_OK):
        return f"permission denied: it is for {_owner(found)}", True
    return "", False


def _folder_owner(path: str) -> str:
    try:
        return f", it is for {_owner(os.stat(os.path.dirname(path)))}"
    except OSError:
        return ""


def _owner(found: os.stat_result) -> str:
    import grp  # these two are where ipc is
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
        return f"the user {user} alone"
    return f"the user {user} and the group {group}"
