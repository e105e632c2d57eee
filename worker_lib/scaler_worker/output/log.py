"""Lines that tasks have printed, on their way into the worker's log.

The thread that prints writes them itself while the log takes them at once, so that the last words of a process that
crashes are there. Where the log takes nothing, as a pipe that nobody reads, they wait for the writer, a thread, and
what is too much is dropped. No write is so long that it could block.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from scaler_client.io.output_display import SURE_BYTES, is_writable

MOST_WAITING = 4 << 20
"""Characters."""

TICK_SECONDS = 0.2
LAST_SECONDS = 0.5
"""How long the end of the worker waits for the log."""

_WIDEST = SURE_BYTES // 6
"""Characters of a line that has others than ASCII's: of up to four bytes each, behind a label."""

_MARKS = ("", " stderr")


class OutputLog:
    def __init__(self) -> None:
        # A level of its own: what tasks print is wanted also by those who want few words of the worker.
        self._logger = logging.getLogger("scaler_worker.output")
        self._logger.setLevel(logging.INFO)
        self._lock = threading.RLock()
        self._waiting: deque[str] = deque()
        self._waiting_characters = 0
        self._dropped = 0
        self._writing = 0
        """The thread that writes; 0: none does."""
        self._news = threading.Event()
        self._tick: Callable[[], None] = lambda: None
        self._wants_ticks: Callable[[], bool] = lambda: False

    def call(self, tick: Callable[[], None], wants_ticks: Callable[[], bool]) -> None:
        """Have the writer call `tick` every TICK_SECONDS, from a `wake_for_ticks` on as long as `wants_ticks`."""
        self._tick = tick
        self._wants_ticks = wants_ticks

    def start(self) -> None:
        """Start the writer."""
        threading.Thread(target=self._serve, name="output", daemon=True).start()

    def add(self, label: str, stream: int, lines: list[str]) -> None:
        """Have these written. Does not block; somebody calls `write_if_ready` or `wake` after it."""
        before = f"{label}{_MARKS[stream]}: "
        with self._lock:
            for line in lines:
                if self._waiting_characters >= MOST_WAITING:
                    self._dropped += len(line) + 1
                    continue
                for text in _narrow(line):
                    self._waiting.append(before + text)
                    self._waiting_characters += len(before) + len(text)

    def write_if_ready(self) -> None:
        """Write what waits, as far as the log takes it at once; the writer goes on with the rest."""
        if self._waiting and not self._write():
            self._news.set()

    def wake(self) -> None:
        """Something was added where this thread must not write it."""
        self._news.set()

    def wake_for_ticks(self) -> None:
        """`wants_ticks` has become true."""
        if not self._news.is_set():  # nearly every print comes here, between its text and its newline
            self._news.set()

    def is_writing_here(self) -> bool:
        """Whether the calling thread is inside a handler of the log: what that prints must not come here."""
        return self._writing == threading.get_ident()

    def end(self) -> None:
        """Write what there is, as far as the log takes it within a moment."""
        deadline = time.monotonic() + LAST_SECONDS
        while (self._waiting or self._writing) and time.monotonic() < deadline:
            if not self._write():
                time.sleep(0.01)

    def _serve(self) -> None:
        while True:
            self._news.wait()
            time.sleep(TICK_SECONDS)  # first: whoever prints much must not wake it each time
            self._news.clear()
            self._tick()
            self._write()
            if self._waiting or self._wants_ticks():
                self._news.set()

    def _write(self) -> bool:
        """Returns whether all is written, or will be by another thread."""
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
        """Where the log goes."""
        streams: list[object] = []
        at: logging.Logger | None = self._logger
        while at is not None:
            streams += [handler.stream for handler in at.handlers if isinstance(handler, logging.StreamHandler)]
            at = at.parent if at.propagate else None
        return streams


def _narrow(line: str) -> list[str]:
    if len(line) <= _WIDEST or line.isascii():
        return [line]
    return [line[begin : begin + _WIDEST] for begin in range(0, len(line), _WIDEST)]
