"""Output of tasks in the client: its form, its limits, and that nothing waits for a slow reader."""

from __future__ import annotations

import io
import os
import pickle
import select
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.client.nested.stand_ins import FakeHost, FakeTask, hosted
from tests.client.scheduler_stand_in import FakeScheduler
from tests.client.session.stand_ins import joined_session, resolved, sent
from tests.waiting import wait_until

from scaler_client import AsyncClient, Client
from scaler_client.io import nested_connections, output_display
from scaler_client.io.output_display import OutputDisplay
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol import messages
from scaler_client.protocol.messages import STANDARD_ERROR, STANDARD_OUTPUT, Output

WAIT_SECONDS = 20.0


def printed(text: bytes = b"one", stream: int = STANDARD_OUTPUT, task_id: int = 1, dropped: int = 0) -> Output:
    return Output([task_id], [stream], [b"host/1 f#1"], [text], dropped=dropped)


@pytest.fixture
def display() -> Iterator[OutputDisplay]:
    display = OutputDisplay()
    yield display
    display.end()
    display.join()


def all_shown(display: OutputDisplay) -> None:
    display.end()
    display.join()


def test_each_line_begins_with_its_task(display: OutputDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    display.put(printed(b"one\n\ntwo"))
    display.put(printed("Zoë".encode() + b"\xff", STANDARD_ERROR))
    all_shown(display)
    shown = capsys.readouterr()
    assert shown.out == "[host/1 f#1] one\n[host/1 f#1] \n[host/1 f#1] two\n"
    assert shown.err == "[host/1 f#1] Zoë\ufffd\n"


def test_dropped_output_is_reported(display: OutputDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    display.put(printed(dropped=1000))
    display.put(Output([], [], [], [], dropped=7))
    all_shown(display)
    shown = capsys.readouterr()
    assert shown.out == "[host/1 f#1] one\n"
    assert [line.split()[1] for line in shown.err.splitlines()] == ["1000", "7"]
    assert "bytes of task output were dropped" in shown.err


def test_no_output_starts_no_thread(display: OutputDisplay) -> None:
    all_shown(display)
    assert display._thread is None
    display.put(printed())
    assert display._thread is None, "it is over"


class SlowPipe:
    """A pipe whose reader waits for the test."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.writer = os.fdopen(writer, "w")

    def read(self) -> bytes:
        return os.read(self.reader, 1 << 20) if select.select([self.reader], [], [], 0.01)[0] else b""

    def close(self) -> None:
        os.close(self.reader)
        try:
            self.writer.close()
        except BrokenPipeError:
            pass


@pytest.fixture
def slow() -> Iterator[SlowPipe]:
    slow = SlowPipe()
    yield slow
    slow.close()


def test_a_slow_reader_delays_no_other_work(
    slow: SlowPipe, display: OutputDisplay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", slow.writer)
    monkeypatch.setattr(output_display, "MAX_WAITING_BYTES", 1 << 18)
    for _ in range(1000):
        display.put(printed(b"x" * 999))
    assert display._waiting_bytes < (1 << 18) + 2000
    lines = b""
    while display._waiting:
        lines += slow.read()
    all_shown(display)
    lines += slow.read()
    kept = lines.count(b"x" * 999)
    told = sum(int(line.split()[1]) for line in capsys.readouterr().err.splitlines())
    assert 250 < kept < 400
    assert told >= (1000 - kept - 80) * 999, "all but what the pipe itself held"


def test_the_end_does_not_wait_for_a_slow_reader(
    slow: SlowPipe, display: OutputDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", slow.writer)
    monkeypatch.setattr(output_display, "CLOSE_SECONDS", 0.1)
    display.put(printed(b"x" * 200_000))
    all_shown(display)
    assert display._thread is not None
    display._thread.join(WAIT_SECONDS)
    assert not display._thread.is_alive()


class AsciiStream(io.StringIO):
    """A stream that takes only ASCII."""

    encoding = "ascii"  # type: ignore[assignment]

    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


def test_a_users_own_stream_may_fail(display: OutputDisplay, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = AsciiStream()
    monkeypatch.setattr(sys, "stdout", narrow)
    display.put(printed("Zoë".encode()))
    wait_until(lambda: narrow.getvalue().endswith("\n"), what="it is written")
    assert narrow.getvalue() == "[host/1 f#1] Zo\\xeb\n"
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    display.put(printed())
    monkeypatch.setattr(sys, "stderr", None)
    display.put(printed(stream=STANDARD_ERROR))
    all_shown(display)
    assert display._thread is not None and not display._thread.is_alive()


# ---------------------------------------------------------------------------------------------- the session, the client


def test_output_counts_in_the_window_of_results() -> None:
    session = joined_session(result_window=80)
    taken: list[Output] = []
    session.on_output = taken.append
    session.handle(printed(b"x" * 10), 1.0)
    assert sent(session) == [messages.Received(20)]
    session.handle(resolved(99), 1.0)
    session.handle(printed(b"y" * 10), 1.0)
    assert sent(session) == [messages.Received(46)]
    assert [output.texts for output in taken] == [[b"x" * 10], [b"y" * 10]]


def say_printed(scheduler: FakeScheduler, *ids: int, text: bytes = b"hello") -> None:
    scheduler.say(
        "output", ids=list(ids), streams=[0], labels=[4], sizes=[4 + len(text)], text=(b"host" + text) * len(ids)
    )


def test_a_client_requests_output_and_shows_it(scheduler: FakeScheduler, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(scheduler.address, stream_output=True) as client:
        future = client.options(priority=1).submit(abs, -1)
        submitted = scheduler.receive("submit")
        assert submitted["options"]["streamOutput"] is True
        say_printed(scheduler, *submitted["ids"])
        scheduler.resolve(submitted["ids"], dumps(1))
        assert future.result(WAIT_SECONDS) == 1
    assert capsys.readouterr().out == "[host] hello\n", "at the latest when the client has ended"


def test_a_client_without_stream_output_requests_none(scheduler: FakeScheduler) -> None:
    with Client(scheduler.address) as client:
        client.submit(abs, -1)
        assert "options" not in scheduler.receive("submit")
        assert not pickle.loads(pickle.dumps(client._options)).stream_output


def test_an_async_client_checks_the_option() -> None:
    with pytest.raises(TypeError, match="stream_output must be True or False, not 1"):
        AsyncClient(stream_output=1)  # type: ignore[arg-type]


def test_children_inherit_the_option_and_their_output_is_forwarded(scheduler: FakeScheduler) -> None:
    task = FakeTask(name=(7, 3, 1))
    task.stream_output = True
    with hosted(FakeHost(task, scheduler.address, 44)) as host:
        try:
            client = Client()
            client.submit(abs, -1)
            submitted = scheduler.receive("submit")
            assert submitted["options"]["streamOutput"] is True
            (task_id,) = submitted["ids"]
            thread = threading.Thread(target=lambda: client.submit(abs, -2))
            thread.start()
            thread.join()
            other = scheduler.receive("submit")
            assert "options" not in other, "tasks from another thread have no parent"
            say_printed(scheduler, 999, other["ids"][0], task_id)
            wait_until(lambda: host.forwarded, what="the output is forwarded")
            assert host.forwarded == [([(7, 3, 1)], Output([task_id], [0], [b"host"], [b"hello"]))]
        finally:
            for connection in set(nested_connections._connections.values()):
                connection.io_thread.close("the test is over")
            nested_connections._connections.clear()
