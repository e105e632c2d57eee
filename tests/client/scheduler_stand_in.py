"""A fake scheduler for tests of the I/O thread: a ROUTER socket in a thread of the test's process."""

from __future__ import annotations

import queue
import threading
from typing import Any

import zmq
from tests.schema_messages import SCHEMA, message_of

WAIT_SECONDS = 20.0
NEVER = 1000.0
"""Seconds between heartbeats of a client: no heartbeat causes a message in these tests."""

LOOK_MILLISECONDS = 5
UNLIMITED = 1 << 62


class FakeScheduler:
    """Welcomes every hello, asks unknown peers for theirs, and keeps all other messages for the test."""

    def __init__(self, address: str = "tcp://127.0.0.1:*", incarnation: int = 5, refuses: bool = False) -> None:
        self.incarnation = incarnation
        self.hellos: list[dict[str, Any]] = []
        self._refuses = refuses
        self._received: queue.Queue[tuple[bytes, str, dict[str, Any], list[bytes]]] = queue.Queue()
        self._to_send: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self._known: set[bytes] = set()
        self._is_over = threading.Event()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 0)  # else the ROUTER drops messages above the mark
        self._socket.bind(address)
        endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        self.address = endpoint.decode().rstrip("\0")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def receive(self, kind: str) -> dict[str, Any]:
        """Return the next message of this kind, and drop others. `say` answers its peer."""
        while True:
            self.peer, received, body, self.payloads = self._received.get(timeout=WAIT_SECONDS)
            if received == kind:
                return body

    def receive_until(self, kind: str) -> list[str]:
        """Return the kinds of all messages up to the next one of this kind."""
        kinds = []
        while not kinds or kinds[-1] != kind:
            self.peer, received, _, _ = self._received.get(timeout=WAIT_SECONDS)
            kinds.append(received)
        return kinds

    def say(self, kind: str, **fields: Any) -> None:
        """Send a message to the peer whose message was read last."""
        self._say(self.peer, kind, **fields)

    def resolve(self, ids: list[int], payload: bytes = b"", outcome: int = 0, **fields: Any) -> None:
        joined = payload * len(ids)
        self.say("resolved", ids=ids, outcomes=[int(outcome)], sizes=[len(payload)], payload=joined, **fields)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(WAIT_SECONDS)
        self._context.destroy(linger=0)

    def _say(self, peer: bytes, kind: str, **fields: Any) -> None:
        self._to_send.put([peer, message_of(kind, **fields)])

    def _run(self) -> None:
        while not self._is_over.is_set():
            while not self._to_send.empty():
                self._socket.send_multipart(self._to_send.get())
            if self._socket.poll(LOOK_MILLISECONDS):
                self._take(*self._socket.recv_multipart())

    def _take(self, peer: bytes, frame: bytes, *payloads: bytes) -> None:
        with SCHEMA.Message.from_bytes(frame) as message:
            kind = str(message.which())
            body = message.to_dict()[kind]
        if kind == "hello":
            self._known.add(peer)
            self.hellos.append(body)
            if self._refuses:
                self._say(peer, "refused", reason="protocolVersion", text="no", protocolVersion=9, version="9.9")
                return
            self._say(
                peer,
                "welcome",
                protocolVersion=1,
                version="0.9",
                incarnation=self.incarnation,
                leaseMilliseconds=10_000_000,
                credit=UNLIMITED,
            )
        elif peer not in self._known:
            self._say(peer, "helloWanted")
            return
        self._received.put((peer, kind, body if isinstance(body, dict) else {}, list(payloads)))
