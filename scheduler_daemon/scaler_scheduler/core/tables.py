"""All tables together, for parts of the core that keep several of them in step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from scaler_scheduler.core.effects import OUTCOME_STORED
from scaler_scheduler.core.events import Options, Results
from scaler_scheduler.core.ids import VERSIONS, value_id
from scaler_scheduler.core.state.clients import ClientTable
from scaler_scheduler.core.state.counts import Counts
from scaler_scheduler.core.state.environments import EnvironmentTable
from scaler_scheduler.core.state.functions import Function, FunctionTable
from scaler_scheduler.core.state.history import History
from scaler_scheduler.core.state.records import Client, StoredObject, Task, Worker
from scaler_scheduler.core.state.timers import Clock, TimerQueue
from scaler_scheduler.core.state.workers import AgentTable, WorkerTable
from scaler_scheduler.core.values.objects import ObjectTable

HISTORY_ROWS = 100_000
"""The number of newest history rows that are kept."""

ENDED_NODES = 2000
"""The number of ended graph nodes that are remembered. A Graphs message shows as many."""


class EndedNode(NamedTuple):
    """A graph node that has ended, kept for drawings of its graph."""

    client: int
    id: int
    name: str
    inputs: Sequence[int]
    ended_at: float
    """When it ended, in seconds of the monotonic clock."""
    has_failed: bool
    options: Options
    submitted_at: float


class UnclaimedTask:
    """A task that a worker runs and that is not in the worker's table.

    Its client has not submitted it again yet, or the task has ended, or another worker has it.
    """

    __slots__ = ("attempt", "deadline", "is_over", "is_suspended", "worker")

    def __init__(self, worker: Worker, attempt: int, is_suspended: bool, is_over: bool, deadline: float) -> None:
        self.worker = worker
        self.attempt = attempt
        self.is_suspended = is_suspended
        self.is_over = is_over
        """Whether the task is no longer needed. Its worker got a Stop for it."""
        self.deadline = deadline
        """The deadline for its client to submit it, or for the stopped task to end, in seconds of the monotonic
        clock."""


class EarlyAnswer:
    """The end of an attempt whose task its client has not submitted again yet: a result, or the death of its worker."""

    __slots__ = ("attempt", "deadline", "death", "ends_workers", "results", "worker")

    def __init__(
        self,
        worker: Worker,
        attempt: int,
        deadline: float,
        results: Results | None = None,
        *,
        death: str = "",
        ends_workers: bool = False,
    ) -> None:
        self.worker = worker
        """Its worker, which may be lost meanwhile."""
        self.attempt = attempt
        self.deadline = deadline
        """The deadline for its client to submit it, in seconds of the monotonic clock."""
        self.results = results
        """Its one row; None: its worker has named the task as finished, and the row follows, or there is no result."""
        self.death = death
        """Why its worker has died during the attempt. Empty: the attempt has a result."""
        self.ends_workers = ends_workers
        """Whether the worker has died because of this task, as far as its agent knows."""

    @property
    def version(self) -> int:
        """The version in the name of its file."""
        return self.attempt % VERSIONS

    @property
    def is_file(self) -> bool:
        """Whether its result is a file of the worker's host."""
        return self.results is not None and self.results.outcomes[0] == OUTCOME_STORED

    @property
    def is_awaited(self) -> bool:
        """Whether its worker is going to send the result."""
        return self.results is None and not self.death


class Tables:
    """The tables of one scheduler."""

    __slots__ = (
        "agents",
        "clients",
        "clock",
        "counts",
        "early",
        "early_bytes",
        "ended_nodes",
        "environments",
        "functions",
        "history",
        "objects",
        "timers",
        "unclaimed",
        "workers",
    )

    def __init__(self, now: float) -> None:
        self.clock = clock = Clock(now)
        self.clients = ClientTable()
        self.workers = WorkerTable()
        self.agents = AgentTable()
        self.functions = FunctionTable()
        self.environments = EnvironmentTable()
        self.objects = ObjectTable()
        self.timers = TimerQueue()
        self.counts = Counts()
        self.history = History(clock, HISTORY_ROWS)
        self.ended_nodes: deque[EndedNode] = deque(maxlen=ENDED_NODES)
        """The newest ended nodes of graphs."""
        self.unclaimed: dict[tuple[int, int], UnclaimedTask] = {}
        """Unclaimed tasks, by client and id."""
        self.early: dict[tuple[int, int], EarlyAnswer] = {}
        """Ends of attempts whose tasks their clients have not submitted again yet, by client and id."""
        self.early_bytes = 0
        """The bytes of these results."""

    def keep_early(self, answer: EarlyAnswer, client: int, task_id: int) -> None:
        """Keep the end of an attempt until the client submits the task again. No other one is kept."""
        self.early[client, task_id] = answer
        self.early_bytes += _bytes_of(answer)

    def pop_early(self, client: int, task_id: int) -> EarlyAnswer | None:
        """Take out a result that has come before its client."""
        answer = self.early.pop((client, task_id), None)
        if answer is not None:
            self.early_bytes -= _bytes_of(answer)
        return answer

    def is_named(self, task: Task) -> bool:
        """Whether a worker that has joined again has named a task of this client and id: it runs or has ended there."""
        name = task.client.incarnation, task.id
        return name in self.unclaimed or name in self.early

    def remove_row(self, client: Client, function: Function, options: Options) -> None:
        """Note that a task of this client and function has ended."""
        self.functions.remove_task(function)
        if options.weight > 1:
            client.further_calls -= options.weight - 1
            function.further_calls -= options.weight - 1

    def find_file(self, name: tuple[int, int]) -> StoredObject | None:
        """Return the value whose file has this name: its client's incarnation, and the id of the file."""
        client = self.clients.by_incarnation.get(name[0])
        stored = None if client is None else client.objects.get(value_id(name[1]))
        return stored if stored is not None and stored.file_id == name[1] else None

    def find_open(self, client: int, task_id: int) -> Task | None:
        """Return the open task with this client and id, if it has a record."""
        found = self.clients.by_incarnation.get(client)
        return None if found is None else found.tasks.get(task_id)

    def find_held(self, worker: Worker, client: int, task_id: int, attempt: int) -> Task | None:
        """Return the task with this name that this worker holds."""
        task = self.find_task(client, task_id, attempt)
        return task if task is not None and task.worker is worker else None

    def find_task(self, client: int, task_id: int, attempt: int) -> Task | None:
        """Return the task with this name. A worker may hold it, or none."""
        found = self.clients.by_incarnation.get(client)
        task = None if found is None else found.tasks.get(task_id)
        return task if task is not None and task.attempt == attempt else None


def _bytes_of(answer: EarlyAnswer) -> int:
    results = answer.results
    return 0 if results is None else len(results.payload) + sum(map(len, results.large.values()))
