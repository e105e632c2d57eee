"""The output of the core, as plain data: one class for each message that the scheduler sends, named as in the schema.

`kind` is the message's ordinal in the schema. `route` is the connection that it goes to. Columns are lists or
`array.array`s, with one element if it holds for every row.
"""

from collections.abc import Sequence

from scaler_scheduler.core.ids import DataAddress

WELCOME = 1
REFUSED = 2
HELLO_WANTED = 3
GOODBYE = 4
HEARTBEAT_ECHO = 6
FUNCTION = 7
FORGET_FUNCTIONS = 8
DISPATCH = 10
RESOLVED = 12
STARTED = 13
CANCEL_REFUSED = 15
ERROR = 17
RETRACT = 19
STOP = 21
END_WORKER = 24
CREDIT = 25
OBJECT = 27
FORGET_OBJECTS = 28
SHUTDOWN = 29
OUTPUT = 30
FETCH_OBJECTS = 31
NOTICE = 34
TRANSFER_OBJECTS = 35
ENVIRONMENT = 41
CONTENTS_WANTED = 42
CONTENTS = 43
CHANGE_WORKER = 45
GANG_MEMBER = 46
EXCHANGE = 47

REFUSED_PROTOCOL_VERSION = 0
REFUSED_MALFORMED_HELLO = 1
REFUSED_NOT_AUTHORIZED = 2

OUTCOME_VALUE = 0
OUTCOME_EXCEPTION = 1
OUTCOME_RESULT_FAILED = 3
OUTCOME_RETRYABLE = 4
OUTCOME_WORKER_DIED = 5
OUTCOME_CANCELLED = 6
OUTCOME_TIMED_OUT = 7
OUTCOME_KEPT = 8
OUTCOME_INPUT_LOST = 9
OUTCOME_STORED = 10
OUTCOME_ENVIRONMENT_FAILED = 11
OUTCOME_NO_ROOM = 12
OUTCOME_FILE = 13
OUTCOMES = 14
"""The number of outcomes."""

WORKER_OUTCOMES = 5
"""Workers may send outcomes below this one, and four more: INPUT_LOST, STORED, NO_ROOM and FILE."""


class Effect:
    """The base of all effects."""

    __slots__ = ("route",)
    kind = -1

    def __init__(self, route: bytes) -> None:
        self.route = route


class Welcome(Effect):
    """The answer to a hello. For clients, others get 0: `credit` and `result_window` in bytes, the number of connected
    workers, and whether large objects may be files of the client."""

    __slots__ = ("credit", "lease_milliseconds", "message_size_limit", "result_window", "takes_files", "workers")
    kind = WELCOME

    def __init__(
        self,
        route: bytes,
        lease_milliseconds: int,
        credit: int = 0,
        result_window: int = 0,
        message_size_limit: int = 0,
        workers: int = 0,
        takes_files: bool = False,
    ) -> None:
        self.route = route
        self.workers = workers
        self.takes_files = takes_files
        self.lease_milliseconds = lease_milliseconds
        self.message_size_limit = message_size_limit
        self.credit = credit
        self.result_window = result_window


class Refused(Effect):
    """A peer must not join. `reason` is one of the REFUSED_ constants."""

    __slots__ = ("reason", "text")
    kind = REFUSED

    def __init__(self, route: bytes, reason: int, text: str) -> None:
        self.route = route
        self.reason = reason
        self.text = text


class HelloWanted(Effect):
    """The sender of a message is unknown and must say hello first."""

    __slots__ = ()
    kind = HELLO_WANTED


class Goodbye(Effect):
    """The scheduler stops."""

    __slots__ = ("reason",)
    kind = GOODBYE

    def __init__(self, route: bytes, reason: str) -> None:
        self.route = route
        self.reason = reason


class Host:
    """What a client is told about the host of an agent."""

    __slots__ = ("clock_ms", "language", "name", "packages", "version")

    def __init__(self, name: str, language: str, version: str, packages: int, clock_ms: int) -> None:
        self.name = name
        self.language = language
        self.version = version
        self.packages = packages
        """1 + the index of its list of packages in the effect. 0: not known, or left out."""
        self.clock_ms = clock_ms
        """The time of its clock now, in milliseconds of Unix time. 0: not known."""


class HeartbeatEcho(Effect):
    """The answer to a heartbeat.

    `is_drained`: none of a retiring agent's workers holds a task. `workers`: to a client, the number of connected
    workers. `hosts`, `packages`: to a client that asked for them, the hosts, and the lists of packages that they have.
    `ticket`: the ticket of the peer's data address from now on. Empty: the same as before.
    """

    __slots__ = ("hosts", "is_drained", "packages", "sequence", "ticket", "workers")
    kind = HEARTBEAT_ECHO

    def __init__(
        self,
        route: bytes,
        sequence: int,
        is_drained: bool = False,
        workers: int = 0,
        hosts: Sequence[Host] = (),
        packages: Sequence[str] = (),
        ticket: str = "",
    ) -> None:
        self.route = route
        self.sequence = sequence
        self.ticket = ticket
        self.is_drained = is_drained
        self.workers = workers
        self.hosts = hosts
        self.packages = packages


class Function(Effect):
    """A function for a worker. It is sent before the first task that names its number."""

    __slots__ = ("function_kind", "name", "number", "payload")
    kind = FUNCTION

    def __init__(self, route: bytes, number: int, name: str, function_kind: str, payload: bytes) -> None:
        self.route = route
        self.number = number
        self.name = name
        self.function_kind = function_kind
        self.payload = payload


class ForgetFunctions(Effect):
    """Functions that a worker can drop, by number."""

    __slots__ = ("numbers",)
    kind = FORGET_FUNCTIONS

    def __init__(self, route: bytes, numbers: list[int]) -> None:
        self.route = route
        self.numbers = numbers


class Rows:
    """Payloads of a growing batch: sizes and runs of joined bytes for small ones, a frame for each large one."""

    __slots__ = ("file_bytes", "large_frames", "large_rows", "parts", "sizes")

    def __init__(self) -> None:
        self.file_bytes = 0
        """The bytes of results that are files of the client."""
        self.sizes: list[int] = []
        self.parts: list[bytes] = []
        self.large_rows: list[int] = []
        self.large_frames: list[bytes] = []

    @property
    def byte_count(self) -> int:
        """The bytes of all payloads, and of the files that some of them name."""
        return sum(map(len, self.parts)) + sum(map(len, self.large_frames)) + self.file_bytes

    def append_run(self, sizes: Sequence[int], joined: bytes) -> None:
        """Add rows whose payloads follow one another in `joined`."""
        self.sizes.extend(sizes)
        self.parts.append(joined)

    def append_large(self, frame: bytes) -> None:
        """Add a row whose payload travels in a frame of its own."""
        self.large_rows.append(len(self.sizes))
        self.large_frames.append(frame)
        self.sizes.append(0)


FLAG_PROFILE = 1
FLAG_REPORT_START = 2
FLAG_STREAM_OUTPUT = 4
FLAG_MAY_STORE = 8
FLAG_CALLS = 16
FLAG_RELEASE = 32
FLAG_GANG = 64
FLAG_STORE_SMALL = 128

INPUT_IN_MESSAGE = 0
INPUT_IN_AGENT_FILE = 1
INPUT_IN_WORKER_FILE = 2
INPUT_OF_ROW_BEFORE = 3
"""The values of Dispatch.input_sources: where the worker finds an input."""


class Dispatch(Effect):
    """Tasks for a worker.

    `row_options` maps a row to its flags, depth and priority, for rows that have any. `inputs`, `input_sources` and
    `inline_sizes` have one element for each object that a row reads; `input_counts` maps a row to its number of inputs.
    `names` maps a row to the name that the user gave the task. `bookings` has runs of
    rows: the first, the row after the last, and the text of their booking.
    """

    __slots__ = (
        "attempts",
        "bookings",
        "clients",
        "functions",
        "ids",
        "inline_sizes",
        "names",
        "input_counts",
        "inputs",
        "rows",
        "input_sources",
        "row_options",
    )
    kind = DISPATCH

    def __init__(self, route: bytes) -> None:
        self.route = route
        self.clients: list[int] = []
        self.ids: list[int] = []
        self.attempts: list[int] = []
        self.functions: list[int] = []
        self.rows = Rows()
        self.row_options: dict[int, tuple[int, int, int]] = {}
        self.names: dict[int, str] = {}
        self.bookings: list[tuple[int, int, str]] = []
        self.inputs: list[int] = []
        self.input_sources: list[int] = []
        self.inline_sizes: list[int] = []
        self.input_counts: dict[int, int] = {}

    def add_bookings(self, count: int, text: str) -> None:
        """Give the last rows a booking."""
        self.bookings.append((len(self.ids) - count, len(self.ids), text))

    def booking_of(self, row: int) -> str:
        """The text of a row's booking. Empty: it has none."""
        return next((text for begin, end, text in self.bookings if begin <= row < end), "")


class Resolved(Effect):
    """Answers for a client. `profiles` maps a row to its duration and CPU time in nanoseconds, and its peak bytes."""

    __slots__ = ("deadline", "ids", "outcomes", "profiles", "rows")
    kind = RESOLVED

    def __init__(self, route: bytes) -> None:
        self.route = route
        self.deadline = 0.0
        """Until when it may wait for more answers, in seconds of the monotonic clock."""
        self.ids: list[int] = []
        self.outcomes: list[int] = []
        self.rows = Rows()
        self.profiles: dict[int, tuple[int, int, int]] = {}


class Started(Effect):
    """Tasks of a client that have begun."""

    __slots__ = ("ids",)
    kind = STARTED

    def __init__(self, route: bytes, ids: Sequence[int]) -> None:
        self.route = route
        self.ids = ids


class Output(Effect):
    """Printed output of tasks. `dropped` bytes of output before this were not sent."""

    __slots__ = ("dropped", "ids", "labels", "sizes", "streams", "texts")
    kind = OUTPUT

    def __init__(self, route: bytes, dropped: int) -> None:
        self.route = route
        self.dropped = dropped
        self.ids: list[int] = []
        self.streams: list[int] = []
        self.labels: list[int] = []
        self.sizes: list[int] = []
        self.texts: list[bytes] = []


class CancelRefused(Effect):
    """Tasks that a client has cancelled but that continue, because they have begun."""

    __slots__ = ("ids",)
    kind = CANCEL_REFUSED

    def __init__(self, route: bytes, ids: Sequence[int]) -> None:
        self.route = route
        self.ids = ids


class Tasks(Effect):
    """Tasks by name: row i of each column is one task."""

    __slots__ = ("attempts", "clients", "ids")

    def __init__(self, route: bytes, clients: Sequence[int], ids: Sequence[int], attempts: Sequence[int]) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids
        self.attempts = attempts


class Retract(Tasks):
    """Queued tasks that a worker must give back."""

    __slots__ = ()
    kind = RETRACT


class Stop(Tasks):
    """Running tasks that a worker must interrupt."""

    __slots__ = ()
    kind = STOP


class EndWorker(Effect):
    """To a host agent: end this worker's process if it runs this task."""

    __slots__ = ("attempt", "client", "id", "incarnation", "reason")
    kind = END_WORKER

    def __init__(self, route: bytes, incarnation: int, client: int, task_id: int, attempt: int, reason: str) -> None:
        self.route = route
        self.incarnation = incarnation
        self.client = client
        self.id = task_id
        self.attempt = attempt
        self.reason = reason


class Object(Effect):
    """The bytes of an object, for a worker, a host agent, or the client of a kept result."""

    __slots__ = ("client", "frames", "id", "name")
    kind = OBJECT

    def __init__(self, route: bytes, client: int, object_id: int, name: str, frames: list[bytes]) -> None:
        self.route = route
        self.client = client
        self.id = object_id
        self.name = name
        self.frames = frames


class ForgetObjects(Effect):
    """Objects that a worker or a host agent can drop; or kept results that a client wants and the scheduler lacks."""

    __slots__ = ("clients", "ids")
    kind = FORGET_OBJECTS

    def __init__(self, route: bytes, clients: list[int], ids: list[int]) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids


class FetchObjects(Effect):
    """To a host agent: send the contents of these objects' files."""

    __slots__ = ("clients", "ids")
    kind = FETCH_OBJECTS

    def __init__(self, route: bytes, clients: list[int], ids: list[int]) -> None:
        self.route = route
        self.clients = clients
        self.ids = ids


class TransferObjects(Effect):
    """To a host agent: get these object files from the agent or client `source` at the address `data`."""

    __slots__ = ("bytes", "clients", "data", "ids", "source")
    kind = TRANSFER_OBJECTS

    def __init__(self, route: bytes, source: int, data: "DataAddress") -> None:
        self.route = route
        self.source = source
        self.data = data
        self.clients: list[int] = []
        self.ids: list[int] = []
        self.bytes: list[int] = []


class Environment(Effect):
    """To a host agent: prepare this environment. The fields are those of the event."""

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


class ContentsWanted(Effect):
    """To a client: send these contents of its environments, by their SHA-256 in hex digits."""

    __slots__ = ("names",)
    kind = CONTENTS_WANTED

    def __init__(self, route: bytes, names: Sequence[str]) -> None:
        self.route = route
        self.names = names


class Contents(Effect):
    """To a host agent: contents that it asked for."""

    __slots__ = ("frames",)
    kind = CONTENTS

    def __init__(self, route: bytes, frames: list[bytes]) -> None:
        self.route = route
        self.frames = frames


CHANGE_REPLACE = 0
CHANGE_BESIDE = 1
CHANGE_END = 2


class ChangeWorker(Effect):
    """To a host agent: replace this worker, which holds no task, by one of the environment. Empty: by one without.

    `mode` CHANGE_BESIDE: start the other one beside it. CHANGE_END: start none.
    """

    __slots__ = ("environment", "mode", "worker")
    kind = CHANGE_WORKER

    def __init__(self, route: bytes, worker: int, environment: str, mode: int = CHANGE_REPLACE) -> None:
        self.route = route
        self.worker = worker
        self.environment = environment
        self.mode = mode


class GangMember(Effect):
    """To a worker, before the Dispatch of this task: it is a member of a gang. `hosts` has the host of each rank."""

    __slots__ = ("attempt", "client", "hosts", "id", "rank")
    kind = GANG_MEMBER

    def __init__(
        self, route: bytes, *, client: int, task_id: int, attempt: int, rank: int, hosts: Sequence[str]
    ) -> None:
        self.route = route
        self.client = client
        self.id = task_id
        self.attempt = attempt
        self.rank = rank
        self.hosts = hosts


class Exchange(Effect):
    """To the worker of a member of a gang: the values of all members, by rank, in this round.

    If `ended` is not 0, it is 1 + the rank of a member that has ended without this exchange, and there are no values.
    """

    __slots__ = ("attempt", "client", "ended", "id", "round", "values")
    kind = EXCHANGE

    def __init__(
        self,
        route: bytes,
        *,
        client: int,
        task_id: int,
        attempt: int,
        round_number: int,
        values: Sequence[bytes],
        ended: int = 0,
    ) -> None:
        self.route = route
        self.client = client
        self.id = task_id
        self.attempt = attempt
        self.round = round_number
        self.values = values
        self.ended = ended


class Shutdown(Effect):
    """To a host agent: end your workers and yourself."""

    __slots__ = ()
    kind = SHUTDOWN


class Credit(Effect):
    """How many bytes a client may submit since its welcome, in total."""

    __slots__ = ("bytes",)
    kind = CREDIT

    def __init__(self, route: bytes, granted: int) -> None:
        self.route = route
        self.bytes = granted


class Notice(Effect):
    """A text for the user of a client."""

    __slots__ = ("text",)
    kind = NOTICE

    def __init__(self, route: bytes, text: str) -> None:
        self.route = route
        self.text = text


class Error(Effect):
    """An error for the sender of a message. `tasks` are the ids of the rejected tasks of a submit."""

    __slots__ = ("tasks", "text")
    kind = ERROR

    def __init__(self, route: bytes, text: str, tasks: Sequence[int] = ()) -> None:
        self.route = route
        self.text = text
        self.tasks = tasks
