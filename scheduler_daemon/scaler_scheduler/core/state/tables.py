"""All tables together, for those parts of the core that keep several of them in step."""

from collections import deque
from typing import Deque, Dict, NamedTuple, Optional, Sequence, Tuple

from scaler_scheduler.core.events import Options
from scaler_scheduler.core.state.clients import ClientTable
from scaler_scheduler.core.state.counts import Counts
from scaler_scheduler.core.state.functions import FunctionTable
from scaler_scheduler.core.state.history import History
from scaler_scheduler.core.state.objects import ObjectTable
from scaler_scheduler.core.state.records import Task, Worker
from scaler_scheduler.core.state.timers import Clock, TimerQueue
from scaler_scheduler.core.state.workers import AgentTable, WorkerTable

HISTORY_ROWS = 100_000
"""What is kept of what happens to tasks: the newest so many rows."""

ENDED_NODES = 2000
"""Nodes of graphs that are remembered after their end: as many as a Graphs message shows."""


class EndedNode(NamedTuple):
    """A node that has ended, kept for drawings of its graph."""

    client: int
    id: int
    name: str
    inputs: Sequence[int]
    ended_at: float
    """When it ended, by the monotonic clock."""
    has_failed: bool
    options: Options
    submitted_at: float


class UnclaimedTask:
    """What a worker runs and does not hold: its client has not submitted it (again) yet, or it is over or elsewhere."""

    __slots__ = ("attempt", "deadline", "is_over", "is_suspended", "worker")

    def __init__(self, worker: Worker, attempt: int, is_suspended: bool, is_over: bool, deadline: float) -> None:
        self.worker = worker
        self.attempt = attempt
        self.is_suspended = is_suspended
        self.is_over = is_over
        """It is not wanted any more, and its worker was told to stop it."""
        self.deadline = deadline
        """Until when its client may come, or what is over may take to end, in seconds of the monotonic clock."""


class Tables:
    __slots__ = (
        "agents",
        "clients",
        "clock",
        "counts",
        "ended_nodes",
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
        self.objects = ObjectTable()
        self.timers = TimerQueue()
        self.counts = Counts()
        self.history = History(clock, HISTORY_ROWS)
        self.ended_nodes: Deque[EndedNode] = deque(maxlen=ENDED_NODES)
        """The newest of them."""
        self.unclaimed: Dict[Tuple[int, int], UnclaimedTask] = {}
        """By client and id."""

    def find_held(self, worker: Worker, client: int, task_id: int, attempt: int) -> Optional[Task]:
        """The task that this worker holds under this name."""
        task = self.find_task(client, task_id, attempt)
        return task if task is not None and task.worker is worker else None

    def find_task(self, client: int, task_id: int, attempt: int) -> Optional[Task]:
        """The task of this name, on whichever worker, if any."""
        found = self.clients.by_incarnation.get(client)
        task = None if found is None else found.tasks.get(task_id)
        return task if task is not None and task.attempt == attempt else None
