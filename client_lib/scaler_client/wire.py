"""Bytes <-> messages of the protocol, for clients, workers and host agents.

Batches, which carry everything that happens per task, go through `columns`; all other messages through pycapnp.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import capnp

from .columns import Batch, NotPlainError, Values, write_batch
from .messages import (
    Cancel,
    CancelRefused,
    Dispatch,
    Error,
    ForgetFunctions,
    Frames,
    Function,
    Goodbye,
    Heartbeat,
    HeartbeatEcho,
    Hello,
    HelloWanted,
    Message,
    Payload,
    Refused,
    Resolved,
    Results,
    Snapshot,
    Started,
    Submit,
    Welcome,
    WorkerDied,
)

capnp.remove_import_hook()
_schema = capnp.load(str(Path(__file__).with_name("scaler.capnp")))

LARGE_PAYLOAD_BYTES = 64 * 1024
"""A payload of at least this size travels in a frame of its own: it is then never copied to be joined or cut out."""

SPARE_WORDS = 1024
"""Added to the traversal limit, which guards against pointers that make a message, or nothing, be read many times."""

_FORGET_FUNCTIONS, _SUBMIT, _DISPATCH, _RESULTS, _RESOLVED, _STARTED, _CANCEL, _CANCEL_REFUSED = (
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
)
"""Ordinals of the batches in the schema's union."""


class WireError(Exception):
    """The bytes are not a message of this protocol."""


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


def _pack_payloads(payloads: Sequence[Payload]) -> tuple[list[tuple[str, Values]], Frames]:
    """The columns `sizes`, `large` and `payload` of a batch, and the frames of its large payloads."""
    sizes = list(map(len, payloads))
    if not sizes or max(sizes) < LARGE_PAYLOAD_BYTES:
        return [("I", _column(sizes)), ("I", ()), ("B", b"".join(payloads))], []
    large = [row for row, size in enumerate(sizes) if size >= LARGE_PAYLOAD_BYTES]
    frames = [payloads[row] for row in large]
    small = list(payloads)
    for row in large:
        sizes[row] = 0
        small[row] = b""
    return [("I", _column(sizes)), ("I", large), ("B", b"".join(small))], frames


def _unpack_payloads(batch: Batch, field: int, rows: int, frames: Sequence[Payload]) -> list[Payload]:
    """Each row's payload, from the columns `sizes`, `large` and `payload`, which begin at `field`."""
    joined = batch.data(field + 2)
    sizes = batch.numbers(field, "I")
    large = batch.numbers(field + 1, "I")
    if len(frames) != len(large):
        raise WireError(f"{len(frames)} large payloads where {len(large)} are announced")
    if rows == 1 and not large:
        if sizes != [len(joined)]:
            raise WireError(f"payload of {len(joined)} bytes where {sizes} are announced")
        return [joined]
    sizes = _full(sizes, rows, "sizes")
    ends = list(accumulate(sizes))
    if rows and ends[-1] != len(joined):
        raise WireError(f"payload of {len(joined)} bytes where {ends[-1]} are announced")
    payloads: list[Payload] = [joined[end - size : end] for size, end in zip(sizes, ends)]
    for row, frame in zip(large, frames):
        if row >= rows:
            raise WireError(f"large payload for row {row} of {rows}")
        payloads[row] = frame
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


def _encode_forget_functions(message: ForgetFunctions) -> Frames:
    return [write_batch(_FORGET_FUNCTIONS, [("I", message.numbers)])]


def _encode_submit(message: Submit) -> Frames:
    payload_columns, frames = _pack_payloads(message.payloads)
    columns = [("Q", message.ids), ("I", _column(message.functions)), *payload_columns]
    return [write_batch(_SUBMIT, columns), *frames]


def _encode_results(message: Results) -> Frames:
    payload_columns, frames = _pack_payloads(message.payloads)
    columns = [
        ("I", _column(message.clients)),
        ("Q", message.ids),
        ("I", _column(message.attempts)),
        ("B", _column(message.outcomes)),
        ("Q", message.durations),
        *payload_columns,
    ]
    return [write_batch(_RESULTS, columns), *frames]


def _encode_started(message: Started) -> Frames:
    return [write_batch(_STARTED, [("I", message.clients), ("Q", message.ids), ("I", message.attempts)])]


def _encode_cancel(message: Cancel) -> Frames:
    return [write_batch(_CANCEL, [("Q", message.ids)])]


_ENCODERS: dict[type, Callable[[Any], Frames]] = {
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
    first = bytes(frames[0])
    try:
        batch = Batch(first)
        decoder = _BATCH_DECODERS.get(batch.tag)
        if decoder is not None:
            return decoder(batch, frames[1:])
    except NotPlainError:
        pass  # an unusual message, or none: pycapnp tells
    return _decode_with_capnp(first, frames[1:])


def _decode_with_capnp(frame: bytes, payloads: Sequence[Payload]) -> Message:
    try:
        # In words: each byte may be read eight times.
        with _schema.Message.from_bytes(frame, traversal_limit_in_words=len(frame) + SPARE_WORDS) as root:
            kind = str(root.which())
            decoder = _DECODERS.get(kind)
            if decoder is not None:
                message: Message = decoder(getattr(root, kind), payloads)
                return message
            if kind not in _BATCH_COLUMNS:
                raise WireError(f"message {kind} is not for a peer of the scheduler")
            # By hand: pycapnp's as_builder ends the process where the message is malformed.
            struct = getattr(root, kind)
            tag, columns = _BATCH_COLUMNS[kind]
            values = [(typecode, _values(getattr(struct, name), typecode)) for name, typecode in columns]
        return _BATCH_DECODERS[tag](Batch(write_batch(tag, values)), payloads)
    except (capnp.KjException, ValueError) as error:
        raise WireError(f"malformed message: {str(error).splitlines()[0]}") from None
    except NotPlainError:
        raise WireError("malformed message: a list of another element type") from None


def _values(field: Any, typecode: str) -> Values:
    return bytes(field) if isinstance(field, bytes) else array(typecode, field)


def _decode_forget_functions(batch: Batch, _: Sequence[Payload]) -> Message:
    return ForgetFunctions(batch.numbers(0, "I"))


def _decode_dispatch(batch: Batch, frames: Sequence[Payload]) -> Message:
    ids = batch.numbers(1, "Q")
    rows = len(ids)
    return Dispatch(
        _full(batch.numbers(0, "I"), rows, "clients"),
        ids,
        _full(batch.numbers(2, "I"), rows, "attempts"),
        _full(batch.numbers(3, "I"), rows, "functions"),
        _unpack_payloads(batch, 4, rows, frames),
    )


def _decode_resolved(batch: Batch, frames: Sequence[Payload]) -> Message:
    ids = batch.numbers(0, "Q")
    rows = len(ids)
    return Resolved(ids, _full(batch.numbers(1, "B"), rows, "outcomes"), _unpack_payloads(batch, 2, rows, frames))


def _decode_started(batch: Batch, _: Sequence[Payload]) -> Message:
    return Started(batch.numbers(1, "Q"), batch.numbers(0, "I"), batch.numbers(2, "I"))


def _decode_cancel_refused(batch: Batch, _: Sequence[Payload]) -> Message:
    return CancelRefused(batch.numbers(0, "Q"))


_BATCH_DECODERS: dict[int, Callable[[Batch, Sequence[Payload]], Message]] = {
    _FORGET_FUNCTIONS: _decode_forget_functions,
    _DISPATCH: _decode_dispatch,
    _RESOLVED: _decode_resolved,
    _STARTED: _decode_started,
    _CANCEL_REFUSED: _decode_cancel_refused,
}


_PAYLOAD_COLUMNS = (("sizes", "I"), ("large", "I"), ("payload", "B"))

_BATCH_COLUMNS: dict[str, tuple[int, tuple[tuple[str, str], ...]]] = {
    "forgetFunctions": (_FORGET_FUNCTIONS, (("numbers", "I"),)),
    "dispatch": (
        _DISPATCH,
        (("clients", "I"), ("ids", "Q"), ("attempts", "I"), ("functions", "I"), *_PAYLOAD_COLUMNS),
    ),
    "resolved": (_RESOLVED, (("ids", "Q"), ("outcomes", "B"), *_PAYLOAD_COLUMNS)),
    "started": (_STARTED, (("clients", "I"), ("ids", "Q"), ("attempts", "I"))),
    "cancelRefused": (_CANCEL_REFUSED, (("ids", "Q"),)),
}
"""The ordinals of the batches for peers, and their fields in order, as `write_batch` takes them."""


def _decode_welcome(welcome: Any, _: Sequence[Payload]) -> Welcome:
    return Welcome(
        welcome.protocolVersion, welcome.version, welcome.incarnation, welcome.peer, welcome.leaseMilliseconds / 1000
    )


def _decode_refused(refused: Any, _: Sequence[Payload]) -> Refused:
    try:
        reason = str(refused.reason)
    except RuntimeError:  # of a newer scheduler: it is all the more to be understood that it refuses
        reason = f"reason {refused.reason.raw}"
    return Refused(reason, refused.text, refused.protocolVersion, refused.version)


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
    "error": _decode_error,
    "snapshot": _decode_snapshot,
}
