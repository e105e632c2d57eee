"""The output of tasks as lines: origin, bounds, order. Without sockets or processes, with the test's own clock."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scaler_client.protocol import messages
from scaler_client.protocol.messages import STANDARD_ERROR, STANDARD_OUTPUT, Output, TaskAttempt
from scaler_worker.fork_server.state_page import private_slot
from scaler_worker.output import task_output
from scaler_worker.output.task_output import OutputOrigin, TaskOutput
from scaler_worker.worker.output_origin import OriginFinder
from scaler_worker.worker.run_token import RunToken, SystemThreads, Wakeup
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.session import WorkerSession

HELLO = messages.Hello(messages.Role.WORKER, 77, "3.11.7", "0.1.0", "host", 1)
STREAMED = messages.FLAG_STREAM_OUTPUT


class FakeOrigins:
    """An origin lookup that the test sets."""

    def __init__(self) -> None:
        self.no_task = OutputOrigin(None, "host/1", False)
        self.now = origin(1)
        self.over: set[TaskAttempt | None] = set()

    def current(self) -> OutputOrigin:
        return self.now

    def is_over(self, origin: OutputOrigin) -> bool:
        return origin.task in self.over


class FakeLog:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.woken = 0

    def add(self, label: str, stream: int, lines: list[str]) -> None:
        self.lines += [f"{label}{'!' if stream else ':'} {line}" for line in lines]

    def write_if_ready(self) -> None: ...

    def wake(self) -> None:
        self.woken += 1

    def wake_for_ticks(self) -> None: ...

    def end(self) -> None: ...


def origin(number: int, is_streamed: bool = True) -> OutputOrigin:
    return OutputOrigin((2, number, 1), f"f#{number}", is_streamed)


class Bench:
    """An output with its log, its origins and its clock."""

    def __init__(self) -> None:
        self.origins: Any = FakeOrigins()
        self.log: Any = FakeLog()
        self.now = 100.0
        self.output = TaskOutput(self.origins, self.log, lambda: self.now)

    def write(self, *texts: str, stream: int = STANDARD_OUTPUT, number: int | None = None) -> None:
        if number is not None:
            self.origins.now = origin(number)
        for text in texts:
            self.output.write(stream, text)

    def sent(self) -> list[tuple[int, int, str, str]]:
        """The rows to send now: id, stream, label, lines."""
        output = self.output.take()
        if output is None:
            return []
        assert set(output.clients) == {2}
        rows = zip(output.ids, output.streams, output.labels, output.texts)
        return [(task_id, stream, label.decode(), text.decode()) for task_id, stream, label, text in rows]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ---------------------------------------------------------------------------------------------------------------- lines


def test_lines_go_to_the_log_and_to_the_client(bench: Bench) -> None:
    bench.write("one", "\n", "two\nthr")
    bench.write("ee\n\n")
    assert bench.log.lines == ["f#1: one", "f#1: two", "f#1: three", "f#1: "]
    assert bench.sent() == [(1, STANDARD_OUTPUT, "f#1", "one\ntwo\nthree\n")]
    assert bench.sent() == []


def test_output_is_not_sent_to_a_client_that_does_not_show_it(bench: Bench) -> None:
    bench.origins.now = origin(1, is_streamed=False)
    bench.write("one\n")
    bench.origins.now = bench.origins.no_task
    bench.write("two\n")
    assert bench.log.lines == ["f#1: one", "host/1: two"]
    assert bench.sent() == []


def test_streams_and_tasks_do_not_mix(bench: Bench) -> None:
    bench.write("a", number=1)
    bench.write("b", stream=STANDARD_ERROR)
    bench.write("c", number=2)
    bench.write("C\n")
    bench.write("B\n", stream=STANDARD_ERROR, number=1)
    bench.write("A\n")
    assert bench.log.lines == ["f#2: cC", "f#1! bB", "f#1: aA"]
    assert bench.sent() == [(2, 0, "f#2", "cC"), (1, 1, "f#1", "bB"), (1, 0, "f#1", "aA")]


def test_the_last_line_needs_no_newline(bench: Bench) -> None:
    bench.write("the end")
    assert bench.sent() == [] and bench.log.lines == [] and bench.output.wants_ticks()
    bench.origins.over.add((2, 1, 1))
    assert bench.sent() == [(1, 0, "f#1", "the end")]
    assert bench.log.lines == ["f#1: the end"] and bench.log.woken == 1
    bench.write("and another")
    bench.output.tick()
    assert bench.log.lines[1:] == ["f#1: and another"]
    assert not bench.output.wants_ticks()


def test_a_redrawn_line_is_logged_once(bench: Bench) -> None:
    for percent in range(0, 101, 5):
        bench.write(f"\r{percent} %" + "|" * 50)
    bench.write("\r\n", "windows\r\n")
    assert bench.log.lines == ["f#1: 100 %" + "|" * 50, "f#1: windows"]


def test_an_endless_progress_bar_keeps_its_last_drawing(bench: Bench) -> None:
    for number in range(10_000):
        bench.write(f"\r{number} of 10000")
    assert sum(map(len, bench.output._partial.values())) <= task_output.MAX_LINE_LENGTH
    bench.write("\n")
    assert bench.log.lines == ["f#1: 9999 of 10000"]


def test_long_lines_are_cut(bench: Bench) -> None:
    bench.write("x" * 6000)
    assert [len(line) for line in bench.log.lines] == [len("f#1: ") + 2500] * 2
    bench.write("y\n")
    assert bench.log.lines[2] == "f#1: " + "x" * 1000 + "y"


def test_text_that_is_not_utf_8_is_escaped(bench: Bench) -> None:
    bench.write("\ud800\n")
    assert bench.sent() == [(1, 0, "f#1", "\\ud800")]


# --------------------------------------------------------------------------------------------------------------- bounds


def test_endless_output_is_cut_off_and_reported(bench: Bench) -> None:
    bench.origins.now = origin(1, is_streamed=False)
    line = "x" * 1000 + "\n"
    for _ in range(20_000):
        bench.write(line)
    written = sum(map(len, bench.log.lines))
    assert task_output.BURST_CHARACTERS <= written < task_output.BURST_CHARACTERS * 1.1
    bench.now += task_output.RESUME_CHARACTERS / task_output.CHARACTERS_PER_SECOND + 0.1
    bench.write("again\n")
    *_, told, again = bench.log.lines
    kept = sum(line.endswith("x" * 1000) for line in bench.log.lines)
    assert told == f"f#1! ... {(20_000 - kept) * 1001} characters of output were dropped: too much at once"
    assert again == "f#1: again"


def test_dropped_output_is_reported_without_further_output(bench: Bench) -> None:
    bench.write("z" * 50_000_000)
    assert bench.output.wants_ticks()
    bench.output.tick()
    assert bench.log.lines[-1] == f"f#1! ... {50_000_000 - task_output.MAX_WRITE_CHARACTERS} characters " + (
        "of output were dropped: too much at once"
    )
    assert len(bench.log.lines) == task_output.MAX_WRITE_CHARACTERS // task_output.MAX_LINE_LENGTH + 1


def test_after_a_drop_all_output_is_dropped_and_counted_by_task(bench: Bench) -> None:
    bench.write("z" * 1000 + "\n")
    bench.output._free = 0
    for number in range(1, 300):
        bench.write("12345\n", number=number)
    bench.now += 1
    bench.output.tick()
    told = bench.log.lines[1:]
    assert told[0] == "f#1! ... 6 characters of output were dropped: too much at once"
    assert len(told) == task_output.MAX_DROPPED_ORIGINS + 1
    assert told[
        -1
    ] == f"host/1! ... {6 * (299 - task_output.MAX_DROPPED_ORIGINS)} characters of output were dropped: " + (
        "too much at once"
    )


def test_unsent_output_beyond_the_limit_is_dropped(bench: Bench) -> None:
    line = "x" * 999 + "\n"
    count = 2 * task_output.MAX_UNSENT_BYTES // 1000
    for _ in range(count):
        bench.write(line)
    first, told = bench.sent()
    sent = first[3].count("\n") + 1
    assert task_output.MAX_UNSENT_BYTES <= sent * 1000 < task_output.MAX_UNSENT_BYTES + 1000
    assert told == (1, 1, "f#1", f"... {(count - sent) * 1000} bytes of output were not sent: too much at once")
    bench.write("again\n")
    assert bench.sent() == [(1, 0, "f#1", "again")]


def test_output_of_children_goes_to_their_parents_clients(bench: Bench) -> None:
    output = Output([7, 8], [0, 1], [b"g#7", b"g#8"], [b"one", b"two\nthree"], dropped=5)
    bench.output.forward([(2, 3, 1), (2, 4, 2)], output)
    assert bench.sent() == [
        (3, 0, "g#7", "one"),
        (4, 1, "g#8", "two\nthree"),
        (3, 1, "host/1", "... 5 bytes of output were not sent: too much at once"),
    ]
    assert bench.log.lines == []


def test_the_end_writes_and_reports_everything(bench: Bench) -> None:
    bench.write("half")
    bench.output._free = 0
    bench.write("lost\n", number=2)
    bench.output.end()
    assert bench.log.lines == ["f#2! ... 5 characters of output were dropped: too much at once", "f#1: half"]


def test_a_finalizer_may_print_during_a_print(bench: Bench) -> None:
    with bench.output._lock:
        bench.write("one\n")
    assert bench.log.lines == ["f#1: one"]


# -------------------------------------------------------------------------------------------------------------- origins


class Worker:
    """The parts of a worker that an OriginFinder reads."""

    def __init__(self) -> None:
        self.session = WorkerSession(HELLO, 2.0, 0.0)
        self.token = RunToken(Wakeup(), SystemThreads())
        self.task = RunningTask(private_slot(), SystemThreads())
        self.origins = OriginFinder(self.session, self.token, self.task, lambda number: f"function{number}")
        self.token.acquire_first()

    def label(self) -> str:
        return self.origins.current().label.split()[-1]

    def in_thread(self) -> str:
        labels: list[str] = []
        thread = threading.Thread(target=lambda: labels.append(self.label()))
        thread.start()
        thread.join()
        return labels[0]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    worker = Worker()
    worker.origins.track_threads()
    return worker


def run(worker: Worker, number: int, *more: Any) -> Any:
    row = (2, number, 1, 4, b"", *more)
    worker.session.running = row
    return row


def test_the_running_thread_prints_for_the_running_task(worker: Worker) -> None:
    assert worker.origins.current() is worker.origins.no_task
    run(worker, 10)
    assert worker.label() == "function4#10"
    assert worker.origins.current() == ((2, 10, 1), worker.origins.no_task.label + " function4#10", False)
    run(worker, 11, STREAMED, 0, 0, (), "fit")
    assert worker.label() == "fit#11" and worker.origins.current().is_streamed


def test_threads_print_for_the_task_that_has_started_them(worker: Worker) -> None:
    row = run(worker, 10)
    resume, labels = threading.Event(), []
    thread = threading.Thread(target=lambda: (resume.wait(), labels.append((worker.label(), worker.in_thread()))))
    thread.start()
    worker.session.suspend()
    worker.task.suspend(row)
    worker.token.holder = 0  # another thread runs a child
    run(worker, 11)
    assert worker.label() == "function4#10", "the parent's thread, which waits"
    resume.set()
    thread.join()
    assert labels == [("function4#10", "function4#10")], "its thread, and one that this has started"


def test_a_resumed_parent_prints_for_itself(worker: Worker) -> None:
    row = run(worker, 10)
    worker.session.suspend()
    suspension = worker.task.suspend(row)
    worker.session.resume((2, 10, 1))
    worker.task.resume(row, suspension)
    assert worker.task.suspended_rows == {}
    assert worker.label() == "function4#10"


def test_a_thread_that_outlives_its_task_prints_for_the_running_task(worker: Worker) -> None:
    run(worker, 10)
    resume, labels = threading.Event(), []
    thread = threading.Thread(target=lambda: (resume.wait(), labels.append(worker.label())))
    thread.start()
    run(worker, 11)
    resume.set()
    thread.join()
    assert labels == ["function4#11"]


def test_whether_the_task_of_an_origin_is_over(worker: Worker) -> None:
    run(worker, 10)
    origin = worker.origins.current()
    assert not worker.origins.is_over(origin)
    worker.session.suspend()
    assert not worker.origins.is_over(origin)
    run(worker, 11)
    assert not worker.origins.is_over(origin)
    worker.session.suspended.clear()
    assert worker.origins.is_over(origin)
    worker.session.running = None
    assert worker.origins.is_over(origin) and worker.origins.is_over(worker.origins.no_task)
