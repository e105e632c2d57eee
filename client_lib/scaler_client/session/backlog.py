"""What a client may submit, by the scheduler's credit, and the batches and objects that wait for more of it.

Ids ascend in what is sent after a join, as they do in what waits: so one number tells what the scheduler has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from ..protocol.messages import Message, Object, Payload, Submit

BATCH_ROWS = 4096
"""Most tasks of one Submit: a longer batch would let the scheduler's other peers wait."""

BATCH_BYTES = 4 << 20
"""Payload bytes after which a Submit is closed."""

TASK_OVERHEAD = 128
"""Bytes that a task or object counts beside its payload (PROTOCOL.md, credit)."""


class Backlog:
    def __init__(self) -> None:
        self._batches: deque[tuple[Submit | Object, int]] = deque()
        """Those that wait, and objects between them, each with the bytes that it counts."""
        self._objects: dict[int, Object] = {}
        """The objects that wait, by their ids."""
        self._rows = 0
        """How many tasks these have."""
        self._credit = 0
        self._used = 0
        """Bytes submitted since the join."""
        self._sent_below = 0
        """Tasks below this id, and no others, were sent since the join."""
        self._ever_sent_below = 0
        """The same since the client's start."""
        self._dropped: set[int] = set()
        """Tasks that shall not be sent any more; their rows are taken out when they are next looked at."""

    @property
    def is_open(self) -> bool:
        """Whether a batch would go at once."""
        return self._used < self._credit and not self._batches

    def restart(self, credit: int) -> None:
        """A scheduler has accepted the client, and grants so much."""
        self.clear()
        self._credit = credit
        self._used = 0

    def clear(self) -> None:
        """Forget what waits and what was sent: either is over, or is given anew after the next join."""
        self._batches.clear()
        self._objects.clear()
        self._dropped.clear()
        self._rows = self._sent_below = 0

    def clear_rows(self) -> None:
        """Forget the tasks that wait: they are over."""
        waiting = [entry for entry in self._batches if type(entry[0]) is Object]
        self._batches = deque(waiting)
        self._dropped.clear()
        self._rows = self._sent_below = 0

    def is_past(self, task_id: int) -> bool:
        """Whether nothing up to this id waits."""
        if not self._batches:
            return True
        first = self._batches[0][0]
        return task_id < (first.id if isinstance(first, Object) else first.ids[0])

    def has_sent(self, task_id: int) -> bool:
        """Whether this open task was sent since the join."""
        return task_id < self._sent_below

    def has_ever_sent(self, task_id: int) -> bool:
        """Whether a scheduler may know this task, from this join or an earlier one."""
        return task_id < self._ever_sent_below

    def add(self, batch: Submit, outgoing: list[Message]) -> None:
        """New rows, whose ids are above all earlier ones; what the credit allows goes to `outgoing`."""
        if self._dropped and not self._dropped.isdisjoint(batch.ids):
            batch = self._without_dropped(batch)
        for part, weight in _split(batch):
            if self._used < self._credit and not self._batches:
                self._send(part, weight, outgoing)
            else:
                self._batches.append((part, weight))
                self._rows += len(part.ids)

    def resend(self, batch: Submit, outgoing: list[Message]) -> None:
        """Rows that were sent since the join and are over: they go whatever the credit is, which came back then, before
        what waits and may read them."""
        for part, weight in _split(batch):
            self._used += weight
            outgoing.append(part)

    def add_object(self, message: Object, outgoing: list[Message]) -> None:
        """A new object, whose id is above all earlier ones; it waits as rows do."""
        if self.is_open:
            self.count_object(message)
            outgoing.append(message)
        else:
            self._batches.append((message, _object_weight(message)))
            self._objects[message.id] = message

    def count_object(self, message: Object) -> None:
        """This one is sent whatever the credit is: the scheduler had it before."""
        self._used += _object_weight(message)

    def uncount_task(self, payload: Payload) -> None:
        """A task with this payload was counted, and is not sent."""
        self._used -= len(payload) + TASK_OVERHEAD

    def uncount_object(self, message: Object) -> None:
        """The same of an object."""
        self._used -= _object_weight(message)

    def drop_object(self, object_id: int) -> bool:
        """This one need not be sent; returns False where it was already."""
        message = self._objects.pop(object_id, None)
        if message is None:
            return False
        message.frames = ()  # the message is passed over when its turn comes, the bytes go now
        return True

    def grant(self, credit: int, outgoing: list[Message]) -> None:
        """The scheduler grants so much in all since the join."""
        self._credit = max(self._credit, credit)
        while self._batches and self._used < self._credit:
            batch, weight = self._batches.popleft()
            if isinstance(batch, Object):
                if self._objects.pop(batch.id, None) is not None:
                    self._used += weight
                    outgoing.append(batch)
                continue
            self._rows -= len(batch.ids)
            if self._dropped and not self._dropped.isdisjoint(batch.ids):
                batch, weight = self._without_dropped_rows(batch)
            if batch.ids:
                self._send(batch, weight, outgoing)

    def drop(self, task_id: int) -> None:
        """This task, which was not sent yet, shall not be."""
        self._dropped.add(task_id)
        # Payloads would stay until credit comes. Looking at all rows once they are half of them costs little a task;
        # the others that may be among them are not here yet, in a batch that grows.
        if len(self._dropped) > self._rows // 2 + BATCH_ROWS:
            waiting = [
                entry if isinstance(entry[0], Object) else self._without_dropped_rows(entry[0])
                for entry in self._batches
            ]
            self._batches = deque(entry for entry in waiting if isinstance(entry[0], Object) or entry[0].ids)
            self._rows = sum(len(batch.ids) for batch, _ in self._batches if isinstance(batch, Submit))

    def _send(self, batch: Submit, weight: int, outgoing: list[Message]) -> None:
        self._used += weight
        self._sent_below = batch.ids[-1] + 1
        self._ever_sent_below = max(self._ever_sent_below, self._sent_below)
        outgoing.append(batch)

    def _without_dropped_rows(self, batch: Submit) -> tuple[Submit, int]:
        """The batch without what was dropped, and the bytes that it then counts."""
        batch = self._without_dropped(batch)
        return batch, _weight(batch.payloads)

    def _without_dropped(self, batch: Submit) -> Submit:
        kept = [row for row, task_id in enumerate(batch.ids) if task_id not in self._dropped]
        self._dropped.difference_update(batch.ids)
        return rows_of(batch, kept)


def _weight(payloads: Sequence[Payload]) -> int:
    """The bytes that tasks with these payloads count."""
    return sum(map(len, payloads)) + TASK_OVERHEAD * len(payloads)


def _object_weight(message: Object) -> int:
    """The bytes that an object counts."""
    return sum(map(len, message.frames)) + TASK_OVERHEAD


def rows_of(batch: Submit, rows: Sequence[int]) -> Submit:
    """A batch with some of another's rows."""
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
    return part


def _split(batch: Submit) -> list[tuple[Submit, int]]:
    """The batch in parts that are neither too long nor too heavy, and the bytes that each counts."""
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
    """Rows behind one another, whose inputs begin there. Columns that say nothing of them are left out."""
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
    return part
