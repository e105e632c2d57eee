"""What goes into the core: one class a message that a peer may send, named like it in the schema.

`kind` is the message's ordinal in the schema, so that one list look-up finds the handler. Columns are `array.array`s of
full length; `route` is the connection that the message came by. Every field is always set: PyPy's JIT compiles one
shape.
"""

from array import array
from typing import Dict, FrozenSet, List, Sequence, Tuple

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
KINDS = 35

KEEP_NO = 0
KEEP_YES = 1
KEEP_BOTH = 2

CLIENT = 0
WORKER = 1
AGENT = 2
ROLE_NAMES = ("client", "worker", "agent")


class Event:
    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


Capabilities = FrozenSet[Tuple[str, int]]
"""Names with amounts: what a worker has, or what a task asks for."""

Kinds = FrozenSet[str]
"""The kinds of functions that a worker can run; none: it can run all."""


class Options:
    """What a Submit asks of every row. `retries` -1: the scheduler's own; `timeout_seconds` 0: no limit; `graph` 0: the
    rows belong to no graph. `keys` name the graph for people."""

    __slots__ = (
        "capabilities",
        "depth",
        "graph",
        "keys",
        "name",
        "priority",
        "profiling",
        "rank",
        "retries",
        "stream_output",
        "timeout_seconds",
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
    ) -> None:
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
        self.rank = (priority << 32) + depth
        """The highest goes first: by priority, within one by depth."""


DEFAULT_OPTIONS = Options()

_NOTHING: "array[int]" = array("q")
"""A column that is not there."""


class Hello(Event):
    """`worker` is the incarnation of the worker that a nested client lives in, 0 for others; `running` names, by
    client, id and attempt, what a worker runs or has suspended already; `scheduler` is the incarnation of the scheduler
    that has welcomed the peer last, 0 where none did."""

    __slots__ = (
        "agent",
        "capabilities",
        "host",
        "incarnation",
        "kinds",
        "language",
        "name",
        "pid",
        "protocol_version",
        "role",
        "running",
        "scheduler",
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
        running: Sequence[Tuple[int, int, int]] = (),
        kinds: Kinds = frozenset(),
        scheduler: int = 0,
    ) -> None:
        self.route = route
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
        self.scheduler = scheduler
        self.user = ""
        """Who speaks on this connection, `role:key`, where peers have keys; not the peer's word. Else empty."""


class Goodbye(Event):
    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class Heartbeat(Event):
    """`workers` holds the incarnations whose leases a host agent renews beside its own; `usage` what the sender uses,
    and `usages` what each of these does: resident bytes, milliseconds of processor time; `is_retiring` that the agent's
    workers are to end what they have begun and get nothing new."""

    __slots__ = ("is_retiring", "lag_microseconds", "sequence", "usage", "usages", "workers")
    kind = HEARTBEAT

    def __init__(
        self,
        route: bytes,
        sequence: int,
        workers: List[int],
        usage: Tuple[int, int] = (0, 0),
        lag_microseconds: int = 0,
        usages: Sequence[Tuple[int, int]] = (),
        is_retiring: bool = False,
    ) -> None:
        self.route = route
        self.sequence = sequence
        self.workers = workers
        self.usage = usage
        self.lag_microseconds = lag_microseconds
        self.usages = usages
        self.is_retiring = is_retiring


class Function(Event):
    __slots__ = ("digest", "function_kind", "name", "number", "payload")
    kind = FUNCTION

    def __init__(self, route: bytes, number: int, name: str, function_kind: str, digest: bytes, payload: bytes) -> None:
        self.route = route
        self.number = number
        self.name = name
        self.function_kind = function_kind
        self.digest = digest
        self.payload = payload


class ForgetFunctions(Event):
    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: "array[int]") -> None:
        self.route = route
        self.numbers = numbers


class Submit(Event):
    """`functions` has one element (all rows the same) or one a row; `large` maps a row to its payload."""

    __slots__ = (
        "functions",
        "ids",
        "input_counts",
        "inputs",
        "keep",
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
        large: Dict[int, bytes],
        options: Options = DEFAULT_OPTIONS,
        inputs: "array[int]" = _NOTHING,
        input_counts: "array[int]" = _NOTHING,
        keep: "array[int]" = _NOTHING,
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


class Results(Event):
    """`durations` and `cpu_times` in nanoseconds, `peaks` in bytes; these two are empty when no row is profiled, and
    `errors` is when no row says of what it failed. `tracebacks` is UTF-8 text a row, or empty."""

    __slots__ = (
        "attempts",
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
        large: Dict[int, bytes],
        cpu_times: Sequence[int] = (),
        peaks: Sequence[int] = (),
        errors: Sequence[str] = (),
        tracebacks: Sequence[bytes] = (),
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
        self.short: Tuple[Sequence[int], Sequence[int], Sequence[int]] = (clients, attempts, outcomes)
        """Clients, attempts and outcomes, of one element where that holds for all rows and the message says so."""


class Tasks(Event):
    """Tasks by name: row i of each column."""

    __slots__ = ("attempts", "clients", "ids")

    def __init__(self, route: bytes, clients: "array[int]", ids: "array[int]", attempts: "array[int]") -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts


class Started(Tasks):
    __slots__ = ()
    kind = STARTED


class Suspended(Tasks):
    __slots__ = ()
    kind = SUSPENDED


class Resumed(Tasks):
    __slots__ = ()
    kind = RESUMED


class Retracted(Event):
    """`given`: 1 for a task that came back, 0 for one that the worker keeps."""

    __slots__ = ("attempts", "clients", "given", "ids")
    kind = RETRACTED

    def __init__(
        self, route: bytes, clients: "array[int]", ids: "array[int]", attempts: "array[int]", given: "array[int]"
    ) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts
        self.given = given


class Object(Event):
    """`frames` are the object's bytes; `client` is whose it is, where a host agent sends what was fetched."""

    __slots__ = ("client", "frames", "id", "name")
    kind = OBJECT

    def __init__(self, route: bytes, object_id: int, name: str, frames: List[bytes], client: int = 0) -> None:
        self.route = route
        self.client = client
        self.id = object_id
        self.name = name
        self.frames = frames

    @property
    def size(self) -> int:
        return sum(map(len, self.frames))


class ForgetObjects(Event):
    """`clients` are a host agent's to say, which has not got these; of full length or empty."""

    __slots__ = ("clients", "ids")
    kind = FORGET_OBJECTS

    def __init__(self, route: bytes, ids: "array[int]", clients: "array[int]" = _NOTHING) -> None:
        self.route = route
        self.ids = ids
        self.clients = clients


class Output(Event):
    """What tasks have printed. Of each row's `sizes` bytes of `text` the first `labels` name host, process and task."""

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
    __slots__ = ()
    kind = SHUTDOWN


class Received(Event):
    """`bytes` of results since the client's last welcome, in all."""

    __slots__ = ("bytes",)
    kind = RECEIVED

    def __init__(self, route: bytes, received: int) -> None:
        self.route = route
        self.bytes = received


class Cancel(Event):
    """`force`: what runs is to be stopped."""

    __slots__ = ("force", "ids")
    kind = CANCEL

    def __init__(self, route: bytes, ids: "array[int]", force: bool = False) -> None:
        self.route = route
        self.ids = ids
        self.force = force


class WorkerDied(Event):
    """`attempt` is 0 where the process ran nothing; `peak_bytes` is 0 where it is not known."""

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
