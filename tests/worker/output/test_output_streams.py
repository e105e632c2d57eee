"""The captured `sys.stdout` and `sys.stderr` of tasks, and the log of their lines."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import wait_until

from scaler_client.protocol.messages import STANDARD_ERROR, STANDARD_OUTPUT
from scaler_worker.output.log import OutputLog
from scaler_worker.output.streams import Capture, TaskStream


class Noted:
    """Takes the place of a TaskOutput."""

    def __init__(self) -> None:
        self.written: list[tuple[int, str]] = []

    def write(self, stream: int, text: str) -> None:
        self.written.append((stream, text))


class QuietLog:
    def is_writing_here(self) -> bool:
        return False


@pytest.fixture
def noted() -> Noted:
    return Noted()


@pytest.fixture
def stream(noted: Any) -> TaskStream:
    log: Any = QuietLog()
    return TaskStream(noted, log, STANDARD_OUTPUT, sys.__stdout__)


def test_all_ways_to_print_are_captured(stream: TaskStream, noted: Noted) -> None:
    print("one", 2, file=stream, flush=True)
    stream.writelines(["three\n", "four"])
    assert stream.write("") == 0 and stream.write("five") == 4
    assert "".join(text for _, text in noted.written) == "one 2\nthree\nfourfive"
    with pytest.raises(TypeError, match="must be str, not bytes"):
        stream.write(b"bytes")  # type: ignore[arg-type]


def test_bytes_are_text_in_utf_8(stream: TaskStream, noted: Noted) -> None:
    assert stream.buffer.write("Zoë\n".encode()[:3]) == 3
    stream.buffer.write(memoryview("Zoë\n".encode()[3:]))
    stream.buffer.write(b"\xff\n")
    stream.buffer.flush()
    assert "".join(text for _, text in noted.written) == "Zoë\n\ufffd\n"


def test_a_captured_stream_has_the_attributes_of_a_stream(stream: TaskStream, noted: Any) -> None:
    assert (stream.encoding, stream.errors, stream.name, stream.mode) == ("utf-8", "backslashreplace", "<stdout>", "w")
    assert stream.fileno() == stream.buffer.fileno() == 1
    assert not stream.isatty() and stream.writable() and not stream.readable() and stream.line_buffering
    stream.reconfigure(line_buffering=False)
    stream.close()
    assert not stream.closed
    stream.write("open\n")
    with pytest.raises(io.UnsupportedOperation):
        stream.readline()
    log: Any = QuietLog()
    without = TaskStream(noted, log, STANDARD_ERROR, None)
    with pytest.raises(io.UnsupportedOperation):
        without.fileno()
    assert without.name == "<stderr>"


def test_handlers_of_logging_write_to_a_captured_stream(stream: TaskStream, noted: Noted) -> None:
    handler = logging.StreamHandler(stream)
    handler.emit(logging.makeLogRecord({"msg": "logged"}))
    assert noted.written == [(STANDARD_OUTPUT, "logged\n")]


def test_the_end_restores_the_streams(noted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(sys, "stderr", stderr)
    log: Any = QuietLog()
    capture = Capture(noted, log)
    capture.begin()
    kept = sys.stderr
    print("one")
    print("two", file=sys.stderr)
    capture.end()
    assert (sys.stdout, sys.stderr) == (stdout, stderr)
    print("three", file=kept)
    assert noted.written == [(0, "one"), (0, "\n"), (1, "two"), (1, "\n")]
    assert (stdout.getvalue(), stderr.getvalue()) == ("", "three\n")


# ------------------------------------------------------------------------------------------------------------- the log


class Pipe:
    """A log that goes to a pipe. Only the test may read it."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.writer = os.fdopen(writer, "w", buffering=1)
        self.handler = logging.StreamHandler(self.writer)
        logging.getLogger("scaler_worker.output").addHandler(self.handler)
        logging.getLogger("scaler_worker.output").propagate = False

    def read(self) -> str:
        return os.read(self.reader, 1 << 20).decode()

    def close(self) -> None:
        logging.getLogger("scaler_worker.output").removeHandler(self.handler)
        logging.getLogger("scaler_worker.output").propagate = True
        os.close(self.reader)
        try:
            self.writer.close()
        except BrokenPipeError:
            pass


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_the_printing_thread_writes_the_log_itself(pipe: Pipe) -> None:
    log = OutputLog()
    log.add("host/1 f#1", STANDARD_OUTPUT, ["one", "two"])
    log.add("host/1 f#1", STANDARD_ERROR, ["three"])
    log.write_if_ready()
    assert pipe.read() == "host/1 f#1: one\nhost/1 f#1: two\nhost/1 f#1 stderr: three\n"


def test_output_is_logged_at_any_level_of_the_worker(pipe: Pipe) -> None:
    logging.getLogger("scaler_worker").setLevel(logging.CRITICAL)
    try:
        log = OutputLog()
        log.add("f", STANDARD_OUTPUT, ["one"])
        log.write_if_ready()
        assert pipe.read() == "f: one\n"
    finally:
        logging.getLogger("scaler_worker").setLevel(logging.NOTSET)


def test_a_log_without_a_reader_blocks_no_task(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_worker.output.log.MAX_WAITING_CHARACTERS", 100_000)
    log = OutputLog()
    log.start()
    line = "x" * 1000
    for _ in range(1000):
        log.add("f", STANDARD_OUTPUT, [line])
        log.write_if_ready()
    assert log._waiting_characters <= 102_000
    log.end()
    read = pipe.read()
    wait_until(lambda: not log._waiting or pipe_has_more(pipe), what="the writer goes on")
    while "dropped" not in read:
        read += pipe.read()
    lines = read.splitlines()
    kept = sum(each == f"f: {line}" for each in lines)
    assert lines[-1] == f"... {(1000 - kept) * 1001} characters of output were dropped: the log takes no more"


def pipe_has_more(pipe: Pipe) -> bool:
    import select

    return bool(select.select([pipe.reader], [], [], 0)[0])


def test_long_lines_of_wide_characters_fit_into_a_pipe(pipe: Pipe) -> None:
    log = OutputLog()
    log.add("f", STANDARD_OUTPUT, ["\U0001f600" * 2500])
    log.write_if_ready()
    lines = pipe.read().splitlines()
    assert "".join(line.removeprefix("f: ") for line in lines) == "\U0001f600" * 2500
    assert max(len(line.encode()) for line in lines) < 4096


def test_a_handler_that_prints_does_not_recurse(noted: Any, pipe: Pipe) -> None:
    log = OutputLog()
    raw = io.StringIO()
    stream = TaskStream(noted, log, STANDARD_ERROR, raw)
    pipe.handler.setFormatter(Printing(stream))
    log.add("f", STANDARD_OUTPUT, ["one"])
    log.write_if_ready()
    assert raw.getvalue() == "formatting\n" and noted.written == []
    print("outside", file=stream)
    assert noted.written == [(1, "outside"), (1, "\n")]


class Printing(logging.Formatter):
    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def format(self, record: logging.LogRecord) -> str:
        print("formatting", file=self._stream)
        return super().format(record)


def test_threads_that_print_at_once_lose_no_line(pipe: Pipe) -> None:
    log = OutputLog()
    threads = [
        threading.Thread(
            target=lambda name: (log.add(name, 0, ["x"] * 20), log.write_if_ready()), args=(f"f#{number}",)
        )
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.end()
    lines = pipe.read().splitlines()
    assert sorted(lines) == sorted(f"f#{number}: x" for number in range(8) for _ in range(20))
