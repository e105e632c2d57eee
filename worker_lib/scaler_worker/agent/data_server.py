"""The agent's data address: other agents get object files there, chunk by chunk.

Each request is answered by itself. A request for a chunk that this host is still fetching waits for it, so a file goes
through several hosts at once. Whoever does not know the ticket gets nothing. A message that is no request is dropped
and counted.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import stat
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import zmq

from scaler_client.commands.addresses import Address, bind_error_text
from scaler_client.commands.key_files import PeerKeys
from scaler_client.commands.object_files import ObjectName
from scaler_client.net.curve import is_local_address
from scaler_client.protocol.messages import DataAddress, NoObject, ObjectChunk, ReadObject
from scaler_client.protocol.wire import WireError, decode, encode

from ..config import DATA_ADDRESS_AUTO
from ..objects.files import ObjectLostError, open_object
from ..objects.host_storage import HostStorage
from .disk_thread import DiskThread
from .downloads import CHUNK_BYTES

MAX_REQUEST_BYTES = 16 * 1024
"""ZeroMQ cuts a connection that sends a longer frame."""

MAX_QUEUED_MESSAGES = 32
"""Per peer: chunks that wait to be sent, and requests that wait to be read. What comes beyond is dropped."""

REQUESTS_PER_ROUND = 32
ROUND_SECONDS = 0.05
"""The agent answers at most so many requests, for at most so long, before it serves its other sources."""

PEER_INTERVAL_MILLISECONDS = 10_000
"""Between two signs of life of a connection. After three, ZeroMQ drops a dead one."""

WAIT_SECONDS = 4.0
"""So long a request waits for its chunk. It is less than CONNECT_SECONDS, after which the other agent gives up the
connection."""

MAX_WAITING = 1024
"""At most so many requests wait."""

LOG_SECONDS = 60.0
"""The least time between two log lines about bad messages."""

_log = logging.getLogger(__name__)


class DataAddressError(Exception):
    """The data address cannot be bound. The text says why and what to do, in one line."""


@dataclass(frozen=True)
class _Waiting:
    """A request, and until when it may wait for its chunk."""

    route: bytes
    request: ReadObject
    deadline: float


class DataServer:
    """The socket of the data address."""

    def __init__(self, wanted: Address | str, scheduler: Address, keys: PeerKeys | None, directory: str) -> None:
        """Bind the socket, unless the address is empty.

        Args:
            wanted: the option `--data-address`.
            scheduler: the scheduler's address.
            keys: the agent's keys; None: connections are not encrypted.
            directory: of the object files.

        Raises:
            DataAddressError: the address cannot be bound, or must not be bound without keys.
        """
        self._directory = directory
        self._storage = HostStorage(directory)
        self.disk: DiskThread | None = None
        """Reads files on disk; None: the caller of `serve` does."""
        self.read_part: Callable[[ObjectName, int, int], tuple[int, bytes] | None] = lambda name, offset, size: None
        """Reads a chunk of a file that is being fetched: `PartFiles.read`."""
        self._waiting: deque[_Waiting] = deque()
        self.keys = keys
        self._ticket = secrets.token_hex(16)
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self.socket: zmq.Socket[bytes] | None = None
        """None: there is no data address."""
        self.address = DataAddress()
        """What other agents need to know; its address is empty if there is none."""
        self._bad_messages = 0
        self._log_at = 0.0
        host = interface_to(scheduler)
        if wanted == DATA_ADDRESS_AUTO:
            wanted = Address("tcp", host, 0, "") if host else ""
        if not isinstance(wanted, Address):
            return
        _check_bind(wanted, scheduler, keys)
        self._bind(wanted, host, keys)

    def _bind(self, address: Address, host: str, keys: PeerKeys | None) -> None:
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.ROUTER)
        options = {
            zmq.LINGER: 0,
            zmq.IPV6: int(address.is_ipv6),
            zmq.MAXMSGSIZE: MAX_REQUEST_BYTES,
            zmq.SNDHWM: MAX_QUEUED_MESSAGES,
            zmq.RCVHWM: MAX_QUEUED_MESSAGES,
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
                f"--data-address: cannot bind {address}: {bind_error_text(error.errno or 0)}"
            ) from None
        endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        port = int(endpoint.decode().rstrip("\0").rpartition(":")[2])
        is_every = address.host in ("*", "0.0.0.0", "::")
        announced = Address("tcp", (host or socket.gethostname()) if is_every else address.host, port, "")
        self.address = DataAddress(str(announced), "" if keys is None else keys.public.hex(), self._ticket)

    def serve(self) -> None:
        """Answer requests that have come. A bad message never raises."""
        if self.socket is None:
            return
        self._serve_waiting()
        until = time.monotonic() + ROUND_SECONDS
        for _ in range(REQUESTS_PER_ROUND):
            try:
                route, *frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            try:
                request = decode(frames)
                if not isinstance(request, ReadObject):
                    raise WireError("it is not readObject")
            except WireError as error:
                self._bad_messages += 1
                _log.debug("data address: dropped a message: %s", error)
                continue
            self._handle(_Waiting(route, request, time.monotonic() + WAIT_SECONDS))
            if time.monotonic() > until:
                break
        if self._bad_messages and time.monotonic() >= self._log_at:
            self._log_at = time.monotonic() + LOG_SECONDS
            text = "data address %s: dropped %d messages that are no requests of an agent"
            _log.warning(text, self.address.address, self._bad_messages)
            self._bad_messages = 0

    def deadline(self) -> float:
        """When `serve` is to be called next, at the latest."""
        return self._waiting[0].deadline if self._waiting else float("inf")

    def _serve_waiting(self) -> None:
        """Look again for the chunks that were not there."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._handle(each)

    def _handle(self, asked: _Waiting) -> None:
        request = asked.request
        if self.disk is not None and self._storage.disk_path((request.client, request.id)):
            self.disk.run(partial(self.answer, request), partial(self._reply, asked))
        else:
            self._reply(asked, self.answer(request))

    def _reply(self, asked: _Waiting, answer: ObjectChunk | NoObject | None) -> None:
        """Send an answer. Without one, keep the request for a while."""
        if answer is None:
            if time.monotonic() < asked.deadline and len(self._waiting) < MAX_WAITING:
                self._waiting.append(asked)
                return
            answer = NoObject(asked.request.client, asked.request.id, "there is no such file")
        with suppress(zmq.ZMQError):  # the peer has gone, or does not read its answers
            if self.socket is not None:
                self.socket.send_multipart([asked.route, *encode(answer)], zmq.NOBLOCK, copy=False)

    def answer(self, request: ReadObject) -> ObjectChunk | NoObject | None:
        """The answer to a request; None: the chunk is not there, but may come."""
        if not secrets.compare_digest(request.ticket.encode(), self._ticket.encode()):
            return NoObject(request.client, request.id, "the ticket is wrong")
        name = request.client, request.id
        try:
            try:
                descriptor, _ = open_object(self._directory, name)
            except FileNotFoundError:
                part = self.read_part(name, request.offset, min(request.bytes, CHUNK_BYTES))
                return None if part is None else ObjectChunk(*name, request.offset, *part)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise FileNotFoundError
                size = min(request.bytes, CHUNK_BYTES, max(0, status.st_size - request.offset))
                payload = os.pread(descriptor, size, request.offset) if size else b""
            finally:
                os.close(descriptor)
        except (OSError, ObjectLostError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return NoObject(request.client, request.id, reason or "there is no such file")
        return ObjectChunk(request.client, request.id, request.offset, status.st_size, payload)

    def close(self) -> None:
        if self._context is not None:
            self._context.destroy(linger=0)
            self.socket = self._context = None


def interface_to(scheduler: Address) -> str:
    """The address of the interface by which this host reaches the scheduler; empty: there is none that others could
    use."""
    if scheduler.transport != "tcp":
        return ""
    try:
        found = socket.getaddrinfo(scheduler.host, scheduler.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)  # sends nothing: the system only chooses the interface
            host = str(probe.getsockname()[0])
    except (OSError, UnicodeError):
        return ""
    return "" if "%" in host or host.startswith("fe80:") else host  # a link-local address needs the other side's zone


def _check_bind(address: Address, scheduler: Address, keys: PeerKeys | None) -> None:
    """Refuse an address that other machines reach, without keys, unless the scheduler is on another machine, and so
    accepts peers without keys itself."""
    is_open = address.host == "*" or not _is_loopback(address.host)
    if keys is None and is_open and is_local_address(scheduler):
        raise DataAddressError(
            f"--data-address: {address} can be reached from other machines, which could then read the data of tasks: "
            "give --keys DIR (the scheduler too), or a data address of this machine, as tcp://127.0.0.1:*"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(str(each[4][0]).startswith("127.") or each[4][0] == "::1" for each in found)
