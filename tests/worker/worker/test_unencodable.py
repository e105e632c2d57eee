"""A message that can't be encoded is dropped: workers and agents send the messages that follow."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from scaler_client.protocol import messages, wire
from scaler_client.protocol.columns import BatchReader
from scaler_client.protocol.messages import Heartbeat, Outcome, Results, WorkerDied
from scaler_worker.agent.process import _Agent
from scaler_worker.worker.connection import SocketConnection


class Socket:
    """Keeps the sent messages."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []

    def send(self, frame: bytes) -> None:
        self.sent.append([frame])

    def send_multipart(self, frames: list[Any], *_flags: int, copy: bool = True) -> None:
        self.sent.append(list(frames))


class Session:
    """A session with outgoing messages."""

    frame_limit = 0

    def __init__(self, *outgoing: messages.Message) -> None:
        self._outgoing = outgoing

    def pop_outgoing(self) -> tuple[messages.Message, ...]:
        return self._outgoing


@pytest.fixture
def socket() -> Socket:
    return Socket()


def test_a_worker_sends_the_messages_that_follow(socket: Socket, caplog: pytest.LogCaptureFixture) -> None:
    connection = object.__new__(SocketConnection)
    connection._socket = socket  # type: ignore[assignment]
    results = Results([7], [1, 2], [1], [0], [5, -5], [b"a", b"b"])
    connection._session = Session(Heartbeat(-1), results, Heartbeat(3))  # type: ignore[assignment]
    connection.send()
    assert socket.sent[-1] == wire.encode(Heartbeat(3))
    told = [BatchReader(bytes(frames[0])) for frames in socket.sent[:-1]]
    assert [each for batch in told for each in batch.numbers(1, "Q")] == [1, 2]
    assert [each for batch in told for each in batch.numbers(3, "B")] == [0, Outcome.RESULT_FAILED.value]
    [message] = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert message.startswith("not sent: a message (Heartbeat) can't be encoded as a message: ")


def test_an_agent_sends_the_messages_that_follow(socket: Socket, caplog: pytest.LogCaptureFixture) -> None:
    agent = object.__new__(_Agent)
    agent._connection = socket  # type: ignore[assignment]
    for message in (WorkerDied(-1, 1, ""), Heartbeat(3)):
        agent._send(message)
    assert socket.sent == [wire.encode(Heartbeat(3))]
    assert "not sent: a message (WorkerDied) can't be encoded as a message: " in caplog.text


def test_a_text_that_is_not_utf_8_is_escaped(socket: Socket) -> None:
    """For example, the name of a host in a worker's name."""
    agent = object.__new__(_Agent)
    agent._connection = socket  # type: ignore[assignment]
    agent._send(WorkerDied(1, 1, "\udcff"))
    assert b"\\udcff" in bytes(socket.sent[0][0])
