"""What a scheduler publishes: snapshots, the history of tasks, the nodes of graphs. The schema describes the fields.

Tables are stored by column. Row i of every column is about the same worker, agent and so on; all columns of a table
have the same length.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from .record import Record


class WorkerState(enum.IntFlag):
    """The bits of a worker's state."""

    AGENT_CONNECTED = 1
    HOLDS_TASK = 2
    RUNS_LONG = 4
    DOES_NOT_ANSWER = 8
    RETIRING = 16


class ObjectState(enum.IntEnum):
    """The place of an object. The JSON of scaler_top prints these names in lower case."""

    PENDING = 0
    IN_MEMORY = 1
    ON_HOST = 2


class HistoryKind(enum.IntEnum):
    """What happened to a task."""

    SUBMITTED = 0
    DISPATCHED = 1
    STARTED = 2
    ENDED = 3
    RETURNED = 4
    REATTACHED = 5


@dataclass(eq=False, repr=False)
class History(Record):
    """What happened to tasks, in columns of full length.

    `first` is the number of the first row since the scheduler's start. `times` are microseconds of the scheduler's
    uptime, `durations` nanoseconds. `workers` are 0 for events without a worker. `names` are the tasks' own names, or
    else those of their `functions`. `errors` have one line for each failure, and empty texts for other events. Only the
    answer about a single task has `tracebacks`, for its failed attempts, and in its last row `wait_reasons`: lines that
    say why it waits, or where it runs.
    """

    incarnation: int
    first: int
    kinds: list[int]
    times: list[int]
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    workers: list[int]
    names: list[str]
    outcomes: list[int]
    durations: list[int]
    errors: list[str]
    functions: list[str]
    tracebacks: list[str]
    wait_reasons: list[str]


class GraphState(enum.IntEnum):
    """The state of a graph's node. The result of a `DONE` node is there, for its readers or because it is kept."""

    BLOCKED = 0
    WAITING = 1
    RUNNING = 2
    DONE = 3
    FAILED = 4


@dataclass(eq=False, repr=False)
class Graphs(Record):
    """Nodes of graphs that are open or have ended lately, in columns of equal length.

    `inputs[i]` are the ids that row i reads: nodes, or objects that the same client has sent. `graphs` are the client's
    numbers of the graphs that rows belong to, 0 for none, and `keys` name these graphs. `submit_milliseconds` is the
    scheduler's uptime when a row was submitted. `names` are the tasks' own names, or else those of their functions.
    `total` counts all nodes, with a row or without.
    """

    incarnation: int
    total: int
    clients: list[int]
    ids: list[int]
    names: list[str]
    states: list[int]
    inputs: list[list[int]]
    graphs: list[int]
    keys: list[str]
    submit_milliseconds: list[int]


@dataclass(eq=False, repr=False)
class SchedulerProcess(Record):
    """The scheduler's process. `loop_durations[k]` turns of its loop took less than 2^k microseconds and at least
    2^(k - 1).
    """

    interpreter: str = ""
    host: str = ""
    pid: int = 0
    resident_bytes: int = 0
    cpu_milliseconds: int = 0
    loop_turns: int = 0
    loop_microseconds: int = 0
    loop_durations: list[int] = field(default_factory=list)
    monitor_microseconds: int = 0


@dataclass(eq=False, repr=False)
class WorkerColumns(Record):
    """The workers. `clients`, `ids`, `attempts` and `tasks` (names) are the task that each is known to run.

    Attempt 0: it is not known to run a task.
    """

    incarnations: list[int] = field(default_factory=list)
    agents: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    capabilities: list[str] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    resident_bytes: list[int] = field(default_factory=list)
    cpu_milliseconds: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    suspended: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    clients: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    run_milliseconds: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    environments: list[str] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class AgentColumns(Record):
    """The host agents."""

    incarnations: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    resident_bytes: list[int] = field(default_factory=list)
    cpu_milliseconds: list[int] = field(default_factory=list)
    lag_microseconds: list[int] = field(default_factory=list)
    last_heartbeat_milliseconds: list[int] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)
    disk_bytes: list[int] = field(default_factory=list)
    moved_bytes: list[int] = field(default_factory=list)
    received_bytes: list[int] = field(default_factory=list)
    sent_bytes: list[int] = field(default_factory=list)
    coming_bytes: list[int] = field(default_factory=list)
    room_bytes: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class ClientColumns(Record):
    """The clients."""

    incarnations: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    not_waiting: list[int] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)
    object_bytes: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    shares: list[str] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class FunctionColumns(Record):
    """The functions."""

    numbers: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    run_nanoseconds: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    clients: list[int] = field(default_factory=list)
    task_names: list[str] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class ObjectColumns(Record):
    """The objects."""

    clients: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class Share(Record):
    """The clients of one key, or without keys of one user and host, which share the workers as one."""

    name: str
    """The name of the key, or user@host."""
    weight: float
    """Its part of the time, relative to others."""
    clients: int
    waiting: int
    running: int
    """Tasks that workers hold, without suspended ones."""
    used_seconds: float
    """The run time of its ended attempts."""
    max_running: int
    """0: no limit. The same for `max_waiting`."""
    max_waiting: int


@dataclass(eq=False, repr=False)
class TaskLimit(Record):
    """A limit of the scheduler's configuration, and the tasks that need it."""

    name: str
    most: int
    """Tasks that may run at once; 0: any number."""
    per_second: float
    """Tasks that may begin in a second; 0: any number."""
    running: int
    waiting: int


@dataclass(eq=False, repr=False)
class HostPool(Record):
    """A counted resource of a host, in thousandths of a unit. `cpus` are its workers."""

    host: str
    name: str
    total: int
    booked: int
    reserved: int
    """What is kept for a task that waits."""
    free: int
    agent: int = 0
    """The incarnation of the host's agent: several may run on one host."""


@dataclass(eq=False, repr=False)
class PoolState(Record):
    """The hosts of one pool of an autoscaler. `failed`, `late` and `left` count hosts since its start."""

    name: str
    wanted: int
    booting: int
    there: int
    draining: int
    failed: int = 0
    late: int = 0
    left: int = 0
    is_resting: bool = False
    """Whether no host is requested for now, because too many failed."""
    problem: str = ""
    """Why calls of the pool's provider, or its hosts, fail; empty: they do not."""
    problem_seconds: int = 0
    """For how long they have failed."""


@dataclass(eq=False, repr=False)
class Need(Record):
    """Tasks with the same requirements that more workers could begin."""

    capabilities: str
    """As in the table of workers: `gpu=2 linux=1`."""
    kind: str
    """Of their functions: which workers can run them."""
    limits: list[str]
    """The names of the limits that they need."""
    waiting: int
    """How many tasks wait, or are queued at a worker behind a task that runs for long."""
    unknown: int
    """Of `waiting`: tasks whose function has not returned yet."""
    known_seconds: float
    """The mean run times of the functions of all others, summed up, with the time that calls run already."""
    resources: dict[str, int] = field(default_factory=dict)
    """Counted resources of its host that each task needs, in thousandths by name."""
    held: int = 0
    """Of `waiting`: tasks beyond the `max_running` of their shares."""


@dataclass(eq=False, repr=False)
class Snapshot(Record):
    """The state of a scheduler at one time.

    `deaths` counts dead workers by cause ("signal 9", "exit 1", "memory limit", "lease"). `death_times` and
    `dropped_times` are the Unix times in seconds of the last death and the last dropped message by cause and reason; a
    name is missing if its time is unknown. `retries` counts dispatches after a failed attempt. `dispatch_latencies[k]`
    tasks were dispatched less than 2^k microseconds and at least 2^(k - 1) after they could be;
    `dispatch_latency_microseconds` is the sum. `waiting_bytes` is the payload of open tasks in the scheduler's memory,
    `object_bytes` the size of objects there. `unschedulable` of the waiting tasks can run on no connected worker.
    `unreachable_hosts` has pairs of hosts, "node-8 from node-7": the second cannot connect to the first. `shares` has
    those with the most open tasks, `needs` those with the most waiting tasks. `pools` are those of autoscalers.
    """

    version: str
    incarnation: int
    uptime_seconds: float
    address: str
    waiting: int
    dispatched: int
    resolved: int
    clients: int
    workers: int
    agents: int
    received: dict[str, int]
    sent: dict[str, int]
    dropped: dict[str, int]
    sequence: int = 0
    unix_seconds: float = 0.0
    blocked: int = 0
    running: int = 0
    suspended: int = 0
    outcomes: list[int] = field(default_factory=list)
    functions: int = 0
    objects: int = 0
    process: SchedulerProcess = field(default_factory=SchedulerProcess)
    worker_columns: WorkerColumns = field(default_factory=WorkerColumns)
    agent_columns: AgentColumns = field(default_factory=AgentColumns)
    client_columns: ClientColumns = field(default_factory=ClientColumns)
    function_columns: FunctionColumns = field(default_factory=FunctionColumns)
    object_columns: ObjectColumns = field(default_factory=ObjectColumns)
    deaths: dict[str, int] = field(default_factory=dict)
    death_times: dict[str, float] = field(default_factory=dict)
    dropped_times: dict[str, float] = field(default_factory=dict)
    retries: int = 0
    dispatch_latencies: list[int] = field(default_factory=list)
    dispatch_latency_microseconds: int = 0
    waiting_bytes: int = 0
    object_bytes: int = 0
    memory_limit_bytes: int = 0
    unschedulable: int = 0
    unreachable_hosts: dict[str, int] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    limits: list[TaskLimit] = field(default_factory=list)
    resources: list[HostPool] = field(default_factory=list)
    resources_waiting: int = 0
    """Tasks that wait for a worker and ask for resources."""
    reservation_seconds: float = 0.0
    """For how long the oldest reservation has waited."""
    needs: list[Need] = field(default_factory=list)
    pools: list[PoolState] = field(default_factory=list)

    def left_out(self) -> dict[str, int]:
        """Return, for each table, the number of rows beyond the limit up to which the scheduler publishes rows."""
        return {
            "workers": self.workers - len(self.worker_columns.incarnations),
            "agents": self.agents - len(self.agent_columns.incarnations),
            "clients": self.clients - len(self.client_columns.incarnations),
            "functions": self.functions - len(self.function_columns.numbers),
            "objects": self.objects - len(self.object_columns.ids),
        }
