"""What tasks print, from their writes to lines: for the worker's log, and for clients that want to see it.

Everything here has a bound. A worker's tasks may print so many characters a second, with a large reserve for bursts;
what is more is dropped, and a line says how much it was. Nothing waits for whoever reads the log or the client.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from scaler_client.protocol.messages import Output, TaskName
from scaler_worker.output.log import OutputLog

RESERVE = 8 << 20
CHARACTERS_A_SECOND = 1 << 20
RESUME = CHARACTERS_A_SECOND // 2
"""Once something was dropped, this much must be free again: else every other line would be about dropped ones."""

LONGEST_LINE = 2500
"""Characters; longer ones go on in the next line."""

MOST_AT_ONCE = 1 << 20
"""Of one write no more is looked at: it may be gigabytes."""

MOST_UNSENT_BYTES = 1 << 20
"""Of output for clients that has not been sent."""

MOST_DROPPERS = 100
"""Tasks of which it is known apart how much was dropped."""

_Source = tuple[TaskName, str]
"""A task, with its label."""


class _Run:
    """Lines behind one another of one task and stream, to be sent."""

    def __init__(self, source: _Source, stream: int) -> None:
        self.source = source
        self.stream = stream
        self.lines: list[bytes] = []


class OutputOrigin(NamedTuple):
    task: TaskName | None
    """None: no task's."""
    label: str
    """For people: host, process and task."""
    is_streamed: bool
    """Whether its client wants to see what it prints."""


class OriginLookup(Protocol):
    """Finds out which task prints."""

    @property
    def no_task(self) -> OutputOrigin:
        """The origin of output that belongs to no task."""

    def current(self) -> OutputOrigin:
        """The origin of what the calling thread prints."""

    def is_over(self, origin: OutputOrigin) -> bool:
        """Whether the origin's task has ended; True where it has no task."""


class TaskOutput:
    """For any thread. `take` is for whoever holds the connection's lock."""

    def __init__(self, origins: OriginLookup, log: OutputLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._origins = origins
        self._log = log
        self._clock = clock
        # One that a thread may take twice: a finalizer or signal handler that prints can come anywhere.
        self._lock = threading.RLock()
        self._partial: dict[tuple[OutputOrigin, int], str] = {}
        """The begin of a line, by origin and stream."""
        self._free = float(RESERVE)
        self._counted = clock()
        """When `_free` was right."""
        self._dropped: dict[OutputOrigin, int] = {}
        """Characters of which no line has told yet; where there are any, everything is dropped."""
        self._runs: list[_Run] = []
        self._unsent_bytes = 0
        self._not_sent: dict[_Source, int] = {}
        """Bytes that were dropped as too much was unsent."""

    def write(self, stream: int, text: str) -> None:
        """Take what the calling thread prints."""
        origin = self._origins.current()
        with self._lock:
            cut = len(text) - MOST_AT_ONCE
            self._split(origin, stream, text[:MOST_AT_ONCE] if cut > 0 else text)
            if cut > 0:
                self._drop(origin, cut)
        self._log.write_if_ready()

    def tick(self) -> None:
        """Now and then, while `wants_ticks`: say what was dropped, end the lines of tasks that are over."""
        with self._lock:
            self._end_lines()
            self._report_dropped()

    def wants_ticks(self) -> bool:
        return bool(self._partial or self._dropped)

    def take(self) -> Output | None:
        """What is to be sent now. Of tasks that have ended before this call it is everything."""
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

    def forward(self, parents: Sequence[TaskName], output: Output) -> None:
        """Send this, which children have printed, to the clients of their parents."""
        with self._lock:
            rows = zip(parents, output.streams, output.labels, output.texts)
            for parent, stream, label, text in rows:
                self._queue((parent, label.decode(errors="replace")), stream, [text])
            if output.dropped and parents:
                source = parents[0], self._origins.no_task.label
                self._not_sent[source] = self._not_sent.get(source, 0) + output.dropped

    def end(self) -> None:
        """The worker ends: what there is goes to the log."""
        with self._lock:
            self._free = float(RESERVE)
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
        if len(rest) >= LONGEST_LINE:
            rest = rest.rpartition("\r")[2]  # of a bar that is drawn again and again, the last drawing
            whole = len(rest) - len(rest) % LONGEST_LINE
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
        if origin not in self._dropped and len(self._dropped) >= MOST_DROPPERS:
            origin = self._origins.no_task
        self._dropped[origin] = self._dropped.get(origin, 0) + count
        self._log.wake_for_ticks()

    def _report_dropped(self) -> None:
        """Where there is room again, say what was dropped."""
        now = self._clock()
        self._free = min(RESERVE, self._free + (now - self._counted) * CHARACTERS_A_SECOND)
        self._counted = now
        if not self._dropped or self._free < RESUME:
            return
        dropped, self._dropped = self._dropped, {}
        for origin, count in dropped.items():
            self._emit(origin, 1, [f"... {count} characters of output were dropped: too much at once"])

    def _end_lines(self) -> bool:
        """End the lines of tasks that are over; returns whether there were any."""
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
        if self._unsent_bytes >= MOST_UNSENT_BYTES:
            self._not_sent[source] = self._not_sent.get(source, 0) + size
            return
        self._unsent_bytes += size
        last = self._runs[-1] if self._runs else None
        if last is None or last.source != source or last.stream != stream:
            last = _Run(source, stream)
            self._runs.append(last)
        last.lines += lines


def _split_long(line: str) -> list[str]:
    """A line as a terminal would leave it, in parts that are not too long."""
    line = line.rstrip("\r").rpartition("\r")[2]
    if len(line) <= LONGEST_LINE:
        return [line]
    return [line[begin : begin + LONGEST_LINE] for begin in range(0, len(line), LONGEST_LINE)]
