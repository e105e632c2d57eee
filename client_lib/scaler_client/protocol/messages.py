"""The protocol's messages: one dataclass each, named like the schema's struct.

Columns are plain lists. Payloads of a batch are a list with one bytes-like object a row.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

from .snapshots import Graphs, History, Snapshot

PROTOCOL_VERSION = 1
"""The schema's `protocolVersion`."""

Payload = Union[bytes, bytearray, memoryview]
Frames = list[Payload]


class Role(enum.IntEnum):
    CLIENT = 0
    WORKER = 1
    AGENT = 2


class Outcome(enum.IntEnum):
    """How a task ended; the schema says what the payload is."""

    VALUE = 0
    EXCEPTION = 1
    FUNCTION_FAILED = 2
    RESULT_FAILED = 3
    RETRYABLE = 4
    WORKER_DIED = 5
    CANCELLED = 6
    TIMED_OUT = 7
    KEPT = 8
    INPUT_LOST = 9
    STORED = 10


class Keep(enum.IntEnum):
    """What becomes of a task's result beside, or in place of, going to the client."""

    NO = 0
    YES = 1
    BOTH = 2


TaskName = tuple[int, int, int]
"""A dispatched task: its client's incarnation, its id, its attempt."""


@dataclass
class Hello:
    role: Role
    incarnation: int
    language_version: str
    version: str
    host: str
    pid: int
    name: str = ""
    agent: int = 0
    language: str = "python"
    protocol_version: int = PROTOCOL_VERSION
    worker: int = 0
    capabilities: dict[str, int] = field(default_factory=dict)
    running: list[TaskName] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    scheduler: int = 0


@dataclass
class Welcome:
    protocol_version: int
    version: str
    incarnation: int
    lease_seconds: float
    credit: int = 0
    result_window: int = 0
    message_size_limit: int = 0
    """Bytes of the longest frame that the scheduler takes; 0: it has not told."""


NOT_AUTHORIZED = "notAuthorized"
"""The reason of a Refused for its key."""


@dataclass
class Refused:
    reason: str
    text: str
    protocol_version: int
    version: str


@dataclass
class HelloWanted:
    pass


@dataclass
class Goodbye:
    reason: str = ""


@dataclass
class WorkerHeartbeat:
    incarnation: int
    resident_bytes: int
    cpu_milliseconds: int


@dataclass
class Heartbeat:
    sequence: int
    resident_bytes: int = 0
    cpu_milliseconds: int = 0
    workers: list[WorkerHeartbeat] = field(default_factory=list)
    lag_microseconds: int = 0
    is_retiring: bool = False


@dataclass
class HeartbeatEcho:
    sequence: int
    is_drained: bool = False


@dataclass
class Function:
    number: int
    name: str
    kind: str
    payload: Payload


@dataclass
class ForgetFunctions:
    numbers: list[int]


@dataclass(frozen=True)
class Options:
    """What a Submit asks of every row; the defaults ask nothing."""

    priority: int = 0
    depth: int = 0
    retries: int = -1
    timeout_milliseconds: int = 0
    profiling: bool = False
    name: str = ""
    capabilities: tuple[tuple[str, int], ...] = ()
    """Sorted by name."""
    stream_output: bool = False
    graph: int = 0
    """The client's number of the graph that the rows belong to; 0: none."""
    keys: str = ""
    """For people: the keys of that graph whose values are wanted."""


@dataclass
class Submit:
    ids: Sequence[int]
    functions: Sequence[int]
    payloads: Sequence[Payload]
    options: Options | None = None
    inputs: Sequence[int] = ()
    """Ids of objects, all rows' behind one another."""
    input_counts: Sequence[int] = ()
    """How many of `inputs` each row has; empty: none has any."""
    keep: Sequence[int] = ()
    """Keep's; empty: no result is kept."""


@dataclass
class Dispatch:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    functions: list[int]
    payloads: list[Payload]
    flags: list[int] = field(default_factory=list)
    """Sums of the FLAG_ numbers; this and the next two are empty or of full length."""
    depths: list[int] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    """Ids of objects of the row's client, all rows' behind one another."""
    input_counts: list[int] = field(default_factory=list)
    """Empty or of full length."""
    shared: list[int] = field(default_factory=list)
    """For each of `inputs`: 1 where it is a file of the host agent's making, 2 where of a worker's of the host."""
    inlined: list[int] = field(default_factory=list)
    """For each of `inputs`: its size and 1, where it is the end of the row's payload; empty: none is."""
    names: list[str] = field(default_factory=list)
    """Those given to the rows, in place of their functions'; empty or of full length."""


FLAG_PROFILE = 1
FLAG_REPORT_START = 2
FLAG_STREAM_OUTPUT = 4
FLAG_MAY_STORE = 8

FILE_OF_WORKER = 2
"""In Dispatch.shared, of a file that is there already."""


@dataclass
class Results:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    outcomes: list[int]
    durations: list[int]
    payloads: list[Payload]
    cpu_times: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Of each row one line that says of what it failed, empty where it has not; empty where no row has."""
    tracebacks: list[str] = field(default_factory=list)
    """Of each row the traceback of its failure, likewise."""


@dataclass
class Resolved:
    ids: list[int]
    outcomes: list[int]
    payloads: list[Payload]
    durations: list[int] = field(default_factory=list)
    """This and the next two are empty or of full length."""
    cpu_times: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)


@dataclass
class Started:
    ids: list[int]
    clients: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


OBJECT_FRAMES = 64
"""Most frames of an object; it has at least one."""


@dataclass
class Object:
    id: int
    frames: Sequence[Payload]
    client: int = 0
    name: str = ""


@dataclass
class ForgetObjects:
    ids: list[int]
    clients: list[int] = field(default_factory=list)


@dataclass
class FetchObjects:
    ids: list[int]
    clients: list[int] = field(default_factory=list)


@dataclass
class Output:
    """What tasks have printed. A row's lines have no newline at their end."""

    ids: list[int]
    streams: list[int]
    """STANDARD_OUTPUT or STANDARD_ERROR."""
    labels: list[bytes]
    """Which host, process and task, for people; UTF-8, as `texts`."""
    texts: list[bytes]
    clients: list[int] = field(default_factory=list)
    dropped: int = 0
    """Bytes that were dropped on the way before this."""

    @property
    def size(self) -> int:
        """Bytes that it counts in the client's window of results."""
        return sum(map(len, self.labels)) + sum(map(len, self.texts))

    def rows(self, rows: Sequence[int]) -> Output:
        """These rows alone."""
        columns = (self.ids, self.streams, self.labels, self.texts)
        ids, streams, labels, texts = ([column[row] for row in rows] for column in columns)
        return Output(ids, streams, labels, texts, [], self.dropped)  # type: ignore[arg-type]


STANDARD_OUTPUT = 0
STANDARD_ERROR = 1


@dataclass
class Shutdown:
    pass


@dataclass
class Retract:
    tasks: list[TaskName]


@dataclass
class Retracted:
    tasks: list[TaskName]
    given: list[int]
    """1 for a task that is given back, 0 for one that is kept."""


@dataclass
class Stop:
    tasks: list[TaskName]


@dataclass
class Suspended:
    tasks: list[TaskName]


@dataclass
class Resumed:
    tasks: list[TaskName]


@dataclass
class EndWorker:
    incarnation: int
    task: TaskName
    reason: str


@dataclass
class Credit:
    bytes: int


@dataclass
class Received:
    bytes: int


@dataclass
class Cancel:
    ids: list[int]
    force: bool = False


@dataclass
class CancelRefused:
    ids: list[int]


@dataclass
class WorkerDied:
    incarnation: int
    pid: int
    cause: str
    peak_bytes: int = 0
    client: int = 0
    id: int = 0
    attempt: int = 0


@dataclass
class Notice:
    text: str


@dataclass
class Error:
    text: str
    tasks: list[int] = field(default_factory=list)
    """Those that are not taken."""


Message = Union[
    Hello, Welcome, Refused, HelloWanted, Goodbye, Heartbeat, HeartbeatEcho, Function, ForgetFunctions, Submit,
    Dispatch, Results, Resolved, Started, Cancel, CancelRefused, WorkerDied, Error, Snapshot, Retract, Retracted, Stop,
    Suspended, Resumed, EndWorker, Credit, Received, Object, ForgetObjects, FetchObjects, Shutdown, Output, History,
    Graphs,
]  # fmt: skip
