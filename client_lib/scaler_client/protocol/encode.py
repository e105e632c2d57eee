"""Encodes messages as ZeroMQ frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from . import one_row_codec
from .columns import StructBody, Values, body_of, write_batch
from .messages import (
    Cancel,
    Contents,
    ContentsWanted,
    DataAddress,
    Environment,
    EnvironmentReady,
    Exchange,
    FetchObjects,
    ForgetFunctions,
    ForgetObjects,
    Frames,
    Function,
    Goodbye,
    Heartbeat,
    HeldResults,
    Hello,
    Message,
    NoObject,
    Object,
    ObjectChunk,
    Objects,
    Options,
    Output,
    Payload,
    ReadObject,
    Received,
    Results,
    Resumed,
    Retracted,
    Shutdown,
    Started,
    Submit,
    Suspended,
    TaskAttempt,
    Transferred,
    WorkerDied,
)
from .schema import (
    CANCEL,
    FETCH_OBJECTS,
    FORGET_FUNCTIONS,
    FORGET_OBJECTS,
    HELD_RESULTS,
    OBJECTS,
    OUTPUT,
    RESULTS,
    RESUMED,
    RETRACTED,
    SCHEMA,
    STARTED,
    SUBMIT,
    SUSPENDED,
)
from .utf8_text import escaped

LARGE_PAYLOAD_BYTES = 64 * 1024
"""A payload of at least this size travels in a frame of its own.

So it is never copied to join it with others, or to cut it out.
"""


def _column(values: Sequence[int]) -> Sequence[int]:
    """Return the column as it travels: a single element if all are equal."""
    if len(values) > 1 and values.count(values[0]) == len(values):
        return values[:1]
    return values


def _pack_payloads(payloads: Sequence[Payload]) -> tuple[list[tuple[str, Values]], Frames]:
    """Return the columns `sizes`, `large` and `payload` of a batch, and the frames of its large payloads."""
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


def encode(message: Message) -> Frames:
    """Return the ZeroMQ frames of a message. Text that UTF-8 can't encode is escaped, so no name stops a message."""
    return _ENCODERS[type(message)](message)


def _new(words: int = 64) -> Any:
    # One segment of the right size: further segments cost time in pycapnp and in every reader.
    return SCHEMA.Message.new_message(num_first_segment_words=words)


def _set_capabilities(owner: Any, capabilities: Sequence[tuple[str, int]]) -> None:
    for entry, (name, amount) in zip(owner.init("capabilities", len(capabilities)), capabilities):
        entry.name = escaped(name)
        entry.amount = amount


def _set_data_address(struct: Any, address: DataAddress) -> None:
    if address.address:
        data = struct.init("data")
        data.address, data.key, data.ticket = address.address, address.key, address.ticket


def _encode_hello(message: Hello) -> Frames:
    root = _new(
        256
        + 8 * len(message.capabilities)
        + 3 * len(message.running)
        + 32 * len(message.kinds)
        + 8 * len(message.resources)
    )
    hello = root.init("hello")
    hello.protocolVersion = message.protocol_version
    hello.role = int(message.role)
    hello.incarnation = message.incarnation
    hello.agent = message.agent
    hello.language = escaped(message.language)
    hello.languageVersion = escaped(message.language_version)
    hello.version = escaped(message.version)
    hello.host = escaped(message.host)
    hello.pid = message.pid
    hello.name = escaped(message.name)
    hello.worker = message.worker
    _set_capabilities(hello, sorted(message.capabilities.items()))
    if message.running:
        clients, ids, attempts = zip(*message.running)
        running = hello.init("running")
        running.clients, running.ids, running.attempts = list(clients), list(ids), list(attempts)
    if message.kinds:
        hello.kinds = list(map(escaped, message.kinds))
    hello.scheduler = message.scheduler
    _set_data_address(hello, message.data)
    hello.takesFollowers = message.takes_followers
    hello.account = message.account
    hello.packages = escaped(message.packages)
    if message.resources:
        for each, resource in zip(hello.init("resources", len(message.resources)), message.resources):
            each.name, each.amount, each.hasIds = resource
    hello.slots = message.slots
    if any(message.bookings):
        hello.bookings = message.bookings
    hello.environment = message.environment
    hello.environments = message.environments
    hello.platform = message.platform
    hello.finished = message.finished
    return [root.to_bytes()]


def _encode_goodbye(message: Goodbye) -> Frames:
    root = _new()
    root.init("goodbye").reason = escaped(message.reason)
    return [root.to_bytes()]


def _encode_heartbeat(message: Heartbeat) -> Frames:
    texts = sum(len(pool.problem) for pool in message.pools)
    root = _new(64 + 4 * len(message.workers) + 16 * len(message.pools) + texts)
    heartbeat = root.init("heartbeat")
    heartbeat.sequence = message.sequence
    heartbeat.residentBytes = message.resident_bytes
    heartbeat.cpuMilliseconds = message.cpu_milliseconds
    heartbeat.lagMicroseconds = message.lag_microseconds
    heartbeat.isRetiring = message.is_retiring
    heartbeat.memoryBytes = message.memory_bytes
    heartbeat.diskBytes = message.disk_bytes
    heartbeat.movedBytes = message.moved_bytes
    heartbeat.memoryLimitBytes = message.memory_limit_bytes
    heartbeat.diskLimitBytes = message.disk_limit_bytes
    heartbeat.unixMilliseconds = message.unix_milliseconds
    heartbeat.wantsHosts = message.wants_hosts
    workers = heartbeat.init("workers", len(message.workers))
    for entry, worker in zip(workers, message.workers):
        entry.incarnation = worker.incarnation
        entry.residentBytes = worker.resident_bytes
        entry.cpuMilliseconds = worker.cpu_milliseconds
    if message.pools:
        for pool_entry, pool in zip(heartbeat.init("pools", len(message.pools)), message.pools):
            pool_entry.name = escaped(pool.name)
            pool_entry.wanted = pool.wanted
            pool_entry.booting = pool.booting
            pool_entry.there = pool.there
            pool_entry.draining = pool.draining
            pool_entry.failed = pool.failed
            pool_entry.late = pool.late
            pool_entry.left = pool.left
            pool_entry.isResting = pool.is_resting
            pool_entry.problem = escaped(pool.problem)
            pool_entry.problemSeconds = pool.problem_seconds
    return [root.to_bytes()]


def _encode_function(message: Function) -> Frames:
    root = _new(128)
    function = root.init("function")
    function.number = message.number
    function.name = escaped(message.name)
    function.kind = escaped(message.kind)
    if message.environment:
        function.environment = message.environment
    return [root.to_bytes(), message.payload]


def _encode_worker_died(message: WorkerDied) -> Frames:
    root = _new()
    died = root.init("workerDied")
    died.incarnation = message.incarnation
    died.pid = message.pid
    died.cause = escaped(message.cause)
    died.peakBytes = message.peak_bytes
    died.client = message.client
    died.id = message.id
    died.attempt = message.attempt
    return [root.to_bytes()]


def _encode_forget_functions(message: ForgetFunctions) -> Frames:
    return [write_batch(FORGET_FUNCTIONS, [("I", message.numbers)])]


@lru_cache(maxsize=64)
def _options_body(options: Options) -> StructBody:
    # pycapnp makes it once; then it is copied into every batch with the same options.
    texts = [options.name, options.keys, *options.limits]
    texts += [name for name, _ in (*options.capabilities, *options.resources)]
    root = SCHEMA.Options.new_message(num_first_segment_words=64 + sum(len(text) + 4 for text in texts))
    root.priority = options.priority
    root.depth = options.depth
    root.retries = options.retries
    root.timeoutMilliseconds = options.timeout_milliseconds
    root.profiling = options.profiling
    root.name = escaped(options.name)
    root.streamOutput = options.stream_output
    root.graph = options.graph
    root.keys = escaped(options.keys)
    root.calls = options.calls
    _set_capabilities(root, options.capabilities)
    if options.limits:
        root.limits = [escaped(name) for name in options.limits]
    if options.resources:
        for each, (name, amount) in zip(root.init("resources", len(options.resources)), options.resources):
            each.name, each.amount = name, amount
    root.releaseResources = options.release_resources
    root.gangSize = options.gang_size
    return body_of(root.to_bytes())


def _encode_submit(message: Submit) -> Frames:
    if len(message.ids) == 1:
        frame = one_row_codec.submit(message)
        if frame is not None:
            return [frame]
    payload_columns, frames = _pack_payloads(message.payloads)
    columns = [("Q", message.ids), ("I", _column(message.functions)), *payload_columns]
    # Empty fields at the end are left out, as Cap'n Proto allows.
    has_inputs = message.input_counts or message.inputs or message.keep or message.keep_earlier
    if message.options is not None:
        columns.append(("", _options_body(message.options)))
    elif has_inputs:
        columns.append(("", ()))
    if has_inputs:
        columns += [("Q", message.inputs), ("I", _column(message.input_counts)), ("B", _column(message.keep))]
    if message.keep_earlier:
        columns.append(("Q", message.keep_earlier))
    return [write_batch(SUBMIT, columns), *frames]


def _encode_results(message: Results) -> Frames:
    if len(message.ids) == 1:
        frame = one_row_codec.results(message)
        if frame is not None:
            return [frame]
    payload_columns, frames = _pack_payloads(message.payloads)
    columns = [
        ("Q", _column(message.clients)),
        ("Q", message.ids),
        ("I", _column(message.attempts)),
        ("B", _column(message.outcomes)),
        ("Q", message.durations),
        *payload_columns,
        ("Q", message.cpu_times),
        ("Q", message.peaks),
        *_pack_lines(message.errors),
        *_pack_lines(message.tracebacks),
    ]
    if message.calls:
        columns.append(("I", _column(message.calls)))
    return [write_batch(RESULTS, columns), *frames]


def _pack_lines(lines: Sequence[str]) -> list[tuple[str, Values]]:
    if not lines:
        return [("B", b""), ("I", ())]
    encoded = [line.encode("utf-8", "replace") for line in lines]
    return [("B", b"".join(encoded)), ("I", _column(list(map(len, encoded))))]


def _encode_started(message: Started) -> Frames:
    return [write_batch(STARTED, [("Q", message.clients), ("Q", message.ids), ("I", message.attempts)])]


def _task_columns(tasks: Sequence[TaskAttempt]) -> list[tuple[str, Values]]:
    clients, ids, attempts = zip(*tasks) if tasks else ((), (), ())
    return [("Q", _column(clients)), ("Q", ids), ("I", _column(attempts))]


def _encode_retracted(message: Retracted) -> Frames:
    return [write_batch(RETRACTED, [*_task_columns(message.tasks), ("B", _column(message.returned))])]


def _encode_suspended(message: Suspended) -> Frames:
    return [write_batch(SUSPENDED, _task_columns(message.tasks))]


def _encode_resumed(message: Resumed) -> Frames:
    return [write_batch(RESUMED, _task_columns(message.tasks))]


def _encode_received(message: Received) -> Frames:
    root = _new()
    root.init("received").bytes = message.bytes
    return [root.to_bytes()]


def _encode_object(message: Object) -> Frames:
    root = _new(64 + len(message.name))  # a character has up to four bytes
    struct = root.init("object")
    struct.client = message.client
    struct.id = message.id
    struct.name = escaped(message.name)
    struct.fileBytes = message.file_bytes
    _set_data_address(struct, message.data)
    return [root.to_bytes(), *message.frames]


def _encode_objects(message: Objects) -> Frames:
    payload_columns, frames = _pack_payloads(message.payloads)
    return [write_batch(OBJECTS, [("Q", message.ids), *payload_columns]), *frames]


def _encode_forget_objects(message: ForgetObjects) -> Frames:
    return [write_batch(FORGET_OBJECTS, [("Q", _column(message.clients)), ("Q", message.ids)])]


def _encode_held_results(message: HeldResults) -> Frames:
    return [write_batch(HELD_RESULTS, [("Q", message.ids), ("Q", message.bytes)])]


def _encode_exchange(message: Exchange) -> Frames:
    payload = b"".join(message.values)
    root = _new(64 + len(payload) + 4 * len(message.values))
    struct = root.init("exchange")
    struct.client = message.client
    struct.id = message.id
    struct.attempt = message.attempt
    struct.round = message.round
    struct.ended = message.ended
    struct.sizes = list(map(len, message.values))
    struct.payload = payload
    return [root.to_bytes()]


def _encode_transferred(message: Transferred) -> Frames:
    clients = _column(message.clients)
    root = _new(64 + len(message.error) + 8 * (len(clients) + len(message.ids)))
    struct = root.init("transferred")
    struct.source = message.source
    struct.clients = list(clients)
    struct.ids = message.ids
    struct.error = escaped(message.error)
    struct.isUnreachable = message.is_unreachable
    return [root.to_bytes()]


def _encode_read_object(message: ReadObject) -> Frames:
    root = _new()
    struct = root.init("readObject")
    struct.ticket = message.ticket
    struct.client = message.client
    struct.id = message.id
    struct.offset = message.offset
    struct.bytes = message.bytes
    return [root.to_bytes()]


def _encode_object_chunk(message: ObjectChunk) -> Frames:
    root = _new()
    struct = root.init("objectChunk")
    struct.client = message.client
    struct.id = message.id
    struct.offset = message.offset
    struct.fileBytes = message.file_bytes
    return [root.to_bytes(), message.payload]


def _encode_no_object(message: NoObject) -> Frames:
    root = _new(64 + len(message.reason))
    struct = root.init("noObject")
    struct.client = message.client
    struct.id = message.id
    struct.reason = escaped(message.reason)
    return [root.to_bytes()]


def _encode_environment(message: Environment) -> Frames:
    root = _new(64 + 10 * len(message.contents))
    struct = root.init("environment")
    struct.name = message.name
    struct.contents = message.contents
    struct.bytes = message.bytes
    struct.level = message.level
    struct.platform = message.platform
    return [root.to_bytes(), message.manifest]


def _encode_contents_wanted(message: ContentsWanted) -> Frames:
    root = _new(64 + 10 * len(message.names))
    root.init("contentsWanted").names = message.names
    return [root.to_bytes()]


def _encode_contents(message: Contents) -> Frames:
    root = _new()
    root.init("contents").count = len(message.payloads)
    return [root.to_bytes(), *message.payloads]


def _encode_environment_ready(message: EnvironmentReady) -> Frames:
    root = _new(64 + len(message.error))
    struct = root.init("environmentReady")
    struct.name = message.name
    struct.error = escaped(message.error)
    return [root.to_bytes()]


def _encode_fetch_objects(message: FetchObjects) -> Frames:
    return [write_batch(FETCH_OBJECTS, [("Q", _column(message.clients)), ("Q", message.ids)])]


def _encode_output(message: Output) -> Frames:
    parts = [part for row in zip(message.labels, message.texts) for part in row]
    sizes = [len(label) + len(text) for label, text in zip(message.labels, message.texts)]
    columns: list[tuple[str, Values]] = [
        ("Q", _column(message.clients)),
        ("Q", message.ids),
        ("B", _column(message.streams)),
        ("I", _column(list(map(len, message.labels)))),
        ("I", _column(sizes)),
        ("B", b"".join(parts)),
        ("Q", [message.dropped] if message.dropped else ()),
    ]
    return [write_batch(OUTPUT, columns)]


def _encode_shutdown(message: Shutdown) -> Frames:
    root = _new()
    root.shutdown = None
    return [root.to_bytes()]


def _encode_cancel(message: Cancel) -> Frames:
    return [write_batch(CANCEL, [("Q", message.ids), ("B", [1] if message.force else ())])]


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
    Retracted: _encode_retracted,
    Suspended: _encode_suspended,
    Resumed: _encode_resumed,
    Received: _encode_received,
    Object: _encode_object,
    Objects: _encode_objects,
    ForgetObjects: _encode_forget_objects,
    HeldResults: _encode_held_results,
    FetchObjects: _encode_fetch_objects,
    Shutdown: _encode_shutdown,
    Output: _encode_output,
    Transferred: _encode_transferred,
    Exchange: _encode_exchange,
    ReadObject: _encode_read_object,
    ObjectChunk: _encode_object_chunk,
    NoObject: _encode_no_object,
    Environment: _encode_environment,
    ContentsWanted: _encode_contents_wanted,
    Contents: _encode_contents,
    EnvironmentReady: _encode_environment_ready,
}
