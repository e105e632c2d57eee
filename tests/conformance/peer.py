"""A scripted peer of a scheduler under test: one DEALER socket."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import zmq
from tests.conformance.findings import WrongError
from tests.conformance.messages import Received, read
from tests.schema_messages import SCHEMA, message_of

from scaler_client.commands.key_files import PeerKeys
from scaler_client.net.curve import apply_keys

JOIN_SECONDS = 5.0
"""The least wait for a welcome. A scheduler that has just started may be slow on a busy machine."""

WAIT_SECONDS = 10.0

LEAVE_MILLISECONDS = 1000
"""How long a goodbye may take to be sent. Without a connection it never is."""


_Thread = TypeVar("_Thread", bound="ServingThread")


class ServingThread(threading.Thread):
    """A thread that serves from `with` to the end of it: `run` returns soon after `has_ended` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.has_ended = threading.Event()

    def __enter__(self: _Thread) -> _Thread:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.has_ended.set()
        self.join()


class Peer:
    def __init__(
        self, address: str, role: str, keys: PeerKeys | None = None, routing_id: bytes = b"", **hello: Any
    ) -> None:
        self.incarnation = random.randrange(1, 1 << 63)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        apply_keys(self._socket, keys)
        if routing_id:
            self._socket.setsockopt(zmq.ROUTING_ID, routing_id)
        self._socket.connect(address)
        self._unread: list[Received] = []
        self._hello = {
            "protocolVersion": SCHEMA.protocolVersion, "role": role, "incarnation": self.incarnation,
            "language": "conformance", "languageVersion": "1", "version": "1", "host": "here", "pid": 1,
            "name": f"conformance {role}", **hello,
        }  # fmt: skip

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave with a goodbye."""
        self.say("goodbye", reason="done")
        self._context.destroy(linger=LEAVE_MILLISECONDS)

    def close(self) -> None:
        """Disconnect without a goodbye."""
        self._context.destroy(linger=0)

    def join(self) -> Received:
        """Send the hello; return the welcome.

        Raises:
            WrongError: none comes.
        """
        self.hello()
        return self.expect("welcome", max(WAIT_SECONDS, JOIN_SECONDS))

    def hello(self, **changed: Any) -> None:
        self.say("hello", **{**self._hello, **changed})

    def say(self, kind: str, /, *frames: bytes, **fields: Any) -> None:
        self.send(message_of(kind, **fields), *frames)

    def send(self, *frames: bytes) -> None:
        self._socket.send_multipart(list(frames))

    def expect(
        self, kind: str, seconds: float | None = None, where: Callable[[Received], bool] = lambda received: True
    ) -> Received:
        """Return the oldest unread message of this kind for which `where` is true.

        Args:
            seconds: how long to wait; None: WAIT_SECONDS.

        Raises:
            WrongError: none comes in time.
        """
        seconds = WAIT_SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        while True:
            for position, received in enumerate(self._unread):
                if received.kind == kind and where(received):
                    return self._unread.pop(position)
            left = deadline - time.monotonic()
            if left <= 0 or not self._socket.poll(round(left * 1000) + 1):
                there = ", ".join(each.kind for each in self._unread[-8:]) or "nothing"
                raise WrongError(f"no such {kind} within {seconds:g} s, but {there}")
            self._unread.append(read(self._socket.recv_multipart()))

    def take(self, kind: str) -> list[Received]:
        """Return the messages of this kind that were read and not yet expected."""
        taken = [each for each in self._unread if each.kind == kind]
        self._unread = [each for each in self._unread if each.kind != kind]
        return taken

    def listen(self, seconds: float) -> list[Received]:
        """Wait for this long, then return all unread messages."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._socket.poll(round(left * 1000) + 1):
                self._unread.append(read(self._socket.recv_multipart()))
        unread, self._unread = self._unread, []
        return unread
