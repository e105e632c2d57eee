"""Writes the lines that tasks print into the worker's log, without blocking.

As long as the log takes the lines at once, the printing thread writes them itself. So the last lines of a crashing
process are in the log. If the log takes nothing, for example a pipe without a reader, the lines wait for the writer
thread. Lines beyond MAX_WAITING_CHARACTERS are dropped. Each write is so short that it can't block.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from scaler_client.io.output_display import PIPE_BUF_BYTES, is_writable

MAX_WAITING_CHARACTERS = 4 << 20
"""The most characters that wait."""

TICK_SECONDS = 0.2
LAST_SECONDS = 0.5
"""How long the worker's end waits for the log."""

_MAX_PART_LENGTH = PIPE_BUF_BYTES // 6
"""The most characters of a line that is not all ASCII: each takes up to four bytes, after a label."""

_MARKS = ("", " stderr")


class OutputLog:
    """The lines on their way to the log, and the thread that writes them if the log is slow."""

    def __init__(self) -> None:
        # A separate level, because users who want few lines of the worker still want the output of tasks.
        self._logger = logging.getLogger("scaler_worker.output")
        self._logger.setLevel(logging.INFO)
        self._lock = threading.RLock()
        self._waiting: deque[str] = deque()
        self._waiting_characters = 0
        self._dropped = 0
        self._writing = 0
        """The thread that writes; 0: no thread."""
        self._news = threading.Event()
        self._tick: Callable[[], None] = lambda: None
        self._wants_ticks: Callable[[], bool] = lambda: False

    def call(self, tick: Callable[[], None], wants_ticks: Callable[[], bool]) -> None:
        """Have the writer thread call `tick` every TICK_SECONDS, from `wake_for_ticks` until `wants_ticks` returns
        False."""
        self._tick = tick
        self._wants_ticks = wants_ticks

    def start(self) -> None:
        """Start the writer thread."""
        threading.Thread(target=self._serve, name="output", daemon=True).start()

    def add(self, label: str, stream: int, lines: list[str]) -> None:
        """Add lines to write. Does not block. Call `write_if_ready` or `wake` after it."""
        before = f"{label}{_MARKS[stream]}: "
        with self._lock:
            for line in lines:
                if self._waiting_characters >= MAX_WAITING_CHARACTERS:
                    self._dropped += len(line) + 1
                    continue
                for text in _narrow(line):
                    self._waiting.append(before + text)
                    self._waiting_characters += len(before) + len(text)

    def write_if_ready(self) -> None:
        """Write waiting lines that the log takes at once. The writer thread writes the rest."""
        if self._waiting and not self._write():
            self._news.set()

    def wake(self) -> None:
        """Wake the writer thread, after `add` in a thread that must not write."""
        self._news.set()

    def wake_for_ticks(self) -> None:
        """Wake the writer thread, because `wants_ticks` has become true."""
        if not self._news.is_set():  # nearly every print calls this, between its text and its newline
            self._news.set()

    def is_writing_here(self) -> bool:
        """Whether the calling thread is inside a handler of the log. The output of a handler must not get into the
        log."""
        return self._writing == threading.get_ident()

    def end(self) -> None:
        """Write the waiting lines, as far as the log takes them within LAST_SECONDS."""
        deadline = time.monotonic() + LAST_SECONDS
        while (self._waiting or self._writing) and time.monotonic() < deadline:
            if not self._write():
                time.sleep(0.01)

    def _serve(self) -> None:
        while True:
            self._news.wait()
            time.sleep(TICK_SECONDS)  # first: a task that prints much must not wake it at each print
            self._news.clear()
            self._tick()
            self._write()
            if self._waiting or self._wants_ticks():
                self._news.set()

    def _write(self) -> bool:
        """Write waiting lines. Returns whether all are written, or another thread is writing them."""
        mine = False
        try:
            while self._waiting:
                with self._lock:
                    if self._writing:
                        return True
                    mine = True
                    self._writing = threading.get_ident()
                while self._waiting:
                    if not all(map(is_writable, self._streams())):
                        return False
                    self._write_one()
                self._writing = 0
                mine = False
            return True
        finally:
            if mine:
                self._writing = 0

    def _write_one(self) -> None:
        with self._lock:
            text = self._waiting.popleft()
            self._waiting_characters -= len(text)
            if self._dropped and not self._waiting:
                self._waiting.append(f"... {self._dropped} characters of output were dropped: the log takes no more")
                self._dropped = 0
        logger = self._logger
        logger.handle(logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None))

    def _streams(self) -> list[object]:
        """The streams that the log goes to."""
        streams: list[object] = []
        at: logging.Logger | None = self._logger
        while at is not None:
            streams += [handler.stream for handler in at.handlers if isinstance(handler, logging.StreamHandler)]
            at = at.parent if at.propagate else None
        return streams


def _narrow(line: str) -> list[str]:
    if len(line) <= _MAX_PART_LENGTH or line.isascii():
        return [line]
    return [line[begin : begin + _MAX_PART_LENGTH] for begin in range(0, len(line), _MAX_PART_LENGTH)]
