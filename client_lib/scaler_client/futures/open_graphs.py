"""The open tasks of a graph: their targets and failures, and the rows to submit again after a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

from ..pickling.functions import Function
from ..pickling.references import CallWithInputs, InputFailure, ObjectRef, input_failure
from ..protocol.messages import Keep, Options, Outcome, Payload, Submit, TaskAttempt
from .failure_origin import FailureOrigin, input_origin
from .future import TaskFuture

SUCCESS_OUTCOMES = frozenset({Outcome.VALUE.value, Outcome.KEPT.value})

_CAUSE_RANK = {Outcome.CANCELLED.value: 1, Outcome.INPUT_LOST.value: 2}
"""If several inputs failed, the input with the lowest rank is the cause. Outcomes that are not listed have rank 0."""

MAX_RECOVERIES = 10
"""How often a graph is submitted again, without progress in between, because results were lost with their hosts.

There is a limit because a result that one host cannot send to another is lost every time.
"""


class GraphRows(NamedTuple):
    """The rows of a graph, in an order in which inputs come before their readers."""

    functions: dict[int, Function]
    """The functions by their numbers."""
    numbers: list[int]
    """For each row the number of its function."""
    payloads: list[Payload]
    inputs: list[int]
    """The inputs of all rows, one row after the other: a row's position, or `~k` for the k-th of `objects`."""
    input_counts: list[int]
    """For each row how many of `inputs` it reads."""
    objects: list[ObjectRef]


class GraphTasks:
    """The tasks of one submitted graph: the sink of their results (`GraphSink`).

    Args:
        rows: the rows of the graph.
        keep: for each row one byte, a `Keep` value: whether its result is sent, kept, or both.
        targets: the futures of the requested rows, by row.
        row_name: returns the text that names a row in errors; called in any thread.
        options: the options of the tasks.
        parent: the task that submits the graph; None outside of tasks.
        keys: the requested keys, as text for people.
    """

    def __init__(
        self,
        rows: GraphRows,
        keep: bytes,
        targets: dict[int, TaskFuture[Any]],
        row_name: Callable[[int], str],
        *,
        options: Options | None = None,
        parent: TaskAttempt | None = None,
        keys: str = "",
    ) -> None:
        self.first = -1
        self.count = len(rows.numbers)
        self.targets = targets
        """The targets without an answer, by row."""
        self.options = options
        self.parent = parent
        self.failed: TaskFuture[Any] | None = None
        """The first target that failed."""
        self.on_change: Callable[[], None] | None = None
        """Called by the I/O thread when a target has failed, and when all targets have an answer."""
        self._functions = rows.functions
        self._numbers = rows.numbers
        self._payloads = rows.payloads
        self._inputs = rows.inputs
        self._input_counts = rows.input_counts
        self._keep = keep
        self._target_count = len(targets)
        self._objects = rows.objects
        self._ends: list[int] = []
        """For each row where its inputs end; computed at the first use."""
        self._readers: dict[int, int] = {}
        """For each needed row how many needed rows read it, without cancelled ones; computed at the first use."""
        self._has_failed = False
        """Whether a row has failed. Until then `resolve`, which is called for every row, records nothing."""
        self._succeeded_rows: set[int] = set()
        """Rows that have succeeded since the first failure."""
        self._recoveries = 0
        """How often the graph was submitted again since a row last succeeded for the first time."""
        self._row_name = row_name
        self._keys = keys
        self._causes: dict[int, int] = {}
        """For each failed row the row that caused the failure, which may be itself."""
        self._failure_answers: dict[int, tuple[int, Payload]] = {}
        """The outcome and the payload of each causing row."""
        self._failed_inputs: dict[int, InputFailure] = {}
        """The failures of tasks outside of the graph, by the causing row that reads the task's result."""

    # ---------------------------------------------------------------------------------------------------------- answers

    def set_first_id(self, first: int) -> None:
        """Set the id of the first row; the ids of the other rows follow."""
        self.first = first
        self.options = replace(self.options or Options(), graph=first + 1, keys=self._keys)
        for row, future in self.targets.items():
            future.task_id = first + row

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Take the answer of a row; return whether all targets have an answer."""
        row = task_id - self.first
        if self._has_failed and outcome in SUCCESS_OUTCOMES:
            self._causes.pop(row, None)  # a failure of an earlier run, reported by a lost scheduler
            if row not in self._succeeded_rows:
                self._succeeded_rows.add(row)
                self._recoveries = 0
        future = self.targets.pop(row, None)
        if future is None:
            return False  # not a target: no future waits for it
        failed = self._causes.get(row)
        if failed is not None:
            outcome, answer = self._failure_answers[failed]
            if outcome != Outcome.CANCELLED or failed != row or failed in self._failed_inputs:
                future.failure_origin = self._origin(failed)
        future.resolve(task_id, outcome, answer)
        self._notify(future, outcome != Outcome.VALUE)
        return not self.targets

    def _origin(self, failed: int) -> FailureOrigin:
        """Return where the failure of a causing row came from: the row itself, or a task outside of the graph."""
        row_name = self._row_name
        cause = self._failed_inputs.get(failed)
        if cause is not None:
            return input_origin(cause, lambda: row_name(failed))
        function = self._functions[self._numbers[failed]]
        return FailureOrigin(function.name, self.first + failed, lambda: row_name(failed))

    def record_failures(self, answers: Iterable[tuple[int, int, Payload]]) -> None:
        """Record the failures of one message, before `resolve` is called for each of them."""
        self._has_failed = True
        for task_id, outcome, answer in sorted(answers, key=itemgetter(0)):
            row = task_id - self.first
            cause = None
            if self._objects:
                objects = [self._objects[~each] for each in self._inputs_of(row) if each < 0]
                cause = input_failure(objects, outcome, answer)
                if cause is not None:
                    outcome, answer = cause.outcome, cause.answer
            failed = self._cause_of(row, outcome, answer)
            if failed == row:
                if cause is None and outcome == Outcome.CANCELLED and row not in self.targets:
                    # Users cancel targets only. The scheduler cancels a row when all its readers have failed. This is
                    # not a failure of the row itself, and the readers may be submitted again.
                    continue
                self._failure_answers[row] = outcome, answer
                if cause is not None:
                    self._failed_inputs[row] = cause
            self._causes[row] = failed

    def _cause_of(self, row: int, outcome: int, answer: Payload) -> int:
        """Return the row that caused this failure. The failures of its inputs are already recorded."""
        causes = [self._causes[each] for each in self._rows_read_by(row) if each in self._causes]
        if outcome != Outcome.INPUT_LOST:
            # Other inputs may be cancelled by now, because no row needs them.
            return next((each for each in causes if self._failure_answers[each] == (outcome, answer)), row)
        # The row reached the scheduler after its input had failed, so the scheduler reports only a missing input. The
        # cause is the failure of another input, which the scheduler knew.
        return min(causes, key=lambda each: _CAUSE_RANK.get(self._failure_answers[each][0], 0), default=row)

    def can_resubmit(self, task_id: int) -> bool:
        """Return whether the graph may be submitted again for this failed row: a target whose input was lost."""
        row = task_id - self.first
        if self._recoveries == MAX_RECOVERIES or row not in self.targets:
            return False
        return self._failure_answers[self._causes[row]][0] == Outcome.INPUT_LOST

    def begin_recovery(self) -> None:
        """Count a recovery and forget the failures: the graph is about to be submitted again."""
        self._recoveries += 1
        self._causes.clear()
        self._failure_answers.clear()
        self._failed_inputs.clear()

    def fail(self, task_id: int, error: BaseException) -> None:
        """End a row with an error of the client."""
        future = self.targets.pop(task_id - self.first, None)
        if future is not None:
            future.fail(task_id, error)
            self._notify(future, True)

    def start(self, task_id: int) -> None:
        """Note that a worker runs the row."""
        future = self.targets.get(task_id - self.first)
        if future is not None:
            future.start()

    def set_measurements(self, task_id: int, duration: int, cpu_time: int, peak: int) -> None:
        """Keep what the worker measured, in nanoseconds and bytes. Called before `resolve`."""
        future = self.targets.get(task_id - self.first)
        if future is not None:
            future.set_measurements(duration, cpu_time, peak)

    def open_ids(self) -> list[int]:
        """Return the ids of the targets without an answer."""
        return [self.first + row for row in list(self.targets)]

    def _notify(self, future: TaskFuture[Any], has_failed: bool) -> None:
        if has_failed and self.failed is None:
            self.failed = future
        if self.on_change is not None and (self.failed is not None or not self.targets):
            self.on_change()

    # ------------------------------------------------------------------------------------------------------ submission

    def functions(self) -> Iterable[Function]:
        """Return the functions of the rows."""
        return self._functions.values()

    def objects(self) -> Sequence[ObjectRef]:
        """Return the objects and results of other tasks that the rows read."""
        return self._objects

    def batch(self) -> Submit:
        """Return all rows as one Submit."""
        ids = range(self.first, self.first + self.count)
        batch = Submit(ids, self._numbers, self._payloads, self.options)
        if self._inputs:
            batch.inputs, batch.input_counts = self._ids(self._inputs), self._input_counts
        if any(self._keep):
            is_new = len(self.targets) == self._target_count
            batch.keep = self._keep if is_new else bytes(map(self._keep_of, range(self.count)))
        return batch

    def kept_ids(self) -> Sequence[int]:
        """Return the ids of the rows whose results are kept for other rows."""
        return [self.first + row for row, keep in enumerate(self._keep) if keep]

    def row(self, task_id: int) -> tuple[Function, CallWithInputs]:
        """Return the function and the arguments of a row, to submit it again."""
        row = task_id - self.first
        payload = CallWithInputs(self._payloads[row], self._ids(self._inputs_of(row)), self._keep_of(row))
        return self._functions[self._numbers[row]], payload

    def _keep_of(self, row: int) -> int:
        # A target with an answer is only needed by its readers; without readers it must not run again.
        return Keep.YES if self._keep[row] == Keep.BOTH and row not in self.targets else self._keep[row]

    def needed_ids(self) -> list[int]:
        """Return the ids of the open targets and of all rows that they need."""
        return [self.first + row for row in self._needed_rows()]

    def cancel_node(self, task_id: int) -> list[int]:
        """Return the ids to cancel with a row: the row, the rows that need it, and inputs that no other row needs."""
        if not self._readers:
            self._count_readers()
        cancelled = self._row_and_readers(task_id - self.first)
        stack = list(cancelled)
        while stack:
            for each in self._rows_read_by(stack.pop()):
                self._readers[each] -= 1
                if not self._readers[each] and each not in self.targets and each not in cancelled:
                    cancelled.add(each)
                    stack.append(each)
        return [self.first + row for row in sorted(cancelled)]

    def _row_and_readers(self, row: int) -> set[int]:
        """Return the row and all rows that need it."""
        rows = {row}
        if self._readers[row]:
            for each in range(row + 1, self.count):
                if each in self._readers and not rows.isdisjoint(self._inputs_of(each)):
                    rows.add(each)
        return rows

    def _count_readers(self) -> None:
        needed = self._needed_rows()
        self._readers = dict.fromkeys(needed, 0)
        for row in needed:
            for each in self._rows_read_by(row):
                self._readers[each] += 1

    def _needed_rows(self) -> list[int]:
        """Return the open targets and all rows that they need."""
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
