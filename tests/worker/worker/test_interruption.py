"""Stops at every instruction of the run loop: each hits the named task, or no task."""

from __future__ import annotations

import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from scaler_client.nested.task_host import TaskStoppedError
from scaler_client.pickling import serializer
from scaler_client.protocol.messages import Outcome
from scaler_worker.fork_server.state_page import private_slot
from scaler_worker.fork_server.worker_settings import WorkerSettings
from scaler_worker.task_rows import Answer, attempt_of
from scaler_worker.worker.process import Worker
from scaler_worker.worker.processor_wait import ProcessorWait

TASKS = 10_000

# A stop may hit a destructor or a callback of the garbage collector (hypothesis has one): Python prints and drops an
# exception there. Then the task is not stopped at once, like a task inside a C function.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def work(number: int) -> list[int]:
    """A task of some 10 us, with work for pickle."""
    total = 0
    for addend in range(100):
        total += addend
    return [number] * 20


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose connection does nothing, with queued tasks."""
    worker = Worker(
        WorkerSettings("tcp://127.0.0.1:1", "w", 77, 5, 60.0, 30.0, 1 << 40, "", "INFO", ()), private_slot()
    )
    monkeypatch.setattr(worker.slot.connection, "exchange", lambda: None)
    worker.executor._loaded[1] = work
    worker.session.queue.extend((2, number, 1, 1, serializer.dump_call((number,), {})) for number in range(TASKS))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield worker
    sys.setswitchinterval(interval)
    with worker.slot.connection.lock:
        worker.slot.connection.close()


def run_all(worker: Worker, answers: list[Answer]) -> None:
    worker.slot.token.acquire_first()
    while worker.session.queue:
        worker.slot.wakeup.is_set = False
        worker.runner._run_queue(ProcessorWait(""))
        answers.extend(worker.session.answers)
        worker.session.answers.clear()


class Stopper:
    """A thread that stops the running task at random times."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._is_over = False
        self._thread = threading.Thread(target=self._stop_tasks)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def _stop_tasks(self) -> None:
        chance = random.Random(3)
        while not self._is_over:
            time.sleep(chance.random() * 30e-6)  # a random moment, no wait for an event
            with self._worker.slot.connection.lock:
                row = self._worker.session.running
                if row is not None:
                    self._worker.interruption.stop([attempt_of(row)])


def check(worker: Worker, answers: list[Answer]) -> None:
    assert [answer[1] for answer in answers] == list(range(TASKS))
    stopped = 0
    for _, number, _, outcome, _, payload in answers:
        value = pickle.loads(payload)
        if outcome == Outcome.VALUE:
            assert value == [number] * 20
        else:
            assert outcome == Outcome.EXCEPTION and type(value[0]) is TaskStoppedError
            stopped += 1
    assert stopped > 10
    assert not worker.interruption._stopped and not worker.interruption._due


def test_stops_by_signals_hit_the_named_task_only(worker: Worker) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    answers: list[Answer] = []
    try:
        worker.interruption.use_signals()
        with Stopper(worker):
            run_all(worker, answers)
    finally:
        signal.signal(signal.SIGUSR2, before)
    check(worker, answers)


def test_stops_by_exceptions_hit_the_named_task_only(worker: Worker) -> None:
    answers: list[Answer] = []
    thread = threading.Thread(target=run_all, args=(worker, answers))
    with Stopper(worker):
        thread.start()
        thread.join()
    check(worker, answers)
