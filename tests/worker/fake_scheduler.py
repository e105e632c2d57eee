"""A scheduler for one worker: a ROUTER socket in the test's process, driven by the test."""

from __future__ import annotations

import pickle
import time
from typing import Any

import cloudpickle
import zmq
from tests.schema_messages import SCHEMA, message_of

from scaler_client.pickling import serializer
from scaler_client.protocol.messages import Outcome, TaskAttempt

WAIT_SECONDS = 20.0

CLIENT = 1 << 40
"""The incarnation of the client of all tasks."""

Message = tuple[str, dict[str, Any]]


def task(number: int) -> TaskAttempt:
    return CLIENT, number, 1


class FakeScheduler:
    def __init__(self, address: str = "tcp://127.0.0.1:*") -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(address)
        endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        self.address = endpoint.decode().rstrip("\0")
        self._peer = b""
        self.received: list[str] = []
        """The kinds of all messages so far, in order."""
        self._unread: list[Message] = []

    def receive(self, kind: str, seconds: float = WAIT_SECONDS) -> dict[str, Any]:
        """The oldest unread message of this kind. Fails if none comes."""
        deadline = time.monotonic() + seconds
        while True:
            for number, (name, fields) in enumerate(self._unread):
                if name == kind:
                    del self._unread[number]
                    return fields
            if not self._socket.poll(max(0, round((deadline - time.monotonic()) * 1000))):
                raise AssertionError(f"no {kind} came, but {self.received[-20:]}")
            self._read()

    def read_all(self, milliseconds: int) -> list[Message]:
        """All unread messages. Waits this long for one if there is none."""
        while self._socket.poll(milliseconds):
            milliseconds = 0
            self._read()
        unread, self._unread = self._unread, []
        return unread

    def await_start(self, number: int) -> None:
        """Wait until the task is reported as started. Other tasks may be reported before it."""
        while self.receive("started")["ids"] != [number]:
            pass

    def _read(self) -> None:
        self._peer, frame, *_ = self._socket.recv_multipart()
        with SCHEMA.Message.from_bytes(frame) as message:
            kind = message.which()
            body = getattr(message, kind)
            self.received.append(kind)
            self._unread.append((kind, {name: value_of(getattr(body, name)) for name in body.schema.fieldnames}))

    def say(self, kind: str, /, *frames: bytes, **fields: Any) -> None:
        self.send_frames(message_of(kind, **fields), *frames)

    def send_frames(self, *frames: bytes) -> None:
        self._socket.send_multipart([self._peer, *frames])

    def welcome(self) -> dict[str, Any]:
        """Accept the worker. Returns its hello."""
        hello = self.receive("hello")
        self.say("welcome", protocolVersion=1, version="0.9", incarnation=5, leaseMilliseconds=60_000)
        return hello

    def send_function(self, number: int, fn: Any) -> None:
        payload = cloudpickle.dumps(fn)
        self.say("function", payload, number=number, name=getattr(fn, "__name__", "fn"), kind="cloudpickle")

    def send_object(self, number: int, *frames: bytes) -> None:
        self.say("object", *frames, client=CLIENT, id=number, name="an object")

    def forget_objects(self, *numbers: int) -> None:
        self.say("forgetObjects", clients=[CLIENT], ids=list(numbers))

    def dispatch(self, number: int, *calls: tuple[int, Any], **columns: list[int]) -> None:
        """Tasks of this function: id and the one argument of each. Columns: flags, depths, priorities, inputs,
        inputCounts, inputSources."""
        payloads = [serializer.dump_call((argument,), {}) for _, argument in calls]
        self.say(
            "dispatch",
            clients=[CLIENT],
            ids=[task_id for task_id, _ in calls],
            attempts=[1],
            functions=[number],
            sizes=list(map(len, payloads)),
            payload=b"".join(payloads),
            **columns,
        )

    def stop(self, *numbers: int) -> None:
        self.say("stop", **_columns(numbers))

    def retract(self, *numbers: int) -> None:
        self.say("retract", **_columns(numbers))

    def answers(self, count: int) -> dict[int, tuple[int, Any]]:
        """The outcomes of the next tasks, with values or exceptions, by id."""
        answers: dict[int, tuple[int, Any]] = {}
        while len(answers) < count:
            results = self.receive("results")
            answers.update(zip(results["ids"], zip(of_rows(results, "outcomes"), values_in(results))))
        assert len(answers) == count
        return answers

    def close(self) -> None:
        self._context.destroy(linger=0)


def _columns(numbers: tuple[int, ...]) -> dict[str, list[int]]:
    rows = len(numbers)
    return {"clients": [CLIENT] * rows, "ids": list(numbers), "attempts": [1] * rows}


def value_of(field: Any) -> Any:
    if isinstance(field, (int, str, bytes)):
        return field
    if hasattr(field, "schema") and hasattr(field.schema, "fieldnames"):
        return {name: value_of(getattr(field, name)) for name in field.schema.fieldnames}
    return [value_of(entry) for entry in field] if hasattr(field, "__len__") else str(field)


def of_rows(results: dict[str, Any], column: str) -> list[int]:
    """A column of this length."""
    values: list[int] = results[column]
    return values * len(results["ids"]) if len(values) == 1 else values


def values_in(results: dict[str, Any]) -> list[Any]:
    """The values of the tasks, or the exceptions that they raised, or texts."""
    values, position = [], 0
    for size, outcome in zip(of_rows(results, "sizes"), of_rows(results, "outcomes")):
        payload = results["payload"][position : position + size]
        if outcome == Outcome.INPUT_LOST:
            values.append(payload.decode())
        elif outcome == Outcome.STORED:
            values.append(int.from_bytes(payload, "little"))
        else:
            value = pickle.loads(payload)
            values.append(value[0] if outcome else value)
        position += size
    return values
