"""The input of the core: one class for each message that a peer may send, named as in the schema.

`kind` is the message's ordinal in the schema, so that one list look-up finds the handler. Columns are `array.array`s of
full length. `route` is the connection that the message came by. Every field is always set, because PyPy's JIT compiles
one shape. All classes are in one module, so that a reader finds each by its message's name.
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
    """The base of all events."""

    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


Capabilities = FrozenSet[Tuple[str, int]]
"""Names with amounts: what a worker has, or what a task needs."""

Kinds = FrozenSet[str]
"""The kinds of functions that a worker can run. Empty: it can run all."""


class Options:
    """The options of a Submit, which hold for every row.

    `retries` -1: the scheduler's default. `timeout_seconds` 0: no limit. `graph` 0: the rows belong to no graph. `keys`
    are the wanted keys of the graph, for people.
    """

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
        """The order of tasks: a higher number goes first. Priority decides, then depth."""


DEFAULT_OPTIONS = Options()

_NOTHING: "array[int]" = array("q")
"""A column that is absent."""


class Hello(Event):
    """A peer joins.

    `worker` is a nested client's: the incarnation of the worker that it lives in, else 0. `running` names the tasks
    that a worker runs or has suspended, by client, id and attempt. `scheduler` is the incarnation of the scheduler that
    welcomed this peer last, or 0.
    """

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
        """The authenticated user of this connection, `role:key`. The peer did not choose it. Empty where peers have no
        keys."""


class Goodbye(Event):
    """A peer leaves."""

    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class Heartbeat(Event):
    """A peer is alive.

    `workers` are the workers whose leases a host agent renews beside its own. `usage` is what the sender uses, and
    `usages` what each of these workers uses: resident bytes, and milliseconds of processor time. `is_retiring`: the
    agent is about to end; its workers finish running tasks and get no new ones.
    """

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
    """A client's function. `number` is the client's own; `digest` identifies the bytes."""

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
    """Functions that a client no longer uses, by its own numbers."""

    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: "array[int]") -> None:
        self.route = route
        self.numbers = numbers


class Submit(Event):
    """New tasks. `functions` has one element for all rows, or one a row. `large` maps a row to its payload."""

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
    """A worker's results.

    `durations` and `cpu_times` are in nanoseconds, `peaks` in bytes. `cpu_times` and `peaks` are empty when no row is
    profiled; `errors` is empty when no row has an error line. `tracebacks` has UTF-8 text for each row, or is empty.
    """

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
    """Suspended tasks that go on, from their nested client."""

    __slots__ = ()
    kind = RESUMED


class Retracted(Event):
    """The answer to a Retract. `given` is 1 for a task that the worker gives back, 0 for one that it keeps."""

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
    """An object's bytes, from a client, or from a host agent that was asked for it.

    `client` is the incarnation of the object's client; only a host agent sets it.
    """

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
        """The bytes of all frames."""
        return sum(map(len, self.frames))


class ForgetObjects(Event):
    """Objects that a client no longer refers to, or that a host agent does not have.

    Only a host agent sets `clients`: one element a row. Else it is empty.
    """

    __slots__ = ("clients", "ids")
    kind = FORGET_OBJECTS

    def __init__(self, route: bytes, ids: "array[int]", clients: "array[int]" = _NOTHING) -> None:
        self.route = route
        self.ids = ids
        self.clients = clients


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


class WorkerDied(Event):
    """A worker's process has ended. `attempt` is 0 if it ran no task; `peak_bytes` is 0 if it is not known."""

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
