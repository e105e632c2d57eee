"""The newest snapshot of a scheduler on this machine, for callers that show it from time to time (notebooks)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import zmq

from ..commands.addresses import Address, AddressError
from ..protocol import wire
from ..protocol.snapshot_decoder import SNAPSHOT_TOPIC
from ..protocol.snapshots import Snapshot
from .monitor_address import find_monitor_address

FIRST_WAIT_MILLISECONDS = 1500
"""The longest wait of the first call. Snapshots come once a second, and a notebook shows a new client only once."""

CLOSE_CHECK_SECONDS = 0.1
"""How soon a thread that waits for a snapshot notices that the listening has ended."""


class NewestSnapshot:
    """The newest snapshot of a scheduler on this machine. May be used by any thread.

    It subscribes at the first call, not before. It finds a scheduler only at the default monitor address or at
    `monitor`.

    Args:
        address: the scheduler's own address, as it binds it or as clients connect to it.
        monitor: the monitor address; None takes the default one of `address`.
    """

    def __init__(self, address: Address, monitor: Address | None = None) -> None:
        self._address = address
        self._monitor = monitor
        self._lock = threading.Lock()
        self._is_closed = False
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._newest: Snapshot | None = None

    def latest(self, incarnation: int = 0) -> Snapshot | None:
        """The newest snapshot, or None if there is none yet. The first call waits up to 1.5 s for it.

        Args:
            incarnation: only a snapshot of this scheduler; 0 takes any.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            patience = 0
            if self._socket is None and not self._is_closed:
                self._connect()
                patience = FIRST_WAIT_MILLISECONDS
            if self._socket is not None and self._socket.poll(patience):
                self._decode(self._socket.recv())
        finally:
            self._release()
        newest = self._newest
        return newest if newest is not None and incarnation in (0, newest.incarnation) else None

    def wait(self, incarnation: int, seconds: float, accepts: Callable[[Snapshot], bool]) -> Snapshot | None:
        """Wait up to `seconds` for a snapshot that `accepts` accepts. Returns the newest one in any case, or None.

        Does not wait if no scheduler publishes there.

        Args:
            incarnation: only snapshots of this scheduler; 0 takes any.
        """
        deadline = time.monotonic() + seconds
        if not self._lock.acquire(timeout=max(0.0, seconds)):
            return self.latest(incarnation)
        try:
            if self._socket is None and not self._is_closed:
                self._connect()
            while self._socket is not None and not self._is_closed:
                newest, left = self._newest, max(0.0, deadline - time.monotonic())
                is_found = newest is not None and incarnation in (0, newest.incarnation) and accepts(newest)
                if self._socket.poll(0 if is_found else round(min(left, CLOSE_CHECK_SECONDS) * 1000)):
                    self._decode(self._socket.recv())
                elif is_found or left <= CLOSE_CHECK_SECONDS:
                    break
        finally:
            self._release()
        return self.latest(incarnation)

    def close(self) -> None:
        """Stop listening. A second call does nothing. Does not wait for a thread that listens."""
        self._is_closed = True
        # If the lock is held, its holder closes the socket. It may be this thread, in a signal handler.
        if self._lock.acquire(blocking=False):
            self._release()

    def _release(self) -> None:
        if self._is_closed:
            self._newest = None
            if self._context is not None:
                self._context.destroy(linger=0)
            self._context = self._socket = None
        self._lock.release()
        if self._is_closed and self._context is not None:
            self.close()  # it was called just now

    def _connect(self) -> None:
        try:
            monitor = self._monitor or find_monitor_address(self._address)
        except AddressError:  # the path is too long for a socket, so the scheduler has none
            return
        if monitor.transport == "ipc" and not os.path.exists(monitor.path):
            return
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.CONFLATE, 1)  # only the newest message is kept
        self._socket.subscribe(SNAPSHOT_TOPIC)
        self._socket.connect(str(monitor))

    def _decode(self, frame: bytes) -> None:
        try:
            message = wire.decode_published(frame)
        except wire.WireError:
            return  # the publisher is not a scheduler of this version
        if isinstance(message, Snapshot):
            self._newest = message
