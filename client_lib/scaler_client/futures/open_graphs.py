"""The tasks of a graph under way: who waits for which, and what has to be submitted again when a scheduler is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import Any

from ..pickling.functions import Function
from ..pickling.references import ObjectRef, ReadingCall, reading_call
from ..protocol.messages import Keep, Options, Outcome, Payload, Submit, TaskName
from .future import FailedNode, TaskFuture

ENDED_WELL = frozenset({Outcome.VALUE.value, Outcome.KEPT.value})

_BLAME_LAST = {Outcome.CANCELLED.value: 1, Outcome.INPUT_LOST.value: 2}

MOST_RECOVERIES = 10
"""How often a graph is submitted again because results of its nodes were lost with their hosts, without any progress in
between: what one host can't send to another is lost for ever."""


class GraphTasks:
    """The owner of a graph's ids. Its rows are in an order in which inputs come before what reads them.

    Args:
        functions: by their numbers.
        numbers, payloads, input_counts, keep: of each row.
        inputs: what rows read, all rows' behind one another: rows, and `~k` for the k-th of `objects`.
        targets: those whose results are asked for, by their rows.
        options, parent: what the tasks ask for, and the task that submits them.
        name_of: what errors call a row; called in any thread.
        keys: what people know the graph by.
    """

    def __init__(
        self,
        functions: dict[int, Function],
        numbers: list[int],
        payloads: list[Payload],
        inputs: list[int],
        input_counts: list[int],
        keep: bytes,
        objects: list[ObjectRef],
        targets: dict[int, TaskFuture[Any]],
        options: Options | None,
        parent: TaskName | None,
        name_of: Callable[[int], str],
        keys: str = "",
    ) -> None:
        self.first = -1
        self.count = len(numbers)
        self.targets = targets
        """Those that are not answered."""
        self.options = options
        self.parent = parent
        self.failed: TaskFuture[Any] | None = None
        """The first target that ended without a value."""
        self.news: Callable[[], None] | None = None
        """Called by the I/O thread when a target has failed, and when all are answered."""
        self._functions = functions
        self._numbers = numbers
        self._payloads = payloads
        self._inputs = inputs
        self._input_counts = input_counts
        self._keep = keep
        self._asked_for = len(targets)
        self._objects = objects
        self._ends: list[int] = []
        """Where the inputs of each row end; made when somebody needs it."""
        self._readers: dict[int, int] = {}
        """How many rows that were needed, and not withdrawn since, read each of these; made when somebody needs it."""
        self._has_failed = False
        """Whether any row has ended without a value. Until then `resolve`, called for every row, notes nothing."""
        self._ended_well: set[int] = set()
        """Rows that have ended with a value since then."""
        self._recoveries = 0
        """How often the graph was submitted again since a row ended well for the first time."""
        self._name_of = name_of
        self._keys = keys
        self._failures: dict[int, int] = {}
        """Rows that have ended without a value, and for each the one whose failure it is."""
        self._endings: dict[int, tuple[int, Payload]] = {}
        """Outcome and payload of the latter."""

    # ---------------------------------------------------------------------------------------------------------- answers

    def submitted(self, first: int) -> None:
        self.first = first
        self.options = replace(self.options or Options(), graph=first + 1, keys=self._keys)
        for row, future in self.targets.items():
            future.task_id = first + row

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        row = task_id - self.first
        if self._has_failed and outcome in ENDED_WELL:
            self._failures.pop(row, None)  # of an earlier run, which a scheduler that is gone has told of
            if row not in self._ended_well:
                self._ended_well.add(row)
                self._recoveries = 0
        future = self.targets.pop(row, None)
        if future is None:
            return False  # what is kept, or has failed, is no news to anybody here
        failed = self._failures.get(row)
        if failed is not None:
            outcome, answer = self._endings[failed]
            future.failed_node = FailedNode(
                self._functions[self._numbers[failed]].name, failed, self.first + failed, self._name_of
            )
        future.resolve(task_id, outcome, answer)
        self._tell(future, outcome != Outcome.VALUE)
        return not self.targets

    def record_failures(self, answers: Iterable[tuple[int, int, Payload]]) -> None:
        self._has_failed = True
        for task_id, outcome, answer in sorted(answers, key=itemgetter(0)):
            row = task_id - self.first
            failed = self._failed_first(row, outcome, answer)
            if failed == row:
                if outcome == Outcome.CANCELLED and row not in self.targets:
                    # Users cancel targets only. The scheduler cancels a row whose result no row needs any more, because
                    # its readers have failed: that is no failure, and these readers may be submitted again.
                    continue
                self._endings[row] = outcome, answer
            self._failures[row] = failed

    def _failed_first(self, row: int, outcome: int, answer: Payload) -> int:
        """The row whose failure this one's is. All that it reads is noted already."""
        causes = [self._failures[each] for each in self._rows_read_by(row) if each in self._failures]
        if outcome != Outcome.INPUT_LOST:
            # Others that it reads may be cancelled by now, as nobody needs them any more.
            return next((each for each in causes if self._endings[each] == (outcome, answer)), row)
        # It came to the scheduler when that had happened, and hears of an input that is not there: what it raises is
        # what those raise that were there.
        return min(causes, key=lambda each: _BLAME_LAST.get(self._endings[each][0], 0), default=row)

    def can_resubmit(self, task_id: int) -> bool:
        row = task_id - self.first
        if self._recoveries == MOST_RECOVERIES or row not in self.targets:
            return False
        return self._endings[self._failures[row]][0] == Outcome.INPUT_LOST

    def begin_recovery(self) -> None:
        """That is about to be done."""
        self._recoveries += 1
        self._failures.clear()
        self._endings.clear()

    def fail(self, task_id: int, error: BaseException) -> None:
        future = self.targets.pop(task_id - self.first, None)
        if future is not None:
            future.fail(task_id, error)
            self._tell(future, True)

    def start(self, task_id: int) -> None:
        future = self.targets.get(task_id - self.first)
        if future is not None:
            future.start()

    def measured(self, task_id: int, duration: int, cpu_time: int, peak: int) -> None:
        future = self.targets.get(task_id - self.first)
        if future is not None:
            future.measured(duration, cpu_time, peak)

    def open_ids(self) -> list[int]:
        return [self.first + row for row in list(self.targets)]

    def _tell(self, future: TaskFuture[Any], has_failed: bool) -> None:
        if has_failed and self.failed is None:
            self.failed = future
        if self.news is not None and (self.failed is not None or not self.targets):
            self.news()

    # ------------------------------------------------------------------------------------------------- what to submit

    def functions(self) -> Iterable[Function]:
        return self._functions.values()

    def batch(self) -> Submit:
        ids = range(self.first, self.first + self.count)
        batch = Submit(ids, self._numbers, self._payloads, self.options)
        if self._inputs:
            batch.inputs, batch.input_counts = self._ids(self._inputs), self._input_counts
        if any(self._keep):
            is_new = len(self.targets) == self._asked_for
            batch.keep = self._keep if is_new else bytes(map(self._keep_of, range(self.count)))
        return batch

    def kept_ids(self) -> Sequence[int]:
        return [self.first + row for row, keep in enumerate(self._keep) if keep]

    def row(self, task_id: int) -> tuple[Function, ReadingCall]:
        row = task_id - self.first
        payload = reading_call(self._payloads[row], self._ids(self._inputs_of(row)), self._keep_of(row))
        return self._functions[self._numbers[row]], payload

    def _keep_of(self, row: int) -> int:
        # What is answered is needed by its readers alone, and not to be run again where these are gone.
        return Keep.YES if self._keep[row] == Keep.BOTH and row not in self.targets else self._keep[row]

    def needed_ids(self) -> list[int]:
        return [self.first + row for row in self._needed()]

    def cancel_node(self, task_id: int) -> list[int]:
        if not self._readers:
            self._count_readers()
        withdrawn = self._with_readers(task_id - self.first)
        stack = list(withdrawn)
        while stack:
            for each in self._rows_read_by(stack.pop()):
                self._readers[each] -= 1
                if not self._readers[each] and each not in self.targets and each not in withdrawn:
                    withdrawn.add(each)
                    stack.append(each)
        return [self.first + row for row in sorted(withdrawn)]

    def _with_readers(self, row: int) -> set[int]:
        """The row, and all that need it."""
        rows = {row}
        if self._readers[row]:
            for each in range(row + 1, self.count):
                if each in self._readers and not rows.isdisjoint(self._inputs_of(each)):
                    rows.add(each)
        return rows

    def _count_readers(self) -> None:
        needed = self._needed()
        self._readers = dict.fromkeys(needed, 0)
        for row in needed:
            for each in self._rows_read_by(row):
                self._readers[each] += 1

    def _needed(self) -> list[int]:
        """The open targets, and all that they read."""
        needed = bytearray(self.count)
        stack = list(self.targets)
        while stack:
            row = stack.pop()
            if not needed[row]:
                needed[row] = 1
                stack += self._rows_read_by(row)
        return [row for row, is_needed in enumerate(needed) if is_needed]

    def _rows_read_by(self, row: int) -> list[int]:
        return [each for each in self._inputs_of(row) if each >= 0]

    def _inputs_of(self, row: int) -> list[int]:
        if not self._ends:
            self._ends = list(accumulate(self._input_counts))
        end = self._ends[row]
        return self._inputs[end - self._input_counts[row] : end]

    def _ids(self, inputs: list[int]) -> list[int]:
        first, objects = self.first, self._objects
        if not objects:
            return [first + row for row in inputs]
        return [first + row if row >= 0 else objects[~row].object_id for row in inputs]
