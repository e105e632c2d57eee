"""What the tables hold: one record a function, task, client, worker and host agent."""

from collections import deque
from typing import Deque, Dict, List, Optional, Set

from scaler_scheduler.core.batches import BatchQueue
from scaler_scheduler.core.effects import Dispatch, Resolved
from scaler_scheduler.core.states import DISPATCHED, next_state

_GONE_WORKERS = 1000

UNKNOWN_NS = -1
"""Mean run time of a function that has not returned yet."""

MINIMUM_NS = 500
"""What a task costs a worker at least, whatever its clock said."""

_HISTORY = 64
"""Results that the mean remembers: a function's run time may drift, and one odd task must not mislead for long."""


class Function:
    __slots__ = ("digest", "holders", "mean_ns", "name", "number", "payload", "serializer", "tasks", "weight")

    def __init__(self, number: int, digest: bytes, name: str, serializer: str, payload: bytes) -> None:
        self.number = number
        self.digest = digest
        self.name = name
        self.serializer = serializer
        self.payload = payload
        self.holders: Dict[int, int] = {}
        """Clients that may still submit tasks of it, by number, with how many of their own numbers name it."""
        self.tasks = 0
        """Its unresolved tasks."""
        self.mean_ns = UNKNOWN_NS
        self.weight = 0

    def observe(self, total_ns: int, count: int) -> None:
        """Learn from `count` tasks that took `total_ns` together."""
        mean = max(MINIMUM_NS, total_ns // count)
        if self.mean_ns < 0:
            self.mean_ns = mean
            self.weight = min(count, _HISTORY)
            return
        weight = self.weight + count
        self.mean_ns += (mean - self.mean_ns) * count // weight
        self.weight = min(weight, _HISTORY)

    @property
    def is_unused(self) -> bool:
        return not self.tasks and not self.holders


class Task:
    """One task that has been dispatched at least once."""

    __slots__ = (
        "attempt",
        "client",
        "cost",
        "deaths",
        "function",
        "id",
        "is_large",
        "payload",
        "serial",
        "size",
        "start",
        "state",
        "worker",
    )

    def __init__(
        self,
        task_id: int,
        client: "Client",
        function: "Function",
        payload: bytes,
        start: int,
        size: int,
        is_large: bool,
        serial: int,
        cost: int,
        worker: "Worker",
    ) -> None:
        self.id = task_id
        self.client = client
        self.function = function
        self.payload = payload
        """What holds the task's bytes: its batch's joined payload, or its own frame."""
        self.start = start
        self.size = size
        self.is_large = is_large
        self.serial = serial
        """Scheduler-wide number, the key in its worker's table."""
        self.cost = cost
        """Nanoseconds that it adds to its worker's load."""
        self.attempt = 1
        self.state = DISPATCHED
        self.worker: Optional[Worker] = worker
        self.deaths: Optional[List[str]] = None
        """What became of the workers that died while they ran it."""

    def move(self, action: int) -> None:
        """Take the transition that `action` is in the task's state; InvariantError where there is none."""
        self.state = next_state(self.state, action)


class Client:
    __slots__ = (
        "batches",
        "deadline",
        "functions",
        "highest_id",
        "incarnation",
        "is_gone",
        "is_queued",
        "name",
        "number",
        "outbox",
        "requeued",
        "route",
        "tasks",
        "waiting",
    )

    def __init__(self, number: int, incarnation: int, route: bytes, name: str, deadline: float) -> None:
        self.number = number
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.functions: Dict[int, Function] = {}
        """By the client's own numbers."""
        self.tasks: Dict[int, Task] = {}
        """Every task that has an object: dispatched ones, and those that wait for another attempt."""
        self.batches = BatchQueue()
        self.requeued: Deque[Task] = deque()
        """Tasks that lost their worker: they go before the batches. May hold tasks that were resolved since."""
        self.waiting = 0
        """Tasks in `batches` and `requeued`."""
        self.highest_id = -1
        self.is_gone = False
        """It has left; the record stays until no worker holds a task of it any more."""
        self.is_queued = False
        """Whether it stands in the scheduler's queue of clients with waiting tasks."""
        self.outbox: Optional[Resolved] = None


class Worker:
    __slots__ = (
        "agent",
        "bytes",
        "deadline",
        "functions",
        "host",
        "incarnation",
        "is_ready",
        "load",
        "name",
        "number",
        "outgoing",
        "pid",
        "route",
        "tasks",
    )

    def __init__(
        self, number: int, incarnation: int, agent: int, route: bytes, name: str, host: str, pid: int, deadline: float
    ) -> None:
        self.number = number
        self.incarnation = incarnation
        self.agent = agent
        self.route = route
        self.name = name
        self.host = host
        self.pid = pid
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.tasks: Dict[int, Task] = {}
        """What it holds, by serial number."""
        self.load = 0
        """Nanoseconds of work that it holds, by the functions' mean run times at dispatch."""
        self.bytes = 0
        """Payload bytes of what it holds."""
        self.functions: Set[Function] = set()
        """What it has been sent and not told to forget."""
        self.is_ready = False
        """Whether it stands in the dispatcher's list."""
        self.outgoing: Optional[Dispatch] = None


class Agent:
    __slots__ = ("deadline", "gone_workers", "host", "incarnation", "name", "number", "route")

    def __init__(self, number: int, incarnation: int, route: bytes, name: str, host: str, deadline: float) -> None:
        self.number = number
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.host = host
        self.deadline = deadline
        self.gone_workers: Deque[int] = deque(maxlen=_GONE_WORKERS)
        """Incarnations whose death was told before they said hello: two connections keep no common order."""
