"""The scheduler's credit, and the batches and objects that wait for more of it.

After a join, ids are sent in ascending order, and they wait in ascending order. So a single number tells which tasks
the scheduler has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from ..protocol.messages import Message, Object, Payload, Submit

BATCH_ROWS = 4096
"""The most tasks of one Submit. A longer batch would delay the scheduler's other peers."""

BATCH_BYTES = 4 << 20
"""The payload bytes at which a Submit is closed."""

TASK_OVERHEAD = 128
"""The bytes that a task or object counts in addition to its payload (PROTOCOL.md, credit)."""


class Backlog:
    """Sends batches and objects while the credit lasts, and keeps the rest in order."""

    def __init__(self) -> None:
        self._batches: deque[tuple[Submit | Object, int]] = deque()
        """The batches and objects that wait, each with the bytes that it counts."""
        self._objects: dict[int, Object] = {}
        """The objects among them, by id."""
        self._rows = 0
        """The number of tasks in the waiting batches."""
        self._credit = 0
        self._used = 0
        """The bytes submitted since the last join."""
        self._sent_below = 0
        """Exactly the tasks below this id were sent since the last join."""
        self._ever_sent_below = 0
        """Exactly the tasks below this id were sent since the client's start."""
        self._dropped: set[int] = set()
        """Waiting tasks that must not be sent. Their rows are removed when their batch is used next."""
        self._keep_earlier: dict[int, None] = {}
        """What batches without a row left were to keep: the next batch says it."""

    @property
    def is_open(self) -> bool:
        """Whether a batch would be sent at once."""
        return self._used < self._credit and not self._batches

    def restart(self, credit: int) -> None:
        """Reset the counts after a join.

        Args:
            credit: the bytes that the scheduler allows.
        """
        self.clear()
        self._credit = credit
        self._used = 0

    def clear(self) -> None:
        """Forget all tasks and objects, sent or not. The next join submits the open tasks and objects again."""
        self._batches.clear()
        self._objects.clear()
        self._dropped.clear()
        self._keep_earlier.clear()
        self._rows = self._sent_below = 0

    def clear_rows(self) -> None:
        """Forget the waiting tasks, because they have ended. Objects are kept."""
        waiting = [entry for entry in self._batches if type(entry[0]) is Object]
        self._batches = deque(waiting)
        self._dropped.clear()
        self._rows = self._sent_below = 0

    def is_past(self, task_id: int) -> bool:
        """Whether no task or object up to this id waits."""
        if not self._batches:
            return True
        first = self._batches[0][0]
        return task_id < (first.id if isinstance(first, Object) else first.ids[0])

    def has_sent(self, task_id: int) -> bool:
        """Whether this open task was sent since the last join."""
        return task_id < self._sent_below

    def has_ever_sent(self, task_id: int) -> bool:
        """Whether a scheduler may know this task, from the last join or an earlier one."""
        return task_id < self._ever_sent_below

    def add(self, batch: Submit, outgoing: list[Message]) -> None:
        """Add new rows, with ids above all earlier ones.

        Args:
            batch: the rows.
            outgoing: takes the rows that the credit allows; the others wait.
        """
        if self._dropped and not self._dropped.isdisjoint(batch.ids):
            batch = self._without_dropped(batch)
            if not batch.ids:
                self.keep_with_next(batch.keep_earlier)
        for part, weight in _split(batch):
            self._batches.append((part, weight))
            self._rows += len(part.ids)
        self._send_allowed(outgoing)

    def resend(self, batch: Submit, outgoing: list[Message]) -> None:
        """Send rows again that were sent since the last join. They go before waiting rows, which may read their
        results. Their credit came back when they ended, so they need no new credit.
        """
        for part, weight in _split(batch):
            self._used += weight
            outgoing.append(part)

    def add_object(self, message: Object, outgoing: list[Message]) -> None:
        """Add a new object, with an id above all earlier ones. It waits for credit as rows do."""
        if self.is_open:
            self.count_object(message)
            outgoing.append(message)
        else:
            self._batches.append((message, _object_weight(message)))
            self._objects[message.id] = message

    def count_object(self, message: Object) -> None:
        """Count an object that is sent without waiting for credit, because the scheduler had it before."""
        self._used += _object_weight(message)

    def uncount_task(self, payload: Payload) -> None:
        """Subtract a counted task with this payload, because it is not sent."""
        self._used -= len(payload) + TASK_OVERHEAD

    def uncount_object(self, message: Object) -> None:
        """Subtract a counted object, because it is not sent."""
        self._used -= _object_weight(message)

    def drop_object(self, object_id: int) -> bool:
        """Drop a waiting object; return False if it was sent already."""
        message = self._objects.pop(object_id, None)
        if message is None:
            return False
        message.frames = ()  # frees the bytes now; `grant` skips the message
        return True

    def grant(self, credit: int, outgoing: list[Message]) -> None:
        """Take more credit; send the waiting batches and objects that it allows.

        Args:
            credit: the bytes that the scheduler allows in all since the last join.
            outgoing: takes what is sent.
        """
        self._credit = max(self._credit, credit)
        self._send_allowed(outgoing)

    def keep_with_next(self, ids: Sequence[int]) -> None:
        """Have the results of these tasks kept by the next batch: their own batch has no row left."""
        self._keep_earlier.update(dict.fromkeys(ids))

    def drop_keep(self, task_id: int) -> None:
        """Do not have this result kept: nobody reads it any more."""
        self._keep_earlier.pop(task_id, None)

    def drop(self, task_id: int) -> None:
        """Drop a task that was not sent."""
        self._dropped.add(task_id)
        # Without this, payloads would stay until credit comes. Going through all rows when half of them are dropped
        # costs little per task. BATCH_ROWS allows for dropped tasks that are still in the SubmitBatch.
        if len(self._dropped) > self._rows // 2 + BATCH_ROWS:
            waiting = [
                entry if isinstance(entry[0], Object) else self._without_dropped_rows(entry[0])
                for entry in self._batches
            ]
            self._batches = deque(entry for entry in waiting if isinstance(entry[0], Object) or entry[0].ids)
            for entry in waiting:
                if isinstance(entry[0], Submit) and not entry[0].ids:
                    self.keep_with_next(entry[0].keep_earlier)
            self._rows = sum(len(batch.ids) for batch, _ in self._batches if isinstance(batch, Submit))

    def _send_allowed(self, outgoing: list[Message]) -> None:
        """Send what waits while the count is below the credit. If the credit does not cover a batch, its first rows are
        sent.
        """
        while self._batches and self._used < self._credit:
            batch, weight = self._batches.popleft()
            if isinstance(batch, Object):
                if self._objects.get(batch.id) is batch:  # a dropped result may have been added again
                    del self._objects[batch.id]
                    self._used += weight
                    outgoing.append(batch)
                continue
            self._rows -= len(batch.ids)
            if self._dropped and not self._dropped.isdisjoint(batch.ids):
                batch, weight = self._without_dropped_rows(batch)
            if not batch.ids:
                self.keep_with_next(batch.keep_earlier)
                continue
            if self._used + weight > self._credit:
                batch, weight = self._cut(batch, weight)
            self._send(batch, weight, outgoing)

    def _cut(self, batch: Submit, weight: int) -> tuple[Submit, int]:
        """Return the first rows of a batch, up to the one that reaches the credit, and the bytes that they count. The
        other rows wait.
        """
        room, sent_weight, end = self._credit - self._used, 0, 0
        while sent_weight < room:
            sent_weight += len(batch.payloads[end]) + TASK_OVERHEAD
            end += 1
        rows = len(batch.ids)
        if end == rows:
            return batch, weight
        inputs = sum(batch.input_counts[:end])
        self._batches.appendleft((_part(batch, end, rows, inputs), weight - sent_weight))
        self._rows += rows - end
        return _part(batch, 0, end, 0), sent_weight

    def _send(self, batch: Submit, weight: int, outgoing: list[Message]) -> None:
        self._used += weight
        if self._keep_earlier:
            batch.keep_earlier = [*self._keep_earlier, *batch.keep_earlier]
            self._keep_earlier.clear()
        self._sent_below = batch.ids[-1] + 1
        self._ever_sent_below = max(self._ever_sent_below, self._sent_below)
        outgoing.append(batch)

    def _without_dropped_rows(self, batch: Submit) -> tuple[Submit, int]:
        """Return the batch without dropped rows, and the bytes that it counts then."""
        batch = self._without_dropped(batch)
        return batch, _weight(batch.payloads)

    def _without_dropped(self, batch: Submit) -> Submit:
        kept = [row for row, task_id in enumerate(batch.ids) if task_id not in self._dropped]
        self._dropped.difference_update(batch.ids)
        return rows_of(batch, kept)


def _weight(payloads: Sequence[Payload]) -> int:
    """Return the bytes that tasks with these payloads count."""
    return sum(map(len, payloads)) + TASK_OVERHEAD * len(payloads)


def _object_weight(message: Object) -> int:
    """Return the bytes that an object counts."""
    return (message.file_bytes or sum(map(len, message.frames))) + TASK_OVERHEAD


def rows_of(batch: Submit, rows: Sequence[int]) -> Submit:
    """Return a batch of some rows of another batch.

    Args:
        rows: their positions in `batch`, ascending.
    """
    functions, counts, keep = batch.functions, batch.input_counts, batch.keep
    part = Submit(
        [batch.ids[row] for row in rows],
        functions if len(functions) == 1 else [functions[row] for row in rows],
        [batch.payloads[row] for row in rows],
        batch.options,
    )
    if counts:
        ends = list(accumulate(counts))
        part.inputs = [each for row in rows for each in batch.inputs[ends[row] - counts[row] : ends[row]]]
        part.input_counts = [counts[row] for row in rows]
    if keep:
        part.keep = [keep[row] for row in rows]
    part.keep_earlier = batch.keep_earlier
    return part


def _split(batch: Submit) -> list[tuple[Submit, int]]:
    """Split a batch by BATCH_ROWS and BATCH_BYTES; return each part with the bytes that it counts."""
    payloads = batch.payloads
    rows = len(payloads)
    if not rows:
        return []
    if rows <= BATCH_ROWS:
        weight = _weight(payloads)
        if weight <= BATCH_BYTES:
            return [(batch, weight)]
    parts = []
    begin = begin_inputs = weight = 0
    for position, payload in enumerate(payloads):
        weight += len(payload) + TASK_OVERHEAD
        end = position + 1
        if weight >= BATCH_BYTES or end - begin >= BATCH_ROWS or end == rows:
            part = _part(batch, begin, end, begin_inputs)
            parts.append((part, weight))
            begin = end
            begin_inputs += len(part.inputs)
            weight = 0
    return parts


def _part(batch: Submit, begin: int, end: int, begin_inputs: int) -> Submit:
    """Return consecutive rows as a batch. Optional columns stay empty if they would hold only defaults.

    Args:
        begin_inputs: the position of the rows' first input in `batch.inputs`.
    """
    functions = batch.functions
    part = Submit(
        batch.ids[begin:end],
        functions if len(functions) == 1 else functions[begin:end],
        batch.payloads[begin:end],
        batch.options,
    )
    counts = batch.input_counts[begin:end]
    count = sum(counts)
    if count:
        part.inputs = batch.inputs[begin_inputs : begin_inputs + count]
        part.input_counts = counts
    keep = batch.keep[begin:end]
    if any(keep):
        part.keep = keep
    if not begin:
        part.keep_earlier = batch.keep_earlier
    return part
