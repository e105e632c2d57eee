"""Both sides of a data address, as an agent on another host would play them."""

from __future__ import annotations

import random
import secrets
import socket
import struct
from contextlib import suppress
from typing import Any

import zmq
from tests.conformance.findings import WrongError
from tests.conformance.messages import Received, read
from tests.conformance.peer import ServingThread
from tests.schema_messages import message_of
from zmq.utils import z85

CHUNK_BYTES = 1 << 20
ALIGNMENT = 64

Name = tuple[int, int]
"""The client and the id of an object."""


def object_file(frames: list[bytes]) -> bytes:
    """Return the bytes of an object file (PROTOCOL.md, "Object files")."""
    content = b"scalerO1" + struct.pack(f"<{1 + len(frames)}Q", len(frames), *map(len, frames))
    for frame in frames:
        content += bytes(-len(content) % ALIGNMENT) + frame
    return content


def closed_address() -> str:
    """Return an address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


class DataSource(ServingThread):
    """A host with a data address. Its thread answers requests.

    Args:
        has_keys: whether the address is a CURVE server.
    """

    def __init__(self, has_keys: bool) -> None:
        super().__init__()
        self.incarnation = random.randrange(1, 1 << 63)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        key = ""
        if has_keys:
            public, secret = zmq.curve_keypair()
            key = z85.decode(public).hex()
            self._socket.setsockopt(zmq.CURVE_SERVER, 1)
            self._socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.data = {"address": f"tcp://127.0.0.1:{port}", "key": key, "ticket": secrets.token_hex(16)}
        self.files: dict[Name, bytes] = {}
        """The files that there are; others are answered by `noObject`."""
        self.is_wrong = False
        """Whether each chunk lacks its last byte."""
        self.requests: list[dict[str, Any]] = []

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._context.destroy(linger=0)

    def run(self) -> None:
        while not self.has_ended.is_set():
            if self._socket.poll(20):
                route, *frames = self._socket.recv_multipart()
                with suppress(WrongError):
                    self._answer(route, read(frames))

    def _answer(self, route: bytes, request: Received) -> None:
        if request.kind != "readObject":
            return
        fields = request.fields
        self.requests.append(fields)
        name, offset = (fields["client"], fields["id"]), fields["offset"]
        file = self.files.get(name)
        told = {"client": name[0], "id": name[1]}
        if file is None or fields["ticket"] != self.data["ticket"]:
            self._socket.send_multipart([route, message_of("noObject", reason="a test", **told)])
            return
        part = file[offset : offset + min(fields["bytes"], CHUNK_BYTES)]
        self._socket.send_multipart([route, b"garbage"])  # must be ignored
        chunk = message_of("objectChunk", offset=offset, fileBytes=len(file), **told)
        self._socket.send_multipart([route, chunk, part[:-1] if self.is_wrong else part])


class DataReader:
    """A connection to a data address.

    Args:
        data: what an agent tells of its data address in its hello.
    """

    def __init__(self, data: dict[str, str]) -> None:
        self._data = data
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        if data["key"]:
            public, secret = zmq.curve_keypair()
            self._socket.setsockopt(zmq.CURVE_SERVERKEY, bytes.fromhex(data["key"]))
            self._socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
            self._socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        self._socket.connect(data["address"])

    def __enter__(self) -> DataReader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._context.destroy(linger=0)

    def send(self, *frames: bytes) -> None:
        self._socket.send_multipart(list(frames))

    def request(self, name: Name, offset: int, size: int, **changed: Any) -> bytes:
        """Return a request for a part of a file."""
        fields = {"ticket": self._data["ticket"], "client": name[0], "id": name[1], "offset": offset, "bytes": size}
        return message_of("readObject", **{**fields, **changed})

    def ask(self, name: Name, offset: int, size: int, **changed: Any) -> None:
        self.send(self.request(name, offset, size, **changed))

    def next(self, seconds: float) -> Received | None:
        """Return the next answer; None: none comes in time."""
        if not self._socket.poll(round(seconds * 1000)):
            return None
        return read(self._socket.recv_multipart())
