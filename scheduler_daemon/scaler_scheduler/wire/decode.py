"""Frames to events. Decoding raises only WireError, for any bytes."""

import re
import sys
from _blake2 import blake2b  # not from hashlib, which imports TLS: 30 ms of PyPy's start
from array import array
from itertools import accumulate
from struct import error as StructError
from typing import Any, Callable

from scaler_scheduler.commands.object_files import SHARED_BYTES
from scaler_scheduler.core import events
from scaler_scheduler.core.effects import (
    OUTCOME_FILE,
    OUTCOME_INPUT_LOST,
    OUTCOME_NO_ROOM,
    OUTCOME_STORED,
    WORKER_OUTCOMES,
)
from scaler_scheduler.core.events import CPUS, MAX_AMOUNT, MAX_UNITS, UNIT
from scaler_scheduler.core.ids import NAME_LIMIT, DataAddress
from scaler_scheduler.wire import one_row_codec
from scaler_scheduler.wire.batch_columns import (
    check_frames,
    check_ids,
    input_columns,
    payload_columns,
    read_lines,
    read_tracebacks,
    task_columns,
)
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, expanded, read_bytes, read_column
from scaler_scheduler.wire.errors import WireError
from scaler_scheduler.wire.message_kinds import KIND_NAMES
from scaler_scheduler.wire.schema import Message, PoolState, WorkerHeartbeat

MAX_ROW_CALLS = 1 << 16
"""The most calls that a row may stand for."""

MAX_POOLS = 100
"""The most pools of an autoscaler."""

CAPABILITIES_LIMIT = 64
"""The most capabilities of a worker or of a task."""

LIMITS_LIMIT = 16
"""The most limits of a task."""

RESOURCES_LIMIT = 16
"""The most counted resources of a task."""

KINDS_LIMIT = 1024
"""The most kinds of functions of a worker."""

PACKAGES_LIMIT = 1 << 15
"""The most characters of an agent's packages. The rest is cut off."""

OBJECT_FRAMES = 64
"""The most frames of an object."""

CONTENTS_LIMIT = 100_000
"""The most contents of an environment."""

LEVEL_LIMIT = 3
"""The highest level of an environment."""

NAME_DIGITS = 64
"""The hex digits of the name of an environment or a content."""

ERROR_LIMIT = 8000
"""The most characters of an agent's error about an environment: an installer's last lines fit in."""

_HEX_DIGITS = frozenset("0123456789abcdef")

STORED_SIZE_BYTES = 8
"""The bytes in which a worker reports the size of a stored result."""

FILE_RESULT_BYTES = 16
"""The bytes in which a worker names a file of a client."""

_FURTHER_OUTCOMES = (OUTCOME_INPUT_LOST, OUTCOME_STORED, OUTCOME_NO_ROOM, OUTCOME_FILE)

# capnpy raises these for truncated, contradictory or hostile bytes. SystemError: compiled capnpy, union tag 0xFFFF.
_MALFORMED = (
    AssertionError,
    AttributeError,
    EOFError,
    IndexError,
    OverflowError,
    StructError,
    SystemError,
    TypeError,
    ValueError,
)


def decode(route: bytes, frames: list[bytes]) -> events.Event:
    """The event in a message's frames, without the route.

    Raises:
        WireError: there is no event, because the message has no frames.
        WireError: the frames are not a message that a peer may send to the scheduler.
    """
    if not frames:
        raise WireError("a message without frames")
    if len(frames) == 1:
        event = one_row_codec.decode(route, frames[0])
        if event is not None:
            return event
    message, kind = _read(frames[0])
    decoder = _DECODERS.get(kind)
    name = KIND_NAMES[kind] if 0 <= kind < len(KIND_NAMES) else str(kind)
    if decoder is None:
        raise WireError(f"message {name} is not for the scheduler")
    try:
        return decoder(route, message, frames)
    except _MALFORMED:
        raise WireError(
            f"malformed {name}: frame 0 is truncated, a pointer is out of bounds, or a text is not UTF-8"
        ) from None


def _read(frame: bytes) -> tuple[Any, int]:
    """A message and the number of its union's member."""
    if not frame:
        raise WireError("frame 0 is empty: it must be the message, without a delimiter frame before it")
    try:
        message = Message.loads(frame)
        return message, message.__which__()
    except _MALFORMED:
        raise WireError("frame 0 is not a Cap'n Proto message in stream framing, or it is truncated") from None


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:NAME_LIMIT]


def _required(value: Any) -> Any:
    if value is None:
        raise WireError("the message is empty")
    return value


def _capabilities(entries: Any, frame: bytes) -> events.Capabilities:
    if entries is None:
        return frozenset()
    if len(entries) > CAPABILITIES_LIMIT:
        raise WireError(f"{len(entries)} capabilities, more than {CAPABILITIES_LIMIT}")
    amounts: dict[str, int] = {}
    characters = 0
    for entry in entries:
        name = entry.name
        amount = entry.amount
        if not name or not amount:
            raise WireError("a capability without a name or an amount")
        characters += len(name)
        if characters > len(frame):  # several names share one long text
            raise WireError("names of capabilities overlap")
        name = _text(name)
        if name in amounts:
            raise WireError(f"capability {name[:40]} is named twice")
        amounts[name] = amount
    return frozenset(amounts.items())


def _kind(value: Any) -> str:
    """The kind of a function. Kinds are compared, so a long kind is an error and is not cut."""
    kind = "" if value is None else str(value)
    if len(kind) > NAME_LIMIT:
        raise WireError(f"a function's kind of {len(kind)} characters, more than {NAME_LIMIT}")
    return kind


def _kinds(entries: Any, frame: bytes) -> events.Kinds:
    if entries is None:
        return frozenset()
    if len(entries) > KINDS_LIMIT:
        raise WireError(f"{len(entries)} kinds of functions, more than {KINDS_LIMIT}")
    kinds: list[str] = []
    characters = 0
    for entry in entries:
        kinds.append(_kind(entry))
        characters += len(kinds[-1])
        if characters > len(frame):  # several names share one long text
            raise WireError("kinds of functions overlap")
    return frozenset(kinds)


def _data_address(data: Any) -> "DataAddress | None":
    if data is None or not data.address:
        return None
    parts = ["" if text is None else str(text) for text in (data.address, data.key, data.ticket)]
    if max(map(len, parts)) > NAME_LIMIT:
        raise WireError(f"a data address, key or ticket of more than {NAME_LIMIT} characters")
    return DataAddress(*parts)


def _packages(value: Any) -> str:
    """The packages of an agent. Most agents have equal ones: such a text is kept once."""
    return "" if value is None else sys.intern(str(value)[:PACKAGES_LIMIT])


def _hello(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    hello = _required(message.hello)
    role = int(hello.role)
    if not events.CLIENT <= role <= events.AGENT:
        raise WireError(f"role {role} does not exist")
    language = " ".join(part for part in (_text(hello.language), _text(hello.language_version)) if part)
    running = [] if hello.running is None else list(zip(*task_columns(hello.running)))
    return events.Hello(
        route,
        hello.protocol_version,
        role,
        hello.incarnation,
        hello.agent,
        language,
        _text(hello.version),
        _text(hello.host),
        hello.pid,
        _text(hello.name),
        hello.worker,
        _capabilities(hello.capabilities, frames[0]),
        running,
        _kinds(hello.kinds, frames[0]),
        hello.scheduler,
        _data_address(hello.data),
        hello.takes_followers,
        _text(hello.account),
        _packages(hello.packages),
        _host_resources(hello.resources, hello.slots),
        hello.slots,
        _claims(hello.bookings, running),
        _environment_name(hello.environment),
        hello.environments,
        _text(hello.platform),
        min(hello.finished, len(running)),
    )


RESOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _resource_name(entry: Any) -> str:
    name = "" if entry.name is None else str(entry.name)
    if not RESOURCE_NAME.fullmatch(name):
        raise WireError(f"the resource {name[:40]!r}: a name is letters, digits, '_', '-' and '.', at most 64")
    return name


def _host_resources(entries: Any, slots: int) -> events.HostResources:
    if not entries:
        return ()
    if len(entries) > CAPABILITIES_LIMIT:
        raise WireError(f"{len(entries)} resources, more than {CAPABILITIES_LIMIT}")
    found: dict[str, tuple[str, int, bool]] = {}
    for entry in entries:
        name, amount, has_ids = _resource_name(entry), entry.amount, entry.has_ids
        if name in found:
            raise WireError(f"the resource {name} is named twice")
        if not 0 < amount < MAX_AMOUNT or (has_ids and (amount % UNIT or amount > MAX_UNITS * UNIT)):
            raise WireError(f"{amount} thousandths of the resource {name}")
        if name == CPUS and (not slots or has_ids):
            raise WireError("cpus with ids, or without a number of workers")
        found[name] = (name, amount, has_ids)
    return tuple(found.values())


def _resources(entries: Any) -> events.Resources:
    if not entries:
        return ()
    if len(entries) > RESOURCES_LIMIT:
        raise WireError(f"{len(entries)} resources, more than {RESOURCES_LIMIT}")
    amounts: dict[str, int] = {}
    for entry in entries:
        name, amount = _resource_name(entry), entry.amount
        if name in amounts:
            raise WireError(f"the resource {name} is named twice")
        if not 0 < amount < MAX_AMOUNT:
            raise WireError(f"{amount} thousandths of the resource {name}")
        amounts[name] = amount
    return tuple(sorted(amounts.items()))


_CLAIMED = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})=([0-9]{1,18})(?:\.([0-9]{1,3}))?(?::([0-9]{1,4}(?:\+[0-9]{1,4})*))?"
)


def _claims(entries: Any, running: list[tuple[int, int, int]]) -> "dict[tuple[int, int, int], events.Claim]":
    """The bookings of a worker's running tasks."""
    if not entries:
        return {}
    if len(entries) > len(running):
        raise WireError("more bookings than running tasks")
    claims = {}
    names: set[str] = set()
    for name, entry in zip(running, entries):
        text = "" if entry is None else str(entry)
        if text:
            claims[name] = _claim(text)
            names.update(each for each, _, _ in claims[name][1])
            if len(names) > CAPABILITIES_LIMIT:
                raise WireError(f"bookings of more than {CAPABILITIES_LIMIT} resources")
    return claims


def _claim(text: str) -> events.Claim:
    number, *parts = text.split(" ")
    if len(parts) > RESOURCES_LIMIT or not re.fullmatch("[0-9]{1,19}", number):
        raise WireError(f"the booking {text[:40]!r}")
    amounts: dict[str, tuple[str, int, tuple[int, ...]]] = {}
    for part in parts:
        found = _CLAIMED.fullmatch(part)
        if found is None or found[1] in amounts:
            raise WireError(f"the booking {text[:40]!r}")
        amount = int(found[2]) * UNIT + int((found[3] or "0").ljust(3, "0"))
        ids = tuple([int(each) for each in found[4].split("+")]) if found[4] else ()
        if not 0 < amount < MAX_AMOUNT or len(ids) > MAX_UNITS or len(set(ids)) < len(ids):
            raise WireError(f"the booking {text[:40]!r}")
        amounts[found[1]] = (found[1], amount, ids)
    return int(number), tuple(sorted(amounts.values()))


def _goodbye(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Goodbye(route, _text(_required(message.goodbye).reason))


def _heartbeat(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    heartbeat = _required(message.heartbeat)
    workers = heartbeat.workers
    incarnations: list[int] = []
    usages: list[tuple[int, int]] = []
    if workers is not None:
        if len(workers) * WorkerHeartbeat.__static_data_size__ * 8 > len(frames[0]):
            raise WireError("column workers reaches beyond the message")
        for worker in workers:
            incarnations.append(worker.incarnation)
            usages.append((worker.resident_bytes, worker.cpu_milliseconds))
    usage = heartbeat.resident_bytes, heartbeat.cpu_milliseconds
    lag_microseconds, is_retiring = heartbeat.lag_microseconds, heartbeat.is_retiring
    values = heartbeat.memory_bytes, heartbeat.disk_bytes, heartbeat.moved_bytes
    pools = _pool_states(heartbeat.pools, frames) if heartbeat.pools is not None else ()
    return events.Heartbeat(
        route,
        heartbeat.sequence,
        incarnations,
        usage,
        lag_microseconds,
        usages,
        is_retiring,
        values,
        heartbeat.unix_milliseconds,
        heartbeat.wants_hosts,
        pools,
        (heartbeat.memory_limit_bytes, heartbeat.disk_limit_bytes),
    )


def _pool_states(pools: Any, frames: list[bytes]) -> list[events.PoolState]:
    if len(pools) > MAX_POOLS:
        raise WireError(f"{len(pools)} pools are more than {MAX_POOLS}")
    if len(pools) * PoolState.__static_data_size__ * 8 > len(frames[0]):
        raise WireError("column pools reaches beyond the message")
    return [
        events.PoolState(
            _text(pool.name),
            pool.wanted,
            pool.booting,
            pool.there,
            pool.draining,
            pool.failed,
            pool.late,
            pool.left,
            pool.is_resting,
            _text(pool.problem),
            pool.problem_seconds,
        )
        for pool in pools
    ]


def _function(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    function = _required(message.function)
    check_frames(frames, 1)
    payload = frames[1]
    # The scheduler identifies a function by its bytes, not by a digest that the client sends.
    kind = _kind(function.kind)
    if not kind:
        raise WireError("a function without a kind")
    digest = blake2b(kind.encode(errors="replace"), digest_size=16)
    digest.update(payload)
    environment = _environment_name(function.environment)
    if environment:
        digest.update(environment.encode())
    return events.Function(route, function.number, _text(function.name), kind, digest.digest(), payload, environment)


def _forget_functions(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    numbers = read_column(_required(message.forget_functions).numbers, UINT32, "numbers")
    return events.ForgetFunctions(route, numbers)


def _options(options: Any, frame: bytes) -> events.Options:
    if options is None:
        return events.DEFAULT_OPTIONS
    retries = options.retries
    if retries < -1:
        raise WireError(f"{retries} retries")
    if options.graph >= 1 << 63:
        raise WireError("a graph's number of 2^63 or more")
    calls = options.calls
    if calls > MAX_ROW_CALLS:
        raise WireError(f"rows of {calls:,} calls, more than {MAX_ROW_CALLS:,}")
    return events.Options(
        options.priority,
        options.depth,
        retries,
        options.timeout_milliseconds / 1000,
        options.profiling,
        _text(options.name),
        _capabilities(options.capabilities, frame),
        options.stream_output,
        options.graph,
        _text(options.keys),
        calls,
        _limits(options.limits, frame),
        _resources(options.resources),
        options.release_resources,
        options.gang_size,
    )


def _limits(entries: Any, frame: bytes) -> tuple[str, ...]:
    if not entries:
        return ()
    if len(entries) > LIMITS_LIMIT:
        raise WireError(f"{len(entries)} limits, more than {LIMITS_LIMIT}")
    names = {_text(entry) for entry in entries}
    if len(names) < len(entries) or "" in names:
        raise WireError("a limit without a name, or a name twice")
    return tuple(sorted(names))


def _submit(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    submit = _required(message.submit)
    ids = read_column(submit.ids, UINT64, "ids")
    check_ids(ids)
    functions = read_column(submit.functions, UINT32, "functions")
    if len(functions) not in (1, len(ids)):
        raise WireError(f"column functions has {len(functions)} elements for {len(ids)} rows")
    sizes, joined, large = payload_columns(submit, len(ids), frames)
    options = _options(submit.options, frames[0])
    inputs, counts, keep = input_columns(submit, len(ids))
    keep_earlier = read_column(submit.keep_earlier, UINT64, "keepEarlier")
    if options.calls and any(keep):
        raise WireError("a row of calls whose result is kept: the result of such a row is no object")
    if options.gang_size and (options.calls or any(keep)):
        raise WireError("a gang whose row stands for several calls, or whose result is kept")
    if not counts and not keep and not keep_earlier:
        return events.Submit(route, ids, functions, sizes, joined, large, options)
    return events.Submit(route, ids, functions, sizes, joined, large, options, inputs, counts, keep, keep_earlier)


def _results(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    results = _required(message.results)
    ids = read_column(results.ids, UINT64, "ids")
    short = (
        read_column(results.clients, UINT64, "clients"),
        read_column(results.attempts, UINT32, "attempts"),
        read_column(results.outcomes, UINT8, "outcomes"),
    )
    rows = len(ids)
    if not rows:
        raise WireError("a batch without rows")
    clients, attempts = expanded(short[0], rows, "clients"), expanded(short[1], rows, "attempts")
    outcomes = expanded(short[2], rows, "outcomes")
    durations = expanded(read_column(results.durations, UINT64, "durations"), rows, "durations")
    sizes, joined, large = payload_columns(results, rows, frames)
    if max(outcomes) >= WORKER_OUTCOMES:
        _check_outcomes(outcomes, sizes)
    cpu_times = read_column(results.cpu_times, UINT64, "cpuTimes")
    peaks = read_column(results.peaks, UINT64, "peaks")
    error_sizes, text = read_column(results.error_sizes, UINT32, "errorSizes"), read_bytes(results, "errors")
    columns = clients, ids, attempts, outcomes, durations, sizes, joined, large
    event = events.Results(route, *columns)
    event.short = short
    if cpu_times or peaks:
        event.cpu_times, event.peaks = expanded(cpu_times, rows, "cpuTimes"), expanded(peaks, rows, "peaks")
    if error_sizes or text:
        event.errors = read_lines(text, expanded(error_sizes, rows, "errorSizes"))
    traceback_sizes = read_column(results.traceback_sizes, UINT32, "tracebackSizes")
    text = read_bytes(results, "tracebacks")
    if traceback_sizes or text:
        event.tracebacks = read_tracebacks(text, expanded(traceback_sizes, rows, "tracebackSizes"))
    calls = read_column(results.calls, UINT32, "calls")
    if calls:
        event.calls = expanded(calls, rows, "calls")
    return event


def _check_outcomes(outcomes: "array[int]", sizes: "array[int]") -> None:
    for outcome, size in zip(outcomes, sizes):
        if outcome >= WORKER_OUTCOMES and outcome not in _FURTHER_OUTCOMES:
            raise WireError(f"outcome {outcome} is not for workers")
        if outcome == OUTCOME_STORED and size != STORED_SIZE_BYTES:
            raise WireError(f"the size of a stored result has {size} bytes, not {STORED_SIZE_BYTES}")
        if outcome == OUTCOME_FILE and size != FILE_RESULT_BYTES:
            raise WireError(f"the name of a file with a result has {size} bytes, not {FILE_RESULT_BYTES}")


def _started(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Started(route, *task_columns(_required(message.started)))


def _suspended(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Suspended(route, *task_columns(_required(message.suspended)))


def _resumed(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Resumed(route, *task_columns(_required(message.resumed)))


def _retracted(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    retracted = _required(message.retracted)
    clients, ids, attempts = task_columns(retracted)
    returned = expanded(read_column(retracted.returned, UINT8, "returned"), len(ids), "returned")
    if returned and max(returned) > 1:
        raise WireError(f"returned is {max(returned)}, not 0 or 1")
    return events.Retracted(route, clients, ids, attempts, returned)


def _received(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Received(route, _required(message.received).bytes)


def _object(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    struct = _required(message.object)
    count = len(frames) - 1
    file_bytes = struct.file_bytes
    if file_bytes:
        if count:
            raise WireError(f"{count} frames of an object whose frames are in a file")
        if file_bytes < SHARED_BYTES or file_bytes >> 62:
            raise WireError(f"an object of {file_bytes:,} bytes as a file, not {SHARED_BYTES:,} or more")
    elif not 0 < count <= OBJECT_FRAMES:
        raise WireError(f"{count} frames of an object, not 1 to {OBJECT_FRAMES}")
    if struct.id >> 63:
        raise WireError("the object's id is 2^63 or more")
    data = _data_address(struct.data) if file_bytes else None
    return events.Object(route, struct.id, _text(struct.name), frames[1:], struct.client, file_bytes, data)


def _objects(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    objects = _required(message.objects)
    ids = read_column(objects.ids, UINT64, "ids")
    check_ids(ids)
    sizes, joined, large = payload_columns(objects, len(ids), frames)
    ends = accumulate(sizes)
    values = [large[row] if row in large else joined[end - sizes[row] : end] for row, end in enumerate(ends)]
    return events.Objects(route, ids, values)


def _forget_objects(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    forget = _required(message.forget_objects)
    ids = read_column(forget.ids, UINT64, "ids")
    clients = read_column(forget.clients, UINT64, "clients")
    return events.ForgetObjects(route, ids, expanded(clients, len(ids), "clients") if clients else clients)


def _held_results(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    held = _required(message.held_results)
    ids = read_column(held.ids, UINT64, "ids")
    return events.HeldResults(route, ids, expanded(read_column(held.bytes, UINT64, "bytes"), len(ids), "bytes"))


def _transferred(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    done = _required(message.transferred)
    if done.source >> 63:
        raise WireError("the source of a transfer is 2^63 or more")
    ids = read_column(done.ids, UINT64, "ids")
    clients = expanded(read_column(done.clients, UINT64, "clients"), len(ids), "clients")
    return events.Transferred(route, clients, ids, done.source, _text(done.error), done.is_unreachable)


def _exchange(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    exchange = _required(message.exchange)
    check_frames(frames, 0)
    if (exchange.client | exchange.id) >> 63:
        raise WireError("the client or id of an exchange is 2^63 or more")
    value = read_bytes(exchange, "payload")
    return events.Exchange(route, exchange.client, exchange.id, exchange.attempt, exchange.round, value)


def _fetch_objects(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.FetchObjects(route, read_column(_required(message.fetch_objects).ids, UINT64, "ids"))


def _output(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    output = _required(message.output)
    check_frames(frames, 0)
    ids = read_column(output.ids, UINT64, "ids")
    rows = len(ids)
    if not rows:
        raise WireError("a batch without rows")
    clients = expanded(read_column(output.clients, UINT64, "clients"), rows, "clients")
    streams = expanded(read_column(output.streams, UINT8, "streams"), rows, "streams")
    labels = expanded(read_column(output.labels, UINT32, "labels"), rows, "labels")
    sizes = expanded(read_column(output.sizes, UINT32, "sizes"), rows, "sizes")
    text = read_bytes(output, "text")
    if max(streams) > 1:
        raise WireError(f"stream {max(streams)} is neither 0 nor 1")
    announced = sum(sizes)
    if announced != len(text):
        raise WireError(f"text of {len(text)} bytes, but {announced} are announced")
    for label, size in zip(labels, sizes):
        if label > size:
            raise WireError(f"a label of {label} bytes in a row of {size}")
    return events.Output(route, clients, ids, streams, labels, sizes, text)


def _shutdown(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.Shutdown(route)


def _cancel(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    cancel = _required(message.cancel)
    force = read_column(cancel.force, UINT8, "force")
    if len(force) > 1:
        raise WireError(f"column force has {len(force)} elements, more than 1")
    if force and force[0] > 1:
        raise WireError(f"force is {force[0]}, not 0 or 1")
    return events.Cancel(route, read_column(cancel.ids, UINT64, "ids"), bool(force) and force[0] != 0)


def _worker_died(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    died = _required(message.worker_died)
    return events.WorkerDied(
        route, died.incarnation, died.pid, _text(died.cause), died.peak_bytes, died.client, died.id, died.attempt
    )


def _environment_name(value: Any) -> str:
    """The name of an environment or of a content: a SHA-256. Empty: none."""
    name = "" if value is None else str(value)
    if name and (len(name) != NAME_DIGITS or not set(name) <= _HEX_DIGITS):
        raise WireError(f"{name[:20]!r} is not the SHA-256 of an environment or a content, {NAME_DIGITS} hex digits")
    return name


def _content_names(entries: Any, frame: bytes) -> list[str]:
    if entries is None:
        return []
    if len(entries) > CONTENTS_LIMIT or len(entries) * NAME_DIGITS > len(frame):  # several names share one text
        raise WireError(f"{len(entries)} contents, more than {CONTENTS_LIMIT}, or their names overlap")
    names = [_environment_name(entry) for entry in entries]
    if "" in names or len(set(names)) < len(names):
        raise WireError("a content without a name, or a name twice")
    return names


def _sha256(content: bytes) -> str:
    import hashlib  # not at the top: see blake2b

    return hashlib.sha256(content).hexdigest()


def _environment(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    environment = _required(message.environment)
    check_frames(frames, 1)
    name, manifest = _environment_name(environment.name), frames[1]
    if _sha256(manifest) != name:
        raise WireError("the name of an environment is not the SHA-256 of its manifest")
    level = environment.level
    if not 0 < level <= LEVEL_LIMIT:
        raise WireError(f"an environment of level {level}, not 1 to {LEVEL_LIMIT}")
    names = _content_names(environment.contents, frames[0])
    size = environment.bytes
    if size >> 62:
        raise WireError("contents of 2^62 bytes or more")
    return events.Environment(route, name, names, size, level, _text(environment.platform), manifest)


def _contents_wanted(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    return events.ContentsWanted(route, _content_names(_required(message.contents_wanted).names, frames[0]))


def _contents(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    check_frames(frames, _required(message.contents).count)
    # The scheduler identifies a content by its bytes, as it does a function.
    return events.Contents(route, {_sha256(frame): frame for frame in frames[1:]})


def _environment_ready(route: bytes, message: Any, frames: list[bytes]) -> events.Event:
    ready = _required(message.environment_ready)
    error = "" if ready.error is None else str(ready.error)[:ERROR_LIMIT]
    return events.EnvironmentReady(route, _environment_name(ready.name), error)


_DECODERS: dict[int, Callable[[bytes, Any, list[bytes]], events.Event]] = {
    events.HELLO: _hello,
    events.GOODBYE: _goodbye,
    events.HEARTBEAT: _heartbeat,
    events.FUNCTION: _function,
    events.FORGET_FUNCTIONS: _forget_functions,
    events.SUBMIT: _submit,
    events.RESULTS: _results,
    events.STARTED: _started,
    events.CANCEL: _cancel,
    events.WORKER_DIED: _worker_died,
    events.RETRACTED: _retracted,
    events.SUSPENDED: _suspended,
    events.RESUMED: _resumed,
    events.RECEIVED: _received,
    events.OBJECT: _object,
    events.OBJECTS: _objects,
    events.FORGET_OBJECTS: _forget_objects,
    events.FETCH_OBJECTS: _fetch_objects,
    events.HELD_RESULTS: _held_results,
    events.SHUTDOWN: _shutdown,
    events.OUTPUT: _output,
    events.TRANSFERRED: _transferred,
    events.ENVIRONMENT: _environment,
    events.CONTENTS_WANTED: _contents_wanted,
    events.CONTENTS: _contents,
    events.ENVIRONMENT_READY: _environment_ready,
    events.EXCHANGE: _exchange,
}
