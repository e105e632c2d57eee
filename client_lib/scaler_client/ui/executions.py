"""Joins rows of history to executions, and keeps the newest ones for the timeline, the task log and durations.

It has no socket and no clock. The rows of a task come one by one (submitted, dispatched, started, ended). The data of
open tasks are kept in two generations. So a task whose end was missed is forgotten after a while.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from ..protocol.snapshots import History, HistoryKind
from .chunks import MICROSECONDS, Chunk
from .contract import RETURNED
from .durations import FunctionDurations

MAX_TASKS = 100_000
"""Executions that are kept."""
ROWS_PER_CHUNK = 4000
"""A chunk of this size is a message of about 300 KB."""
CHUNKS = 10
"""The least number of chunks in a full window. The oldest chunk is dropped as a whole."""
OPEN_TASKS = 200_000
"""The number of open tasks whose submission and worker are known."""

NO_TIME = -1

_Known = TypeVar("_Known")
_Key = tuple[int, int]


class _RecentTasks(Generic[_Known]):
    """The data of the newest tasks: at least `limit` tasks, at most twice as many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: dict[_Key, _Known] = {}
        self._old: dict[_Key, _Known] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def put(self, key: _Key, known: _Known) -> None:
        self._young[key] = known
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}

    def pop(self, key: _Key) -> _Known | None:
        if self._old:
            old = self._old.pop(key, None)
            return self._young.pop(key, old)
        return self._young.pop(key, None)

    def get(self, key: _Key) -> _Known | None:
        known = self._young.get(key)
        return self._old.get(key) if known is None else known

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


_Assignment = tuple[int, int | None]
"""The worker of a task, and since when it is known to run (unix time in microseconds)."""


class Executions:
    """Ended executions in chunks. `chunks` has the oldest first, numbered consecutively."""

    def __init__(self, most_tasks: int = MAX_TASKS) -> None:
        self.chunks: deque[Chunk] = deque()
        self.durations: dict[str, FunctionDurations] = {}
        """Durations of all kept executions, by function."""
        self.rows = 0
        self._most_tasks = most_tasks
        self._rows_per_chunk = min(ROWS_PER_CHUNK, most_tasks // CHUNKS)
        self._next_number = 0
        self._missed = 0
        self._submitted: _RecentTasks[int] = _RecentTasks(OPEN_TASKS)
        """When open tasks were submitted (unix time in microseconds)."""
        self._assignments: _RecentTasks[_Assignment] = _RecentTasks(OPEN_TASKS)

    def clear_open_tasks(self) -> None:
        """Forget all open tasks. Another scheduler publishes, and sends its open tasks again."""
        self._submitted.clear()
        self._assignments.clear()

    def add_missed(self, rows: int) -> None:
        """Count rows of history that never arrived."""
        self._missed += rows

    def add_history(self, history: History, started: int) -> None:
        """Add rows of history. `started` is the scheduler's start, unix time in microseconds."""
        ends = _end_times(history)
        chunk = None
        for row, kind in enumerate(history.kinds):
            key = history.clients[row], history.ids[row]
            at = started + history.times[row]
            if kind == HistoryKind.SUBMITTED:
                self._submitted.put(key, at)
            elif kind == HistoryKind.DISPATCHED:
                self._assignments.put(key, (history.workers[row], None))
            elif kind in (HistoryKind.STARTED, HistoryKind.REATTACHED):
                self._assignments.put(key, (history.workers[row], at))
            elif kind in (HistoryKind.ENDED, HistoryKind.RETURNED):
                if chunk is None or len(chunk) >= self._rows_per_chunk:
                    self._append_chunk(chunk)
                    chunk = Chunk(self._next_number, at // MICROSECONDS, self._missed)
                if kind == HistoryKind.ENDED:
                    self._add_end(chunk, history, row, key, started + ends[row])
                else:
                    self._add_return(chunk, history, row, key, started + ends[row])
        self._append_chunk(chunk)

    def drop_before(self, oldest: float) -> None:
        """Drop the chunks that ended entirely before `oldest` (unix time), and the oldest ones beyond the limit."""
        while self.chunks and (self.chunks[0].newest < oldest or self.rows > self._most_tasks):
            chunk = self.chunks.popleft()
            self.rows -= len(chunk)
            for function, durations in chunk.durations.items():
                kept = self.durations[function]
                kept.subtract(durations)
                if not kept.count:
                    del self.durations[function]

    @property
    def next_number(self) -> int:
        """The number of the next chunk."""
        return self._next_number

    def number_at(self, time: float) -> int:
        """The number of the first chunk that has an execution ended at or after `time` (unix time)."""
        return self._next_number - sum(1 for chunk in self.chunks if chunk.newest >= time)

    def _append_chunk(self, chunk: Chunk | None) -> None:
        if chunk is None or not len(chunk):
            return
        self._missed = 0
        self._next_number += 1
        self.chunks.append(chunk)
        self.rows += len(chunk)
        for function, durations in chunk.durations.items():
            self.durations.setdefault(function, FunctionDurations()).merge(durations)

    def _add_end(self, chunk: Chunk, history: History, row: int, key: _Key, end: int) -> None:
        submitted = self._submitted.pop(key)
        known = self._assignments.pop(key)
        worker, duration = history.workers[row], history.durations[row]
        start = end - duration // 1000 if worker else None
        if known is not None and not worker:  # the scheduler ended it, wherever it was
            worker, start = known
        chunk.add(
            client=key[0],
            task_id=key[1],
            attempt=history.attempts[row],
            worker=worker,
            function=history.functions[row],
            name=history.names[row],
            submitted=submitted,
            start=start,
            end=end,
            duration=duration,
            outcome=history.outcomes[row],
            error=history.errors[row],
        )

    def _add_return(self, chunk: Chunk, history: History, row: int, key: _Key, end: int) -> None:
        worker, start = self._assignments.pop(key) or (0, None)
        duration = history.durations[row]
        if duration:
            worker, start = history.workers[row], end - duration // 1000
        if start is None:
            return  # it is not known to have run before it was taken back
        chunk.add(
            client=key[0],
            task_id=key[1],
            attempt=history.attempts[row],
            worker=worker,
            function=history.functions[row],
            name=history.names[row],
            submitted=self._submitted.get(key),
            start=start,
            end=end,
            duration=duration,
            outcome=history.outcomes[row] or RETURNED,
            error=history.errors[row],
        )


def _end_times(history: History) -> list[int]:
    """The ends of executions, in microseconds of the scheduler's uptime.

    The scheduler may learn of many ends at once. Executions of one worker that ended in the same moment are placed one
    after the other.
    """
    ends = list(history.times)
    workers, durations = history.workers, history.durations
    begins: dict[int, tuple[int, int]] = {}
    """By worker: the moment, and the earliest start among the executions that ended in it."""
    for row in range(len(ends) - 1, -1, -1):
        kind = history.kinds[row]
        if not workers[row] or not (kind == HistoryKind.ENDED or kind == HistoryKind.RETURNED and durations[row]):
            continue
        moment, begin = begins.get(workers[row], (NO_TIME, NO_TIME))
        if moment == ends[row]:
            ends[row] = begin
        begins[workers[row]] = history.times[row], ends[row] - durations[row] // 1000
    return ends
