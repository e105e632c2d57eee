"""Who wants the answers of tasks: what a session asks of futures and of the chunks of a map."""

from __future__ import annotations

from typing import Protocol

from .functions import Function
from .messages import Options, Payload, TaskName

CHUNK_BITS = 10
CHUNK_ROWS = 1 << CHUNK_BITS
"""Most tasks that `map` hands over at once: enough to make its share per task small, few enough to start at once."""


class Owner(Protocol):
    """Who wants the answers of some ids."""

    @property
    def options(self) -> Options | None:
        """What its tasks ask for; None: nothing."""

    @property
    def parent(self) -> TaskName | None:
        """The task that has submitted its tasks, where one has."""

    def row(self, task_id: int) -> tuple[Function, Payload]:
        """What to submit again."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> object: ...

    def fail(self, task_id: int, error: BaseException) -> None: ...


class SingleOwner(Owner, Protocol):
    """Who wants the answer of one id."""

    def start(self) -> None:
        """A worker runs the task."""

    def measured(self, duration: int, cpu_time: int, peak: int) -> None:
        """What the worker measured, in nanoseconds and bytes; told before the answer."""


class ChunkOwner(Owner, Protocol):
    """Who wants the answers of up to CHUNK_ROWS ids behind one another."""

    def resolve(self, task_id: int, outcome: int, answer: Payload) -> bool:
        """Returns whether all are answered."""

    def open_ids(self) -> list[int]:
        """Those that are not answered."""
