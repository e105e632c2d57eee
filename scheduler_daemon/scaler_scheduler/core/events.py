"""The input of the core: one class for each message that a peer may send, named as in the schema.

`kind` is the message's ordinal in the schema, so that one list look-up finds the handler. Columns are `array.array`s of
full length. `route` is the connection on which the message came. Every field is always set, because PyPy's JIT then
compiles only one shape. All classes are in one module, so that a reader finds each by its message's name.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scaler_scheduler.core.ids import DataAddress

HELLO = 0
GOODBYE = 4
HEARTBEAT = 5
FUNCTION = 7
FORGET_FUNCTIONS = 8
SUBMIT = 9
RESULTS = 11
STARTED = 13
CANCEL = 14
WORKER_DIED = 16
RETRACTED = 20
SUSPENDED = 22
RESUMED = 23
RECEIVED = 26
OBJECT = 27
FORGET_OBJECTS = 28
SHUTDOWN = 29
OUTPUT = 30
FETCH_OBJECTS = 31
TRANSFERRED = 36
OBJECTS = 40
ENVIRONMENT = 41
CONTENTS_WANTED = 42
CONTENTS = 43
ENVIRONMENT_READY = 44
EXCHANGE = 47
HELD_RESULTS = 48
KINDS = 49

KEEP_NO = 0
KEEP_YES = 1
KEEP_BOTH = 2

CLIENT = 0
WORKER = 1
AGENT = 2
LEVEL_MODULES = 1
"""The level of an environment that has modules alone: it has the Python of the host agent."""
LEVEL_LOCKED = 2
"""That of one with packages that run no code when they are installed."""
LEVEL_ANY = 3

ROLE_NAMES = ("client", "worker", "agent")


class Event:
    """The base of all events."""

    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


Capabilities = frozenset[tuple[str, int]]
"""Names with amounts: what a worker has, or what a task needs."""

Resources = tuple[tuple[str, int], ...]
"""Names and thousandths, sorted by name: the counted resources that a task asks for. `cpus` are workers of a host."""

CPUS = "cpus"
"""The resource that stands for workers of a host."""

UNIT = 1000
"""The thousandths of one unit."""

MAX_UNITS = 1024
"""The most units of a resource with identities."""

MAX_AMOUNT = 1 << 62
"""Amounts are lower: sums of some must fit into the protocol's numbers."""

HostResources = Sequence[tuple[str, int, bool]]
"""What a host has: names, thousandths, and whether the units have the ids 0 to n - 1."""

Claim = tuple[int, tuple[tuple[str, int, tuple[int, ...]], ...]]
"""A booking as a worker names it: its number; and names, thousandths and ids of units."""

Kinds = frozenset[str]
"""The kinds of functions that a worker can run. Empty: it can run all."""


class Options:
    """The options of a Submit, which hold for every row.

    `depth` is 0 for tasks of applications; a task that another task has submitted has its parent's depth + 1. `retries`
    -1: the scheduler's default. `timeout_seconds` 0: no limit. `graph` 0: the rows belong to no graph. `keys` are the
    wanted keys of the graph, for people. `calls` is the number of calls that each row stands for; 0: the row is a
    single call, whose payload and answer have the plain form. `limits` are names of limits, sorted.
    `resources` are counted resources of the host. `release_resources`: a task gives them back for good when it first
    waits for its own tasks.
    `gang_size` is the number of members of the gang that each row stands for; 0: none.
    """

    __slots__ = (
        "calls",
        "capabilities",
        "depth",
        "gang_size",
        "graph",
        "keys",
        "limits",
        "name",
        "priority",
        "profiling",
        "rank",
        "release_resources",
        "resources",
        "retries",
        "stream_output",
        "timeout_seconds",
        "weight",
    )

    def __init__(
        self,
        priority: int = 0,
        depth: int = 0,
        retries: int = -1,
        timeout_seconds: float = 0.0,
        profiling: bool = False,
        name: str = "",
        capabilities: Capabilities = frozenset(),
        stream_output: bool = False,
        graph: int = 0,
        keys: str = "",
        calls: int = 0,
        limits: "tuple[str, ...]" = (),
        resources: Resources = (),
        release_resources: bool = False,
        gang_size: int = 0,
    ) -> None:
        self.limits = limits
        self.resources = resources
        self.release_resources = release_resources
        self.gang_size = gang_size
        self.priority = priority
        self.depth = depth
        self.retries = retries
        self.timeout_seconds = timeout_seconds
        self.profiling = profiling
        self.name = name
        self.capabilities = capabilities
        self.stream_output = stream_output
        self.graph = graph
        self.keys = keys
        self.calls = calls
        self.weight = max(1, calls)
        """How many calls a row counts as."""
        self.rank = (priority << 32) + depth
        """The order of tasks: a higher number goes first. Priority decides, then depth."""

    def with_priority(self, priority: int) -> "Options":
        """Return the same options with another priority."""
        raised = Options()
        for name in Options.__slots__:
            setattr(raised, name, getattr(self, name))
        raised.priority, raised.rank = priority, (priority << 32) + self.depth
        return raised


DEFAULT_OPTIONS = Options()

_NOTHING: "array[int]" = array("q")
"""A column that is absent."""


class Hello(Event):
    """A peer joins.

    `worker` is for a nested client: the incarnation of the worker that it lives in; otherwise 0. `running` names the
    tasks that a worker runs or has suspended, by client, id and attempt. `scheduler` is the incarnation of the
    scheduler that welcomed this peer last, or 0. `data` is for an agent: where other agents get its object files.
    `takes_followers`: this worker takes rows that read results of rows before them in the same Dispatch. `account` is
    for a client: the user on its host, as it says. `packages` is for an agent: the packages that its interpreter has, a
    line for each. `resources` and `slots` are for an agent: what its host has, and the number of its workers.
    `bookings` are for a worker: the resources of the tasks that it names in `running`. `environment` is for a worker,
    `environments` (the highest level that it prepares) and `platform` are for an agent. The last `finished` tasks in
    `running` have ended.
    """

    __slots__ = (
        "account",
        "agent",
        "bookings",
        "capabilities",
        "data",
        "environment",
        "environments",
        "finished",
        "host",
        "incarnation",
        "kinds",
        "language",
        "name",
        "packages",
        "pid",
        "platform",
        "protocol_version",
        "resources",
        "role",
        "running",
        "scheduler",
        "slots",
        "takes_followers",
        "user",
        "version",
        "worker",
    )
    kind = HELLO

    def __init__(
        self,
        route: bytes,
        protocol_version: int,
        role: int,
        incarnation: int,
        agent: int,
        language: str,
        version: str,
        host: str,
        pid: int,
        name: str,
        worker: int = 0,
        capabilities: Capabilities = frozenset(),
        running: Sequence[tuple[int, int, int]] = (),
        kinds: Kinds = frozenset(),
        scheduler: int = 0,
        data: "DataAddress | None" = None,
        takes_followers: bool = False,
        account: str = "",
        packages: str = "",
        resources: HostResources = (),
        slots: int = 0,
        bookings: "Mapping[tuple[int, int, int], Claim] | None" = None,
        environment: str = "",
        environments: int = 0,
        platform: str = "",
        finished: int = 0,
    ) -> None:
        self.finished = finished
        self.environment = environment
        self.environments = environments
        self.platform = platform
        self.route = route
        self.account = account
        self.resources = resources
        self.slots = slots
        self.bookings = bookings or {}
        self.protocol_version = protocol_version
        self.role = role
        self.incarnation = incarnation
        self.agent = agent
        self.language = language
        self.version = version
        self.host = host
        self.pid = pid
        self.name = name
        self.worker = worker
        self.capabilities = capabilities
        self.running = running
        self.kinds = kinds
        self.data = data
        self.scheduler = scheduler
        self.takes_followers = takes_followers
        self.packages = packages
        self.user = ""
        """The authenticated user of this connection, `role:key`, which the peer cannot choose. Empty if peers have no
        keys."""


class Goodbye(Event):
    """A peer leaves."""

    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class PoolState(NamedTuple):
    """The hosts of one pool of an autoscaler, as it reports them."""

    name: str
    wanted: int
    booting: int
    there: int
    draining: int
    failed: int
    late: int
    left: int
    is_resting: bool
    problem: str = ""
    problem_seconds: int = 0


class Heartbeat(Event):
    """A peer is alive.

    `workers` are the workers whose leases a host agent renews in addition to its own. `usage` has the sender's resident
    bytes and milliseconds of processor time, and `usages` those of each of these workers. `is_retiring`: the agent is
    about to end; its workers finish running tasks and get no new ones. `values` has the bytes of the agent's host in
    memory, on disk, and moved between them; `limits` what they may take in memory and on disk, where 0 in memory means
    not known. `clock_ms` is the time of this host's clock, in milliseconds of Unix time;
    0: not known. `wants_hosts`: a client wants to be told about the hosts. `pools` are those of an autoscaler.
    """

    __slots__ = (
        "clock_ms",
        "is_retiring",
        "lag_microseconds",
        "limits",
        "pools",
        "sequence",
        "usage",
        "usages",
        "values",
        "wants_hosts",
        "workers",
    )
    kind = HEARTBEAT

    def __init__(
        self,
        route: bytes,
        sequence: int,
        workers: list[int],
        usage: tuple[int, int] = (0, 0),
        lag_microseconds: int = 0,
        usages: Sequence[tuple[int, int]] = (),
        is_retiring: bool = False,
        values: tuple[int, int, int] = (0, 0, 0),
        clock_ms: int = 0,
        wants_hosts: bool = False,
        pools: Sequence[PoolState] = (),
        limits: tuple[int, int] = (0, 0),
    ) -> None:
        self.route = route
        self.sequence = sequence
        self.workers = workers
        self.pools = pools
        self.limits = limits
        self.usage = usage
        self.lag_microseconds = lag_microseconds
        self.usages = usages
        self.is_retiring = is_retiring
        self.values = values
        self.clock_ms = clock_ms
        self.wants_hosts = wants_hosts


class Function(Event):
    """A client's function. The client chooses `number`; `digest` identifies kind, environment and bytes."""

    __slots__ = ("digest", "environment", "function_kind", "name", "number", "payload")
    kind = FUNCTION

    def __init__(
        self,
        route: bytes,
        number: int,
        name: str,
        function_kind: str,
        digest: bytes,
        payload: bytes,
        environment: str = "",
    ) -> None:
        self.environment = environment
        self.route = route
        self.number = number
        self.name = name
        self.function_kind = function_kind
        self.digest = digest
        self.payload = payload


class ForgetFunctions(Event):
    """Functions that a client no longer uses, by its own numbers."""

    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: "array[int]") -> None:
        self.route = route
        self.numbers = numbers


class Submit(Event):
    """New tasks. `functions` has one element for all rows, or one a row. `large` maps a row to its payload.
    `keep_earlier` are ids of earlier tasks whose results new tasks are going to read."""

    __slots__ = (
        "functions",
        "ids",
        "input_counts",
        "inputs",
        "keep",
        "keep_earlier",
        "large",
        "options",
        "payload",
        "sizes",
    )
    kind = SUBMIT

    def __init__(
        self,
        route: bytes,
        ids: "array[int]",
        functions: "array[int]",
        sizes: "array[int]",
        payload: bytes,
        large: dict[int, bytes],
        options: Options = DEFAULT_OPTIONS,
        inputs: "array[int]" = _NOTHING,
        input_counts: "array[int]" = _NOTHING,
        keep: "array[int]" = _NOTHING,
        keep_earlier: "array[int]" = _NOTHING,
    ) -> None:
        self.route = route
        self.ids = ids
        self.functions = functions
        self.sizes = sizes
        self.payload = payload
        self.large = large
        self.options = options
        self.inputs = inputs
        self.input_counts = input_counts
        self.keep = keep
        self.keep_earlier = keep_earlier


class Results(Event):
    """A worker's results.

    `durations` and `cpu_times` are in nanoseconds, `peaks` in bytes. `cpu_times` and `peaks` are empty when no row is
    profiled; `errors` is empty when no row has an error line. `tracebacks` has UTF-8 text for each row, or is empty.
    `calls` is the number of calls that have ended in each row, or is empty when every row is a single call.
    """

    __slots__ = (
        "attempts",
        "calls",
        "clients",
        "cpu_times",
        "durations",
        "errors",
        "ids",
        "large",
        "outcomes",
        "payload",
        "peaks",
        "short",
        "sizes",
        "tracebacks",
    )
    kind = RESULTS

    def __init__(
        self,
        route: bytes,
        clients: "array[int]",
        ids: "array[int]",
        attempts: "array[int]",
        outcomes: "array[int]",
        durations: "array[int]",
        sizes: "array[int]",
        payload: bytes,
        large: dict[int, bytes],
        cpu_times: Sequence[int] = (),
        peaks: Sequence[int] = (),
        errors: Sequence[str] = (),
        tracebacks: Sequence[bytes] = (),
        calls: Sequence[int] = (),
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.outcomes = outcomes
        self.durations = durations
        self.sizes = sizes
        self.payload = payload
        self.large = large
        self.cpu_times = cpu_times
        self.peaks = peaks
        self.errors = errors
        self.tracebacks = tracebacks
        self.calls = calls
        self.short: tuple[Sequence[int], Sequence[int], Sequence[int]] = (clients, attempts, outcomes)
        """Clients, attempts and outcomes. A column has one element if the message gives one value for all rows."""


class Tasks(Event):
    """Tasks by name: row i of each column is one task."""

    __slots__ = ("attempts", "clients", "ids")

    def __init__(self, route: bytes, clients: "array[int]", ids: "array[int]", attempts: "array[int]") -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts


class Started(Tasks):
    """Tasks that have begun, from their worker or its host agent."""

    __slots__ = ()
    kind = STARTED


class Suspended(Tasks):
    """Tasks that wait for tasks of their own, from their nested client."""

    __slots__ = ()
    kind = SUSPENDED


class Resumed(Tasks):
    """Suspended tasks that run again, from their nested client."""

    __slots__ = ()
    kind = RESUMED


class Retracted(Event):
    """The answer to a Retract. `returned` is 1 for a task that the worker gives back, and 0 for a task that it
    keeps."""

    __slots__ = ("attempts", "clients", "ids", "returned")
    kind = RETRACTED

    def __init__(
        self, route: bytes, clients: "array[int]", ids: "array[int]", attempts: "array[int]", returned: "array[int]"
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.returned = returned


class Object(Event):
    """An object's bytes, from a client, or from a host agent that was asked for it.

    `client` is the incarnation of the object's client; only a host agent sets it. If `file_bytes` is not 0, the frames
    are in a file of the client and have so many bytes. `data` says where agents of other hosts get this file; None:
    nowhere.
    """

    __slots__ = ("client", "data", "file_bytes", "frames", "id", "name")
    kind = OBJECT

    def __init__(
        self,
        route: bytes,
        object_id: int,
        name: str,
        frames: list[bytes],
        client: int = 0,
        file_bytes: int = 0,
        data: "DataAddress | None" = None,
    ) -> None:
        self.route = route
        self.client = client
        self.id = object_id
        self.name = name
        self.frames = frames
        self.file_bytes = file_bytes
        self.data = data

    @property
    def size(self) -> int:
        """The bytes of all frames."""
        return self.file_bytes or sum(map(len, self.frames))


class Objects(Event):
    """Several objects of a client, each in one frame."""

    __slots__ = ("ids", "values")
    kind = OBJECTS

    def __init__(self, route: bytes, ids: "array[int]", values: list[bytes]) -> None:
        self.route = route
        self.ids = ids
        self.values = values


class ForgetObjects(Event):
    """Objects that a client no longer refers to, or that a host agent does not have.

    Only a host agent sets `clients`, with one element a row. From clients it is empty.
    """

    __slots__ = ("clients", "ids")
    kind = FORGET_OBJECTS

    def __init__(self, route: bytes, ids: "array[int]", clients: "array[int]" = _NOTHING) -> None:
        self.route = route
        self.ids = ids
        self.clients = clients


class HeldResults(Event):
    """The kept results that a client refers to, and that hosts have: the ids of their files, and their sizes."""

    __slots__ = ("ids", "sizes")
    kind = HELD_RESULTS

    def __init__(self, route: bytes, ids: "array[int]", sizes: "Sequence[int]") -> None:
        self.route = route
        self.ids = ids
        self.sizes = sizes


class Environment(Event):
    """A client's environment. `name` is the SHA-256 of the manifest, `contents` those of its contents, in hex digits.

    `size` is the size of the contents in bytes. `level` says what it asks of a host. `platform` empty: it works on all.
    """

    __slots__ = ("contents", "level", "manifest", "name", "platform", "size")
    kind = ENVIRONMENT

    def __init__(
        self, route: bytes, name: str, contents: Sequence[str], size: int, level: int, platform: str, manifest: bytes
    ) -> None:
        self.route = route
        self.name = name
        self.contents = contents
        self.size = size
        self.level = level
        self.platform = platform
        self.manifest = manifest


class ContentsWanted(Event):
    """An agent asks for contents of an environment, by their SHA-256 in hex digits."""

    __slots__ = ("names",)
    kind = CONTENTS_WANTED

    def __init__(self, route: bytes, names: Sequence[str]) -> None:
        self.route = route
        self.names = names


class Contents(Event):
    """Contents of environments, by their SHA-256 in hex digits, which the scheduler has computed."""

    __slots__ = ("by_name",)
    kind = CONTENTS

    def __init__(self, route: bytes, by_name: "dict[str, bytes]") -> None:
        self.route = route
        self.by_name = by_name


class EnvironmentReady(Event):
    """An agent can start workers of an environment, or `error` says why not."""

    __slots__ = ("error", "name")
    kind = ENVIRONMENT_READY

    def __init__(self, route: bytes, name: str, error: str) -> None:
        self.route = route
        self.name = name
        self.error = error


class Transferred(Event):
    """A host agent has got object files from the agent or client `source`, or has not, for the reason `error`."""

    __slots__ = ("clients", "error", "ids", "is_unreachable", "source")
    kind = TRANSFERRED

    def __init__(
        self,
        route: bytes,
        clients: Sequence[int],
        ids: Sequence[int],
        source: int,
        error: str = "",
        is_unreachable: bool = False,
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.source = source
        self.error = error
        self.is_unreachable = is_unreachable


class FetchObjects(Event):
    """Kept results whose values a client wants."""

    __slots__ = ("ids",)
    kind = FETCH_OBJECTS

    def __init__(self, route: bytes, ids: "array[int]") -> None:
        self.route = route
        self.ids = ids


class Output(Event):
    """Printed output of tasks. Each row has `sizes` bytes of `text`; the first `labels` of them name host, process and
    task."""

    __slots__ = ("clients", "ids", "labels", "sizes", "streams", "text")
    kind = OUTPUT

    def __init__(
        self,
        route: bytes,
        clients: "array[int]",
        ids: "array[int]",
        streams: "array[int]",
        labels: "array[int]",
        sizes: "array[int]",
        text: bytes,
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.streams = streams
        self.labels = labels
        self.sizes = sizes
        self.text = text


class Shutdown(Event):
    """A client asks the scheduler and all clusters to end."""

    __slots__ = ()
    kind = SHUTDOWN


class Received(Event):
    """The bytes of results that a client has acknowledged since its last welcome, in total."""

    __slots__ = ("bytes",)
    kind = RECEIVED

    def __init__(self, route: bytes, received: int) -> None:
        self.route = route
        self.bytes = received


class Cancel(Event):
    """A client cancels tasks. `force`: running tasks are stopped too."""

    __slots__ = ("force", "ids")
    kind = CANCEL

    def __init__(self, route: bytes, ids: "array[int]", force: bool = False) -> None:
        self.route = route
        self.ids = ids
        self.force = force


class Exchange(Event):
    """The value that a member of a gang gives to the others, from its worker. `round` counts the exchanges of the
    attempt from 0."""

    __slots__ = ("attempt", "client", "id", "round", "value")
    kind = EXCHANGE

    def __init__(self, route: bytes, client: int, task_id: int, attempt: int, round_number: int, value: bytes) -> None:
        self.route = route
        self.client = client
        self.id = task_id
        self.attempt = attempt
        self.round = round_number
        self.value = value


class WorkerDied(Event):
    """A worker's process has ended. `attempt` is 0 if it ran no task; `peak_bytes` is 0 if the peak is unknown."""

    __slots__ = ("attempt", "cause", "client", "id", "incarnation", "peak_bytes", "pid")
    kind = WORKER_DIED

    def __init__(
        self,
        route: bytes,
        incarnation: int,
        pid: int,
        cause: str,
        peak_bytes: int,
        client: int,
        task_id: int,
        attempt: int,
    ) -> None:
        self.route = route
        self.incarnation = incarnation
        self.pid = pid
        self.cause = cause
        self.peak_bytes = peak_bytes
        self.client = client
        self.id = task_id
        self.attempt = attempt
