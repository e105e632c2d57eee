"""What waits for credit: batches and objects. Higher priorities come first, then lower ids."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from ..protocol.messages import Keep, Object, Submit

Waiting = tuple[Submit | Object, int]
"""A batch or an object, with the bytes that it counts."""


class _Entry:
    __slots__ = ("first_id", "is_object", "priority", "waiting")

    def __init__(self, waiting: Waiting, priority: int) -> None:
        self.waiting: Waiting | None = waiting
        """None: it has left the queue."""
        self.priority = priority
        self.first_id = first_id(waiting[0])
        self.is_object = isinstance(waiting[0], Object)

    def __lt__(self, other: _Entry) -> bool:
        if self.priority != other.priority:
            return self.priority > other.priority
        return self.first_id < other.first_id

    def has(self, number: int) -> bool:
        if self.waiting is None:
            return False
        message = self.waiting[0]
        if isinstance(message, Object):
            return message.id == number
        row = bisect_left(message.ids, number)
        return row < len(message.ids) and message.ids[row] == number


class SubmitQueue:
    """A priority queue that is also searched by id. Objects have priority 0.

    A batch never goes before an object or a task that one of its rows reads.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._objects: dict[int, _Entry] = {}
        """The objects, by id. A result that is sent as an object may have a lower id than the batches before it."""
        self._object_ids: list[int] = []
        """A heap of the ids of these objects. Those of objects that have left stay until they are the lowest."""
        self._entries: list[_Entry] = []
        """The batches, by ascending ids. Entries that have left stay until they are the half."""
        self._first_ids: list[int] = []
        """The first id that each of these entries had at first."""
        self._begin = 0
        """The entries before this place have left."""
        self._lowest = 0
        """No entry has a lower priority. It is exact if nothing has left since the queue was empty."""

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, waiting: Sequence[Waiting], priority: int, inputs: Sequence[int]) -> None:
        """Add an object, or batches with ids above those of all earlier batches.

        Args:
            waiting: what to add, in the order of its ids.
            priority: their priority.
            inputs: what they read. They go behind those of these that wait.
        """
        if not self._heap:
            self._lowest = priority
        elif priority < self._lowest:
            self._lowest = priority
        elif priority > self._lowest:
            for number in inputs:
                entry = self._entry_of(number)
                if entry is not None and entry.priority < priority:
                    priority = entry.priority
        for each in waiting:
            self._append(_Entry(each, priority))

    def may_pass(self, priority: int) -> bool:
        """Whether something may wait that goes behind tasks of this priority."""
        return bool(self._heap) and priority > self._lowest

    def first(self) -> Waiting:
        """Return what goes next."""
        waiting = self._heap[0].waiting
        assert waiting is not None
        return waiting

    def replace_first(self, rest: Waiting | None) -> None:
        """Leave only these last rows of the first batch; None: it waits no longer."""
        first = self._heap[0]
        first.waiting = rest
        if rest is not None:
            first.first_id = first_id(rest[0])  # it stays the first: other entries of its priority have higher ids
            return
        heappop(self._heap)
        if self._objects.get(first.first_id) is first:
            del self._objects[first.first_id]
        elif len(self._heap) * 2 < len(self._entries):  # each entry is moved once on average
            self._rebuild([each for each in self._all() if each.waiting is not None])

    def has(self, number: int) -> bool:
        """Whether the object or task of this id waits."""
        return self._entry_of(number) is not None

    def find(self, number: int) -> Submit | Object | None:
        """Return the waiting object with this id, or the batch that has the task of this id. None: it does not wait."""
        entry = self._entry_of(number)
        return None if entry is None or entry.waiting is None else entry.waiting[0]

    def keep(self, task_id: int) -> bool:
        """Have the result of a task kept by its row, if it waits.

        Returns:
            Whether it waits.
        """
        entry = self._entry_of(task_id)
        if entry is None or entry.waiting is None:
            return False
        batch = entry.waiting[0]
        if isinstance(batch, Submit):
            row = bisect_left(batch.ids, task_id)
            keep = list(batch.keep) or [Keep.NO] * len(batch.ids)
            keep[row] = keep[row] or Keep.BOTH
            batch.keep = keep
        return True

    def has_up_to(self, number: int) -> bool:
        """Whether an object or a task waits whose id is at most this."""
        ids, objects = self._object_ids, self._objects
        while ids and ids[0] not in objects:
            heappop(ids)
        if ids and ids[0] <= number:
            return True
        entries, begin = self._entries, self._begin
        while begin < len(entries) and entries[begin].waiting is None:
            begin += 1
        self._begin = begin
        return begin < len(entries) and entries[begin].first_id <= number

    def replace_all(self, replace: Callable[[Waiting], Waiting | None]) -> None:
        """Replace all that waits by what `replace` returns for it, without those for which it returns None."""
        kept = []
        for entry in self._all():
            if entry.waiting is not None:
                entry.waiting = replace(entry.waiting)
                if entry.waiting is not None:
                    entry.first_id = first_id(entry.waiting[0])
                    kept.append(entry)
        self._rebuild(kept)

    def clear(self) -> None:
        self._rebuild([])

    def _append(self, entry: _Entry) -> None:
        heappush(self._heap, entry)
        if entry.is_object:
            self._objects[entry.first_id] = entry
            heappush(self._object_ids, entry.first_id)
        else:
            self._entries.append(entry)
            self._first_ids.append(entry.first_id)

    def _all(self) -> list[_Entry]:
        return [*self._objects.values(), *self._entries]

    def _rebuild(self, entries: list[_Entry]) -> None:
        """Keep only these entries, with the batches in their order."""
        self._heap = entries
        heapify(self._heap)
        self._objects = {each.first_id: each for each in entries if each.is_object}
        self._object_ids = sorted(self._objects)
        self._entries = sorted([each for each in entries if not each.is_object], key=lambda each: each.first_id)
        self._first_ids = [each.first_id for each in self._entries]
        self._begin = 0

    def _entry_of(self, number: int) -> _Entry | None:
        """Return the entry that waits with this id."""
        entry = self._objects.get(number)
        if entry is not None:
            return entry
        place = bisect_right(self._first_ids, number) - 1
        if place < 0:
            return None
        entry = self._entries[place]
        return entry if entry.has(number) else None


def first_id(message: Submit | Object) -> int:
    """Return the id of an object, or of the first task of a batch."""
    return message.id if isinstance(message, Object) else message.ids[0]
