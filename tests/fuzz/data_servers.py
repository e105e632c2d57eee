"""The data addresses of a client and of a host agent, without sockets, with one file that anybody may read."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache

from scaler_client.commands.addresses import Address
from scaler_client.commands.object_files import CHUNK_BYTES, write_object
from scaler_client.net import data_server
from scaler_client.protocol.messages import NoObject, ObjectChunk
from scaler_client.protocol.wire import encode
from scaler_worker.agent.data_server import MAX_WAITING, DataServer

TICKET = "t"
"""So short that the fuzzer finds it."""

NAME = (1, 2)
_SCHEDULER = Address("ipc", "", 0, "/tmp/nobody")


class _Answers:
    """Checks what a server answers, instead of sending it."""

    def __init__(self) -> None:
        self.count = 0

    def check(self, route: bytes, answer: ObjectChunk | NoObject) -> None:
        self.count += 1
        assert route == b"route"
        assert not isinstance(answer, ObjectChunk) or len(answer.payload) <= CHUNK_BYTES
        encode(answer)


@lru_cache(maxsize=1)
def _servers() -> tuple[list[data_server.DataServer], _Answers]:
    directory = tempfile.mkdtemp(prefix="scaler-fuzz-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    write_object(directory, NAME, [b"pickle", bytes(1000)])
    answers = _Answers()
    servers = [kind("", _SCHEDULER, None, directory) for kind in (data_server.DataServer, DataServer)]
    for server in servers:
        server._ticket = TICKET
        server._send = answers.check  # type: ignore[method-assign]
    return servers, answers


def ask(frames: list[bytes]) -> int:
    """Send a message to both servers. Return how many answers were given at once."""
    servers, answers = _servers()
    before = answers.count
    for server in servers:
        server.receive(b"route", frames)
    assert isinstance(servers[1], DataServer) and len(servers[1]._waiting) <= MAX_WAITING
    servers[1]._waiting.clear()
    return answers.count - before
