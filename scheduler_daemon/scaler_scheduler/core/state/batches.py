"""Waiting tasks, kept as the columns of their message.

A million waiting tasks must not be a million objects. A `Batch` keeps a Submit's columns as they are (12 bytes a task
in addition to the payload). Rows are taken from its front.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator

from scaler_scheduler.core.events import Options
from scaler_scheduler.core.state.functions import Function

_BLOCK_BITS = 10
"""Ids that differ only in these lowest bits share an entry of the index."""


class Batch:
    """The columns of one Submit. Rows are taken from the front."""

    __slots__ = ("arrived", "cancelled", "functions", "ids", "large", "next", "options", "payload", "position", "sizes")

    def __init__(
        self,
        ids: array[int],
        functions: list[Function],
        sizes: array[int],
        payload: bytes,
        large: dict[int, bytes],
        options: Options,
        arrived: float,
    ) -> None:
        self.arrived = arrived
        """When the batch arrived, in seconds of the monotonic clock."""
        self.ids = ids
        self.functions = functions
        """One function for all rows, or one a row."""
        self.sizes = sizes
        self.payload = payload
        self.large = large
        self.options = options
        self.next = 0
        """The first row that has not been taken."""
        self.position = 0
        """The offset of that row's bytes in `payload`."""
        self.cancelled: set[int] = set()
        """Rows that must not be taken. Rows before `next` are removed from it."""

    def leave_out(self, rows: Iterable[int]) -> None:
        """Exclude these rows."""
        for row in rows:
            self.cancelled.add(row)
            self.large.pop(row, None)

    def function_at(self, row: int) -> Function:
        """The function of this row."""
        return self.functions[row] if len(self.functions) > 1 else self.functions[0]

    def run_length(self, limit: int) -> int:
        """Return how many rows from `next` on, at most `limit`, have one function and can be taken as one slice.

        A cancelled row, or a row whose payload has its own frame, ends the run. If it comes first, it is a run of one.
        """
        row = self.next
        limit = min(limit, len(self.ids) - row)
        if not self.cancelled and not self.large and len(self.functions) == 1:
            return limit
        if row in self.cancelled or row in self.large:
            return min(1, limit)
        function = self.function_at(row)
        end = row + 1
        while (
            end < row + limit
            and end not in self.cancelled
            and end not in self.large
            and self.function_at(end) is function
        ):
            end += 1
        return end - row

    def row_of(self, task_id: int) -> int:
        """Return the waiting row of this task, or -1."""
        ids = self.ids
        if task_id < ids[self.next] or task_id > ids[-1]:
            return -1
        row = bisect_left(ids, task_id, self.next)
        if ids[row] != task_id or row in self.cancelled:
            return -1
        return row

    def skip_cancelled(self) -> None:
        """Move `next` past cancelled rows."""
        while self.next < len(self.ids) and self.next in self.cancelled:
            self.cancelled.discard(self.next)
            self.position += self.sizes[self.next]
            self.next += 1

    def size_of(self, row: int) -> int:
        """The bytes of the row's payload."""
        large = self.large.get(row)
        return self.sizes[row] if large is None else len(large)

    def take_row(self, row: int) -> tuple[bytes, int, int, bool]:
        """Take any row. Returns the buffer with its bytes, their offset, their number, and whether they have a frame of
        their own."""
        self.cancelled.add(row)
        large = self.large.pop(row, None)
        if large is not None:
            return large, 0, len(large), True
        start = self.position
        for before in range(self.next, row):
            start += self.sizes[before]
        return self.payload, start, self.sizes[row], False

    @property
    def next_id(self) -> int:
        """The id of the first row that has not been taken. There must be one."""
        return self.ids[self.next]

    @property
    def is_empty(self) -> bool:
        return self.next >= len(self.ids)

    def waiting_rows(self) -> list[int]:
        """Return the rows that were neither taken nor cancelled."""
        return [row for row in range(self.next, len(self.ids)) if row not in self.cancelled]


class BatchQueue:
    """A lane's batches in the order of their arrival, with an index by task id."""

    def __init__(self) -> None:
        self._queue: deque[Batch] = deque()
        self._blocks: dict[int, list[Batch]] = {}
        """Batches by block of ids. Without it, each id of a cancel or a resubmission would scan all batches (20,000
        single-row batches: 8 s)."""

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._queue)

    def __bool__(self) -> bool:
        return bool(self._queue)

    @property
    def first(self) -> Batch:
        return self._queue[0]

    def append(self, batch: Batch) -> None:
        self._queue.append(batch)
        for block in _blocks_of(batch):
            self._blocks.setdefault(block, []).append(batch)

    def remove_first(self) -> None:
        batch = self._queue.popleft()
        for block in _blocks_of(batch):
            there = self._blocks[block]
            there.remove(batch)
            if not there:
                del self._blocks[block]

    def clear(self) -> None:
        self._queue.clear()
        self._blocks.clear()

    def find(self, task_id: int) -> tuple[Batch, int] | None:
        """Return the batch in which this task waits, and its row."""
        for batch in self._blocks.get(task_id >> _BLOCK_BITS, ()):
            row = -1 if batch.is_empty else batch.row_of(task_id)
            if row >= 0:
                return batch, row
        return None

    def has_any(self, first: int, last: int) -> bool:
        """Whether a task waits here whose id is one of these."""
        for block in range(first >> _BLOCK_BITS, (last >> _BLOCK_BITS) + 1):
            for batch in self._blocks.get(block, ()):
                for row in range(bisect_left(batch.ids, first, batch.next), len(batch.ids)):
                    if batch.ids[row] > last:
                        break
                    if row not in batch.cancelled:
                        return True
        return False


def _blocks_of(batch: Batch) -> list[int]:
    first, last = batch.ids[0], batch.ids[-1]
    if last - first == len(batch.ids) - 1:
        return list(range(first >> _BLOCK_BITS, (last >> _BLOCK_BITS) + 1))
    return list(dict.fromkeys(task_id >> _BLOCK_BITS for task_id in batch.ids))
