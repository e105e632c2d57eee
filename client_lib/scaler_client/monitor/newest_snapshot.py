"""What a scheduler on this machine says of itself, for whoever shows it now and then."""

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
"""How long somebody is kept who looks for the first time: snapshots come once a second, and what a notebook shows of a
client it shows once, most often of a new one."""


class NewestSnapshot:
    """The newest snapshot of the scheduler at an address, where it publishes them on this machine as it does unless
    told otherwise. It listens from the first look on. For any thread.

    Args:
        address: the scheduler's, as it is bound or as it is connected to.
        monitor: where it publishes, if it was told where.
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
        """The newest one, where there is any, of the scheduler of this incarnation if one is given.

        Waits for it at the first look, for a second or so at most.
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
            self._lock.release()
        newest = self._newest
        return newest if newest is not None and incarnation in (0, newest.incarnation) else None

    def wait(self, incarnation: int, seconds: float, is_wanted: Callable[[Snapshot], bool]) -> Snapshot | None:
        """The newest one, waited for until it is wanted or the time is over: of the scheduler of this incarnation, of
        any one for 0.

        Does not wait where no scheduler publishes.
        """
        deadline = time.monotonic() + seconds
        with self._lock:
            if self._socket is None and not self._is_closed:
                self._connect()
            while self._socket is not None:
                newest, left = self._newest, max(0.0, deadline - time.monotonic())
                is_found = newest is not None and incarnation in (0, newest.incarnation) and is_wanted(newest)
                if not self._socket.poll(0 if is_found else round(left * 1000)):
                    break
                self._decode(self._socket.recv())
        return self.latest(incarnation)

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        with self._lock:
            self._is_closed = True
            self._newest = None
            if self._context is not None:
                self._context.destroy(linger=0)
            self._context = self._socket = None

    def _connect(self) -> None:
        try:
            monitor = self._monitor or find_monitor_address(self._address)
        except AddressError:  # too long a path: the scheduler has none either
            return
        if monitor.transport == "ipc" and not os.path.exists(monitor.path):
            return
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.CONFLATE, 1)  # of all that came since the last look the newest is enough
        self._socket.subscribe(SNAPSHOT_TOPIC)
        self._socket.connect(str(monitor))

    def _decode(self, frame: bytes) -> None:
        try:
            message = wire.decode_published(frame)
        except wire.WireError:
            return  # whatever has the path now is no scheduler of this version
        if isinstance(message, Snapshot):
            self._newest = message
