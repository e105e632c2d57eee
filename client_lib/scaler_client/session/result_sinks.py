"""Who wants the answers of tasks: what a session asks of futures and of the chunks of a map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..pickling.functions import Function
from ..protocol.messages import Options, Payload, Submit, TaskName

CHUNK_BITS = 10
CHUNK_ROWS = 1 << CHUNK_BITS
"""Most tasks that `map` hands over at once: enough to make its share per task small, few enough to start at once."""


class ResultSink(Protocol):
    """Who wants the answers of some ids."""

    @property
    def options(self) -> Options | None:
        """What its tasks ask for; None: nothing."""

    @property
    def parent(self) -> TaskName | None:
        """The task that has submitted its tasks, where one has."""

    def row(self, task_id: int) -> tuple[Function, Payload]:
        """What to submit again; the payload says what else the row has, where it is a ReadingCall."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> object: ...

    def fail(self, task_id: int, error: BaseException) -> None: ...


class SingleSink(ResultSink, Protocol):
    """Who wants the answer of one id."""

    def start(self) -> None:
        """A worker runs the task."""

    def measured(self, duration: int, cpu_time: int, peak: int) -> None:
        """What the worker measured, in nanoseconds and bytes; told before the answer."""


class ChunkSink(ResultSink, Protocol):
    """Who wants the answers of up to CHUNK_ROWS ids behind one another."""

    def submitted(self, first: int) -> None:
        """They have their ids, of which this is the first."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Returns whether all are answered."""

    def open_ids(self) -> list[int]:
        """Those that are not answered."""


class GraphSink(ResultSink, Protocol):
    """Who wants the answers of some tasks, the targets, among many that read one another's results.

    Their ids are behind one another, those of what is read below those of what reads it.
    """

    @property
    def first(self) -> int:
        """The first id."""

    @property
    def count(self) -> int:
        """How many tasks there are."""

    def submitted(self, first: int) -> None:
        """They have their ids."""

    def functions(self) -> Iterable[Function]:
        """What they call."""

    def batch(self) -> Submit:
        """All of them."""

    def kept_ids(self) -> Sequence[int]:
        """Those whose results are kept for others."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Returns whether all targets are answered now; then nothing more is to be told."""

    def record_failures(self, answers: Iterable[tuple[int, int, Payload]]) -> None:
        """Ids, outcomes and payloads of what has ended without a value, all that have at the same time: `resolve` gives
        each the one's that has failed first."""

    def can_resubmit(self, task_id: int) -> bool:
        """Whether this task, which has failed as what it reads was lost, is a target that is to be submitted again,
        and that with it."""

    def begin_recovery(self) -> None:
        """That is about to be done; not for ever."""

    def start(self, task_id: int) -> None:
        """A worker runs the task."""

    def measured(self, task_id: int, duration: int, cpu_time: int, peak: int) -> None:
        """What the worker measured, in nanoseconds and bytes; told before the answer."""

    def open_ids(self) -> list[int]:
        """Targets that are not answered."""

    def needed_ids(self) -> list[int]:
        """The same, and all that they read, whether it is kept already or not."""

    def cancel_node(self, task_id: int) -> list[int]:
        """A task is cancelled: its id, of those that read it, and of those that nobody needs any more."""
