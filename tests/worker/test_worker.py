"""The worker's two threads against a fake scheduler: a ROUTER socket in this process."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import capnp
import cloudpickle
import psutil
import pytest
import zmq
from tests.waiting import wait_until

import scaler_client
from scaler_client import serializer
from scaler_worker.settings import WorkerSettings
from scaler_worker.state_page import private_slot
from scaler_worker.worker import LONG_TASK_NS, Worker

SCHEMA = capnp.SchemaParser().load(str(Path(scaler_client.__file__).with_name("scaler.capnp")))
WAIT_SECONDS = 20.0

GATES: dict[str, threading.Event] = {}


def wait_at(gate: str) -> str:
    """A task that runs until the test opens the gate."""
    assert gates()[gate].wait(WAIT_SECONDS)
    return gate


def gates() -> dict[str, threading.Event]:
    return GATES


def square(x: int) -> int:
    return x * x


class FakeScheduler:
    def __init__(self) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind("tcp://127.0.0.1:*")
        endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        self.address = endpoint.decode().rstrip("\0")
        self._peer = b""

    def receive(self, kind: str, seconds: float = WAIT_SECONDS) -> Any:
        """The next message of this kind; others are dropped. Fails when none comes."""
        deadline = time.monotonic() + seconds
        while self._socket.poll(max(0, round((deadline - time.monotonic()) * 1000))):
            self._peer, frame = self._socket.recv_multipart()
            with SCHEMA.Message.from_bytes(frame) as message:
                if message.which() == kind:
                    body = getattr(message, kind)
                    return {name: value_of(getattr(body, name)) for name in body.schema.fieldnames}
        raise AssertionError(f"no {kind} came")

    def say(self, kind: str, *frames: bytes, **fields: Any) -> None:
        message = SCHEMA.Message.new_message()
        if fields:
            body = message.init(kind)
            for name, value in fields.items():
                setattr(body, name, value)
        else:
            setattr(message, kind, None)
        self._socket.send_multipart([self._peer, message.to_bytes(), *frames])

    def welcome(self) -> Any:
        hello = self.receive("hello")
        self.say("welcome", protocolVersion=1, version="0.9", incarnation=5, peer=3, leaseMilliseconds=60_000)
        return hello

    def send_function(self, number: int, fn: Any) -> None:
        payload = cloudpickle.dumps(fn)
        self.say("function", payload, number=number, name=fn.__name__, serializer="cloudpickle")

    def dispatch(self, number: int, *calls: tuple[int, Any]) -> None:
        payloads = [serializer.dump_call((argument,), {}) for _, argument in calls]
        self.say(
            "dispatch",
            clients=[2],
            ids=[task_id for task_id, _ in calls],
            attempts=[1],
            functions=[number],
            sizes=list(map(len, payloads)),
            payload=b"".join(payloads),
        )

    def close(self) -> None:
        self._context.destroy(linger=0)


def value_of(field: Any) -> Any:
    if isinstance(field, (int, str, bytes)):
        return field
    return list(field) if hasattr(field, "__len__") else str(field)


def values_in(results: Any) -> list[Any]:
    sizes = results["sizes"] * (len(results["ids"]) if len(results["sizes"]) == 1 else 1)
    values, position = [], 0
    for size in sizes:
        values.append(pickle.loads(results["payload"][position : position + size]))
        position += size
    return values


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


class Running:
    """A worker in a thread of the test's process; tasks share the test's memory."""

    def __init__(self, address: str, heartbeat_seconds: float) -> None:
        self.page = private_slot()
        settings = WorkerSettings(address, "w", 77, 5, heartbeat_seconds, 30.0, 1 << 40, "", "INFO", ())
        self.worker = Worker(settings, self.page)
        self._thread = threading.Thread(target=self.worker.run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        for gate in GATES.values():
            gate.set()
        self.worker._is_stopping = True
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()


@pytest.fixture
def running(scheduler: FakeScheduler) -> Iterator[Running]:
    GATES.clear()
    running = Running(scheduler.address, 0.1)
    yield running
    running.close()


def test_a_batch_of_short_tasks_is_answered_together(scheduler: FakeScheduler, running: Running) -> None:
    assert scheduler.welcome()["agent"] == 5
    scheduler.send_function(1, square)
    scheduler.dispatch(1, *((number, number) for number in range(20)))
    values: list[int] = []
    batches = 0
    while len(values) < 20:
        values += values_in(scheduler.receive("results"))
        batches += 1
    assert values == [number * number for number in range(20)] and batches < 20


def test_a_long_task_does_not_keep_the_answer_before_it(scheduler: FakeScheduler, running: Running) -> None:
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.send_function(2, wait_at_of_this_module())
    scheduler.dispatch(1, (10, 3))
    scheduler.dispatch(2, (11, "open"))
    assert values_in(scheduler.receive("results")) == [9]
    started = scheduler.receive("started")
    assert (started["clients"], started["ids"], started["attempts"]) == ([2], [11], [1])
    assert list(running.page)[:4] == [2, 11, 1, 1]
    GATES["open"].set()
    results = scheduler.receive("results")
    assert values_in(results) == ["open"] and results["durations"][0] > LONG_TASK_NS
    wait_until(lambda: running.page[3] == 0)


def wait_at_of_this_module() -> Any:
    """The task by name, so that it finds this module's gates and not a pickled copy of them."""
    return wait_at


def test_during_a_long_task_heartbeats_go_on_and_messages_are_taken(scheduler: FakeScheduler, running: Running) -> None:
    GATES["first"], GATES["second"] = threading.Event(), threading.Event()
    scheduler.welcome()
    scheduler.send_function(2, wait_at_of_this_module())
    scheduler.dispatch(2, (11, "first"))
    scheduler.receive("started")
    beats = [scheduler.receive("heartbeat")["sequence"] for _ in range(3)]
    assert beats == sorted(set(beats))
    scheduler.dispatch(2, (12, "second"))
    wait_until(lambda: len(running.worker._session.queue) == 1)
    GATES["first"].set()
    assert values_in(scheduler.receive("results")) == ["first"]
    assert scheduler.receive("started")["ids"] == [12]


def test_a_scheduler_started_anew_during_a_long_task(scheduler: FakeScheduler, running: Running) -> None:
    """Same numbers, other meanings: neither the old function nor the old answer may be taken for a new one."""
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_at_of_this_module())
    scheduler.dispatch(1, (11, "open"))
    scheduler.receive("started")
    scheduler.say("helloWanted")
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.dispatch(1, (11, 5))
    wait_until(lambda: len(running.worker._session.queue) == 1)
    GATES["open"].set()
    assert values_in(scheduler.receive("results")) == [25]


def test_garbage_from_the_scheduler(
    scheduler: FakeScheduler, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.welcome()
    for garbage in (b"", b"junk", b"\0" * 4 + b"\xff" * 12):
        scheduler._socket.send_multipart([scheduler._peer, garbage])
    scheduler.send_function(1, square)
    scheduler.dispatch(1, (1, 4))
    assert values_in(scheduler.receive("results")) == [16]
    assert "dropped a message of the scheduler" in caplog.text


def test_an_idle_worker_rests(scheduler: FakeScheduler) -> None:
    running = Running(scheduler.address, 5.0)
    try:
        scheduler.welcome()
        wait_until(lambda: running.worker._is_parked)
        woken = running.worker._needed
        process = psutil.Process()
        before = process.cpu_times()
        assert not woken.wait(1.2), "woken while there was nothing to run"
        after = process.cpu_times()
        assert after.user + after.system - before.user - before.system < 0.3
        scheduler.send_function(1, square)
        scheduler.dispatch(1, (1, 4))
        assert values_in(scheduler.receive("results")) == [16]
    finally:
        running.close()


def test_refused_ends_it(scheduler: FakeScheduler) -> None:
    running = Running(scheduler.address, 0.1)
    try:
        scheduler.receive("hello")
        scheduler.say("refused", reason="protocolVersion", text="too old", protocolVersion=9, version="4.2")
        running._thread.join(WAIT_SECONDS)
        assert not running._thread.is_alive()
    finally:
        running.close()
