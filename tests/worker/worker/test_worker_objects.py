"""A real worker process whose tasks read objects, against a fake scheduler."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.waiting import wait_until
from tests.worker.fake_scheduler import CLIENT, FakeScheduler
from tests.worker.worker_process import joined_worker

from scaler_client.commands.object_files import mark_lost, write_object
from scaler_client.pickling import input_lookup
from scaler_client.protocol.messages import Outcome

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the worker can't import the tests

SIZE = 1 << 20


class Ref:
    """A reference to the input at this position, in a task's arguments."""

    def __init__(self, position: int) -> None:
        self.position = position

    def __reduce__(self) -> Any:
        return input_lookup.load_input, (self.position,)


def look_at(value: Any) -> tuple[str, int, int]:
    """The type, length and identity of a value."""
    return type(value).__name__, len(value), id(value)


def look_and_wait(value: Any) -> int:
    import time

    time.sleep(60)
    return len(value)


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


@pytest.fixture
def process(scheduler: FakeScheduler, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with joined_worker(scheduler, str(tmp_path)) as process:
        scheduler.send_function(3, look_at)
        scheduler.send_function(4, look_and_wait)
        yield process


def write(directory: Path, number: int) -> None:
    buffers: list[pickle.PickleBuffer] = []
    first = pickle.dumps(pickle.PickleBuffer(bytearray(SIZE)), 5, buffer_callback=buffers.append)
    write_object(str(directory), (CLIENT, number), [first, *buffers])


def mapped_by(process: subprocess.Popen[bytes], directory: Path) -> int:
    """The number of mapped files of the directory."""
    return Path(f"/proc/{process.pid}/maps").read_text().count(str(directory))


on_linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc here")


def test_objects_that_were_sent(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_object(7, pickle.dumps([1, 2, 3]))
    scheduler.dispatch(
        3, (10, Ref(0)), (11, [Ref(0), Ref(0)]), (12, "xy"), inputs=[7, 7], inputCounts=[1, 1, 0], inputSources=[0]
    )
    answers = scheduler.answers(3)
    assert [answers[number][1][:2] for number in (10, 11, 12)] == [("list", 3), ("list", 2), ("str", 2)]
    scheduler.dispatch(3, (13, Ref(0)), inputs=[7], inputCounts=[1], inputSources=[0])
    assert scheduler.answers(1)[13][1][:2] == ("list", 3)


def test_tasks_with_inputs_are_answered_together(scheduler: FakeScheduler, process: Any) -> None:
    scheduler.send_object(7, pickle.dumps(b"x"))
    rows = [(100 + number, Ref(0)) for number in range(50)]
    scheduler.dispatch(3, *rows, inputs=[7] * 50, inputCounts=[1], inputSources=[0])
    assert len(scheduler.answers(50)) == 50
    assert scheduler.received.count("results") < 25


@on_linux
def test_a_file_is_mapped_once_until_it_is_forgotten(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    write(tmp_path, 7)
    scheduler.dispatch(3, (10, Ref(0)), (11, Ref(0)), inputs=[7, 7], inputCounts=[1], inputSources=[1])
    answers = scheduler.answers(2)
    assert answers[10][1][:2] == answers[11][1][:2] == ("memoryview", SIZE)
    assert mapped_by(process, tmp_path) == 1
    scheduler.forget_objects(7)
    wait_until(lambda: mapped_by(process, tmp_path) == 0)


@on_linux
def test_forgotten_objects_are_freed_during_a_long_task(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    write(tmp_path, 7)
    scheduler.dispatch(3, (10, Ref(0)), inputs=[7], inputCounts=[1], inputSources=[1])
    scheduler.answers(1)
    scheduler.dispatch(2, (11, 60.0))
    scheduler.await_start(11)
    assert mapped_by(process, tmp_path) == 1
    scheduler.forget_objects(7)
    wait_until(lambda: mapped_by(process, tmp_path) == 0)


@on_linux
def test_a_task_keeps_its_inputs_while_it_runs(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    write(tmp_path, 7)
    scheduler.dispatch(4, (10, Ref(0)), inputs=[7], inputCounts=[1], inputSources=[1])
    scheduler.await_start(10)
    scheduler.forget_objects(7)
    scheduler.retract(99)
    scheduler.receive("retracted")  # so the worker has handled the messages before it
    assert mapped_by(process, tmp_path) == 1
    scheduler.stop(10)
    scheduler.answers(1)
    wait_until(lambda: mapped_by(process, tmp_path) == 0)


@on_linux
def test_a_welcome_frees_the_objects(
    scheduler: FakeScheduler, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    write(tmp_path, 7)
    scheduler.send_object(8, pickle.dumps(b"x"))
    scheduler.dispatch(3, (10, [Ref(0), Ref(1)]), inputs=[7, 8], inputCounts=[2], inputSources=[1, 0])
    scheduler.answers(1)
    scheduler.say("helloWanted")
    scheduler.welcome()
    wait_until(lambda: mapped_by(process, tmp_path) == 0)
    scheduler.send_function(3, look_at)
    scheduler.dispatch(3, (11, Ref(0)), inputs=[8], inputCounts=[1], inputSources=[0])
    outcome, text = scheduler.answers(2)[11]  # it repeats the answer that its hello has named
    assert outcome == Outcome.INPUT_LOST
    assert text == "look_at: object 8, which the task reads, is lost: the scheduler has not sent it to this worker"


def test_a_task_waits_for_its_file_and_can_be_stopped(scheduler: FakeScheduler, process: Any, tmp_path: Path) -> None:
    scheduler.dispatch(3, (10, Ref(0)), inputs=[7], inputCounts=[1], inputSources=[1])
    scheduler.await_start(10)
    write(tmp_path, 7)
    assert scheduler.answers(1)[10][0] == Outcome.VALUE
    scheduler.dispatch(3, (11, Ref(0)), inputs=[8], inputCounts=[1], inputSources=[1])
    scheduler.await_start(11)
    scheduler.stop(11)
    assert scheduler.answers(1)[11][0] == Outcome.EXCEPTION
    scheduler.dispatch(3, (12, Ref(0)), inputs=[9], inputCounts=[1], inputSources=[1])
    scheduler.await_start(12)
    mark_lost(str(tmp_path), (CLIENT, 9), "No space left on device")
    assert scheduler.answers(1)[12] == (
        Outcome.INPUT_LOST,
        "look_at: object 9, which the task reads, is lost: No space left on device",
    )
