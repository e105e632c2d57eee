"""The output of tasks: makes lines from their writes, for the worker's log and for clients that show output.

Everything here is bounded. The tasks of a worker may print CHARACTERS_PER_SECOND, with a large reserve for bursts.
Further output is dropped, and a line says how much it was. No task waits for a reader of the log, or for a client.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from scaler_client.protocol.messages import Output, TaskAttempt
from scaler_worker.output.log import OutputLog

BURST_CHARACTERS = 8 << 20
CHARACTERS_PER_SECOND = 1 << 20
RESUME_CHARACTERS = CHARACTERS_PER_SECOND // 2
"""After a drop, so many characters must be free before the next line.

Otherwise every second line would report dropped output.
"""

MAX_LINE_LENGTH = 2500
"""In characters. A longer line continues in the next one."""

MAX_WRITE_CHARACTERS = 1 << 20
"""The most characters of one write that are used. A write may have gigabytes."""

MAX_UNSENT_BYTES = 1 << 20
"""The most bytes of output for clients that wait to be sent."""

MAX_DROPPED_ORIGINS = 100
"""The most tasks whose dropped output is counted separately."""

_Source = tuple[TaskAttempt, str]
"""A task, with its label."""


class _Run:
    """Consecutive lines of one task and stream, to be sent."""

    def __init__(self, source: _Source, stream: int) -> None:
        self.source = source
        self.stream = stream
        self.lines: list[bytes] = []


class OutputOrigin(NamedTuple):
    """The task that some output comes from."""

    task: TaskAttempt | None
    """None: the output belongs to no task."""
    label: str
    """Host, process and task, for people."""
    is_streamed: bool
    """Whether the task's client shows its output."""


class OriginLookup(Protocol):
    """Finds the task that prints."""

    @property
    def no_task(self) -> OutputOrigin:
        """The origin of output that belongs to no task."""

    def current(self) -> OutputOrigin:
        """The origin of the calling thread's output."""

    def is_over(self, origin: OutputOrigin) -> bool:
        """Whether the origin's task has ended; True where it has no task."""


class TaskOutput:
    """The output of one worker. Any thread may call it, but `take` needs the connection's lock."""

    def __init__(self, origins: OriginLookup, log: OutputLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._origins = origins
        self._log = log
        self._clock = clock
        # A thread may take this lock twice: a finalizer or a signal handler that prints may run anywhere.
        self._lock = threading.RLock()
        self._partial: dict[tuple[OutputOrigin, int], str] = {}
        """Incomplete lines, by origin and stream."""
        self._free = float(BURST_CHARACTERS)
        self._counted = clock()
        """The time at which `_free` was computed."""
        self._dropped: dict[OutputOrigin, int] = {}
        """Dropped characters that no line has reported yet. While there are any, all output is dropped."""
        self._runs: list[_Run] = []
        self._unsent_bytes = 0
        self._not_sent: dict[_Source, int] = {}
        """Bytes that were dropped because too much was unsent."""

    def write(self, stream: int, text: str) -> None:
        """Add text that the calling thread prints."""
        origin = self._origins.current()
        with self._lock:
            cut = len(text) - MAX_WRITE_CHARACTERS
            self._split(origin, stream, text[:MAX_WRITE_CHARACTERS] if cut > 0 else text)
            if cut > 0:
                self._drop(origin, cut)
        self._log.write_if_ready()

    def tick(self) -> None:
        """Report dropped output, and end the lines of tasks that are over.

        Called regularly while `wants_ticks` is true.
        """
        with self._lock:
            self._end_lines()
            self._report_dropped()

    def wants_ticks(self) -> bool:
        return bool(self._partial or self._dropped)

    def take(self) -> Output | None:
        """The output to send now. It includes all output of tasks that have ended before this call."""
        if not self._runs and not self._partial and not self._not_sent:
            return None
        with self._lock:
            if self._end_lines():
                self._log.wake()
            self._unsent_bytes = 0
            not_sent, self._not_sent = self._not_sent, {}
            for source, count in not_sent.items():
                self._send(source, 1, [f"... {count} bytes of output were not sent: too much at once"])
            runs, self._runs = self._runs, []
            self._unsent_bytes = 0
        if not runs:
            return None
        return Output(
            [run.source[0][1] for run in runs],
            [run.stream for run in runs],
            [run.source[1].encode(errors="backslashreplace") for run in runs],
            [b"\n".join(run.lines) for run in runs],
            [run.source[0][0] for run in runs],
        )

    def forward(self, parents: Sequence[TaskAttempt], output: Output) -> None:
        """Send the output of children to the clients of their parents."""
        with self._lock:
            rows = zip(parents, output.streams, output.labels, output.texts)
            for parent, stream, label, text in rows:
                self._queue((parent, label.decode(errors="replace")), stream, [text])
            if output.dropped and parents:
                source = parents[0], self._origins.no_task.label
                self._not_sent[source] = self._not_sent.get(source, 0) + output.dropped

    def end(self) -> None:
        """Write all output to the log, when the worker ends."""
        with self._lock:
            self._free = float(BURST_CHARACTERS)
            self._counted = self._clock()
            self._report_dropped()
            for key in list(self._partial):
                self._end_line(key)
        self._log.end()

    # ------------------------------------------------------------------------------------------------- the lock is held

    def _split(self, origin: OutputOrigin, stream: int, text: str) -> None:
        key = origin, stream
        text = self._partial.pop(key, "") + text
        lines = text.split("\n")
        rest = lines.pop()
        if len(rest) >= MAX_LINE_LENGTH:
            rest = rest.rpartition("\r")[2]  # keep the last drawing of a progress bar
            whole = len(rest) - len(rest) % MAX_LINE_LENGTH
            lines += [rest[:whole]] if whole else []
            rest = rest[whole:]
        if rest:
            self._partial[key] = rest
            self._log.wake_for_ticks()
        if lines:
            self._emit(origin, stream, [part for line in lines for part in _split_long(line)])

    def _emit(self, origin: OutputOrigin, stream: int, lines: list[str]) -> None:
        size = sum(map(len, lines)) + len(lines)
        self._report_dropped()
        if self._dropped or self._free <= 0:
            self._drop(origin, size)
            return
        self._free -= size
        self._log.add(origin.label, stream, lines)
        if origin.task is not None and origin.is_streamed:
            self._send((origin.task, origin.label), stream, lines)

    def _drop(self, origin: OutputOrigin, count: int) -> None:
        if origin not in self._dropped and len(self._dropped) >= MAX_DROPPED_ORIGINS:
            origin = self._origins.no_task
        self._dropped[origin] = self._dropped.get(origin, 0) + count
        self._log.wake_for_ticks()

    def _report_dropped(self) -> None:
        """Report dropped output, if there is room again."""
        now = self._clock()
        self._free = min(BURST_CHARACTERS, self._free + (now - self._counted) * CHARACTERS_PER_SECOND)
        self._counted = now
        if not self._dropped or self._free < RESUME_CHARACTERS:
            return
        dropped, self._dropped = self._dropped, {}
        for origin, count in dropped.items():
            self._emit(origin, 1, [f"... {count} characters of output were dropped: too much at once"])

    def _end_lines(self) -> bool:
        """End the lines of tasks that are over. Returns whether there were any."""
        ended = [key for key in list(self._partial) if self._origins.is_over(key[0])]
        for key in ended:
            self._end_line(key)
        return bool(ended)

    def _end_line(self, key: tuple[OutputOrigin, int]) -> None:
        line = self._partial.pop(key, "")
        if line:
            self._emit(*key, list(_split_long(line)))

    def _send(self, source: _Source, stream: int, lines: list[str]) -> None:
        self._queue(source, stream, [line.encode(errors="backslashreplace") for line in lines])

    def _queue(self, source: _Source, stream: int, lines: list[bytes]) -> None:
        size = sum(map(len, lines)) + len(lines)
        if self._unsent_bytes >= MAX_UNSENT_BYTES:
            self._not_sent[source] = self._not_sent.get(source, 0) + size
            return
        self._unsent_bytes += size
        last = self._runs[-1] if self._runs else None
        if last is None or last.source != source or last.stream != stream:
            last = _Run(source, stream)
            self._runs.append(last)
        last.lines += lines


def _split_long(line: str) -> list[str]:
    """Split a line, as a terminal would show it, into parts of at most MAX_LINE_LENGTH."""
    line = line.rstrip("\r").rpartition("\r")[2]
    if len(line) <= MAX_LINE_LENGTH:
        return [line]
    return [line[begin : begin + MAX_LINE_LENGTH] for begin in range(0, len(line), MAX_LINE_LENGTH)]
