"""A worker's threads against a fake scheduler, in the test's process: its tasks share the test's memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from tests.waiting import wait_until
from tests.worker.fake_scheduler import CLIENT, WAIT_SECONDS, FakeScheduler, task, values_in

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.protocol.messages import FLAG_REPORT_START, Outcome
from scaler_worker.fork_server.state_page import private_slot
from scaler_worker.fork_server.worker_settings import WorkerSettings
from scaler_worker.worker import long_task_watcher
from scaler_worker.worker.long_task_watcher import LONG_TASK_NS
from scaler_worker.worker.process import Worker
from scaler_worker.worker.task_host import WorkerTaskHost

GATES: dict[str, threading.Event] = {}
HOSTS: list[WorkerTaskHost] = []


def wait_at(gate: str) -> str:
    """A task that runs until the test opens the gate."""
    assert GATES[gate].wait(WAIT_SECONDS)
    return gate


def square(x: int) -> int:
    return x * x


def wait_for_child(latch: str) -> tuple[int, int]:
    """A task that gives up its slot until the latch of this name is released. Returns its depth and priority."""
    current = HOSTS[-1].current()
    assert current is not None
    current.suspend()
    current.wait(LATCHES[latch], None)
    current.resume()
    assert HOSTS[-1].current() is current
    return current.depth, current.priority


def give_up_waiting(latch: str) -> bool:
    current = HOSTS[-1].current()
    assert current is not None
    current.suspend()
    current.wait(LATCHES[latch], 0.01)
    current.resume()
    return LATCHES[latch].locked()


def release(latch: str) -> str:
    LATCHES[latch].release()
    return latch


LATCHES: dict[str, threading.Lock] = {}


def new_latch(name: str) -> None:
    LATCHES[name] = threading.Lock()
    LATCHES[name].acquire()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


class Running:
    """A worker in a thread of the test's process."""

    def __init__(self, address: str, heartbeat_seconds: float) -> None:
        self.page = private_slot()
        settings = WorkerSettings(address, "w", 77, 5, heartbeat_seconds, 30.0, 1 << 40, "", "INFO", (), {"gpu": 2})
        self.worker = Worker(settings, self.page)
        HOSTS.append(self.worker.host)
        self.thread = threading.Thread(target=self.worker.run, daemon=True)
        self.thread.start()

    def close(self) -> None:
        for gate in GATES.values():
            gate.set()
        self.worker.runner.stop()
        self.thread.join(WAIT_SECONDS)
        assert not self.thread.is_alive()


@pytest.fixture
def running(scheduler: FakeScheduler) -> Iterator[Running]:
    GATES.clear()
    LATCHES.clear()
    running = Running(scheduler.address, 0.1)
    yield running
    running.close()


def test_the_hello_of_a_worker(scheduler: FakeScheduler, running: Running) -> None:
    hello = scheduler.receive("hello")
    assert (hello["incarnation"], hello["agent"], hello["name"]) == (77, 5, "w")
    assert hello["capabilities"] == [{"name": "gpu", "amount": 2}]
    assert hello["running"]["ids"] == []


def test_a_batch_of_short_tasks_is_answered_together(scheduler: FakeScheduler, running: Running) -> None:
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.dispatch(1, *((number, number) for number in range(20)))
    values: list[int] = []
    batches = 0
    while len(values) < 20:
        values += values_in(scheduler.receive("results"))
        batches += 1
    assert values == [number * number for number in range(20)] and batches < 20


def test_a_long_task_does_not_delay_the_answer_before_it(scheduler: FakeScheduler, running: Running) -> None:
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.send_function(2, wait_at)
    scheduler.dispatch(1, (10, 3))
    scheduler.dispatch(2, (11, "open"))
    assert values_in(scheduler.receive("results")) == [9]
    started = scheduler.receive("started")
    assert (started["clients"], started["ids"], started["attempts"]) == ([CLIENT], [11], [1])
    assert list(running.page)[:4] == [*task(11), 1]
    GATES["open"].set()
    results = scheduler.receive("results")
    assert values_in(results) == ["open"] and results["durations"][0] > LONG_TASK_NS
    wait_until(lambda: running.page[3] == 0)


def test_a_worker_serves_its_connection_during_a_long_task(scheduler: FakeScheduler, running: Running) -> None:
    GATES["first"], GATES["second"] = threading.Event(), threading.Event()
    scheduler.welcome()
    scheduler.send_function(2, wait_at)
    scheduler.dispatch(2, (11, "first"))
    assert scheduler.receive("started")["ids"] == [11]
    beats = [scheduler.receive("heartbeat")["sequence"] for _ in range(3)]
    assert beats == sorted(set(beats))
    scheduler.dispatch(2, (12, "second"))
    wait_until(lambda: len(running.worker.session.queue) == 1)
    GATES["first"].set()
    assert values_in(scheduler.receive("results")) == ["first"]
    assert scheduler.receive("started")["ids"] == [12]


def test_messages_and_the_next_long_task_end_the_watchers_wait(
    scheduler: FakeScheduler, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_task_watcher, "SIGNAL_SECONDS", 10 * WAIT_SECONDS)
    GATES["first"], GATES["second"] = threading.Event(), threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_at)
    scheduler.dispatch(1, (11, "first"))
    assert scheduler.receive("started")["ids"] == [11]
    for number in (12, 13, 14):
        scheduler.retract(number)
        assert scheduler.receive("retracted")["ids"] == [number]
    scheduler.dispatch(1, (15, "second"))
    GATES["first"].set()
    assert values_in(scheduler.receive("results")) == ["first"]
    assert scheduler.receive("started")["ids"] == [15]
    scheduler.retract(16)
    assert scheduler.receive("retracted")["ids"] == [16]
    GATES["second"].set()
    assert scheduler.answers(1) == {15: (0, "second")}


def test_queued_tasks_are_retracted_during_a_long_task(scheduler: FakeScheduler, running: Running) -> None:
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.send_function(2, wait_at)
    scheduler.dispatch(2, (11, "open"))
    scheduler.dispatch(1, (12, 2), (13, 3), (14, 4))
    scheduler.retract(11, 12, 14)
    retracted = scheduler.receive("retracted")
    assert (retracted["ids"], retracted["returned"]) == ([11, 12, 14], [0, 1, 1])
    GATES["open"].set()
    assert scheduler.answers(2) == {11: (0, "open"), 13: (0, 9)}


def test_a_task_with_the_flag_is_reported_as_it_starts(scheduler: FakeScheduler, running: Running) -> None:
    scheduler.welcome()
    scheduler.send_function(1, square)
    scheduler.dispatch(1, (1, 1), (2, 2), (3, 3), flags=[0, FLAG_REPORT_START, FLAG_REPORT_START])
    told = [scheduler.receive("started")["ids"] for _ in range(2)]
    assert told == [[2], [3]]
    assert scheduler.answers(3) == {1: (0, 1), 2: (0, 4), 3: (0, 9)}
    assert scheduler.received.index("started") < len(scheduler.received) - 1 - scheduler.received[::-1].index("results")


# ---------------------------------------------------------------------------------------------------- joining once more


def test_a_scheduler_restarted_during_a_long_task(scheduler: FakeScheduler, running: Running) -> None:
    """Function numbers have new meanings. The running task continues under its name; queued tasks are dropped."""
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_at)
    scheduler.dispatch(1, (11, "open"), (12, "open"))
    assert scheduler.receive("started")["ids"] == [11]
    scheduler.say("helloWanted")
    names = scheduler.welcome()["running"]
    assert (names["clients"], names["ids"], names["attempts"]) == ([CLIENT], [11], [1])
    scheduler.send_function(1, square)
    scheduler.dispatch(1, (20, 5))
    wait_until(lambda: [row[1] for row in running.worker.session.queue] == [20])
    GATES["open"].set()
    assert scheduler.answers(2) == {11: (0, "open"), 20: (0, 25)}


def test_a_task_that_ends_before_the_welcome_is_answered_after_it(scheduler: FakeScheduler, running: Running) -> None:
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_at)
    scheduler.dispatch(1, (11, "open"))
    scheduler.receive("started")
    scheduler.say("helloWanted")
    scheduler.receive("hello")
    GATES["open"].set()
    wait_until(lambda: running.worker.session.running is None)
    scheduler.say("welcome", protocolVersion=1, version="0.9", incarnation=6, leaseMilliseconds=60_000)
    assert scheduler.answers(1) == {11: (0, "open")}


# ------------------------------------------------------------------------------------------------------ waiting parents


def test_a_parent_that_waits_lets_its_child_run(scheduler: FakeScheduler, running: Running) -> None:
    new_latch("child")
    scheduler.welcome()
    scheduler.send_function(1, wait_for_child)
    scheduler.send_function(2, release)
    scheduler.dispatch(1, (10, "child"), depths=[3], priorities=[-2 & 0xFFFFFFFF])
    wait_until(lambda: task(10) in running.worker.session.suspended and running.page[3] == 0)
    scheduler.dispatch(2, (11, "child"))
    assert scheduler.answers(2) == {11: (0, "child"), 10: (0, (3, -2))}


def test_a_parent_resumes_before_the_next_task_and_on_the_state_page(
    scheduler: FakeScheduler, running: Running
) -> None:
    new_latch("child")
    GATES["child"], GATES["parent"], GATES["next"] = threading.Event(), threading.Event(), threading.Event()

    def parent(latch: str) -> str:
        wait_for_child(latch)
        return wait_at("parent")

    scheduler.welcome()
    scheduler.send_function(1, ByReference(parent))
    scheduler.send_function(2, wait_at)
    scheduler.dispatch(1, (10, "child"))
    scheduler.dispatch(2, (11, "child"), (12, "next"))
    wait_until(lambda: list(running.page)[:4] == [*task(11), 1])
    LATCHES["child"].release()
    wait_until(lambda: running.worker.slot.wakeup.is_set)
    GATES["child"].set()
    wait_until(lambda: list(running.page)[:4] == [*task(10), 1])
    assert scheduler.answers(1) == {11: (0, "child")}
    GATES["parent"].set()
    assert scheduler.answers(1) == {10: (0, "parent")}
    GATES["next"].set()
    assert scheduler.answers(1) == {12: (0, "next")}


class ByReference:
    """A callable that tasks of this process get without a copy."""

    known: list[Any] = []

    def __init__(self, fn: Any) -> None:
        self.number = len(self.known)
        self.known.append(fn)

    def __reduce__(self) -> Any:
        return _known, (self.number,)


def _known(number: int) -> Any:
    return ByReference.known[number]


def test_a_parents_duration_does_not_include_its_wait(scheduler: FakeScheduler, running: Running) -> None:
    new_latch("child")
    GATES["child"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_for_child)
    scheduler.send_function(2, wait_at)
    began = time.monotonic_ns()
    scheduler.dispatch(1, (10, "child"))
    scheduler.dispatch(2, (11, "child"))
    scheduler.receive("started")
    GATES["child"].set()
    child = scheduler.receive("results")
    LATCHES["child"].release()
    parent = scheduler.receive("results")
    elapsed = time.monotonic_ns() - began
    assert (child["ids"], parent["ids"]) == ([11], [10])
    assert LONG_TASK_NS < child["durations"][0] <= elapsed - parent["durations"][0], "the child ran in the wait"


def test_a_parents_wait_may_time_out(scheduler: FakeScheduler, running: Running) -> None:
    new_latch("never")
    scheduler.welcome()
    scheduler.send_function(1, give_up_waiting)
    scheduler.dispatch(1, (10, "never"))
    assert scheduler.answers(1) == {10: (0, True)}


def test_a_suspended_task_is_named_when_joining_again(scheduler: FakeScheduler, running: Running) -> None:
    new_latch("child")
    GATES["open"] = threading.Event()
    scheduler.welcome()
    scheduler.send_function(1, wait_for_child)
    scheduler.send_function(2, wait_at)
    scheduler.dispatch(1, (10, "child"))
    scheduler.dispatch(2, (11, "open"))
    assert scheduler.receive("started")["ids"] == [11]
    scheduler.say("helloWanted")
    assert scheduler.welcome()["running"]["ids"] == [10, 11]
    GATES["open"].set()
    assert scheduler.answers(1) == {11: (0, "open")}
    LATCHES["child"].release()
    assert scheduler.answers(1) == {10: (0, (0, 0))}


def test_a_suspended_task_is_stopped(scheduler: FakeScheduler, running: Running) -> None:
    new_latch("child")
    scheduler.welcome()
    scheduler.send_function(1, wait_for_child)
    scheduler.send_function(2, square)
    scheduler.dispatch(1, (10, "child"))
    wait_until(lambda: running.worker.session.suspended)
    scheduler.stop(10)
    outcome, error = scheduler.answers(1)[10]
    assert outcome == Outcome.EXCEPTION and isinstance(error, TaskStoppedError)
    scheduler.dispatch(2, (11, 3))
    assert scheduler.answers(1) == {11: (0, 9)}


def test_a_thread_that_a_task_starts_runs_no_task(scheduler: FakeScheduler, running: Running) -> None:
    def ask(_: int) -> bool:
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(running.worker.host.current()))
        thread.start()
        thread.join()
        return found == [None] and running.worker.host.current() is not None

    scheduler.welcome()
    scheduler.send_function(1, ByReference(ask))
    scheduler.dispatch(1, (10, 0))
    assert scheduler.answers(1) == {10: (0, True)}
    assert running.worker.host.current() is None


def test_without_more_threads_the_parents_wait_raises(
    scheduler: FakeScheduler, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def parent(_: int) -> str:
        current = running.worker.host.current()
        assert current is not None
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            with pytest.raises(RuntimeError, match="new thread"):
                current.suspend()
        return "still running"

    scheduler.welcome()
    scheduler.send_function(1, ByReference(parent))
    scheduler.dispatch(1, (10, 0), (11, 0))
    assert scheduler.answers(2) == {10: (0, "still running"), 11: (0, "still running")}


# ------------------------------------------------------------------------------------------------------------- the rest


def test_garbage_from_the_scheduler(
    scheduler: FakeScheduler, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.welcome()
    for garbage in (b"", b"junk", b"\0" * 4 + b"\xff" * 12):
        scheduler.send_frames(garbage)
    scheduler.send_function(1, square)
    scheduler.dispatch(1, (1, 4))
    assert scheduler.answers(1) == {1: (0, 16)}
    assert "dropped a message of the scheduler" in caplog.text


def test_the_watcher_of_an_idle_worker_is_parked(scheduler: FakeScheduler) -> None:
    running = Running(scheduler.address, 5.0)
    try:
        scheduler.welcome()
        wait_until(lambda: running.worker.watcher.is_parked)
        process = psutil.Process()
        before = process.cpu_times()
        assert not running.worker.watcher._woken.wait(1.2), "woken while there was nothing to run"
        after = process.cpu_times()
        assert after.user + after.system - before.user - before.system < 0.3
        scheduler.send_function(1, square)
        scheduler.dispatch(1, (1, 4))
        assert scheduler.answers(1) == {1: (0, 16)}
    finally:
        running.close()


def test_a_refusal_ends_the_worker(scheduler: FakeScheduler) -> None:
    running = Running(scheduler.address, 0.1)
    try:
        scheduler.receive("hello")
        scheduler.say("refused", reason="protocolVersion", text="too old", protocolVersion=9, version="4.2")
        running.thread.join(WAIT_SECONDS)
        assert not running.thread.is_alive()
    finally:
        running.close()
