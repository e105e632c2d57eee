"""All tables together, for those parts of the core that keep several of them in step."""

from typing import Dict, Tuple

from scaler_scheduler.core.clients import ClientTable
from scaler_scheduler.core.counts import Counts
from scaler_scheduler.core.functions import FunctionTable
from scaler_scheduler.core.objects import ObjectTable
from scaler_scheduler.core.records import Worker
from scaler_scheduler.core.timers import TimerQueue
from scaler_scheduler.core.workers import AgentTable, WorkerTable


class Unclaimed:
    """A task that a worker has run since before it joined, and that its client has not submitted (again) yet."""

    __slots__ = ("attempt", "is_suspended", "worker")

    def __init__(self, worker: Worker, attempt: int, is_suspended: bool) -> None:
        self.worker = worker
        self.attempt = attempt
        self.is_suspended = is_suspended


class Tables:
    __slots__ = ("agents", "clients", "counts", "functions", "objects", "timers", "unclaimed", "workers")

    def __init__(self) -> None:
        self.clients = ClientTable()
        self.workers = WorkerTable()
        self.agents = AgentTable()
        self.functions = FunctionTable()
        self.objects = ObjectTable()
        self.timers = TimerQueue()
        self.counts = Counts()
        self.unclaimed: Dict[Tuple[int, int], Unclaimed] = {}
        """By client and id."""
