"""A data address: host agents get object files there, chunk by chunk.

A client and a host agent have one each. Each request is answered by itself. Whoever does not know the ticket gets
nothing. A message that is no request is dropped and counted.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import stat
import time
from contextlib import suppress
from dataclasses import replace

import zmq

from ..commands.addresses import DATA_ADDRESS_AUTO, Address, bind_error_text
from ..commands.key_files import PeerKeys
from ..commands.object_files import CHUNK_BYTES, DO_NOT_WAIT, FLAGS, ObjectName, path_of
from ..protocol.messages import DataAddress, NoObject, ObjectChunk, ReadObject
from ..protocol.wire import WireError, decode, encode
from .bounded_listener import BoundedListener
from .curve import is_local_address
from .host_lookup import interface_to

MAX_REQUEST_BYTES = 16 * 1024
"""ZeroMQ cuts a connection that sends a longer frame."""

MAX_QUEUED_MESSAGES = 32
"""Per peer: chunks that wait to be sent, and requests that wait to be read. What comes beyond is dropped."""

REQUESTS_PER_ROUND = 32
ROUND_SECONDS = 0.05
"""At most so many requests are answered, for at most so long, before the caller serves its other sources."""

PEER_INTERVAL_MILLISECONDS = 10_000
"""Between two signs of life of a connection. After three, ZeroMQ drops a dead one."""

HANDSHAKE_MILLISECONDS = 5000
"""ZeroMQ ends a connection whose handshake takes longer."""

LOG_SECONDS = 60.0
"""The least time between two log lines about bad messages."""

NO_FILE = "there is no such file"

_log = logging.getLogger(__name__)


class DataAddressError(OSError):
    """The data address cannot be bound. The text says why and what to do, in one line."""


class DataServer:
    """The socket of the data address.

    Args:
        wanted: where to bind it; `auto`: a free port of the interface that leads to the scheduler; empty: nowhere.
        scheduler: the scheduler's address.
        keys: the keys of this peer; None: connections are not encrypted.
        directory: of the object files.

    Raises:
        DataAddressError: the address cannot be bound, or must not be bound without keys.
    """

    option, keys_option = "data_address", "keys=DIR"
    """The options of this peer, for error texts."""

    def __init__(self, wanted: Address | str, scheduler: Address, keys: PeerKeys | None, directory: str) -> None:
        self._directory = directory
        self.keys = keys
        self._ticket = secrets.token_hex(16)
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self.socket: zmq.Socket[bytes] | None = None
        """None: there is no data address."""
        self.listener: BoundedListener | None = None
        """Poll it too, and call `serve` then."""
        self.address = DataAddress()
        """What agents need to know; its address is empty if there is none."""
        self._bad_messages = 0
        self._log_at = 0.0
        host = interface_to(scheduler)
        if wanted == DATA_ADDRESS_AUTO:
            wanted = Address("tcp", host, 0, "") if host else ""
        if not isinstance(wanted, Address):
            return
        self._check_bind(wanted, scheduler, keys)
        self._bind(wanted, host, keys)

    def _check_bind(self, address: Address, scheduler: Address, keys: PeerKeys | None) -> None:
        """Refuse an address that other machines reach, without keys, unless the scheduler is on another machine, and so
        accepts peers without keys itself."""
        is_open = address.host == "*" or not _is_loopback(address.host)
        if keys is None and is_open and is_local_address(scheduler):
            raise DataAddressError(
                f"{self.option}: {address} can be reached from other machines, which could then read the data of "
                f"tasks: give {self.keys_option} (the scheduler too), or a data address of this machine, as "
                "tcp://127.0.0.1:*"
            )

    def _bind(self, address: Address, host: str, keys: PeerKeys | None) -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.ROUTER)
        options = {
            zmq.LINGER: 0,
            zmq.IPV6: int(address.is_ipv6),
            zmq.MAXMSGSIZE: MAX_REQUEST_BYTES,
            zmq.SNDHWM: MAX_QUEUED_MESSAGES,
            zmq.RCVHWM: MAX_QUEUED_MESSAGES,
            zmq.HANDSHAKE_IVL: HANDSHAKE_MILLISECONDS,
            zmq.HEARTBEAT_IVL: PEER_INTERVAL_MILLISECONDS,
            zmq.HEARTBEAT_TIMEOUT: 3 * PEER_INTERVAL_MILLISECONDS,
        }
        for option, value in options.items():
            self.socket.setsockopt(option, value)
        if keys is not None:
            self.socket.setsockopt(zmq.CURVE_SERVER, 1)
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
        try:
            self.socket.bind(str(address))
        except zmq.ZMQError as error:
            self.close()
            raise DataAddressError(
                f"{self.option}: cannot bind {address}: {bind_error_text(error.errno or 0)}"
            ) from None
        endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        bound = endpoint.decode().rstrip("\0")
        self.listener = BoundedListener(self.socket, bound)
        port = int(bound.rpartition(":")[2])
        is_every = address.host in ("*", "0.0.0.0", "::")
        announced = Address("tcp", (host or socket.gethostname()) if is_every else address.host, port, "")
        self.address = DataAddress(str(announced), "" if keys is None else keys.public.hex(), self._ticket)

    def take_ticket(self, ticket: str) -> None:
        """Accept only this ticket from now on. Another thread may serve."""
        if self.socket is not None:
            self._ticket = ticket
            self.address = replace(self.address, ticket=ticket)

    def serve(self) -> None:
        """Answer requests that have come. A bad message never raises."""
        if self.socket is None or self.listener is None:
            return
        self.listener.check()
        until = time.monotonic() + ROUND_SECONDS
        for _ in range(REQUESTS_PER_ROUND):
            try:
                route, *frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            self.receive(route, frames)
            if time.monotonic() > until:
                break
        if self._bad_messages and time.monotonic() >= self._log_at:
            self._log_at = time.monotonic() + LOG_SECONDS
            text = "data address %s: dropped %d messages that are no requests of an agent"
            _log.warning(text, self.address.address, self._bad_messages)
            self._bad_messages = 0

    def deadline(self) -> float:
        """When `serve` is to be called next, at the latest, in seconds of the monotonic clock."""
        return float("inf") if self.listener is None else self.listener.bind_at

    def end_connections(self, why: str) -> None:
        """End all connections, to free their files. Peers may connect again after a while."""
        if self.listener is not None:
            self.listener.end_connections(why)

    def receive(self, route: bytes, frames: list[bytes]) -> None:
        """Handle a message of a peer. It may be anything."""
        try:
            request = decode(frames)
            if not isinstance(request, ReadObject):
                raise WireError("it is not readObject")
        except WireError as error:
            self._bad_messages += 1
            _log.debug("data address: dropped a message: %s", error)
            return
        self._handle(route, request)

    def _handle(self, route: bytes, request: ReadObject) -> None:
        """Answer a request, now or later."""
        self._send(route, self.answer(request) or NoObject(request.client, request.id, NO_FILE))

    def _send(self, route: bytes, answer: ObjectChunk | NoObject) -> None:
        with suppress(zmq.ZMQError):  # the peer has gone, or does not read its answers
            if self.socket is not None:
                self.socket.send_multipart([route, *encode(answer)], zmq.NOBLOCK, copy=False)

    def answer(self, request: ReadObject) -> ObjectChunk | NoObject | None:
        """Return the answer to a request; None: the chunk is not there, but may come."""
        if not secrets.compare_digest(request.ticket.encode(), self._ticket.encode()):
            return NoObject(request.client, request.id, "the ticket is wrong")
        name = request.client, request.id
        try:
            try:
                descriptor = self._open(name)
            except FileNotFoundError:
                part = self._part(name, request.offset, min(request.bytes, CHUNK_BYTES))
                return None if part is None else ObjectChunk(*name, request.offset, *part)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(0, NO_FILE)
                size = min(request.bytes, CHUNK_BYTES, max(0, status.st_size - request.offset))
                payload = os.pread(descriptor, size, request.offset) if size else b""
            finally:
                os.close(descriptor)
        except OSError as error:
            return NoObject(request.client, request.id, error.strerror or NO_FILE)
        return ObjectChunk(request.client, request.id, request.offset, status.st_size, payload)

    def _open(self, name: ObjectName) -> int:
        """Open a file; return its descriptor.

        Raises:
            FileNotFoundError: it is not there, and may come.
            OSError: it can't be read.
        """
        return os.open(path_of(self._directory, name), os.O_RDONLY | DO_NOT_WAIT | FLAGS)

    def _part(self, name: ObjectName, offset: int, size: int) -> tuple[int, bytes] | None:
        """Return the size of a file that is not complete yet, and a chunk of it; None: the chunk is not there."""
        return None

    def close(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        if self._context is not None:
            self._context.destroy(linger=0)
            self.socket = self._context = None


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(str(each[4][0]).startswith("127.") or each[4][0] == "::1" for each in found)
