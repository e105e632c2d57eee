"""What the tables hold: one record a task, object, client, worker and host agent.

They stand in one module because they refer to one another: a task to its client, its worker and its inputs, and these
to their tasks. Several modules would be a circle of imports.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Deque, Dict, List, Optional, Sequence, Set, Tuple

from scaler_scheduler.core.effects import Dispatch, Resolved
from scaler_scheduler.core.events import KEEP_YES, Capabilities, Kinds, Options
from scaler_scheduler.core.state.batches import BatchQueue
from scaler_scheduler.core.state.functions import SMALL, Function
from scaler_scheduler.core.state.transitions import DISPATCHED, NO_INTENT, RUNNING, SUSPENDED, next_state

_GONE_WORKERS = 1000


class Task:
    """One task that has been dispatched, or taken over from a worker, or that reads objects or leaves one."""

    __slots__ = (
        "attempt",
        "client",
        "cost",
        "deaths",
        "failures",
        "function",
        "id",
        "inputs",
        "is_large",
        "is_retracting",
        "is_stopping",
        "keep",
        "missing_inputs",
        "options",
        "payload",
        "reads_files",
        "serial",
        "since",
        "size",
        "start",
        "state",
        "submitted_at",
        "timer",
        "intent",
        "worker",
    )

    def __init__(
        self,
        task_id: int,
        client: "Client",
        function: Function,
        options: Options,
        payload: bytes,
        start: int,
        size: int,
        is_large: bool,
        serial: int,
        cost: int,
        worker: "Optional[Worker]",
        attempt: int,
        submitted: float,
        since: float,
    ) -> None:
        self.id = task_id
        self.client = client
        self.function = function
        self.options = options
        self.payload = payload
        """What holds the task's bytes: its batch's joined payload, or its own frame."""
        self.start = start
        self.size = size
        self.is_large = is_large
        self.serial = serial
        """Scheduler-wide number, the key in its worker's table."""
        self.cost = cost
        """Nanoseconds that it adds to its worker's load."""
        self.attempt = attempt
        """The number of its last dispatch; 0: there was none."""
        self.submitted_at = submitted
        """When its batch came, in seconds of the monotonic clock."""
        self.since = since
        """When it was dispatched, or came to wait for that."""
        self.state = DISPATCHED
        self.worker: Optional[Worker] = worker
        self.intent = NO_INTENT
        self.is_retracting = False
        """Whether the worker owes an answer to a Retract."""
        self.is_stopping = False
        """Whether the worker was told to stop it."""
        self.timer: Optional[Timer] = None
        self.failures = 0
        """Attempts that count against its retries."""
        self.deaths: Optional[List[str]] = None
        """What became of the workers that died while they ran it."""
        self.inputs: Sequence[StoredObject] = ()
        """What it reads; one may be there twice."""
        self.reads_files = False
        """Whether its worker was told to find some of these in files of its host, as far as is known here."""
        self.missing_inputs = 0
        """Of those, how many are not there yet; what it reads twice counts twice."""
        self.keep = 0
        """One of the events' KEEP_ numbers: what becomes of its result."""

    @property
    def may_store(self) -> bool:
        """Whether its result, where it is large, is to stay on its worker's host. Not asked of those that are likely
        small: what goes with each row has its price."""
        return self.keep == KEEP_YES and self.function.kept_size != SMALL

    @property
    def is_node(self) -> bool:
        """Whether it reads objects or its result becomes one."""
        return self.keep != 0 or len(self.inputs) > 0

    def transition(self, action: int) -> None:
        """Take the transition that `action` is in the task's state; InvariantError where there is none."""
        self.state = next_state(self.state, action)

    @property
    def name(self) -> str:
        """For people."""
        return self.options.name or self.function.name


class Timer:
    """A task's; it has at most one."""

    __slots__ = ("task",)

    def __init__(self, task: "Task") -> None:
        self.task: Optional[Task] = task


class Copies:
    """Who has an object at hand, and is to be told when nobody needs it any more."""

    __slots__ = ("agents", "file_readers", "stale_agents", "workers")

    def __init__(self) -> None:
        self.workers: Set[Worker] = set()
        """Which have been sent its bytes."""
        self.agents: Set[Agent] = set()
        """Which have a file of it that all workers of the host read: from bytes that were sent, or from a worker."""
        self.file_readers: Set[Worker] = set()
        """Which have been given a task that reads it there."""
        self.stale_agents: Set[Agent] = set()
        """Which may have a file of it from an attempt that does not count, to be removed with the object."""

    @property
    def holders(self) -> "Set[Worker]":
        """Workers that have it at hand."""
        return self.workers | self.file_readers


class StoredObject:
    """Bytes that a client has sent, or the result of a task that is kept for others."""

    __slots__ = (
        "blocked_tasks",
        "client",
        "copies",
        "frames",
        "home",
        "id",
        "is_referenced",
        "is_from_client",
        "name",
        "producer",
        "readers",
        "size",
    )

    def __init__(self, client: "Client", object_id: int, name: str, producer: Optional["Task"]) -> None:
        self.client = client
        self.id = object_id
        self.name = name
        self.producer = producer
        """The task whose result it is to be; None once it is there."""
        self.home: Optional[Agent] = None
        """The host agent whose worker has made a file of it."""
        self.is_from_client = producer is None
        """Whether the client sent it, and counts its bytes."""
        self.frames: Optional[List[bytes]] = None
        """None until it is there, and as long as it is only at its home."""
        self.size = 0
        self.is_referenced = True
        """Whether its client refers to it."""
        self.readers = 0
        """Tasks that read it and are not over."""
        self.blocked_tasks: Sequence[Task] = ()
        """Those of them that wait for it, once for each time they read it. May hold tasks that are over. Where it has a
        home, there are some as long as it is being fetched from there for a task."""
        self.copies: Optional[Copies] = None
        """Where its bytes were sent; None: they have only gone along with tasks that read it."""

    def block(self, task: Task) -> None:
        """The task waits for it."""
        if self.blocked_tasks:
            self.blocked_tasks.append(task)  # type: ignore[attr-defined]  # a list from the first one on
        else:
            self.blocked_tasks = [task]

    @property
    def is_needed(self) -> bool:
        return self.is_referenced or self.readers > 0

    @property
    def is_remote(self) -> bool:
        """Whether its bytes are at its home and nowhere else."""
        return self.frames is None and self.home is not None

    def fill(self, frames: List[bytes]) -> None:
        self.frames = frames
        self.producer = None
        size = 0
        for frame in frames:
            size += len(frame)
        self.size = size

    def store_at(self, agent: "Agent", size: int) -> None:
        """It is there, in a file of this agent's host."""
        self.producer = None
        self.home = agent
        self.size = size
        if self.copies is None:
            self.copies = Copies()
        self.copies.stale_agents.discard(agent)
        self.copies.agents.add(agent)
        agent.objects.add(self)


LaneKey = Tuple[int, Capabilities, str]


class Lane:
    """A client's waiting tasks of one rank, in need of the same capabilities, of functions of the same kind."""

    __slots__ = ("_order", "batches", "capabilities", "client", "is_queued", "kind", "rank", "requeued", "waiting")

    def __init__(self, client: "Client", rank: int, capabilities: Capabilities, kind: str) -> None:
        self.client = client
        self.rank = rank
        self.capabilities = capabilities
        self.kind = kind
        self.batches = BatchQueue()
        self.requeued: Dict[int, Task] = {}
        """Tasks that came back from a worker, or have got what they read, by their ids: they go before the batches. May
        hold tasks that wait no more."""
        self._order: List[int] = []
        """A heap of their ids: a graph's come in an order in which what is read by few is read, and freed, early. Of
        numbers alone: PyPy compares them five times as fast as tuples that begin with them."""
        self.waiting = 0
        """Tasks in `batches` and `requeued`."""
        self.is_queued = False
        """Whether it stands in the dispatcher's queue."""

    def requeue(self, task: Task) -> None:
        if task.id not in self.requeued:
            heappush(self._order, task.id)
        self.requeued[task.id] = task

    @property
    def key(self) -> LaneKey:
        """Under which the client has it."""
        return self.rank, self.capabilities, self.kind

    @property
    def first_requeued(self) -> Task:
        """The one with the lowest id; there must be one."""
        return self.requeued[self._order[0]]

    def pop_requeued(self) -> None:
        """Drop that one."""
        del self.requeued[heappop(self._order)]


PAUSE_SLOW_CONSUMER = 1
"""Of a client: too much is on its way to it."""

PAUSE_RESTART_HOLD = 2
"""Some of its tasks may run already, on workers that have not come back yet."""


class Client:
    __slots__ = (
        "highest_counted_id",
        "deadline",
        "answered_tasks",
        "functions",
        "granted_bytes",
        "object_bytes",
        "highest_id",
        "incarnation",
        "is_gone",
        "lanes",
        "name",
        "newest_attempt",
        "objects",
        "outgoing",
        "dropped_output_bytes",
        "pause_reasons",
        "received_bytes",
        "rejected_functions",
        "result_window",
        "returned_bytes",
        "route",
        "sent_bytes",
        "stale_attempt",
        "submitted_bytes",
        "suspended",
        "tasks",
        "user",
        "worker",
    )

    def __init__(self, incarnation: int, route: bytes, name: str, worker: int, deadline: float, user: str = "") -> None:
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.user = user
        """Whose it is, as in its first hello; empty where nobody has keys."""
        self.worker = worker
        """A nested client's: the incarnation of the worker that it lives in; 0 for others."""
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.functions: Dict[int, Function] = {}
        """By the client's own numbers."""
        self.rejected_functions: Dict[int, str] = {}
        """Names of some that are not taken, by the same numbers."""
        self.tasks: Dict[int, Task] = {}
        """Every task that has an object: those that a worker holds, and those that wait for another attempt."""
        self.lanes: Dict[LaneKey, Lane] = {}
        """Those with waiting tasks."""
        self.objects: Dict[int, StoredObject] = {}
        """By id."""
        self.answered_tasks = 0
        """Tasks that it was sent an answer to."""
        self.highest_id = -1
        self.newest_attempt = 0
        """Highest number of any attempt of a task of its, here or as far as workers tell."""
        self.stale_attempt = 0
        """Attempts with numbers up to this one may be of earlier lives of tasks, which are over, or are not known here:
        what is dispatched from now on has higher numbers, so that what is still said of those is passed over."""
        self.is_gone = False
        """It has left; the record stays until no worker holds a task of it any more."""
        self.outgoing: Optional[Resolved] = None
        self.dropped_output_bytes = 0
        """Bytes of its tasks' output that were not sent, and that it was not told of."""
        self.granted_bytes = 0
        """Bytes that it may submit since its welcome, in all, as it was told last."""
        self.submitted_bytes = 0
        """Bytes that it has submitted since its welcome, as far as they were taken."""
        self.returned_bytes = 0
        """Bytes of its tasks that are over since its welcome, and of its objects that nobody needs any more."""
        self.highest_counted_id = -1
        """The highest id among the tasks that it has submitted since its welcome: `submitted` has those up to it."""
        self.object_bytes = 0
        """Bytes of the objects that it has sent and that are kept."""
        self.sent_bytes = 0
        """Bytes of results and output since its welcome."""
        self.received_bytes = 0
        """Of those what it said that it has taken."""
        self.result_window = 0
        """Bytes that may be on their way to it; 0: any number."""
        self.pause_reasons = 0
        """Why nothing of it is dispatched for now: STALLED, SETTLING, both; 0: it is."""
        self.suspended: Set[Tuple[int, int, int]] = set()
        """A nested client's: tasks of its worker that wait for tasks of it, by client, id and attempt."""

    @property
    def waiting(self) -> int:
        return sum(lane.waiting for lane in self.lanes.values())

    def next_attempt(self, last: int) -> int:
        """The number of a task's next dispatch, where this was the one of its last."""
        attempt = max(last, self.stale_attempt) + 1
        if attempt > self.newest_attempt:
            self.newest_attempt = attempt
        return attempt

    def skip_attempts(self, attempt: int) -> None:
        """A worker is still busy with this attempt of some task, which counts no longer."""
        self.stale_attempt = max(self.stale_attempt, attempt)
        self.newest_attempt = max(self.newest_attempt, attempt)

    def lane_of(self, task: Task) -> Lane:
        """The lane that this task of the client's waits in, or would, made where there is none."""
        return self.lane(task.options, task.function.kind)

    def lane(self, options: Options, kind: str) -> Lane:
        """The lane of these options and functions of this kind, made where there is none."""
        key = options.rank, options.capabilities, kind
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(self, *key)
        return lane


class Worker:
    __slots__ = (
        "agent",
        "started_at",
        "payload_bytes",
        "capabilities",
        "deadline",
        "done_tasks",
        "functions",
        "host",
        "incarnation",
        "is_unreachable",
        "is_ready",
        "is_retiring",
        "kinds",
        "language",
        "load_ns",
        "name",
        "objects",
        "outgoing",
        "pid",
        "quiet_checks",
        "route",
        "running",
        "message_count",
        "checked_message_count",
        "sent_tasks",
        "silent_checks",
        "suspended",
        "tasks",
        "unclaimed",
        "usage",
        "user",
        "version",
    )

    def __init__(
        self,
        incarnation: int,
        agent: int,
        route: bytes,
        name: str,
        host: str,
        pid: int,
        capabilities: Capabilities,
        kinds: Kinds,
        deadline: float,
        user: str = "",
    ) -> None:
        self.incarnation = incarnation
        self.agent = agent
        self.route = route
        self.name = name
        self.host = host
        self.pid = pid
        self.capabilities = dict(capabilities)
        self.user = user
        self.kinds = kinds
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.tasks: Dict[int, Task] = {}
        """What it holds, by serial number."""
        self.running = 0
        """Of those, how many are known to run."""
        self.started_at: Dict[Task, float] = {}
        """Those that are known to have begun, suspended ones among them, and since when."""
        self.suspended = 0
        """And how many are suspended."""
        self.unclaimed = 0
        """Tasks that it runs and that no client has asked for since it joined again."""
        self.message_count = 0
        """Messages that came from it."""
        self.checked_message_count = 0
        """Of those, how many there were when it was looked at last; and at how many looks it was silent."""
        self.silent_checks = 0
        self.quiet_checks = 0
        """At how many looks in a row it had said nothing at all."""
        self.load_ns = 0
        """Nanoseconds of work that it holds, by the functions' mean run times at dispatch; none for suspended tasks."""
        self.payload_bytes = 0
        """Payload bytes of what it holds."""
        self.functions: Set[Function] = set()
        """What it has been sent and not told to forget."""
        self.objects: Set[StoredObject] = set()
        """Likewise."""
        self.is_ready = False
        """Whether it stands in the dispatcher's list."""
        self.is_retiring = False
        """Whether it gets nothing new, as its agent is about to end it."""
        self.is_unreachable = False
        """Whether its connection is gone, as far as is known: it gets nothing before it joins again, and its agent's
        word does not keep it."""
        self.outgoing: Optional[Dispatch] = None
        self.sent_tasks = 0
        """Tasks that it was sent since it joined."""
        self.done_tasks = 0
        """Results of it that somebody waited for."""
        self.language = ""
        self.version = ""
        self.usage = (0, 0)
        """Resident bytes and milliseconds of processor time, as its agent said last."""

    @property
    def task_count(self) -> int:
        """How many tasks stand between it and a new one."""
        return len(self.tasks) - self.suspended + self.unclaimed

    def can_serve(self, capabilities: Capabilities, kind: str) -> bool:
        """Whether it can run functions of this kind and has these."""
        if self.kinds and kind not in self.kinds:
            return False
        own = self.capabilities
        return not capabilities or all(own.get(name, 0) >= amount for name, amount in capabilities)

    def hold(self, task: Task) -> None:
        """The task is this worker's from now on; it is dispatched or runs."""
        task.worker = self
        self.tasks[task.serial] = task
        self.load_ns += task.cost
        self.payload_bytes += task.size
        if task.state == RUNNING:
            self.running += 1

    def release(self, task: Task) -> None:
        """The task is this worker's no longer; call it before the task moves on."""
        task.worker = None
        del self.tasks[task.serial]
        self.payload_bytes -= task.size
        if self.started_at:
            self.started_at.pop(task, None)
        if task.state == SUSPENDED:
            self.suspended -= 1
            return
        self.load_ns -= task.cost
        if task.state == RUNNING:
            self.running -= 1


class Agent:
    __slots__ = (
        "deadline",
        "dead_workers",
        "evacuated",
        "last_message_at",
        "host",
        "incarnation",
        "is_retiring",
        "lag_us",
        "language",
        "name",
        "objects",
        "pid",
        "route",
        "usage",
        "user",
        "version",
    )

    def __init__(self, incarnation: int, route: bytes, name: str, host: str, deadline: float, user: str = "") -> None:
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.host = host
        self.deadline = deadline
        self.user = user
        self.objects: Set[StoredObject] = set()
        """What it has been sent, for all workers of its host, or has from these, and was not told to forget."""
        self.dead_workers: Deque[int] = deque(maxlen=_GONE_WORKERS)
        """Incarnations whose death was told before they said hello: two connections keep no common order."""
        self.pid = 0
        self.language = ""
        self.version = ""
        self.usage = (0, 0)
        """Resident bytes and milliseconds of processor time of its own process, as it said last."""
        self.lag_us = 0
        """From a heartbeat of its to the echo, as it has measured that; 0: not yet."""
        self.last_message_at = 0.0
        """When its last heartbeat came, or its hello, in seconds of the monotonic clock."""
        self.is_retiring = False
        """Whether it is about to end, and its workers get nothing new."""
        self.evacuated: Set[StoredObject] = set()
        """What it was asked for because it retires; some of it may have come, or be gone, by now."""
