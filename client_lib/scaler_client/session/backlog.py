"""The scheduler's credit, and the batches and objects that wait for more of it.

After a join, tasks are sent in the order of their ids. But while tasks wait, those of a higher priority go before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from ..protocol.messages import Message, Object, Options, Outcome, Payload, Submit
from .submit_queue import SubmitQueue, Waiting, first_id

BATCH_ROWS = 4096
"""The most tasks of one Submit. A longer batch would delay the scheduler's other peers."""

BATCH_BYTES = 4 << 20
"""The payload bytes at which a Submit is closed."""

TASK_OVERHEAD = 128
"""The bytes that a task or object counts in addition to its payload (PROTOCOL.md, credit)."""

_RUN_AGAIN = Outcome.KEPT.value, Outcome.INPUT_LOST.value
"""After such an answer a task may be submitted again, and is meant to run."""


class Backlog:
    """Sends batches and objects while the credit lasts, and keeps the rest in order."""

    def __init__(self) -> None:
        self._waiting = SubmitQueue()
        """The batches and objects that wait."""
        self._objects: dict[int, Object] = {}
        """The objects among them, by id."""
        self._rows = 0
        """The number of tasks in the waiting batches."""
        self.frame_bytes = 0
        """The most bytes of a frame; 0: no limit."""
        self._credit = 0
        self._used = 0
        """The bytes submitted since the last join."""
        self._added_below = 0
        """Of the open tasks below this id, those that do not wait were sent since the last join."""
        self._sent_below = 0
        """No task from this id on was ever sent."""
        self._earlier_below = 0
        """No task from this id on was sent in an earlier join."""
        self._dropped: set[int] = set()
        """Waiting tasks that must not be sent. Their rows are removed when their batch is used next."""
        self._keep_earlier: dict[int, None] = {}
        """Sent tasks whose results are kept: the next batch says it."""

    @property
    def is_open(self) -> bool:
        """Whether a batch would be sent at once."""
        return self._used < self._credit and not self._waiting

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
        self._waiting.clear()
        self._objects.clear()
        self._dropped.clear()
        self._keep_earlier.clear()
        self._rows = self._added_below = 0
        self._earlier_below = self._sent_below

    def clear_rows(self) -> None:
        """Forget the waiting tasks, because they have ended. Objects are kept."""
        self._waiting.replace_all(lambda entry: entry if isinstance(entry[0], Object) else None)
        self._dropped.clear()
        self._rows = self._added_below = 0
        self._earlier_below = self._sent_below

    def is_past(self, number: int) -> bool:
        """Whether no task or object up to this id waits."""
        return not self._waiting.has_up_to(number)

    def waits(self, number: int) -> bool:
        """Whether this task or object waits."""
        return self._waiting.has(number)

    def has_sent(self, task_id: int) -> bool:
        """Whether this open task was sent since the last join."""
        return task_id < self._added_below and not self.waits(task_id)

    def may_have_sent(self, task_id: int) -> bool:
        """Whether a scheduler may know this task, from the last join or an earlier one."""
        return task_id < self._earlier_below or self.has_sent(task_id)

    def may_pass(self, options: Options | None) -> bool:
        """Whether something may wait that goes behind tasks with these options."""
        return self._waiting.may_pass(_priority(options))

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
        if not batch.ids:
            return
        self._added_below = batch.ids[-1] + 1
        parts = _split(batch)
        if self.frame_bytes and any(weight > self.frame_bytes for _, weight in parts):
            batch = self._pass_too_large(batch, outgoing)
            parts = _split(batch)
            if not parts:
                return
        if not self._waiting and len(parts) == 1 and self._used + parts[0][1] <= self._credit:
            self._send(*parts[0], outgoing)  # the usual case, without a queue
            return
        if batch.keep_earlier:  # rows that are sent before this batch may read these results
            self.keep_with_next(batch.keep_earlier)
            parts[0][0].keep_earlier = ()
        self._rows += len(batch.ids)
        self._waiting.add(parts, _priority(batch.options), batch.inputs)
        self._send_allowed(outgoing)

    def _pass_too_large(self, batch: Submit, outgoing: list[Message]) -> Submit:
        """Pass on the rows that are too large for a frame, and return the others. They need no credit, because they are
        not sent: `FrameLimit` fails them and uncounts them."""
        rows: tuple[list[int], list[int]] = [], []
        for row, payload in enumerate(batch.payloads):
            rows[len(payload) > self.frame_bytes].append(row)
        rest, large = (rows_of(batch, each) for each in rows)
        if large.ids:
            if rest.ids:
                large.keep_earlier = ()
            self._used += _weight(large.payloads)
            outgoing.append(large)
        return rest

    def resend(self, batch: Submit, outgoing: list[Message]) -> None:
        """Send rows again that were sent since the last join. They go before waiting rows, which may read their
        results. Their credit came back when they ended, so they need no new credit.
        """
        for part, weight in _split(batch):
            self._used += weight
            outgoing.append(part)

    def send_ahead(self, ids: Iterable[int], outgoing: list[Message]) -> None:
        """Send what waits of these tasks and objects, and of what they read, before all else. It needs no credit: rows
        that are about to be sent again read it.

        Args:
            ids: the tasks and objects. Some may have been sent.
            outgoing: takes what is sent.
        """
        wanted: set[int] = set()
        stack = list(ids)
        while stack:
            number = stack.pop()
            message = self._waiting.find(number)
            if message is None or number in wanted or number in self._dropped:
                continue
            wanted.add(number)
            if isinstance(message, Submit):
                stack += rows_of(message, [message.ids.index(number)]).inputs
        if wanted:
            taken: list[Submit | Object] = []
            self._waiting.replace_all(lambda waiting: self._without_wanted(waiting, wanted, taken))
            for message in sorted(taken, key=first_id):
                if isinstance(message, Submit):
                    self._send(message, _weight(message.payloads), outgoing)
                elif self._objects.pop(message.id, None) is not None:
                    self.count_object(message)
                    outgoing.append(message)

    def _without_wanted(self, waiting: Waiting, wanted: set[int], taken: list[Submit | Object]) -> Waiting | None:
        """Return what waits without the wanted rows, which are added to `taken`, each as a batch. None: nothing is
        left."""
        message = waiting[0]
        if isinstance(message, Object):
            if message.id not in wanted:
                return waiting
            taken.append(message)
            return None
        rows = [row for row, task_id in enumerate(message.ids) if task_id in wanted]
        if not rows:
            return waiting
        taken += [rows_of(message, [row]) for row in rows]
        self._rows -= len(rows)
        rest = rows_of(message, [row for row, task_id in enumerate(message.ids) if task_id not in wanted])
        return (rest, _weight(rest.payloads)) if rest.ids else None

    def add_object(self, message: Object, outgoing: list[Message]) -> None:
        """Add a new object, with an id above all earlier ones. It waits for credit as rows do."""
        if self.is_open:
            self.count_object(message)
            outgoing.append(message)
        else:
            self._waiting.add([(message, _object_weight(message))], 0, ())
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

    def keep_with_next(self, ids: Iterable[int]) -> None:
        """Have the results of these tasks kept: by their own rows if they wait, else by the next batch."""
        self._keep_earlier.update((each, None) for each in ids if not self._waiting.keep(each))

    def drop_keep(self, task_id: int) -> None:
        """Do not have this result kept: nobody reads it any more."""
        self._keep_earlier.pop(task_id, None)

    def drop(self, task_id: int) -> None:
        """Drop a task that was not sent."""
        self._dropped.add(task_id)
        # Without this, payloads would stay until credit comes. Going through all rows when half of them are dropped
        # costs little per task. BATCH_ROWS allows for dropped tasks that are still in the SubmitBatch.
        if len(self._dropped) > self._rows // 2 + BATCH_ROWS:
            self._rows = 0
            self._waiting.replace_all(self._without_dropped_entry)

    def drop_answered(self, ids: Sequence[int], outcomes: Sequence[int]) -> None:
        """Drop waiting tasks that an earlier connection has brought to the scheduler, and whose answers have come now.

        Tasks that are meant to run again stay, and those whose results may still be read.
        """
        if not self._waiting or not self._earlier_below:
            return
        for task_id, outcome in zip(ids, outcomes):
            if task_id < self._earlier_below and outcome not in _RUN_AGAIN:
                batch = self._waiting.find(task_id)
                if isinstance(batch, Submit) and not (batch.keep and batch.keep[batch.ids.index(task_id)]):
                    self.drop(task_id)

    def _send_allowed(self, outgoing: list[Message]) -> None:
        """Send what waits while the count is below the credit. If the credit does not cover a batch, its first rows are
        sent.
        """
        waiting = self._waiting
        while waiting and self._used < self._credit:
            batch, weight = waiting.first()
            rest = None
            if isinstance(batch, Object):
                waiting.replace_first(None)
                if self._objects.get(batch.id) is batch:  # a dropped result may have been added again
                    del self._objects[batch.id]
                    self._used += weight
                    outgoing.append(batch)
                continue
            self._rows -= len(batch.ids)
            if self._dropped and not self._dropped.isdisjoint(batch.ids):
                batch, weight = self._without_dropped_rows(batch)
            if self._used + weight > self._credit and len(batch.ids) > 1:
                (batch, weight), rest = _cut(batch, weight, self._credit - self._used)
            waiting.replace_first(rest)
            if rest is not None:
                self._rows += len(rest[0].ids)
            if batch.ids:
                self._send(batch, weight, outgoing)

    def _send(self, batch: Submit, weight: int, outgoing: list[Message]) -> None:
        self._used += weight
        if self._keep_earlier:
            batch.keep_earlier = [*self._keep_earlier, *batch.keep_earlier]
            self._keep_earlier.clear()
        self._sent_below = max(self._sent_below, batch.ids[-1] + 1)
        outgoing.append(batch)

    def _without_dropped_entry(self, entry: Waiting) -> Waiting | None:
        """Return what waits without dropped rows; None if no row is left. Count the rows that are left."""
        if isinstance(entry[0], Object):
            return entry
        batch, weight = self._without_dropped_rows(entry[0])
        if not batch.ids:
            return None
        self._rows += len(batch.ids)
        return batch, weight

    def _without_dropped_rows(self, batch: Submit) -> tuple[Submit, int]:
        """Return the batch without dropped rows, and the bytes that it counts then."""
        batch = self._without_dropped(batch)
        return batch, _weight(batch.payloads)

    def _without_dropped(self, batch: Submit) -> Submit:
        kept = [row for row, task_id in enumerate(batch.ids) if task_id not in self._dropped]
        self._dropped.difference_update(batch.ids)
        return rows_of(batch, kept)


def _priority(options: Options | None) -> int:
    return 0 if options is None else options.priority


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


def _cut(batch: Submit, weight: int, room: int) -> tuple[tuple[Submit, int], tuple[Submit, int] | None]:
    """Cut a batch behind the row that reaches `room` bytes; return both parts with the bytes that they count.

    Args:
        weight: the bytes that the batch counts.
        room: above 0, so that there is a first part.
    """
    first_weight = end = 0
    while first_weight < room:
        first_weight += len(batch.payloads[end]) + TASK_OVERHEAD
        end += 1
    rows = len(batch.ids)
    if end == rows:
        return (batch, weight), None
    inputs = sum(batch.input_counts[:end])
    return (_part(batch, 0, end, 0), first_weight), (_part(batch, end, rows, inputs), weight - first_weight)


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
