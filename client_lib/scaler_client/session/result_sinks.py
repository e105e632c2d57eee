"""The interfaces of the receivers of answers: futures, rows of a map, graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..pickling.functions import Function
from ..pickling.references import Call, InputFailure, ObjectRef
from ..protocol.messages import Options, Payload, Submit, TaskAttempt

BLOCK_BITS = 10
BLOCK_IDS = 1 << BLOCK_BITS
"""The ids of a graph's tasks come in blocks of this size, with one table entry each."""


class ResultSink(Protocol):
    """The receiver of the answers of some task ids."""

    @property
    def options(self) -> Options | None:
        """The options of its tasks; None: the defaults."""

    @property
    def parent(self) -> TaskAttempt | None:
        """The task that has submitted these tasks; None: they were submitted outside of tasks."""

    def row(self, task_id: int) -> tuple[Function, Call]:
        """Return function and call of a task, to submit it again."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> object:
        """Take a task's answer.

        Args:
            outcome: a value of `messages.Outcome`.
            answer: the payload of that outcome, as bytes.
        """

    def fail(self, task_id: int, error: BaseException) -> None:
        """End a task with an error of the client's own."""


class SingleSink(ResultSink, Protocol):
    """The receiver of the answer of one task."""

    def fail_input(self, task_id: int, cause: InputFailure) -> None:
        """End a task as the task has ended whose result it reads."""

    def start(self) -> None:
        """A worker has begun the task."""

    def set_measurements(self, duration: int, cpu_time: int, peak: int) -> None:
        """Take what the worker measured. Called before the answer.

        Args:
            duration: the run time in nanoseconds.
            cpu_time: the processor time in nanoseconds.
            peak: the largest resident size in bytes.
        """


class GraphSink(ResultSink, Protocol):
    """The receiver of the answers of a graph's targets.

    A graph has many tasks that read one another's results; the targets are the tasks whose results are wanted. The
    tasks' ids are consecutive, and a task has a higher id than all tasks that it reads.
    """

    @property
    def first(self) -> int:
        """The id of the first task."""

    @property
    def count(self) -> int:
        """The number of tasks."""

    def set_first_id(self, first: int) -> None:
        """Take the id of the first task; the others follow it."""

    def functions(self) -> Iterable[Function]:
        """Return the functions that the tasks call."""

    def objects(self) -> Sequence[ObjectRef]:
        """Return the objects and results of other tasks that the tasks read."""

    def batch(self) -> Submit:
        """Return all tasks as one Submit."""

    def kept_ids(self) -> Sequence[int]:
        """Return the ids of the tasks whose results the scheduler keeps for other tasks."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Take a task's answer; return whether all targets are answered. Then no further calls follow."""

    def record_failures(self, answers: Iterable[tuple[int, int, Payload]]) -> None:
        """Take all failures of one message, before `resolve` is called for each of them.

        So `resolve` can give a target the failure of the task that failed first.

        Args:
            answers: id, outcome and payload of each task without a value.
        """

    def can_resubmit(self, task_id: int) -> bool:
        """Whether this failed task is a target that may be submitted again, because its input was lost."""

    def begin_recovery(self) -> None:
        """Count one more recovery: the graph is about to be submitted again. The number of recoveries is limited."""

    def start(self, task_id: int) -> None:
        """A worker has begun the task."""

    def set_measurements(self, task_id: int, duration: int, cpu_time: int, peak: int) -> None:
        """Take what the worker measured. Called before the answer.

        Args:
            duration: the run time in nanoseconds.
            cpu_time: the processor time in nanoseconds.
            peak: the largest resident size in bytes.
        """

    def open_ids(self) -> list[int]:
        """Return the ids of the targets without an answer."""

    def needed_ids(self) -> list[int]:
        """Return the ids of the open targets and of all tasks that they read, kept or not."""

    def cancel_node(self, task_id: int) -> list[int]:
        """Cancel a task; return its id, the ids of its readers, and the ids of tasks that are not needed any more."""
