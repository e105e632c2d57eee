"""What a client may submit, by the scheduler's credit, and the batches that wait for more of it.

Ids ascend in what is sent after a join, as they do in what waits: so one number tells what the scheduler has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from .messages import Message, Options, Payload, Submit

BATCH_ROWS = 4096
"""Most tasks of one Submit: a longer batch would let the scheduler's other peers wait."""

BATCH_BYTES = 4 << 20
"""Payload bytes after which a Submit is closed."""

TASK_OVERHEAD = 128
"""Bytes that a task counts beside its payload (PROTOCOL.md, credit)."""


class Backlog:
    def __init__(self) -> None:
        self._batches: deque[tuple[Submit, int]] = deque()
        """Those that wait, each with the bytes that it counts."""
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
        self._dropped.clear()
        self._rows = self._sent_below = 0

    def has_sent(self, task_id: int) -> bool:
        """Whether this open task was sent since the join."""
        return task_id < self._sent_below

    def has_ever_sent(self, task_id: int) -> bool:
        """Whether a scheduler may know this task, from this join or an earlier one."""
        return task_id < self._ever_sent_below

    def add(
        self,
        ids: Sequence[int],
        functions: Sequence[int],
        payloads: Sequence[Payload],
        options: Options | None,
        outgoing: list[Message],
    ) -> None:
        """New rows, whose ids are above all earlier ones; what the credit allows goes to `outgoing`."""
        if self._dropped and not self._dropped.isdisjoint(ids):
            ids, functions, payloads = self._without_dropped(ids, functions, payloads)
        for begin, end, weight in _cut(payloads):
            named = functions if len(functions) == 1 else functions[begin:end]
            batch = Submit(ids[begin:end], named, payloads[begin:end], options)
            if self._used < self._credit and not self._batches:
                self._send(batch, weight, outgoing)
            else:
                self._batches.append((batch, weight))
                self._rows += end - begin

    def grant(self, credit: int, outgoing: list[Message]) -> None:
        """The scheduler grants so much in all since the join."""
        self._credit = max(self._credit, credit)
        while self._batches and self._used < self._credit:
            batch, weight = self._batches.popleft()
            self._rows -= len(batch.ids)
            if self._dropped and not self._dropped.isdisjoint(batch.ids):
                batch, weight = self._shortened(batch)
            if batch.ids:
                self._send(batch, weight, outgoing)

    def drop(self, task_id: int) -> None:
        """This task, which was not sent yet, shall not be."""
        self._dropped.add(task_id)
        # Payloads would stay until credit comes. Looking at all rows once they are half of them costs little a task;
        # the others that may be among them are not here yet, in a batch that grows.
        if len(self._dropped) > self._rows // 2 + BATCH_ROWS:
            waiting = [self._shortened(batch) for batch, _ in self._batches]
            self._batches = deque((batch, weight) for batch, weight in waiting if batch.ids)
            self._rows = sum(len(batch.ids) for batch, _ in self._batches)

    def _send(self, batch: Submit, weight: int, outgoing: list[Message]) -> None:
        self._used += weight
        self._sent_below = batch.ids[-1] + 1
        self._ever_sent_below = max(self._ever_sent_below, self._sent_below)
        outgoing.append(batch)

    def _shortened(self, batch: Submit) -> tuple[Submit, int]:
        """The batch without what was dropped, and the bytes that it then counts."""
        ids, functions, payloads = self._without_dropped(batch.ids, batch.functions, batch.payloads)
        return Submit(ids, functions, payloads, batch.options), _weight(payloads)

    def _without_dropped(
        self, ids: Sequence[int], functions: Sequence[int], payloads: Sequence[Payload]
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Payload]]:
        kept = [row for row, task_id in enumerate(ids) if task_id not in self._dropped]
        self._dropped.difference_update(ids)
        named = functions if len(functions) == 1 else [functions[row] for row in kept]
        return [ids[row] for row in kept], named, [payloads[row] for row in kept]


def _weight(payloads: Sequence[Payload]) -> int:
    """The bytes that tasks with these payloads count."""
    return sum(map(len, payloads)) + TASK_OVERHEAD * len(payloads)


def _cut(payloads: Sequence[Payload]) -> list[tuple[int, int, int]]:
    """Where rows begin and end that make a batch neither too long nor too heavy, and the bytes that they count."""
    if not payloads:
        return []
    rows = len(payloads)
    if rows <= BATCH_ROWS:
        weight = _weight(payloads)
        if weight <= BATCH_BYTES:
            return [(0, rows, weight)]
    batches = []
    begin = weight = 0
    for position, payload in enumerate(payloads):
        weight += len(payload) + TASK_OVERHEAD
        if weight >= BATCH_BYTES or position - begin + 1 >= BATCH_ROWS:
            batches.append((begin, position + 1, weight))
            begin = position + 1
            weight = 0
    if begin < rows:
        batches.append((begin, rows, weight))
    return batches
