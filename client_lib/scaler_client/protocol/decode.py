"""Decodes ZeroMQ frames. WireError is the only exception, also for random and hostile bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ..commands.logs import on_one_line
from . import one_row_codec
from .columns import BatchReader, UnusualLayoutError, Values, WireError, expand_column, write_batch
from .history_decoder import decode_graphs, decode_history
from .messages import (
    OBJECT_FRAMES,
    PROTOCOL_VERSION,
    CancelRefused,
    ChangeWorker,
    Contents,
    ContentsWanted,
    Credit,
    DataAddress,
    Dispatch,
    EndWorker,
    Environment,
    Error,
    Exchange,
    FetchObjects,
    ForgetFunctions,
    ForgetObjects,
    Function,
    GangMember,
    Goodbye,
    HeartbeatEcho,
    HelloWanted,
    Host,
    Message,
    NoObject,
    Notice,
    Object,
    ObjectChunk,
    Output,
    Payload,
    ReadObject,
    Refused,
    Resolved,
    Retract,
    Shutdown,
    Started,
    Stop,
    TaskAttempt,
    TransferObjects,
    Welcome,
)
from .schema import (
    BATCH_COLUMNS,
    CANCEL_REFUSED,
    DISPATCH,
    FETCH_OBJECTS,
    FORGET_FUNCTIONS,
    FORGET_OBJECTS,
    GRAPHS,
    HISTORY,
    MALFORMED,
    OUTPUT,
    RESOLVED,
    RETRACT,
    SCHEMA,
    STARTED,
    STOP,
)
from .snapshot_decoder import read_snapshot, split_topic
from .snapshots import Snapshot

SPARE_WORDS = 1024
"""Added to the traversal limit, which stops messages with many pointers to the same bytes, or to no bytes."""

MAX_REASON_CHARACTERS = 200
"""Most characters of a capnp library's own text in an error."""

MAX_TEXT_CHARACTERS = 2000
"""Most characters of a text for people: an error or a notice of the scheduler."""

MAX_VERSION_CHARACTERS = 40
"""Most characters of another scheduler's version in an error."""


class OtherVersionError(WireError):
    """The scheduler that publishes has a different protocol version.

    Args:
        protocol_version: the scheduler's protocol version.
        version: the version of the scheduler's library.
    """

    def __init__(self, protocol_version: int, version: str) -> None:
        shown = on_one_line(version[:MAX_VERSION_CHARACTERS])
        super().__init__(
            f"the scheduler, version {shown}, has protocol version {protocol_version}: this is {PROTOCOL_VERSION}"
        )
        self.protocol_version = protocol_version
        self.version = version


def decode_published(frame: bytes) -> Message:
    """Decode a published frame: a topic, then a message.

    Raises:
        OtherVersionError: the scheduler has a different protocol version.
        WireError: the bytes are not a message.
    """
    return decode([split_topic(frame)[1]])


def decode(frames: Sequence[Payload]) -> Message:
    """Decode the message in these ZeroMQ frames.

    Raises:
        WireError: the frames are not a message that a peer of the scheduler can receive.
    """
    if not frames:
        raise WireError("a message without frames")
    first = bytes(frames[0])
    if len(frames) == 1:
        message = one_row_codec.decode(first)
        if message is not None:
            return message
    try:
        batch = BatchReader(first)
        decoder = _BATCH_DECODERS.get(batch.tag)
        if decoder is not None:
            return decoder(batch, frames[1:])
    except UnusualLayoutError:
        pass  # an unusual layout or not a message: pycapnp decides
    return _decode_with_capnp(first, frames[1:])


def _decode_with_capnp(frame: bytes, payloads: Sequence[Payload]) -> Message:
    try:
        # The limit is in words, so each byte may be read eight times.
        with SCHEMA.Message.from_bytes(frame, traversal_limit_in_words=len(frame) + SPARE_WORDS) as root:
            kind = str(root.which())
            decoder = _DECODERS.get(kind)
            if decoder is not None:
                message: Message = decoder(getattr(root, kind), payloads)
                return message
            if kind not in BATCH_COLUMNS:
                raise WireError(f"message {kind} is not for a peer of the scheduler")
            # Not by as_builder: that function of pycapnp ends the process if the message is malformed.
            struct = getattr(root, kind)
            tag, columns = BATCH_COLUMNS[kind]
            values = [(typecode, _values(getattr(struct, name), typecode)) for name, typecode in columns]
        return _BATCH_DECODERS[tag](BatchReader(write_batch(tag, values)), payloads)
    except MALFORMED as error:
        first_line = " ".join(str(error).splitlines()[:1])
        # capnpy's text lists the sizes of all parts of a message; a hostile message may claim many parts.
        raise WireError(f"malformed message: {first_line[:MAX_REASON_CHARACTERS]}") from None
    except UnusualLayoutError:
        raise WireError("malformed message: a list of another element type") from None


def _unpack_payloads(batch: BatchReader, field: int, rows: int, frames: Sequence[Payload]) -> list[Payload]:
    """Return the payload of each row, from the columns `sizes`, `large` and `payload`, which begin at `field`."""
    joined = batch.data(field + 2)
    sizes = batch.numbers(field, "I")
    large = batch.numbers(field + 1, "I")
    if len(frames) != len(large):
        raise WireError(f"{len(frames)} large payloads, but {len(large)} are announced")
    if rows == 1 and not large:
        if sizes != [len(joined)]:
            raise WireError(f"payload of {len(joined)} bytes, but {sizes} are announced")
        return [joined]
    sizes = expand_column(sizes, rows, "sizes")
    ends = list(accumulate(sizes))
    if rows and ends[-1] != len(joined):
        raise WireError(f"payload of {len(joined)} bytes, but {ends[-1]} are announced")
    payloads: list[Payload] = [joined[end - size : end] for size, end in zip(sizes, ends)]
    for row, frame in zip(large, frames):
        if row >= rows:
            raise WireError(f"large payload for row {row} of {rows}")
        payloads[row] = frame
    return payloads


def _values(field: Any, typecode: str) -> Values:
    return bytes(field) if isinstance(field, bytes) else array(typecode, field)


def _decode_forget_functions(batch: BatchReader, _: Sequence[Payload]) -> Message:
    return ForgetFunctions(batch.numbers(0, "I"))


def _decode_dispatch(batch: BatchReader, frames: Sequence[Payload]) -> Message:
    ids = batch.numbers(1, "Q")
    rows = len(ids)
    flags, depths, priorities = batch.numbers(7, "B"), batch.numbers(8, "I"), batch.numbers(9, "I")
    if flags or depths or priorities:
        flags = expand_column(flags or [0], rows, "flags")
        depths = expand_column(depths or [0], rows, "depths")
        priorities = [number - (number >> 31 << 32) for number in expand_column(priorities or [0], rows, "priorities")]
    inputs, counts, input_sources = batch.numbers(10, "Q"), batch.numbers(11, "I"), batch.numbers(12, "B")
    if inputs or counts or input_sources:
        counts = expand_column(counts, rows, "inputCounts")
        if sum(counts) != len(inputs):
            raise WireError(f"{len(inputs)} inputs, but {sum(counts)} are announced")
        input_sources = expand_column(input_sources, len(inputs), "inputSources") if inputs else []
    inline_sizes = batch.numbers(13, "I")
    payloads = _unpack_payloads(batch, 4, rows, frames)
    if inline_sizes:
        inline_sizes = expand_column(inline_sizes, len(inputs), "inlineSizes")
        _check_inline_sizes(inline_sizes, counts, payloads)
    name_sizes, names = batch.numbers(15, "I"), batch.data(14)
    bookings, row_bookings = batch.data(16), batch.numbers(17, "I")
    return Dispatch(
        expand_column(batch.numbers(0, "Q"), rows, "clients"),
        ids,
        expand_column(batch.numbers(2, "I"), rows, "attempts"),
        expand_column(batch.numbers(3, "I"), rows, "functions"),
        payloads,
        flags,
        depths,
        priorities,
        inputs,
        counts,
        input_sources,
        inline_sizes,
        _unpack_names(names, expand_column(name_sizes, rows, "nameSizes")) if name_sizes or names else [],
        _unpack_bookings(bookings, expand_column(row_bookings, rows, "rowBookings")) if row_bookings else [],
    )


def _unpack_names(names: bytes, sizes: Sequence[int]) -> list[str]:
    if sum(sizes) != len(names):
        raise WireError(f"names of {len(names)} bytes, but {sum(sizes)} are announced")
    ends = accumulate(sizes)
    return [names[end - size : end].decode("utf-8", "replace") for end, size in zip(ends, sizes)]


def _unpack_bookings(text: bytes, lines: Sequence[int]) -> list[str]:
    """The line of each row."""
    bookings = ["", *text.decode("utf-8", "replace").split("\n")]
    if max(lines, default=0) >= len(bookings):
        raise WireError(f"a row has booking {max(lines)}, but there are {len(bookings) - 1}")
    return [bookings[line] for line in lines]


def _check_inline_sizes(inline_sizes: list[int], counts: Sequence[int], payloads: Sequence[Payload]) -> None:
    begin = 0
    for row, (count, payload) in enumerate(zip(counts, payloads)):
        end = begin + count
        sizes = inline_sizes[begin:end]
        size = sum(sizes) - count + sizes.count(0)
        if size > len(payload):
            raise WireError(f"inputs of {size} bytes in the payload of row {row}, which has {len(payload)}")
        begin = end


def _decode_resolved(batch: BatchReader, frames: Sequence[Payload]) -> Message:
    ids = batch.numbers(0, "Q")
    rows = len(ids)
    durations, cpu_times, peaks = batch.numbers(5, "Q"), batch.numbers(6, "Q"), batch.numbers(7, "Q")
    if durations or cpu_times or peaks:
        durations = expand_column(durations, rows, "durations")
        cpu_times = expand_column(cpu_times, rows, "cpuTimes")
        peaks = expand_column(peaks, rows, "peaks")
    return Resolved(
        ids,
        expand_column(batch.numbers(1, "B"), rows, "outcomes"),
        _unpack_payloads(batch, 2, rows, frames),
        durations,
        cpu_times,
        peaks,
    )


def _decode_started(batch: BatchReader, _: Sequence[Payload]) -> Message:
    return Started(batch.numbers(1, "Q"), batch.numbers(0, "Q"), batch.numbers(2, "I"))


def _tasks(batch: BatchReader) -> list[TaskAttempt]:
    ids = batch.numbers(1, "Q")
    clients = expand_column(batch.numbers(0, "Q"), len(ids), "clients")
    return list(zip(clients, ids, expand_column(batch.numbers(2, "I"), len(ids), "attempts")))


def _decode_retract(batch: BatchReader, _: Sequence[Payload]) -> Message:
    return Retract(_tasks(batch))


def _decode_stop(batch: BatchReader, _: Sequence[Payload]) -> Message:
    return Stop(_tasks(batch))


def _decode_cancel_refused(batch: BatchReader, _: Sequence[Payload]) -> Message:
    return CancelRefused(batch.numbers(0, "Q"))


def _decode_forget_objects(batch: BatchReader, _: Sequence[Payload]) -> Message:
    ids = batch.numbers(1, "Q")
    return ForgetObjects(ids, expand_column(batch.numbers(0, "Q"), len(ids), "clients"))


def _decode_output(batch: BatchReader, _: Sequence[Payload]) -> Message:
    ids = batch.numbers(1, "Q")
    rows = len(ids)
    labels = expand_column(batch.numbers(3, "I"), rows, "labels")
    sizes = expand_column(batch.numbers(4, "I"), rows, "sizes")
    text = batch.data(5)
    if sum(sizes) != len(text):
        raise WireError(f"text of {len(text)} bytes, but {sum(sizes)} are announced")
    streams = expand_column(batch.numbers(2, "B"), rows, "streams")
    output = Output(ids, streams, [], [], batch.numbers(0, "Q"), sum(batch.numbers(6, "Q")[:1]))
    begin = 0
    for label, size in zip(labels, sizes):
        if label > size:
            raise WireError(f"a label of {label} bytes in a row of {size}")
        output.labels.append(text[begin : begin + label])
        output.texts.append(text[begin + label : begin + size])
        begin += size
    return output


def _decode_fetch_objects(batch: BatchReader, _: Sequence[Payload]) -> Message:
    ids = batch.numbers(1, "Q")
    return FetchObjects(ids, expand_column(batch.numbers(0, "Q"), len(ids), "clients"))


_BATCH_DECODERS: dict[int, Callable[[BatchReader, Sequence[Payload]], Message]] = {
    FORGET_FUNCTIONS: _decode_forget_functions,
    DISPATCH: _decode_dispatch,
    RESOLVED: _decode_resolved,
    STARTED: _decode_started,
    CANCEL_REFUSED: _decode_cancel_refused,
    RETRACT: _decode_retract,
    STOP: _decode_stop,
    FORGET_OBJECTS: _decode_forget_objects,
    OUTPUT: _decode_output,
    FETCH_OBJECTS: _decode_fetch_objects,
    HISTORY: decode_history,
    GRAPHS: decode_graphs,
}


def _line(text: str) -> str:
    """A text for people, fit for logs and terminals. It may quote names that other peers have chosen."""
    return on_one_line(text, MAX_TEXT_CHARACTERS)


def _decode_welcome(welcome: Any, _: Sequence[Payload]) -> Welcome:
    return Welcome(
        welcome.protocolVersion,
        _line(welcome.version),
        welcome.incarnation,
        welcome.leaseMilliseconds / 1000,
        welcome.credit,
        welcome.resultWindow,
        welcome.messageSizeLimit,
        welcome.workers,
        welcome.takesFiles,
    )


def _decode_refused(refused: Any, _: Sequence[Payload]) -> Refused:
    try:
        reason = str(refused.reason)
    except RuntimeError:  # a reason of a newer scheduler: the refusal must be understood all the same
        reason = f"reason {refused.reason.raw}"
    return Refused(reason, _line(refused.text), refused.protocolVersion, _line(refused.version))


def _decode_hello_wanted(_wanted: Any, _: Sequence[Payload]) -> HelloWanted:
    return HelloWanted()


def _decode_shutdown(_shutdown: Any, _: Sequence[Payload]) -> Shutdown:
    return Shutdown()


def _decode_goodbye(goodbye: Any, _: Sequence[Payload]) -> Goodbye:
    return Goodbye(_line(goodbye.reason))


def _decode_heartbeat_echo(echo: Any, _: Sequence[Payload]) -> HeartbeatEcho:
    hosts = [Host(host.name, host.language, host.version, host.packages, host.unixMilliseconds) for host in echo.hosts]
    packages = list(echo.packages)
    return HeartbeatEcho(
        echo.sequence, echo.isDrained, echo.workers, hosts, packages, echo.unixMilliseconds, echo.ticket
    )


def _decode_function(function: Any, frames: Sequence[Payload]) -> Function:
    if len(frames) != 1:
        raise WireError(f"{len(frames)} payload frames with a function, not 1")
    return Function(function.number, function.name, function.kind, frames[0], function.environment)


def _decode_object(struct: Any, frames: Sequence[Payload]) -> Object:
    file_bytes = struct.fileBytes
    if file_bytes and frames:
        raise WireError(f"{len(frames)} frames of an object whose frames are in a file")
    if not file_bytes and not 0 < len(frames) <= OBJECT_FRAMES:
        raise WireError(f"{len(frames)} frames of an object, not 1 to {OBJECT_FRAMES}")
    data = DataAddress(struct.data.address, struct.data.key, struct.data.ticket)
    return Object(struct.id, list(frames), struct.client, struct.name, file_bytes, data)


def _decode_transfer_objects(struct: Any, _: Sequence[Payload]) -> TransferObjects:
    data = DataAddress(struct.data.address, struct.data.key, struct.data.ticket)
    ids = list(struct.ids)
    clients = expand_column(list(struct.clients), len(ids), "clients")
    return TransferObjects(struct.source, data, clients, ids, expand_column(list(struct.bytes), len(ids), "bytes"))


def _decode_gang_member(struct: Any, _: Sequence[Payload]) -> GangMember:
    return GangMember(struct.client, struct.id, struct.attempt, struct.rank, list(struct.hosts))


def _decode_exchange(struct: Any, _: Sequence[Payload]) -> Exchange:
    sizes, payload = list(struct.sizes), struct.payload
    if sum(sizes) != len(payload):
        raise WireError(f"an exchange of {sum(sizes)} bytes with {len(payload)}")
    values: list[Payload] = []
    begin = 0
    for size in sizes:
        values.append(payload[begin : begin + size])
        begin += size
    return Exchange(struct.client, struct.id, struct.attempt, struct.round, values, struct.ended)


def _decode_read_object(struct: Any, _: Sequence[Payload]) -> ReadObject:
    return ReadObject(struct.ticket, struct.client, struct.id, struct.offset, struct.bytes)


def _decode_object_chunk(struct: Any, frames: Sequence[Payload]) -> ObjectChunk:
    if len(frames) != 1:
        raise WireError(f"{len(frames)} payload frames with a chunk, not 1")
    return ObjectChunk(struct.client, struct.id, struct.offset, struct.fileBytes, frames[0])


def _decode_no_object(struct: Any, _: Sequence[Payload]) -> NoObject:
    return NoObject(struct.client, struct.id, _line(struct.reason))


def _decode_environment(struct: Any, frames: Sequence[Payload]) -> Environment:
    if len(frames) != 1:
        raise WireError(f"{len(frames)} payload frames with an environment, not 1")
    return Environment(
        struct.name, list(struct.contents), struct.bytes, struct.level, struct.platform, bytes(frames[0])
    )


def _decode_contents_wanted(struct: Any, _: Sequence[Payload]) -> ContentsWanted:
    return ContentsWanted(list(struct.names))


def _decode_contents(struct: Any, frames: Sequence[Payload]) -> Contents:
    if len(frames) != struct.count:
        raise WireError(f"{len(frames)} payload frames with contents, not {struct.count}")
    return Contents(list(frames))


def _decode_change_worker(struct: Any, _: Sequence[Payload]) -> ChangeWorker:
    return ChangeWorker(struct.worker, struct.environment, struct.mode)


def _decode_notice(notice: Any, _: Sequence[Payload]) -> Notice:
    return Notice(_line(notice.text))


def _decode_error(error: Any, _: Sequence[Payload]) -> Error:
    return Error(_line(error.text), list(error.tasks))


def _decode_end_worker(end: Any, _: Sequence[Payload]) -> EndWorker:
    return EndWorker(end.incarnation, (end.client, end.id, end.attempt), _line(end.reason))


def _decode_credit(credit: Any, _: Sequence[Payload]) -> Credit:
    return Credit(credit.bytes)


def _decode_snapshot(snapshot: Any, _: Sequence[Payload]) -> Snapshot:
    if snapshot.protocolVersion != PROTOCOL_VERSION:
        raise OtherVersionError(snapshot.protocolVersion, snapshot.version)
    return read_snapshot(snapshot)


_DECODERS: dict[str, Any] = {
    "welcome": _decode_welcome,
    "refused": _decode_refused,
    "helloWanted": _decode_hello_wanted,
    "goodbye": _decode_goodbye,
    "heartbeatEcho": _decode_heartbeat_echo,
    "function": _decode_function,
    "error": _decode_error,
    "notice": _decode_notice,
    "snapshot": _decode_snapshot,
    "endWorker": _decode_end_worker,
    "credit": _decode_credit,
    "object": _decode_object,
    "transferObjects": _decode_transfer_objects,
    "gangMember": _decode_gang_member,
    "exchange": _decode_exchange,
    "readObject": _decode_read_object,
    "objectChunk": _decode_object_chunk,
    "noObject": _decode_no_object,
    "shutdown": _decode_shutdown,
    "environment": _decode_environment,
    "contentsWanted": _decode_contents_wanted,
    "contents": _decode_contents,
    "changeWorker": _decode_change_worker,
}
