"""Bytes <-> messages of the protocol, for clients, workers and host agents (pycapnp).

One dataclass a message, named like the schema's struct. Columns are plain lists. Payloads of a batch are a list with one
bytes-like object a row; how they are spread over frames (protocol/PROTOCOL.md, "payload frames") is known only here and
in the scheduler's own wire package.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Union

import capnp

capnp.remove_import_hook()
_schema = capnp.load(str(Path(__file__).with_name("scaler.capnp")))

PROTOCOL_VERSION: int = _schema.protocolVersion
LARGE_PAYLOAD_BYTES = 64 * 1024
"""A payload of at least this size travels in a frame of its own: it is then never copied to be joined or cut out."""

MAX_MESSAGE_WORDS = 1 << 27
"""Traversal limit when reading, in words of 8 bytes: only guards against pointers that make a message read many times."""

Payload = Union[bytes, bytearray, memoryview]
Frames = list[Payload]


class WireError(Exception):
    """The bytes are not a message of this protocol."""


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
    WORKER_DIED = 4
    CANCELLED = 5


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


@dataclass
class Welcome:
    protocol_version: int
    version: str
    incarnation: int
    peer: int
    lease_seconds: float


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


@dataclass
class HeartbeatEcho:
    sequence: int


@dataclass
class Function:
    number: int
    name: str
    serializer: str
    payload: Payload


@dataclass
class ForgetFunctions:
    numbers: list[int]


@dataclass
class Submit:
    ids: Sequence[int]
    functions: Sequence[int]
    payloads: Sequence[Payload]


@dataclass
class Dispatch:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    functions: list[int]
    payloads: list[Payload]


@dataclass
class Results:
    clients: list[int]
    ids: list[int]
    attempts: list[int]
    outcomes: list[int]
    durations: list[int]
    payloads: list[Payload]


@dataclass
class Resolved:
    ids: list[int]
    outcomes: list[int]
    payloads: list[Payload]


@dataclass
class Started:
    ids: list[int]
    clients: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


@dataclass
class Cancel:
    ids: list[int]


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
class Error:
    text: str


@dataclass
class Snapshot:
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


Message = Union[
    Hello, Welcome, Refused, HelloWanted, Goodbye, Heartbeat, HeartbeatEcho, Function, ForgetFunctions, Submit, Dispatch,
    Results, Resolved, Started, Cancel, CancelRefused, WorkerDied, Error, Snapshot,
]  # fmt: skip


# ---------------------------------------------------------------------------------------------------- columns, payloads


def _column(values: Sequence[int]) -> Sequence[int]:
    """The column as it travels: a constant one shrinks to a single element."""
    if len(values) > 1 and values.count(values[0]) == len(values):
        return values[:1]
    return values


def _full(values: list[int], rows: int, name: str) -> list[int]:
    """The column at full length again."""
    if len(values) == rows:
        return values
    if len(values) == 1:
        return values * rows
    raise WireError(f"column {name} has {len(values)} elements for {rows} rows")


def _pack_payloads(batch: Any, payloads: Sequence[Payload]) -> Frames:
    """Fill the batch's `sizes` and `large`; return the payload frames."""
    sizes = [len(payload) for payload in payloads]
    if not sizes:
        return []
    if max(sizes) < LARGE_PAYLOAD_BYTES:
        batch.sizes = _column(sizes)
        return [b"".join(payloads)]
    large = [row for row, size in enumerate(sizes) if size >= LARGE_PAYLOAD_BYTES]
    frames = [payloads[row] for row in large]
    small = list(payloads)
    for row in large:
        sizes[row] = 0
        small[row] = b""
    batch.sizes = _column(sizes)
    batch.large = large
    return [b"".join(small), *frames]


def _unpack_payloads(batch: Any, rows: int, frames: Sequence[Payload]) -> list[Payload]:
    """Each row's payload, from the frames behind frame 0."""
    if rows == 0:
        return []
    large = list(batch.large)
    if len(frames) != 1 + len(large):
        raise WireError(f"{len(frames)} payload frames where {1 + len(large)} are announced")
    joined = frames[0]
    sizes = _full(list(batch.sizes), rows, "sizes")
    ends = list(accumulate(sizes))
    if ends[-1] != len(joined):
        raise WireError(f"payload frame of {len(joined)} bytes where {ends[-1]} are announced")
    payloads: list[Payload] = [joined[end - size : end] for size, end in zip(sizes, ends)]
    for position, row in enumerate(large):
        if row >= rows:
            raise WireError(f"large payload for row {row} of {rows}")
        payloads[row] = frames[1 + position]
    return payloads


# ------------------------------------------------------------------------------------------------------------- encoding


def encode(message: Message) -> Frames:
    """The ZeroMQ frames of a message."""
    return _ENCODERS[type(message)](message)


def _new(words: int = 64) -> Any:
    # One segment of the right size: growing by further segments costs pycapnp more, and every reader too.
    return _schema.Message.new_message(num_first_segment_words=words)


def _encode_hello(message: Hello) -> Frames:
    root = _new(256)
    hello = root.init("hello")
    hello.protocolVersion = message.protocol_version
    hello.role = int(message.role)
    hello.incarnation = message.incarnation
    hello.agent = message.agent
    hello.language = message.language
    hello.languageVersion = message.language_version
    hello.version = message.version
    hello.host = message.host
    hello.pid = message.pid
    hello.name = message.name
    return [root.to_bytes()]


def _encode_goodbye(message: Goodbye) -> Frames:
    root = _new()
    root.init("goodbye").reason = message.reason
    return [root.to_bytes()]


def _encode_heartbeat(message: Heartbeat) -> Frames:
    root = _new(64 + 4 * len(message.workers))
    heartbeat = root.init("heartbeat")
    heartbeat.sequence = message.sequence
    heartbeat.residentBytes = message.resident_bytes
    heartbeat.cpuMilliseconds = message.cpu_milliseconds
    workers = heartbeat.init("workers", len(message.workers))
    for entry, worker in zip(workers, message.workers):
        entry.incarnation = worker.incarnation
        entry.residentBytes = worker.resident_bytes
        entry.cpuMilliseconds = worker.cpu_milliseconds
    return [root.to_bytes()]


def _encode_function(message: Function) -> Frames:
    root = _new(128)
    function = root.init("function")
    function.number = message.number
    function.name = message.name
    function.serializer = message.serializer
    return [root.to_bytes(), message.payload]


def _encode_forget_functions(message: ForgetFunctions) -> Frames:
    root = _new(64 + len(message.numbers))
    root.init("forgetFunctions").numbers = message.numbers
    return [root.to_bytes()]


def _encode_submit(message: Submit) -> Frames:
    root = _new(64 + 2 * len(message.ids) + len(message.ids))
    submit = root.init("submit")
    submit.ids = message.ids
    submit.functions = _column(message.functions)
    frames = _pack_payloads(submit, message.payloads)
    return [root.to_bytes(), *frames]


def _encode_results(message: Results) -> Frames:
    root = _new(64 + 5 * len(message.ids))
    results = root.init("results")
    results.clients = _column(message.clients)
    results.ids = message.ids
    results.attempts = _column(message.attempts)
    results.outcomes = _column(message.outcomes)
    results.durations = message.durations
    frames = _pack_payloads(results, message.payloads)
    return [root.to_bytes(), *frames]


def _encode_started(message: Started) -> Frames:
    root = _new(64 + 3 * len(message.ids))
    started = root.init("started")
    started.clients = message.clients
    started.ids = message.ids
    started.attempts = message.attempts
    return [root.to_bytes()]


def _encode_cancel(message: Cancel) -> Frames:
    root = _new(64 + len(message.ids))
    root.init("cancel").ids = message.ids
    return [root.to_bytes()]


def _encode_worker_died(message: WorkerDied) -> Frames:
    root = _new()
    died = root.init("workerDied")
    died.incarnation = message.incarnation
    died.pid = message.pid
    died.cause = message.cause
    died.peakBytes = message.peak_bytes
    died.client = message.client
    died.id = message.id
    died.attempt = message.attempt
    return [root.to_bytes()]


_ENCODERS: dict[type, Any] = {
    Hello: _encode_hello,
    Goodbye: _encode_goodbye,
    Heartbeat: _encode_heartbeat,
    Function: _encode_function,
    ForgetFunctions: _encode_forget_functions,
    Submit: _encode_submit,
    Results: _encode_results,
    Started: _encode_started,
    Cancel: _encode_cancel,
    WorkerDied: _encode_worker_died,
}


# ------------------------------------------------------------------------------------------------------------- decoding


def decode(frames: Sequence[Payload]) -> Message:
    """The message in these ZeroMQ frames.

    Raises:
        WireError: the frames are not a message that a peer of the scheduler can receive.
    """
    if not frames:
        raise WireError("a message without frames")
    try:
        with _schema.Message.from_bytes(frames[0], traversal_limit_in_words=MAX_MESSAGE_WORDS) as root:
            kind = root.which()
            decoder = _DECODERS.get(str(kind))
            if decoder is None:
                raise WireError(f"unexpected message {kind}")
            message: Message = decoder(getattr(root, str(kind)), frames[1:])
            return message
    except (capnp.KjException, ValueError) as error:
        raise WireError(f"malformed message: {str(error).splitlines()[0]}") from None


def _decode_welcome(welcome: Any, _: Sequence[Payload]) -> Welcome:
    return Welcome(
        welcome.protocolVersion, welcome.version, welcome.incarnation, welcome.peer, welcome.leaseMilliseconds / 1000
    )


def _decode_refused(refused: Any, _: Sequence[Payload]) -> Refused:
    return Refused(str(refused.reason), refused.text, refused.protocolVersion, refused.version)


def _decode_hello_wanted(_wanted: Any, _: Sequence[Payload]) -> HelloWanted:
    return HelloWanted()


def _decode_goodbye(goodbye: Any, _: Sequence[Payload]) -> Goodbye:
    return Goodbye(goodbye.reason)


def _decode_heartbeat_echo(echo: Any, _: Sequence[Payload]) -> HeartbeatEcho:
    return HeartbeatEcho(echo.sequence)


def _decode_function(function: Any, frames: Sequence[Payload]) -> Function:
    if len(frames) != 1:
        raise WireError(f"{len(frames)} payload frames with a function, not 1")
    return Function(function.number, function.name, function.serializer, frames[0])


def _decode_forget_functions(forget: Any, _: Sequence[Payload]) -> ForgetFunctions:
    return ForgetFunctions(list(forget.numbers))


def _decode_dispatch(dispatch: Any, frames: Sequence[Payload]) -> Dispatch:
    ids = list(dispatch.ids)
    rows = len(ids)
    return Dispatch(
        _full(list(dispatch.clients), rows, "clients"),
        ids,
        _full(list(dispatch.attempts), rows, "attempts"),
        _full(list(dispatch.functions), rows, "functions"),
        _unpack_payloads(dispatch, rows, frames),
    )


def _decode_resolved(resolved: Any, frames: Sequence[Payload]) -> Resolved:
    ids = list(resolved.ids)
    rows = len(ids)
    return Resolved(ids, _full(list(resolved.outcomes), rows, "outcomes"), _unpack_payloads(resolved, rows, frames))


def _decode_started(started: Any, _: Sequence[Payload]) -> Started:
    return Started(list(started.ids), list(started.clients), list(started.attempts))


def _decode_cancel_refused(refused: Any, _: Sequence[Payload]) -> CancelRefused:
    return CancelRefused(list(refused.ids))


def _decode_error(error: Any, _: Sequence[Payload]) -> Error:
    return Error(error.text)


def _counters(entries: Any) -> dict[str, int]:
    return {entry.name: entry.count for entry in entries}


def _decode_snapshot(snapshot: Any, _: Sequence[Payload]) -> Snapshot:
    return Snapshot(
        version=snapshot.version,
        incarnation=snapshot.incarnation,
        uptime_seconds=snapshot.uptimeMilliseconds / 1000,
        address=snapshot.address,
        waiting=snapshot.waiting,
        dispatched=snapshot.dispatched,
        resolved=snapshot.resolved,
        clients=snapshot.clients,
        workers=snapshot.workers,
        agents=snapshot.agents,
        received=_counters(snapshot.received),
        sent=_counters(snapshot.sent),
        dropped=_counters(snapshot.dropped),
    )


_DECODERS: dict[str, Any] = {
    "welcome": _decode_welcome,
    "refused": _decode_refused,
    "helloWanted": _decode_hello_wanted,
    "goodbye": _decode_goodbye,
    "heartbeatEcho": _decode_heartbeat_echo,
    "function": _decode_function,
    "forgetFunctions": _decode_forget_functions,
    "dispatch": _decode_dispatch,
    "resolved": _decode_resolved,
    "started": _decode_started,
    "cancelRefused": _decode_cancel_refused,
    "error": _decode_error,
    "snapshot": _decode_snapshot,
}
