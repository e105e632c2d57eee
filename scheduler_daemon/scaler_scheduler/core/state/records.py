"""One record for each task, object, client, worker and host agent.

They are in one module because they refer to one another. A task refers to its client, its worker and its inputs, and
these refer to their tasks. Several modules would import each other in a circle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

from scaler_scheduler.core.effects import Dispatch, Resolved
from scaler_scheduler.core.events import KEEP_YES, Capabilities, Kinds, Options, PoolState, Resources
from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.core.state.batches import BatchQueue
from scaler_scheduler.core.state.chains import NO_ENTRY, Chains
from scaler_scheduler.core.state.environments import kinds_in, split_kind
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.host_room import HostRoom
from scaler_scheduler.core.state.shares import Share
from scaler_scheduler.core.state.transitions import DISPATCHED, NO_INTENT, RUNNING, SUSPENDED, next_state
from scaler_scheduler.core.state.value_states import ABSENT, AWAITED, CLAIMED, MAKING, THERE, is_file, is_known
from scaler_scheduler.core.unread_answers import UnreadAnswers

_GONE_WORKERS = 1000


class Task:
    """A task that was dispatched or found running on a worker, or that reads objects, or whose result is kept."""

    __slots__ = (
        "attempt",
        "client",
        "cost",
        "deaths",
        "failures",
        "full_agent",
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

    gang: Gang | None = None
    """Of a task of a gang that workers hold: its gang. Only a `GangTask` sets it."""

    def __init__(
        self,
        task_id: int,
        client: Client,
        function: Function,
        options: Options,
        payload: bytes,
        start: int,
        size: int,
        is_large: bool,
        serial: int,
        cost: int,
        worker: Worker | None,
        attempt: int,
        submitted: float,
        since: float,
    ) -> None:
        self.id = task_id
        self.client = client
        self.function = function
        self.options = options
        self.payload = payload
        """The buffer with the task's bytes: its batch's joined payload, or its own frame."""
        self.start = start
        self.size = size
        self.is_large = is_large
        self.serial = serial
        """The key in its worker's table: a number that is unique in this scheduler."""
        self.cost = cost
        """Nanoseconds that it adds to its worker's load."""
        self.attempt = attempt
        """The attempt number of its last dispatch. 0: it was not dispatched."""
        self.submitted_at = submitted
        """When its batch arrived, in seconds of the monotonic clock."""
        self.since = since
        """When it was dispatched, or began to wait for its dispatch."""
        self.state = DISPATCHED
        self.worker: Worker | None = worker
        self.intent = NO_INTENT
        self.is_retracting = False
        """Whether the worker still has to answer a Retract."""
        self.is_stopping = False
        """Whether the worker got a Stop for it."""
        self.timer: Timer | None = None
        self.failures = 0
        """Attempts that count against its retries."""
        self.deaths: list[str] | None = None
        """The causes of death of workers that ran it."""
        self.inputs: Sequence[StoredObject] = ()
        """The objects that it reads. An object may occur twice."""
        self.reads_files = False
        """Whether its worker must read some inputs from files of its host."""
        self.missing_inputs = 0
        """The number of inputs that do not exist yet. An input that it reads twice counts twice."""
        self.keep = 0
        """Whether its result is kept: one of the KEEP_ constants of events."""
        self.full_agent = 0
        """The incarnation of the agent whose host had no room for its result at the last attempt. 0: none."""

    @property
    def may_store(self) -> bool:
        """Whether its result may stay on its worker's host as a file."""
        return self.keep == KEEP_YES and self.function.may_store

    @property
    def may_end_worker(self) -> bool:
        """See the function of this name."""
        return may_end_worker(self.options, self.function)

    @property
    def is_node(self) -> bool:
        """Whether it reads objects or its result becomes an object."""
        return self.keep != 0 or len(self.inputs) > 0

    def transition(self, action: int) -> None:
        """Take a transition of the table. InvariantError if there is none for `action` in the task's state."""
        self.state = next_state(self.state, action)

    @property
    def name(self) -> str:
        """The name for people: the user's, or the function's."""
        return self.options.name or self.function.name


class GangTask(Task):
    """A task whose row stands for a gang, or one of its members. The fields of plain tasks cost nothing more so."""

    __slots__ = ("gang", "rank")

    gang: Gang | None
    rank: int

    def __init__(self, *fields: Any) -> None:
        """`fields` are those of Task."""
        super().__init__(*fields)
        self.gang = None
        self.rank = 0


class Gang:
    """A gang that has begun: from the dispatch of all its members until all have left their workers.

    The task that the client knows is the lead, the member of rank 0. The others have the ids behind its id.
    """

    __slots__ = (
        "held",
        "is_broken",
        "lead",
        "members",
        "moving",
        "results",
        "round",
        "values",
        "values_before",
        "verdict",
    )

    def __init__(self, members: list[GangTask]) -> None:
        """`members` are all members by rank. They are dispatched next."""
        self.members = members
        self.lead = members[0]
        self.held = len(members)
        """Members that have not left their workers."""
        self.moving: set[GangTask] = set()
        """Members whose worker joins again and names them. They get the worker's new record at once."""
        self.results: list[bytes | None] = [None] * len(members)
        """The results of members that have ended."""
        self.is_broken = False
        """Whether a member has left its worker without a result. The others are stopped."""
        self.verdict: tuple[int, bytes] | None = None
        """The outcome and the payload of a gang that does not run again. None: it does, if it has retries left."""
        self.round = 0
        """The number of the present exchange of values."""
        self.values: dict[int, bytes] = {}
        """The values of the present exchange, by rank."""
        self.values_before: list[bytes] = []
        """The values of the last exchange, for members that did not get them."""


class Timer:
    """A timer of a task. A task has at most one."""

    __slots__ = ("task",)

    def __init__(self, task: Task) -> None:
        self.task: Task | None = task


class StoredObject:
    """Bytes that a client sent, or a kept result of a task."""

    __slots__ = (
        "client",
        "copies",
        "fetched_from",
        "file_id",
        "first_blocked",
        "frames",
        "home",
        "id",
        "is_from_client",
        "is_referenced",
        "is_wanted",
        "name",
        "producer",
        "readers",
        "size",
        "state",
        "workers",
    )

    def __init__(self, client: Client, object_id: int, name: str, producer: Task | None) -> None:
        self.client = client
        self.id = object_id
        self.file_id = object_id
        """The id that hosts know it by: that of the attempt whose result it is (`core/ids.py`)."""
        self.name = name
        self.state = AWAITED if producer is None else MAKING
        """One of the states of a value in `core/state/value_states.py`."""
        self.producer = producer
        """The open task that makes it. None in all states but MAKING."""
        self.home: Agent | None = None
        """The place of its primary copy: the host agent whose worker wrote a file of it, or the place of the client
        that wrote it. If that is lost: another host that has the file."""
        self.fetched_from: Agent | None = None
        """The home that was asked for its bytes and has not answered yet."""
        self.is_from_client = producer is None
        """Whether the client sent it. Then its bytes count in the client's credit."""
        self.frames: list[bytes] | None = None
        """The bytes. None until the object exists, and while only its home has the bytes."""
        self.size = 0
        self.is_referenced = True
        """Whether its client needs it: the client has not forgotten it."""
        self.is_wanted = False
        """Whether its client waits for the bytes, which are being fetched."""
        self.readers = 0
        """The number of open tasks that read it."""
        self.first_blocked = NO_ENTRY
        """Its chain of blocked tasks in `client.blocked`."""
        self.copies: dict[Agent, int] | None = None
        """The state of its copy at each place that has one (`core/state/value_states.py`)."""
        self.workers: dict[Worker, int] | None = None
        """The workers that have got its bytes, or a task that reads its file: GOT or READS of
        `core/values/copies.py`."""

    def block(self, task: Task) -> None:
        """Note that the task waits for this object."""
        self.first_blocked = self.client.blocked.add(task, self.first_blocked)

    def unblock(self) -> list[Task]:
        """Return the blocked tasks, and forget that they wait for this object."""
        if not self.first_blocked:
            return []
        first, self.first_blocked = self.first_blocked, NO_ENTRY
        return self.client.blocked.pop(first)

    def remove_blocked(self, task: Task) -> None:
        """Note that the task no longer waits for this object."""
        for other in self.unblock():
            if other is not task:
                self.block(other)

    @property
    def blocked_tasks(self) -> list[Task]:
        """Tasks that wait for it, once for each time that they read it. Some may have ended. Tasks wait for an object
        with a home while its bytes are being fetched."""
        return self.client.blocked.items(self.first_blocked)

    @property
    def only_blocked_task(self) -> Task | None:
        """The task that waits for it. None: there is none, or more than one."""
        return self.client.blocked.only_item(self.first_blocked)

    @property
    def is_blocking(self) -> bool:
        """Whether a task waits for it. The task may have ended."""
        return self.first_blocked != NO_ENTRY

    @property
    def is_needed(self) -> bool:
        """Whether its client needs it, or an open task reads it."""
        return self.is_referenced or self.readers > 0

    @property
    def is_awaited(self) -> bool:
        """Whether the client is going to send it: the result of a task that had ended before its reader came."""
        return self.state == AWAITED

    @property
    def is_claimed(self) -> bool:
        """Whether a host is awaited that has it: its task ended before this scheduler began."""
        return self.state == CLAIMED

    @property
    def is_missing(self) -> bool:
        """Whether its bytes do not exist yet, or only its client has them, or a host that has not joined."""
        return self.state < THERE

    @property
    def is_remote(self) -> bool:
        """Whether only its home has the bytes."""
        return self.frames is None and self.home is not None

    def is_on(self, agent: int) -> bool:
        """Whether the host of the agent with this incarnation has it as a file of its own."""
        if self.home is None or self.copies is None:
            return False
        if self.home.incarnation == agent:
            return True
        if len(self.copies) == 1:
            return False
        return any(place.incarnation == agent and is_file(state) for place, state in self.copies.items())

    def is_known_to(self, agent: Agent | None) -> bool:
        """Whether this host agent has a file of it, or gets one, that its workers can read. False if there is no
        agent."""
        return agent is not None and self.copies is not None and is_known(self.copies.get(agent, ABSENT))

    @property
    def known_places(self) -> list[Agent]:
        """The places whose workers can read a file of it, now or soon."""
        return [place for place, state in (self.copies or {}).items() if is_known(state)]


LaneKey = tuple[int, Capabilities, str, tuple[str, ...], Resources, int]


class Lane:
    """The waiting tasks of one client that have the same rank, need the same capabilities, limits and resources, have
    functions of one kind, and stand for gangs of one size or for none."""

    __slots__ = (
        "_order",
        "batches",
        "capabilities",
        "client",
        "debt_ns",
        "further_calls",
        "gang_size",
        "is_queued",
        "kind",
        "limits",
        "rank",
        "refused_at",
        "requeued",
        "resources",
        "ticket",
        "waiting",
    )

    def __init__(
        self,
        client: Client,
        rank: int,
        capabilities: Capabilities,
        kind: str,
        limits: tuple[str, ...],
        resources: Resources,
        gang_size: int,
    ) -> None:
        self.client = client
        self.limits = limits
        self.resources = resources
        self.gang_size = gang_size
        """The number of members of each gang. 0: its tasks are no gangs."""
        self.rank = rank
        self.capabilities = capabilities
        self.kind = kind
        self.batches = BatchQueue()
        self.requeued: dict[int, Task] = {}
        """Tasks by id that were returned by a worker or became ready. They go before the batches. Some may no longer
        wait."""
        self._order: list[int] = []
        """A heap of their ids. The ids of a graph ascend in an order that frees results early. PyPy compares numbers
        five times as fast as tuples that begin with numbers."""
        self.waiting = 0
        """The number of tasks that wait, in `batches` and `requeued`."""
        self.further_calls = 0
        """The calls that they stand for, beyond one a task."""
        self.debt_ns = 0
        """Run time in nanoseconds by which its turns were too long. Counted while other lanes of its rank wait."""
        self.is_queued = False
        """Whether the lane is in the dispatcher's queue."""
        self.ticket = 0
        """Its place among the lanes that wait for resources: lower ones go first. 0: it has found room last time."""
        self.refused_at = 0.0
        """When it got its ticket, in seconds of the monotonic clock."""

    def requeue(self, task: Task) -> None:
        """Add a task that goes before the batches."""
        if task.id not in self.requeued:
            heappush(self._order, task.id)
        self.requeued[task.id] = task

    @property
    def key(self) -> LaneKey:
        """The key in its client's table of lanes."""
        return self.rank, self.capabilities, self.kind, self.limits, self.resources, self.gang_size

    @property
    def next_options(self) -> Options:
        """The options of the next task. A task must wait."""
        return self.first_requeued.options if self.requeued else self.batches.first.options

    @property
    def next_may_end_worker(self) -> bool:
        """`Task.may_end_worker` of the next task. A task must wait."""
        if self.requeued:
            return self.first_requeued.may_end_worker
        batch = self.batches.first
        return may_end_worker(batch.options, batch.function_at(batch.next))

    @property
    def first_requeued(self) -> Task:
        """The requeued task with the lowest id. There must be one."""
        return self.requeued[self._order[0]]

    def clashes(self) -> bool:
        """Whether other tasks of the client have ids of the next gang's members. No client of ours submits such."""
        first = (self.first_requeued.id if self.requeued else self.batches.first.next_id) + 1
        last = first + self.gang_size - 2
        tasks, lanes = self.client.tasks, self.client.lanes.values()
        return any(each in tasks for each in range(first, last + 1)) or any(
            lane.batches.has_any(first, last) for lane in lanes
        )

    def pop_requeued(self) -> None:
        """Remove the requeued task with the lowest id."""
        del self.requeued[heappop(self._order)]
        self._skip_removed()

    def remove(self, task: Task) -> None:
        """Remove a requeued task, which goes to another lane. The heap may keep its id."""
        del self.requeued[task.id]
        self._skip_removed()

    def _skip_removed(self) -> None:
        while self._order and self._order[0] not in self.requeued:
            heappop(self._order)


def may_end_worker(options: Options, function: Function) -> bool:
    """Whether a worker's process may end because of such a task: it has a time limit, or its function has ended one."""
    return options.timeout_seconds > 0 or function.ends_workers > 0


def lane_key(options: Options, kind: str) -> LaneKey:
    """Return the key of the lane for tasks with these options and this kind of functions."""
    return options.rank, options.capabilities, kind, options.limits, options.resources, options.gang_size


PAUSE_SLOW_CONSUMER = 1
"""A reason to pause a client: too many bytes of results are on their way to it."""

PAUSE_RESTART_HOLD = 2
"""A reason to pause a client: some of its tasks may run on workers that have not joined again yet."""


class Client:
    """A client, from its first hello until it has left and no worker holds a task of it."""

    __slots__ = (
        "highest_counted_id",
        "deadline",
        "answered_tasks",
        "blocked",
        "functions",
        "further_calls",
        "granted_bytes",
        "object_bytes",
        "highest_id",
        "hosts_told_at",
        "incarnation",
        "host",
        "is_gone",
        "is_returning",
        "lanes",
        "name",
        "newest_attempt",
        "place",
        "objects",
        "outgoing",
        "parent_until",
        "dropped_output_bytes",
        "pause_reasons",
        "received_bytes",
        "rejected_functions",
        "resource_kinds",
        "result_window",
        "returned_bytes",
        "route",
        "sent_bytes",
        "share",
        "stale_attempt",
        "submitted_bytes",
        "suspended",
        "unwanted_files",
        "tasks",
        "unread",
        "user",
        "worker",
    )

    def __init__(
        self,
        incarnation: int,
        route: bytes,
        *,
        name: str,
        worker: int,
        deadline: float,
        share: Share,
        user: str = "",
        host: str = "",
    ) -> None:
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.host = host
        self.place: Agent | None = None
        """Stands for the client as the place of its files, as a host agent does for its host. None: it has none."""
        self.share = share
        """With which clients it shares the workers as one."""
        self.user = user
        """The user of its first hello. Empty if peers have no keys."""
        self.worker = worker
        """The incarnation of the worker that a nested client lives in. 0: it is not nested."""
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.functions: dict[int, Function] = {}
        """Its functions, by the client's own numbers."""
        self.rejected_functions: dict[int, str] = {}
        """Names of some functions that were not accepted, by the client's own numbers."""
        self.resource_kinds: set[Resources] = set()
        """The different resources that its open tasks ask for, and some that ended ones asked for."""
        self.tasks: dict[int, Task] = {}
        """Its tasks that have a record: tasks that a worker holds, tasks that wait for another attempt, and graph
        tasks."""
        self.lanes: dict[LaneKey, Lane] = {}
        """The lanes with waiting tasks."""
        self.objects: dict[int, StoredObject] = {}
        """Its objects, by id."""
        self.blocked: Chains[Task] = Chains()
        """The tasks that wait for each of its objects."""
        self.answered_tasks = 0
        """The number of its tasks that were answered. A row of several calls counts as its calls."""
        self.further_calls = 0
        """Calls of its open tasks, beyond one a task. Only rows that stand for several calls have such."""
        self.highest_id = -1
        self.is_returning = False
        """Whether another scheduler has welcomed it before. Hosts may have results of tasks of that time."""
        self.newest_attempt = 0
        """The highest attempt number of any of its tasks, from this scheduler or from a worker's hello."""
        self.stale_attempt = 0
        """Attempts up to this number may belong to earlier submissions of tasks. New dispatches get higher numbers, so
        late messages about earlier attempts are ignored."""
        self.is_gone = False
        """It has left. The record stays while a worker holds a task of it."""
        self.hosts_told_at = float("-inf")
        """When it was last told about the hosts."""
        self.outgoing: Resolved | None = None
        self.dropped_output_bytes = 0
        """Bytes of its tasks' output that were dropped and not reported to it yet."""
        self.granted_bytes = 0
        """The last credit that it got: bytes that it may submit since its welcome, in total."""
        self.submitted_bytes = 0
        """Bytes that it has submitted since its welcome and that were accepted."""
        self.returned_bytes = 0
        """Bytes of tasks that have ended since its welcome, and of objects that are no longer needed."""
        self.highest_counted_id = -1
        """The highest id of a task submitted since its welcome. `submitted_bytes` counts tasks up to this id."""
        self.object_bytes = 0
        """Bytes of the objects that it sent and that are kept."""
        self.sent_bytes = 0
        """Bytes of results and output that were sent to it since its welcome."""
        self.received_bytes = 0
        """How many of these bytes it has acknowledged."""
        self.result_window = 0
        """Bytes that may be on their way to it. 0: no limit."""
        self.pause_reasons = 0
        """Why none of its tasks is dispatched: PAUSE_SLOW_CONSUMER, PAUSE_RESTART_HOLD or both. 0: no reason."""
        self.suspended: set[tuple[int, int, int]] = set()
        """Suspended tasks of a nested client's worker, by client, id and attempt. They wait for this client's tasks."""
        self.unread = UnreadAnswers()
        """The answers that were sent to it and that it has not acknowledged."""
        self.parent_until = 0.0
        """Until when a nested client with a worker's key may submit if its worker holds no task."""

    def place_at(self, data: DataAddress | None) -> Agent:
        """Return the place of its files.

        Args:
            data: where agents of other hosts get them; None: nowhere.
        """
        if self.place is None:
            self.place = Agent(self.incarnation, self.route, name=self.name, host=self.host, deadline=float("inf"))
            self.place.is_client = True
        self.place.set_data(data)
        return self.place

    @property
    def waiting(self) -> int:
        """The number of its waiting tasks."""
        return sum(lane.waiting for lane in self.lanes.values())

    @property
    def waiting_calls(self) -> int:
        """The number of calls that its waiting tasks stand for."""
        return sum(lane.waiting + lane.further_calls for lane in self.lanes.values())

    def add_resource_kind(self, resources: Resources, most: int) -> bool:
        """Note that it submits tasks with these resources. Returns False if its open tasks have so many kinds
        already."""
        kinds = self.resource_kinds
        if resources not in kinds and len(kinds) >= most:
            kinds.clear()
            kinds.update(lane.resources for lane in self.lanes.values())
            kinds.update(task.options.resources for task in self.tasks.values())
            kinds.discard(())
            if len(kinds) >= most:
                return False
        kinds.add(resources)
        return True

    def next_attempt(self, last: int) -> int:
        """Return the number of a task's next dispatch. `last` is the number of its last one."""
        attempt = max(last, self.stale_attempt) + 1
        if attempt > self.newest_attempt:
            self.newest_attempt = attempt
        return attempt

    def skip_attempts(self, attempt: int) -> None:
        """Give later dispatches higher numbers than this attempt, which does not count but may still run on a
        worker."""
        self.stale_attempt = max(self.stale_attempt, attempt)
        self.newest_attempt = max(self.newest_attempt, attempt)

    def lane_of(self, task: Task) -> Lane:
        """Return the lane for this task of the client. It is made if it does not exist."""
        return self.lane(task.options, task.function.kind)

    def lane(self, options: Options, kind: str) -> Lane:
        """Return the lane for these options and this kind of functions. It is made if it does not exist."""
        key = lane_key(options, kind)
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(self, *key)
        return lane


WorkerProfile = tuple[Capabilities, Kinds, str]
"""What a worker can run: capabilities, kinds and environment. Workers with equal profiles can run the same tasks."""


class Worker:
    """A worker, from its hello on one connection until that connection is lost."""

    __slots__ = (
        "agent",
        "agent_until",
        "started_at",
        "payload_bytes",
        "capabilities",
        "deadline",
        "done_tasks",
        "environment",
        "functions",
        "heard_at",
        "host",
        "incarnation",
        "hides_suspended",
        "holder_since",
        "is_changing",
        "is_holder",
        "is_shared",
        "is_unreachable",
        "kept_functions",
        "is_ready",
        "is_retiring",
        "kinds",
        "language",
        "load_ns",
        "name",
        "objects",
        "outgoing",
        "pid",
        "plain_kinds",
        "profile",
        "quiet_checks",
        "route",
        "running",
        "message_count",
        "checked_message_count",
        "sent_tasks",
        "silent_checks",
        "suspended",
        "unwanted_files",
        "takes_followers",
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
        *,
        name: str,
        host: str,
        pid: int,
        capabilities: Capabilities,
        kinds: Kinds,
        deadline: float,
        user: str = "",
        takes_followers: bool = False,
        environment: str = "",
    ) -> None:
        self.incarnation = incarnation
        self.agent = agent
        self.unwanted_files: list[tuple[int, int]] = []
        """Names of files that do not count, which its agent is told to remove when it joins."""
        self.agent_until = 0.0
        """Until when its host agent is expected to join, in seconds of the monotonic clock. 0: the agent has joined, or
        it has none."""
        self.route = route
        self.name = name
        self.host = host
        self.pid = pid
        self.capabilities = dict(capabilities)
        self.user = user
        self.environment = environment
        """The name of its environment. Empty: it has none."""
        self.plain_kinds = kinds
        """The kinds of functions that it can run, without its environment."""
        self.kinds = kinds = kinds_in(environment, kinds)
        self.is_changing = False
        """Whether it gets no new tasks because a worker of another environment is to take its place."""
        self.is_holder = False
        """Whether it gets no tasks because its slot has passed to a successor (`core/peers/successors.py`)."""
        self.holder_since = 0.0
        """Since when it has no task as a holder, in seconds of the monotonic clock. 0: not known, or it has some."""
        self.is_shared = False
        """Whether no successor could start: all tasks run in its process."""
        self.hides_suspended = False
        """Whether it has given a task back because of suspended tasks that its nested client has not reported."""
        self.profile: WorkerProfile = (capabilities, kinds, environment)
        self.takes_followers = takes_followers
        """Whether it takes rows that read results of rows before them in the same Dispatch."""
        self.deadline = deadline
        """When its lease runs out, in seconds of the monotonic clock."""
        self.tasks: dict[int, Task] = {}
        """The tasks that it holds, by serial number."""
        self.running = 0
        """How many of these are known to run."""
        self.started_at: dict[Task, float] = {}
        """The tasks that are known to have begun, with suspended ones, and when they began."""
        self.suspended = 0
        """How many tasks are suspended."""
        self.unclaimed = 0
        """Running tasks that no client has submitted since it joined again."""
        self.heard_at = 0.0
        """When it answered last, or got tasks after it had none, in seconds of the monotonic clock."""
        self.message_count = 0
        """The number of messages from it."""
        self.checked_message_count = 0
        """`message_count` at the last check. `silent_checks` counts checks in a row without an answer to a Retract."""
        self.silent_checks = 0
        self.quiet_checks = 0
        """Checks in a row without any message."""
        self.load_ns = 0
        """Nanoseconds of work that it holds, by the functions' mean run times at dispatch. Suspended tasks count 0."""
        self.payload_bytes = 0
        """Payload bytes of the tasks that it holds."""
        self.functions: set[Function] = set()
        """Functions that were sent to it and that it has not been told to forget."""
        self.kept_functions: set[Function] = set()
        """Those of which it knows that other tasks may read their results."""
        self.objects: set[StoredObject] = set()
        """Objects that were sent to it or that its tasks read as files, and that it has not been told to forget."""
        self.is_ready = False
        """Whether it is in one of the dispatcher's lists."""
        self.is_retiring = False
        """Whether it gets no new tasks because its agent is about to end."""
        self.is_unreachable = False
        """Whether its connection is known to be lost. It gets no messages until it joins again, and its agent's
        heartbeats do not renew its lease."""
        self.outgoing: Dispatch | None = None
        self.sent_tasks = 0
        """The number of tasks that were sent to it since it joined."""
        self.done_tasks = 0
        """The number of its results that a task waited for."""
        self.language = ""
        self.version = ""
        self.usage = (0, 0)
        """Resident bytes, and milliseconds of processor time, from its agent's last heartbeat."""

    @property
    def task_count(self) -> int:
        """How many tasks it holds or runs. Suspended tasks do not count: their slots are free."""
        return len(self.tasks) - self.suspended + self.unclaimed

    @property
    def has_parents(self) -> bool:
        """Whether it has suspended tasks, which end with its process."""
        return self.suspended > 0 or self.hides_suspended

    @property
    def newest_task(self) -> Task:
        """The task that it got last. It must hold one."""
        return next(reversed(self.tasks.values()))

    @property
    def present_client(self) -> Client | None:
        """The client whose task it runs now. None: it holds no task, or only suspended ones."""
        for task in self.tasks.values():
            if task.state != SUSPENDED:
                return task.client
        return None

    @property
    def parent_client(self) -> Client | None:
        """The client for whose task a nested client submits: that of the task that runs, or of a suspended one. None:
        no connected client has submitted one of its tasks, itself or by other tasks."""
        found = None
        for task in self.tasks.values():
            if not task.client.is_gone and task.client.share.owner_count:
                if task.state != SUSPENDED:
                    return task.client
                found = found or task.client
        return found

    def can_serve(self, capabilities: Capabilities, kind: str) -> bool:
        """Whether it can run functions of this kind and has these capabilities."""
        if kind not in self.kinds and (self.kinds or split_kind(kind)[1] != self.environment):
            return False
        own = self.capabilities
        return not capabilities or all(own.get(name, 0) >= amount for name, amount in capabilities)

    def hold(self, task: Task) -> None:
        """Add a task, which is dispatched or runs."""
        task.worker = self
        self.tasks[task.serial] = task
        self.load_ns += task.cost
        self.payload_bytes += task.size
        share = task.client.share
        share.held += 1
        share.held_ns += task.cost
        if task.state == RUNNING:
            self.running += 1

    def release(self, task: Task) -> None:
        """Remove a task, before the task takes its next transition."""
        task.worker = None
        del self.tasks[task.serial]
        self.payload_bytes -= task.size
        if self.started_at:
            self.started_at.pop(task, None)
        if task.state == SUSPENDED:
            self.suspended -= 1
            return
        self.load_ns -= task.cost
        share = task.client.share
        share.held -= 1
        share.held_ns -= task.cost
        if task.state == RUNNING:
            self.running -= 1


class AgentEnvironment:
    """An environment at a host agent."""

    __slots__ = ("error", "is_ready", "retry_at")

    def __init__(self) -> None:
        self.is_ready = False
        """Whether workers of it can start there."""
        self.error = ""
        """Why the agent could not prepare it."""
        self.retry_at = 0.0
        """When the agent may be asked again after an error, in seconds of the monotonic clock."""


class Agent:
    """A host agent. Such a record also stands for a client as the place of its files: see `Client.place`."""

    __slots__ = (
        "awaited",
        "clock_ms",
        "copies",
        "data",
        "deadline",
        "dead_workers",
        "environments",
        "evacuated",
        "last_heartbeat_at",
        "host",
        "incarnation",
        "is_client",
        "is_retiring",
        "lag_us",
        "language",
        "level",
        "name",
        "objects",
        "packages",
        "pid",
        "placed",
        "platform",
        "pools",
        "received_bytes",
        "room",
        "route",
        "sent_bytes",
        "slots",
        "ticket",
        "usage",
        "user",
        "values",
        "version",
    )

    def __init__(
        self, incarnation: int, route: bytes, *, name: str, host: str, deadline: float, user: str = ""
    ) -> None:
        self.incarnation = incarnation
        self.route = route
        self.name = name
        self.host = host
        self.deadline = deadline
        self.user = user
        self.is_client = False
        """Whether this is the place of a client's files. It gets no files and has no workers."""
        self.objects: set[StoredObject] = set()
        """Objects that it has for all workers of its host, sent by the scheduler or written by a worker."""
        self.copies: dict[StoredObject, int] = {}
        """Those of them that no worker of its host has made, and that another host, a client or the scheduler has too,
        with their sizes. The oldest is first."""
        self.placed: dict[Task, None] = {}
        """Tasks that wait, or have waited, for inputs on their way to its host. Some have ended or run elsewhere."""
        self.awaited: set[tuple[int, int]] = set()
        """Tasks that its last `started` named and no worker held, as (client, id): their workers have not joined."""
        self.dead_workers: deque[int] = deque(maxlen=_GONE_WORKERS)
        """Workers whose death was reported before their hello came. Messages of two connections have no common
        order."""
        self.slots = 0
        """The number of workers that it keeps, without holders. 0: not known."""
        self.level = 0
        """The highest level of the environments that it prepares."""
        self.platform = ""
        self.environments: dict[str, AgentEnvironment] = {}
        """The environments that it was asked to prepare, by name."""
        self.data: DataAddress | None = None
        """Where other agents get its object files. None: nowhere."""
        self.ticket = ""
        """The ticket of this address, if the scheduler has made it. Empty: the peer has made it."""
        self.pid = 0
        self.language = ""
        self.version = ""
        self.packages = ""
        """The packages that its interpreter has, a line for each. Empty: not known."""
        self.clock_ms = 0
        """The time of its host's clock at its last heartbeat, in milliseconds of Unix time. 0: not known."""
        self.usage = (0, 0)
        """Resident bytes, and milliseconds of processor time, of the agent's own process, from its last heartbeat."""
        self.lag_us = 0
        """The round trip of a heartbeat and its echo, as the agent measured it. 0: not measured yet."""
        self.values = (0, 0, 0)
        """The bytes of its host's objects and large results in memory, on disk, and moved between them."""
        self.room = HostRoom()
        self.received_bytes = self.sent_bytes = 0
        """The bytes of the files that came from other hosts and clients, and that went to other hosts."""
        self.pools: Sequence[PoolState] = ()
        """The pools of an autoscaler, which is an agent without workers. Empty: it is a host's agent."""
        self.last_heartbeat_at = 0.0
        """When its last heartbeat came, or its hello if there was none, in seconds of the monotonic clock."""
        self.is_retiring = False
        """Whether it is about to end. Its workers get no new tasks."""
        self.evacuated: set[StoredObject] = set()
        """Objects that were requested from it because it retires. Some may have arrived or may be dropped."""

    def gone_worker(self, incarnation: int, pid: int) -> Worker:
        """Return a record of a worker of its host that has died before it could join."""
        none: frozenset[Any] = frozenset()
        return Worker(
            incarnation, self.incarnation, b"", name=self.name, host=self.host, pid=pid, capabilities=none, kinds=none,
            deadline=0.0,
        )  # fmt: skip

    def set_data(self, data: DataAddress | None) -> None:
        """Note where other agents get its object files, as it says. A ticket that the scheduler has made stays."""
        if data is not None and self.ticket:
            data = DataAddress(data.address, data.key, self.ticket)
        self.data = data

    def set_ticket(self, ticket: str) -> None:
        """Replace the ticket of its data address. Agents that know the old one get no more files."""
        self.ticket = ticket
        self.set_data(self.data)

    def note_values(self, values: tuple[int, int, int], limits: tuple[int, int]) -> None:
        """Note what a heartbeat says of its host's values.

        Args:
            values: their bytes in memory, on disk, and moved between them.
            limits: the bytes that they may take in memory and on disk. If the first is 0, neither is known.
        """
        self.values = values
        self.room.heard(values[:2], limits)
