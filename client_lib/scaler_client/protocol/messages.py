"""The messages of the protocol: one dataclass per message, named as in the schema, which describes the fields.

Columns are plain lists. The payloads of a batch are a list with one bytes-like object per row.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from .record import Record
from .snapshots import Graphs, History, PoolState, Snapshot

PROTOCOL_VERSION = 1
"""The `protocolVersion` of the schema."""

Payload = Union[bytes, bytearray, memoryview]
Frames = list[Payload]


class Role(enum.IntEnum):
    """The kind of a peer."""

    CLIENT = 0
    WORKER = 1
    AGENT = 2


class Outcome(enum.IntEnum):
    """How a task ended. The schema describes the payload of each outcome."""

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
    ENVIRONMENT_FAILED = 11
    NO_ROOM = 12
    FILE = 13


class Keep(enum.IntEnum):
    """Where a task's result goes: to the client, into an object of the scheduler, or both."""

    NO = 0
    YES = 1
    BOTH = 2


TaskAttempt = tuple[int, int, int]
"""A dispatched task: the incarnation of its client, its id, its attempt."""


_FILE_RESULT = struct.Struct("<QQ")


class FileResult(NamedTuple):
    """The payload of Outcome.FILE: a result that its worker has written into the directory of its client."""

    file: int
    """The id in the name of the file."""
    size: int
    """The bytes of its frames."""

    def pack(self) -> bytes:
        """Return the payload."""
        return _FILE_RESULT.pack(*self)

    @classmethod
    def unpack(cls, payload: Payload) -> FileResult:
        """Return what a payload says.

        Raises:
            ValueError: it has another length.
        """
        try:
            return cls(*_FILE_RESULT.unpack(payload))
        except struct.error as error:
            raise ValueError(f"malformed name of a file: {error}") from None


@dataclass(frozen=True)
class DataAddress:
    """Where other host agents get the object files of an agent."""

    address: str = ""
    """`tcp://HOST:PORT`; empty: nowhere."""
    key: str = ""
    """The hex digits of its CURVE key; empty: the connection is not encrypted."""
    ticket: str = field(default="", repr=False)
    """A secret: only agents that know it get files."""


class HostResource(NamedTuple):
    """A counted resource of a host."""

    name: str
    amount: int
    """Thousandths of a unit."""
    has_ids: bool = False
    """Whether the units have ids."""


@dataclass(eq=False, repr=False)
class Hello(Record):
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
    running: list[TaskAttempt] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    scheduler: int = 0
    data: DataAddress = DataAddress()
    takes_followers: bool = False
    account: str = ""
    packages: str = ""
    resources: tuple[HostResource, ...] = ()
    slots: int = 0
    bookings: list[str] = field(default_factory=list)
    """Of a worker: the bookings of the tasks in `running`, as in Dispatch. Empty or of the same length."""
    environment: str = ""
    environments: int = 0
    platform: str = ""
    finished: int = 0
    """Of a worker: how many tasks at the end of `running` have ended."""


@dataclass(eq=False, repr=False)
class Welcome(Record):
    protocol_version: int
    version: str
    incarnation: int
    lease_seconds: float
    credit: int = 0
    result_window: int = 0
    message_size_limit: int = 0
    """The most bytes of a frame that the scheduler takes; 0: it announced no limit."""
    workers: int = 0
    """To a client: the number of connected workers."""
    takes_files: bool = False
    """To a client: whether its large objects may be files of its own."""


NOT_AUTHORIZED = "notAuthorized"
"""The reason of a Refused if the peer's key is not authorized."""


@dataclass(eq=False, repr=False)
class Refused(Record):
    reason: str
    text: str
    protocol_version: int
    version: str


@dataclass(eq=False, repr=False)
class HelloWanted(Record):
    pass


@dataclass(eq=False, repr=False)
class Goodbye(Record):
    reason: str = ""


@dataclass(eq=False, repr=False)
class WorkerHeartbeat(Record):
    incarnation: int
    resident_bytes: int
    cpu_milliseconds: int


@dataclass(eq=False, repr=False)
class Heartbeat(Record):
    sequence: int
    resident_bytes: int = 0
    cpu_milliseconds: int = 0
    workers: list[WorkerHeartbeat] = field(default_factory=list)
    lag_microseconds: int = 0
    is_retiring: bool = False
    memory_bytes: int = 0
    disk_bytes: int = 0
    moved_bytes: int = 0
    unix_milliseconds: int = 0
    wants_hosts: bool = False
    pools: list[PoolState] = field(default_factory=list)
    """Those of an autoscaler."""
    memory_limit_bytes: int = 0
    disk_limit_bytes: int = 0


@dataclass(eq=False, repr=False)
class Host(Record):
    """What a client is told about the host of an agent."""

    name: str
    language: str
    """Of its agent, for example `python 3.11.7`."""
    version: str
    packages: int
    """1 + the index of its text in `HeartbeatEcho.packages`; 0: not known, or left out."""
    unix_milliseconds: int
    """The time of its clock when the echo was made; 0: not known."""


@dataclass(eq=False, repr=False)
class HeartbeatEcho(Record):
    sequence: int
    is_drained: bool = False
    workers: int = 0
    """To a client: the number of connected workers."""
    hosts: list[Host] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    unix_milliseconds: int = 0
    """With `hosts`: the time of the scheduler's clock; 0: not known."""
    ticket: str = field(default="", repr=False)
    """The ticket of this peer's data address from now on; empty: the same as before."""


@dataclass(eq=False, repr=False)
class Function(Record):
    number: int
    name: str
    kind: str
    payload: Payload
    environment: str = ""


@dataclass(eq=False, repr=False)
class ForgetFunctions(Record):
    numbers: list[int]


@dataclass(frozen=True)
class Options:
    """The options of all rows of a Submit. The defaults request nothing."""

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
    """The client's number of the graph that the rows belong to; 0: no graph."""
    keys: str = ""
    """For display: the keys of that graph whose values are wanted."""
    calls: int = 0
    """The number of calls that each row stands for (`pickling.call_rows`); 0: a row is one plain call."""
    limits: tuple[str, ...] = ()
    """Names of the scheduler's limits, sorted."""
    resources: tuple[tuple[str, int], ...] = ()
    """Counted resources of a host: names and thousandths, sorted."""
    release_resources: bool = False
    gang_size: int = 0
    """Each row stands for a gang of so many tasks. 0: it is no gang."""


@dataclass(eq=False, repr=False)
class Submit(Record):
    ids: Sequence[int]
    functions: Sequence[int]
    payloads: Sequence[Payload]
    options: Options | None = None
    inputs: Sequence[int] = ()
    """The ids of the objects that the rows read, concatenated."""
    input_counts: Sequence[int] = ()
    """The number of inputs of each row; empty: all 0."""
    keep: Sequence[int] = ()
    """Values of `Keep`; empty: no result is kept."""
    keep_earlier: Sequence[int] = ()
    """The ids of tasks submitted earlier whose results are kept from now on, as with `Keep.BOTH`."""


@dataclass(eq=False, repr=False)
class Dispatch(Record):
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    functions: list[int]
    payloads: list[Payload]
    flags: list[int] = field(default_factory=list)
    """Sums of the FLAG_ numbers. This and the next two columns are empty or of full length."""
    depths: list[int] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    """The ids of the objects that the rows read, of the row's client, concatenated."""
    input_counts: list[int] = field(default_factory=list)
    """Empty or of full length."""
    input_sources: list[int] = field(default_factory=list)
    """One per input: 0: an Object message; 1: a file made by the host agent; 2: a file made by a worker of the host;
    3: the result of a row before this row."""
    inline_sizes: list[int] = field(default_factory=list)
    """One per input: its size + 1 if it is at the end of the row's payload, else 0. Empty: all 0."""
    names: list[str] = field(default_factory=list)
    """The rows' own names, in place of those of their functions. Empty or of full length."""
    bookings: list[str] = field(default_factory=list)
    """The resources that the rows have, as `17 cpus=4 gpu=1.5:0+2`. Empty or of full length."""


FLAG_PROFILE = 1
FLAG_REPORT_START = 2
FLAG_STREAM_OUTPUT = 4
FLAG_MAY_STORE = 8
FLAG_CALLS = 16
FLAG_RELEASE = 32
"""The row releases its resources when it is suspended."""
FLAG_GANG = 64
FLAG_STORE_SMALL = 128
"""With FLAG_MAY_STORE: also a small result may be a file. Without it: the result is kept, and must not be a file."""

INPUT_IN_WORKER_FILE = 2
"""In Dispatch.input_sources: a file that a worker of the host has made."""

INPUT_OF_ROW_BEFORE = 3
"""In Dispatch.input_sources: the result of a row before this row in the same Dispatch."""


@dataclass(eq=False, repr=False)
class Results(Record):
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    outcomes: list[int]
    durations: list[int]
    payloads: list[Payload]
    cpu_times: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """For each row one line that says why it failed, or an empty text. Empty: no row has failed."""
    tracebacks: list[str] = field(default_factory=list)
    """For each row the traceback of its failure, or an empty text. Empty: no row has failed."""
    calls: list[int] = field(default_factory=list)
    """The number of calls that have ended, of rows that stand for several; 0: all. Empty: all 0."""


@dataclass(eq=False, repr=False)
class Resolved(Record):
    ids: list[int]
    outcomes: list[int]
    payloads: list[Payload]
    durations: list[int] = field(default_factory=list)
    """This and the next two columns are empty or of full length."""
    cpu_times: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class Started(Record):
    ids: list[int]
    clients: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


OBJECT_FRAMES = 64
"""The most frames of an object. It has at least one."""


@dataclass(eq=False, repr=False)
class Object(Record):
    id: int
    frames: Sequence[Payload]
    client: int = 0
    name: str = ""
    file_bytes: int = 0
    """Not 0: there are no frames. They are in a file of the client, and have so many bytes in all."""
    data: DataAddress = DataAddress()
    """Where agents get this file; its address is empty if only agents of the client's host can get it."""
    is_wanted: bool = False
    """Not sent: whether the scheduler has asked for the bytes of a file of the client."""


@dataclass(eq=False, repr=False)
class Objects(Record):
    """Several objects, each in one frame."""

    ids: list[int]
    payloads: Sequence[Payload]


@dataclass(eq=False, repr=False)
class ForgetObjects(Record):
    ids: list[int]
    clients: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class HeldResults(Record):
    ids: list[int]
    """The ids of their files."""
    bytes: list[int]


@dataclass(eq=False, repr=False)
class FetchObjects(Record):
    ids: list[int]
    clients: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class TransferObjects(Record):
    """The scheduler asks an agent to get object files from another agent, or from a client."""

    source: int
    """The incarnation of the other agent, or of the client."""
    data: DataAddress
    """Its data address."""
    clients: list[int]
    ids: list[int]
    bytes: list[int]
    """For each object, the size of its frames in all."""


@dataclass(eq=False, repr=False)
class Transferred(Record):
    """An answer to TransferObjects, for some of its files."""

    source: int
    clients: list[int]
    ids: list[int]
    error: str = ""
    """Why these files are not there; empty: they are."""
    is_unreachable: bool = False
    """Whether there was no connection to the source."""


@dataclass(eq=False, repr=False)
class GangMember(Record):
    """The scheduler tells a worker, before it sends a task, that the task is a member of a gang."""

    client: int
    id: int
    attempt: int
    rank: int
    hosts: list[str]
    """The host of each member, by rank."""


@dataclass(eq=False, repr=False)
class Exchange(Record):
    """From a worker: the value of a member of a gang for the others. To a worker: the values of all, by rank."""

    client: int
    id: int
    attempt: int
    round: int
    """Counts the exchanges of this attempt, from 0."""
    values: list[Payload]
    ended: int = 0
    """To a worker: 1 + the rank of a member that has ended without this exchange; 0: the values are those of all."""


@dataclass(eq=False, repr=False)
class ReadObject(Record):
    """An agent asks another one for a part of an object file."""

    ticket: str = field(repr=False)
    client: int
    id: int
    offset: int
    bytes: int


@dataclass(eq=False, repr=False)
class ObjectChunk(Record):
    """A part of an object file. It answers ReadObject."""

    client: int
    id: int
    offset: int
    file_bytes: int
    """The size of the whole file."""
    payload: Payload


@dataclass(eq=False, repr=False)
class NoObject(Record):
    """There is no such object file. It answers ReadObject."""

    client: int
    id: int
    reason: str


LOCK_LIMIT = "lock:"
"""Limits whose names begin like this need no definition: each lets one task run at once."""

LEVEL_MODULES = 1
LEVEL_LOCKED = 2
LEVEL_ANY = 3
"""What an environment asks of a host: modules; packages that run no code when they are installed; any packages."""


@dataclass(eq=False, repr=False)
class Environment(Record):
    """An environment: a client names it, and the scheduler has a host agent prepare it."""

    name: str
    """The SHA-256 of the manifest, in hex digits."""
    contents: list[str]
    """The SHA-256 of each content that the manifest names, in hex digits."""
    bytes: int
    """The size of the contents in all."""
    level: int
    """One of the LEVEL_ numbers."""
    platform: str
    """It works on hosts of this platform alone; empty: on all."""
    manifest: Payload = field(repr=False)


@dataclass(eq=False, repr=False)
class ContentsWanted(Record):
    """Asks for contents of environments."""

    names: list[str]
    """Their SHA-256, in hex digits."""


@dataclass(eq=False, repr=False)
class Contents(Record):
    """Contents of environments. Their names are the SHA-256 of their bytes."""

    payloads: Sequence[Payload] = field(repr=False)


@dataclass(eq=False, repr=False)
class EnvironmentReady(Record):
    """A host agent can start workers of an environment, or cannot."""

    name: str
    error: str = ""
    """Why it cannot; empty: it can."""


CHANGE_REPLACE = 0
CHANGE_BESIDE = 1
"""Start a worker beside one that has suspended tasks."""
CHANGE_END = 2
"""End a worker for which none is started."""


@dataclass(eq=False, repr=False)
class ChangeWorker(Record):
    """The scheduler has an agent start a worker in the place of another one, or beside it, or end one for good."""

    worker: int
    environment: str
    """The environment of the new worker; empty: none."""
    mode: int = 0
    """CHANGE_REPLACE, CHANGE_BESIDE or CHANGE_END."""


@dataclass(eq=False, repr=False)
class Output(Record):
    """What tasks have printed. The lines of a row have no newline at the end."""

    ids: list[int]
    streams: list[int]
    """STANDARD_OUTPUT or STANDARD_ERROR."""
    labels: list[bytes]
    """Host, process and task, for display. UTF-8, as `texts`."""
    texts: list[bytes]
    clients: list[int] = field(default_factory=list)
    dropped: int = 0
    """Bytes of output that were dropped before this message."""

    @property
    def size(self) -> int:
        """The bytes that it counts in the client's window of results."""
        return sum(map(len, self.labels)) + sum(map(len, self.texts))

    def rows(self, rows: Sequence[int]) -> Output:
        """Return an Output of these rows."""
        columns = (self.ids, self.streams, self.labels, self.texts)
        ids, streams, labels, texts = ([column[row] for row in rows] for column in columns)
        return Output(ids, streams, labels, texts, [], self.dropped)  # type: ignore[arg-type]


STANDARD_OUTPUT = 0
STANDARD_ERROR = 1


@dataclass(eq=False, repr=False)
class Shutdown(Record):
    pass


@dataclass(eq=False, repr=False)
class Retract(Record):
    tasks: list[TaskAttempt]


@dataclass(eq=False, repr=False)
class Retracted(Record):
    tasks: list[TaskAttempt]
    returned: list[int]
    """1: the task is returned; 0: the worker keeps it."""


@dataclass(eq=False, repr=False)
class Stop(Record):
    tasks: list[TaskAttempt]


@dataclass(eq=False, repr=False)
class Suspended(Record):
    tasks: list[TaskAttempt]


@dataclass(eq=False, repr=False)
class Resumed(Record):
    tasks: list[TaskAttempt]


@dataclass(eq=False, repr=False)
class EndWorker(Record):
    incarnation: int
    task: TaskAttempt
    reason: str


@dataclass(eq=False, repr=False)
class Credit(Record):
    bytes: int


@dataclass(eq=False, repr=False)
class Received(Record):
    bytes: int


@dataclass(eq=False, repr=False)
class Cancel(Record):
    ids: list[int]
    force: bool = False


@dataclass(eq=False, repr=False)
class CancelRefused(Record):
    ids: list[int]


@dataclass(eq=False, repr=False)
class WorkerDied(Record):
    incarnation: int
    pid: int
    cause: str
    peak_bytes: int = 0
    client: int = 0
    id: int = 0
    attempt: int = 0


@dataclass(eq=False, repr=False)
class Notice(Record):
    text: str


@dataclass(eq=False, repr=False)
class Error(Record):
    text: str
    tasks: list[int] = field(default_factory=list)
    """The ids of the rejected tasks."""


Message = Union[
    Hello, Welcome, Refused, HelloWanted, Goodbye, Heartbeat, HeartbeatEcho, Function, ForgetFunctions, Submit,
    Dispatch, Results, Resolved, Started, Cancel, CancelRefused, WorkerDied, Error, Snapshot, Retract, Retracted, Stop,
    Suspended, Resumed, EndWorker, Credit, Received, Object, Objects, ForgetObjects, FetchObjects, Shutdown, Output,
    History, Graphs, TransferObjects, Transferred, ReadObject, ObjectChunk, NoObject, Environment, ContentsWanted,
    Contents, EnvironmentReady, ChangeWorker, GangMember, Exchange, HeldResults,
]  # fmt: skip
