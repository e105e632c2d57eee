"""The scheduler's encoding and decoding against the golden messages. Runs under PyPy and CPython."""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, Callable

import pytest
from tests.wire.effects_of_vectors import effect_of, identity
from tests.wire.vectors import (
    ALL,
    BETWEEN_AGENTS,
    BY_NAME,
    FOLDER,
    TO_PEERS,
    TO_SCHEDULER,
    Vector,
    is_for_peers,
    is_for_scheduler,
)

from scaler_scheduler.commands.object_files import SHARED_BYTES
from scaler_scheduler.core import effects, events
from scaler_scheduler.core.ids import NAME_LIMIT
from scaler_scheduler.wire.batch_columns import INPUTS_LIMIT
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, columns_message
from scaler_scheduler.wire.decode import (
    CAPABILITIES_LIMIT,
    KINDS_LIMIT,
    MAX_ROW_CALLS,
    OBJECT_FRAMES,
    PACKAGES_LIMIT,
    decode,
)
from scaler_scheduler.wire.encode import encode
from scaler_scheduler.wire.errors import WireError
from scaler_scheduler.wire.message_kinds import KIND_NAMES
from scaler_scheduler.wire.schema import Capability, Function, Hello, Message, Object, Options, Role, Submit

ROUTE = b"route"
ROLES = {"client": events.CLIENT, "worker": events.WORKER, "agent": events.AGENT}


def _hello(event: events.Hello, vector: Vector) -> None:
    fields = vector.fields
    assert event.protocol_version == fields["protocolVersion"]
    assert event.role == ROLES[fields["role"]]
    assert event.incarnation == fields["incarnation"]
    assert event.agent == fields["agent"]
    assert event.language == f"{fields['language']} {fields['languageVersion']}"
    assert (event.version, event.host, event.pid, event.name) == (
        fields["version"], fields["host"], fields["pid"], fields["name"],
    )  # fmt: skip
    assert event.worker == fields.get("worker", 0)
    assert event.capabilities == capabilities(fields)
    assert event.kinds == frozenset(fields.get("kinds", []))
    assert event.scheduler == fields.get("scheduler", 0)
    _check_data_address(event.data, vector)
    assert event.takes_followers == fields.get("takesFollowers", False)
    assert event.account == fields.get("account", "")
    assert event.packages == fields.get("packages", "")
    assert event.running == names(fields.get("running", {"clients": [], "ids": [], "attempts": []}))
    assert list(event.resources) == [tuple(resource.values()) for resource in fields.get("resources", [])]
    assert event.slots == fields.get("slots", 0)
    assert event.finished == fields.get("finished", 0)
    if "bookings" in fields:
        claim = (17, (("cpus", 4000, ()), ("gpu", 1500, (0, 2))))
        assert (event.bookings, fields["bookings"]) == ({event.running[1]: claim}, ["", "17 cpus=4 gpu=1.5:0+2"])
    else:
        assert event.bookings == {}


def _check_data_address(found: Any, vector: Vector) -> None:
    data = vector.fields.get("data")
    assert (data is None and found is None) or (found.address, found.key, found.ticket) == tuple(data.values())


def capabilities(fields: dict[str, Any]) -> frozenset[tuple[str, int]]:
    return frozenset((entry["name"], entry["amount"]) for entry in fields.get("capabilities", []))


def names(columns: dict[str, Any]) -> list[tuple[int, int, int]]:
    """The names of tasks (client, id, attempt) from their columns."""
    rows = len(columns["ids"])
    full = [
        columns[name] * rows if len(columns[name]) == 1 else columns[name] for name in ("clients", "ids", "attempts")
    ]
    return list(zip(*full))


def _goodbye(event: events.Goodbye, vector: Vector) -> None:
    assert event.reason == vector.fields["reason"]


def _heartbeat(event: events.Heartbeat, vector: Vector) -> None:
    assert event.sequence == vector.fields["sequence"]
    assert event.clock_ms == vector.fields.get("unixMilliseconds", 0)
    assert event.wants_hosts == vector.fields.get("wantsHosts", False)
    workers = vector.fields.get("workers", [])
    assert event.workers == [worker["incarnation"] for worker in workers]
    assert list(event.usages) == [(worker["residentBytes"], worker["cpuMilliseconds"]) for worker in workers]
    assert event.usage == (vector.fields["residentBytes"], vector.fields["cpuMilliseconds"])
    assert event.lag_microseconds == vector.fields.get("lagMicroseconds", 0)
    assert event.is_retiring is vector.fields.get("isRetiring", False)
    assert event.values == tuple(vector.fields.get(name, 0) for name in ("memoryBytes", "diskBytes", "movedBytes"))
    assert event.limits == tuple(vector.fields.get(name, 0) for name in ("memoryLimitBytes", "diskLimitBytes"))
    assert [tuple(pool) for pool in event.pools] == [tuple(pool.values()) for pool in vector.fields.get("pools", [])]


def _function(event: events.Function, vector: Vector) -> None:
    fields = vector.fields
    assert (event.number, event.name, event.function_kind) == (fields["number"], fields["name"], fields["kind"])
    assert event.payload == vector.frames[1]
    kind, environment = fields["kind"].encode(), fields.get("environment", "")
    assert event.environment == environment
    expected = hashlib.blake2b(kind + vector.frames[1] + environment.encode(), digest_size=16)
    assert event.digest == expected.digest()


def _forget_functions(event: events.ForgetFunctions, vector: Vector) -> None:
    assert list(event.numbers) == vector.fields["numbers"]


def _payloads(event: Any, vector: Vector) -> None:
    payloads = []
    position = 0
    for row, size in enumerate(event.sizes):
        payloads.append(event.large.get(row, event.payload[position : position + size]))
        position += size
    assert position == len(event.payload)
    assert payloads == vector.payloads()


def _submit(event: events.Submit, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert list(event.functions) == vector.fields["functions"]
    _payloads(event, vector)
    inputs = vector.inputs()
    assert (list(event.inputs), list(event.input_counts)) == (inputs.get("inputs", []), inputs.get("inputCounts", []))
    assert list(event.keep) == inputs.get("keep", [])
    assert list(event.keep_earlier) == inputs.get("keepEarlier", [])
    options = vector.fields.get("options")
    if options is None:
        assert event.options is events.DEFAULT_OPTIONS
        return
    assert (event.options.priority, event.options.depth) == (options.get("priority", 0), options.get("depth", 0))
    assert event.options.retries == options.get("retries", -1)
    assert event.options.timeout_seconds == options.get("timeoutMilliseconds", 0) / 1000
    assert event.options.profiling is options.get("profiling", False)
    assert event.options.name == options.get("name", "")
    assert event.options.capabilities == capabilities(options)
    assert event.options.stream_output is options.get("streamOutput", False)
    assert (event.options.graph, event.options.keys) == (options.get("graph", 0), options.get("keys", ""))
    assert event.options.limits == tuple(options.get("limits", ()))
    assert event.options.release_resources is options.get("releaseResources", False)
    assert event.options.resources == tuple(tuple(each.values()) for each in options.get("resources", ()))
    assert event.options.gang_size == options.get("gangSize", 0)
    calls = options.get("calls", 0)
    assert (event.options.calls, event.options.weight) == (calls, max(1, calls))


def _results(event: events.Results, vector: Vector) -> None:
    rows = len(event.ids)
    assert list(event.ids) == vector.fields["ids"]
    for column in ("clients", "attempts", "outcomes", "durations"):
        assert list(getattr(event, column)) == vector.column(column, rows)
    assert list(event.cpu_times) == vector.fields.get("cpuTimes", [])
    assert list(event.peaks) == vector.fields.get("peaks", [])
    assert list(event.errors) == (vector.lines() if "errors" in vector.fields else [])
    assert [text.decode() for text in event.tracebacks] == vector.tracebacks()
    assert list(event.calls) == vector.column("calls", rows)
    _payloads(event, vector)


def _tasks(event: Any, vector: Vector) -> None:
    assert type(event).kind == list(KIND_NAMES).index(vector.message)
    assert list(zip(event.clients, event.ids, event.attempts)) == names(vector.fields)


def _retracted(event: events.Retracted, vector: Vector) -> None:
    _tasks(event, vector)
    assert list(event.returned) == vector.fields["returned"]


def _received(event: events.Received, vector: Vector) -> None:
    assert event.bytes == vector.fields["bytes"]


def _object(event: events.Object, vector: Vector) -> None:
    assert (event.client, event.id, event.name) == tuple(vector.fields[name] for name in ("client", "id", "name"))
    assert event.frames == vector.frames[1:]
    assert event.file_bytes == vector.fields.get("fileBytes", 0)
    _check_data_address(event.data, vector)


def _objects(event: events.Objects, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert event.values == vector.payloads()


def _forget_objects(event: events.ForgetObjects, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert list(event.clients) == vector.column("clients", len(event.ids))


def _held_results(event: events.HeldResults, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert list(event.sizes) == vector.column("bytes", len(event.ids))


def _fetch_objects(event: events.FetchObjects, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]


def _output(event: events.Output, vector: Vector) -> None:
    rows = len(event.ids)
    assert list(event.ids) == vector.fields["ids"]
    for column in ("clients", "streams", "labels", "sizes"):
        assert list(getattr(event, column)) == vector.column(column, rows)
    assert event.text == vector.fields.get("text", b"")


def _shutdown(event: events.Shutdown, vector: Vector) -> None:
    assert type(event) is events.Shutdown


def _cancel(event: events.Cancel, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert event.force is bool(vector.fields.get("force"))


def _worker_died(event: events.WorkerDied, vector: Vector) -> None:
    fields = vector.fields
    assert (event.incarnation, event.pid, event.cause) == (fields["incarnation"], fields["pid"], fields["cause"])
    assert event.peak_bytes == fields.get("peakBytes", 0)
    assert (event.client, event.id, event.attempt) == (
        fields.get("client", 0), fields.get("id", 0), fields.get("attempt", 0),
    )  # fmt: skip


def _transferred(event: events.Transferred, vector: Vector) -> None:
    fields = vector.fields
    assert list(event.clients) == vector.column("clients", len(fields["ids"]))
    assert (list(event.ids), event.source) == (fields["ids"], fields["source"])
    assert (event.error, event.is_unreachable) == (fields.get("error", ""), fields.get("isUnreachable", False))


def _environment(event: events.Environment, vector: Vector) -> None:
    fields = vector.fields
    about = event.name, event.contents, event.size, event.level, event.platform
    assert about == (fields["name"], fields["contents"], fields["bytes"], fields["level"], fields["platform"])
    assert event.manifest == vector.frames[1]


def _contents_wanted(event: events.ContentsWanted, vector: Vector) -> None:
    assert event.names == vector.fields["names"]


def _contents(event: events.Contents, vector: Vector) -> None:
    assert event.by_name == {hashlib.sha256(frame).hexdigest(): frame for frame in vector.frames[1:]}


def _environment_ready(event: events.EnvironmentReady, vector: Vector) -> None:
    assert (event.name, event.error) == (vector.fields["name"], vector.fields["error"])


def _exchange(event: events.Exchange, vector: Vector) -> None:
    fields = vector.fields
    assert (event.client, event.id, event.attempt) == (fields["client"], fields["id"], fields["attempt"])
    assert (event.round, event.value) == (fields["round"], fields["payload"])


CHECKS: dict[str, Callable[[Any, Vector], None]] = {
    "hello": _hello,
    "goodbye": _goodbye,
    "heartbeat": _heartbeat,
    "function": _function,
    "forgetFunctions": _forget_functions,
    "submit": _submit,
    "results": _results,
    "started": _tasks,
    "cancel": _cancel,
    "workerDied": _worker_died,
    "retracted": _retracted,
    "suspended": _tasks,
    "resumed": _tasks,
    "received": _received,
    "object": _object,
    "objects": _objects,
    "forgetObjects": _forget_objects,
    "heldResults": _held_results,
    "fetchObjects": _fetch_objects,
    "shutdown": _shutdown,
    "output": _output,
    "transferred": _transferred,
    "environment": _environment,
    "contentsWanted": _contents_wanted,
    "contents": _contents,
    "environmentReady": _environment_ready,
    "exchange": _exchange,
}


def test_every_message_has_a_vector():
    members = {vector.message for vector in ALL}
    assert members == TO_SCHEDULER | TO_PEERS
    assert len(members) == len(KIND_NAMES)
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    named = {f"{vector.name}.json" for vector in ALL} | {f"{vector.name}.bin" for vector in ALL}
    named |= {f"{vector.name}.{number}.bin" for vector in ALL for number in range(1, len(vector.frames))}
    assert files == named


@pytest.mark.parametrize("vector", [vector for vector in ALL if is_for_scheduler(vector)], ids=lambda v: v.name)
def test_scheduler_decodes_vectors(vector):
    event = decode(ROUTE, vector.frames)
    assert event.route == ROUTE
    CHECKS[vector.message](event, vector)


@pytest.mark.parametrize("vector", [v for v in ALL if v.message in TO_PEERS - TO_SCHEDULER], ids=lambda v: v.name)
def test_scheduler_rejects_messages_for_others(vector):
    with pytest.raises(WireError, match="is not for the scheduler"):
        decode(ROUTE, vector.frames)


def is_encoded_by_the_scheduler(vector: Vector) -> bool:
    # Published messages are made in publish/. A message in several segments is written in one.
    if (
        vector.message in {"snapshot", "history", "graphs", *BETWEEN_AGENTS}
        or vector.name.endswith("-segments")
        or "-from-worker" in vector.name
        or vector.name == "function-environment"  # from a client alone
    ):
        return False
    return is_for_peers(vector)


@pytest.mark.parametrize("vector", [v for v in ALL if is_encoded_by_the_scheduler(v)], ids=lambda v: v.name)
def test_scheduler_encodes_vectors_byte_for_byte(vector):
    assert encode(effect_of(vector), identity()) == vector.frames


def test_messages_in_segments_decode_alike():
    for name in ("submit", "submit-options", "submit-inputs", "results"):
        event = decode(ROUTE, BY_NAME[f"{name}-segments"].frames)
        CHECKS[BY_NAME[name].message](event, BY_NAME[f"{name}-segments"])
    assert BY_NAME["hello-segments"].fields == BY_NAME["hello-client"].fields
    assert BY_NAME["hello-segments"].frames[0][:4] != b"\0\0\0\0"


def test_rows_from_runs_and_large_payloads():
    effect = effects.Resolved(ROUTE)
    effect.ids = [1, 2, 3, 4]
    effect.outcomes = [0, 0, 0, 0]
    effect.rows.append_run([1, 2], b"abb")
    effect.rows.append_large(b"L" * 70000)
    effect.rows.append_run([0], b"")
    frames = encode(effect, identity())
    assert frames[1:] == [b"L" * 70000]
    assert b"abb\0\0\0\0\0" in frames[0]


UNSIGNED = "Q"
"""Numbers of 2^63 and more, which the scheduler never writes."""
BIG = 1 << 63


def submit_frames(ids: Any, functions: Any, sizes: Any, large: Any, payload: bytes, further: Any = ()) -> Any:
    columns = ((UNSIGNED, ids), (UINT32, functions), (UINT32, sizes), (UINT32, large), (UINT8, payload))
    return [columns_message(events.SUBMIT, columns), *further]


@pytest.mark.parametrize(
    "frames, text",
    [
        (submit_frames([], [1], [0], [], b""), "a batch without rows"),
        (submit_frames([2, 1], [1], [0], [], b""), "ids do not ascend"),
        (submit_frames([1, 1], [1], [0], [], b""), "ids do not ascend"),
        (submit_frames([1 << 63], [1], [0], [], b""), r"column ids has a number of 2\^63 or more"),
        (submit_frames([1, 2], [], [0], [], b""), "column functions has 0 elements for 2 rows"),
        (submit_frames([1, 2], [1, 2, 3], [0], [], b""), "column functions has 3 elements for 2 rows"),
        (submit_frames([1, 2], [1], [], [], b""), "column sizes has 0 elements for 2 rows"),
        (submit_frames([1, 2], [1], [1], [], b"x"), "payload of 1 bytes, but 2 are announced"),
        (submit_frames([1, 2], [1], [0xFFFFFFFF], [], b"x"), "payload of 1 bytes, but 8589934590 are announced"),
        (submit_frames([1, 2], [1], [0], [0], b""), "0 payload frames, but 1 are announced"),
        (submit_frames([1, 2], [1], [0], [], b"", [b""]), "1 payload frames, but 0 are announced"),
        (submit_frames([1, 2], [1], [0], [2], b"", [b""]), "large names row 2, of 2 rows that are numbered from 0"),
        (submit_frames([1, 2], [1], [0], [1, 0], b"", [b"", b""]), "ascend: row 0 comes after row 1"),
        (submit_frames([1, 2], [1], [0], [1, 1], b"", [b"", b""]), "ascend: row 1 comes after row 1"),
        (submit_frames([1, 2], [1], [0, 1], [1], b"x", [b""]), "row 1 is in large and has size 1: its size must be 0"),
    ],
)
def test_contradictions_in_a_batch(frames, text):
    with pytest.raises(WireError, match=text):
        decode(ROUTE, frames)


def frames_with_inputs(inputs: Any, counts: Any, keep: Any) -> Any:
    columns = [(UINT64, [1, 2]), (UINT32, [1]), (UINT32, [0]), (UINT32, []), (UINT8, b""), (UINT8, b"")]
    return [columns_message(events.SUBMIT, [*columns, (UNSIGNED, inputs), (UINT32, counts), (UINT8, keep)])]


@pytest.mark.parametrize(
    "inputs, counts, keep, text",
    [
        ([5], [], [], "column inputCounts has 0 elements for 2 rows"),
        ([5], [1, 0, 0], [], "column inputCounts has 3 elements for 2 rows"),
        ([5], [1], [], "1 inputs, but 2 are announced"),
        ([], [0, 1], [], "0 inputs, but 1 are announced"),
        ([5, 6, 7], [1], [], "3 inputs, but 2 are announced"),
        ([5], [0xFFFFFFFF, 2], [], "a row with 4294967295 inputs, more than 1048576"),
        (range(INPUTS_LIMIT + 1), [INPUTS_LIMIT + 1, 0], [], "a row with 1048577 inputs, more than 1048576"),
        ([5, 1 << 63], [1], [], r"column inputs has a number of 2\^63 or more"),
        ([], [], [1, 2, 0], "column keep has 3 elements for 2 rows"),
        ([], [], [3], "keep is 3, not 0 to 2"),
        ([], [], [0, 255], "keep is 255, not 0 to 2"),
    ],
)
def test_contradictions_in_inputs(inputs, counts, keep, text):
    with pytest.raises(WireError, match=text):
        decode(ROUTE, frames_with_inputs(inputs, counts, keep))


@pytest.mark.parametrize(
    "given, expected",
    [
        (([], [], []), ([], [], [])),
        (([5, 6], [1], [1]), ([5, 6], [1, 1], [1, 1])),
        (([5, 6], [2, 0], [0, 2]), ([5, 6], [2, 0], [0, 2])),
        (([], [0], []), ([], [0, 0], [])),
        ((range(INPUTS_LIMIT), [0, INPUTS_LIMIT], []), (list(range(INPUTS_LIMIT)), [0, INPUTS_LIMIT], [])),
    ],
)
def test_input_columns_have_full_length(given, expected):
    event = decode(ROUTE, frames_with_inputs(*given))
    assert isinstance(event, events.Submit)
    assert (list(event.inputs), list(event.input_counts), list(event.keep)) == expected
    assert event.inputs.typecode == UINT64


def object_frame(object_id: int, name: str = "", file_bytes: int = 0) -> bytes:
    return Message.new_object(Object(client=0, id=object_id, name=name, file_bytes=file_bytes)).dumps()


def test_objects_as_files():
    event = decode(ROUTE, [object_frame(1, file_bytes=SHARED_BYTES)])
    assert isinstance(event, events.Object)
    assert (event.frames, event.file_bytes) == ([], SHARED_BYTES)
    with pytest.raises(WireError, match="1 frames of an object whose frames are in a file"):
        decode(ROUTE, [object_frame(1, file_bytes=SHARED_BYTES), b"f"])
    for size in (1, SHARED_BYTES - 1, 1 << 62, (1 << 64) - 1):
        with pytest.raises(WireError, match=f"an object of {size:,} bytes as a file"):
            decode(ROUTE, [object_frame(1, file_bytes=size)])


def test_objects_have_1_to_64_frames():
    event = decode(ROUTE, [object_frame(BIG - 1, "x" * 300), *[b"f"] * OBJECT_FRAMES])
    assert isinstance(event, events.Object)
    assert (event.id, event.name, event.frames) == (BIG - 1, "x" * NAME_LIMIT, [b"f"] * OBJECT_FRAMES)
    for count in (0, OBJECT_FRAMES + 1):
        with pytest.raises(WireError, match=f"{count} frames of an object, not 1 to 64"):
            decode(ROUTE, [object_frame(1), *[b"f"] * count])
    with pytest.raises(WireError, match=r"the object's id is 2\^63 or more"):
        decode(ROUTE, [object_frame(BIG), b"f"])


@pytest.mark.parametrize("name", ["clients", "ids", "source"])
def test_a_transfer_with_a_number_that_is_too_large(name: str) -> None:
    """The scheduler may have the agent forget the file: it must be able to write the numbers."""
    vector = BY_NAME["transferred"]
    frame = bytearray(vector.frames[0])
    number = vector.fields[name] if name == "source" else vector.fields[name][0]
    frame[frame.index(number.to_bytes(8, "little")) + 7] |= 0x80
    with pytest.raises(WireError, match=r"2\^63 or more"):
        decode(ROUTE, [bytes(frame)])


def test_results_with_an_outcome_not_for_workers():
    results = BY_NAME["results-mixed-large"]
    frame = bytearray(results.frames[0])
    outcomes = bytes(results.fields["outcomes"])
    frame[frame.index(outcomes + bytes(5)) + 1] = effects.OUTCOME_WORKER_DIED
    with pytest.raises(WireError, match="outcome 5 is not for workers"):
        decode(ROUTE, [bytes(frame), *results.frames[1:]])


@pytest.mark.parametrize("size", [0, 7, 9])
def test_size_of_a_stored_result_has_8_bytes(size):
    rows = (UINT32, [size]), (UINT32, []), (UINT8, bytes(size))
    columns = (UNSIGNED, [1]), (UNSIGNED, [1]), (UINT32, [1]), (UINT8, [effects.OUTCOME_STORED]), (UNSIGNED, [1]), *rows
    with pytest.raises(WireError, match=f"the size of a stored result has {size} bytes, not 8"):
        decode(ROUTE, [columns_message(events.RESULTS, columns)])
    columns = (*columns[:5], (UINT32, [0]), (UINT32, [0]), (UINT8, b""))
    with pytest.raises(WireError, match="the size of a stored result has 0 bytes, not 8"):
        decode(ROUTE, [columns_message(events.RESULTS, columns), bytes(8)])


def test_contradictions_in_forget_objects():
    columns = (UNSIGNED, [1, 2]), (UNSIGNED, [1, 2, 3])
    with pytest.raises(WireError, match="clients"):
        decode(ROUTE, [columns_message(events.FORGET_OBJECTS, columns)])


RESULT: dict[str, Any] = {
    "clients": (UNSIGNED, [1]),
    "ids": (UNSIGNED, [1, 2]),
    "attempts": (UINT32, [1]),
    "outcomes": (UINT8, [0]),
    "durations": (UNSIGNED, [1]),
    "sizes": (UINT32, [0]),
    "large": (UINT32, []),
    "payload": (UINT8, b""),
    "cpuTimes": (UNSIGNED, []),
    "peaks": (UNSIGNED, []),
    "errors": (UINT8, b""),
    "errorSizes": (UINT32, []),
    "tracebacks": (UINT8, b""),
    "tracebackSizes": (UINT32, []),
    "calls": (UINT32, []),
}


@pytest.mark.parametrize(
    "changed, text",
    [
        ({"clients": [1, BIG]}, r"column clients has a number of 2\^63 or more"),
        ({"ids": [1 << 64 - 1, 2]}, r"column ids has a number of 2\^63 or more"),
        ({"durations": [0, BIG]}, r"column durations has a number of 2\^63 or more"),
        ({"cpuTimes": [BIG], "peaks": [1]}, r"column cpuTimes has a number of 2\^63 or more"),
        ({"cpuTimes": [1], "peaks": [BIG, 1]}, r"column peaks has a number of 2\^63 or more"),
        ({"cpuTimes": [1]}, "column peaks has 0 elements for 2 rows"),
        ({"peaks": [1, 2]}, "column cpuTimes has 0 elements for 2 rows"),
        ({"cpuTimes": [1, 2, 3], "peaks": [1]}, "column cpuTimes has 3 elements for 2 rows"),
        ({"errors": b"ab", "errorSizes": [1, 2]}, "lines of 2 bytes, but 3 are announced"),
        ({"errors": b"ab"}, "column errorSizes has 0 elements for 2 rows"),
        ({"errorSizes": [0xFFFFFFFF]}, "lines of 0 bytes, but 8589934590 are announced"),
        ({"errorSizes": [1, 2, 3]}, "column errorSizes has 3 elements for 2 rows"),
        ({"tracebacks": b"ab", "tracebackSizes": [1, 2]}, "tracebacks of 2 bytes, but 3 are announced"),
        ({"tracebackSizes": [1]}, "tracebacks of 0 bytes, but 2 are announced"),
        ({"calls": [1, 2, 3]}, "column calls has 3 elements for 2 rows"),
        ({"ids": []}, "column clients has 2 elements for 0 rows|a batch without rows"),
    ],
)
def test_contradictions_in_results(changed, text):
    columns = [(typecode, changed.get(name, values)) for name, (typecode, values) in RESULT.items()]
    with pytest.raises(WireError, match=text):
        decode(ROUTE, [columns_message(events.RESULTS, columns)])
    assert decode(ROUTE, [columns_message(events.RESULTS, list(RESULT.values()))]).kind == events.RESULTS


@pytest.mark.parametrize(
    "given, text",
    [
        ([], "column returned has 0 elements for 2 rows"),
        ([1, 0, 1], "column returned has 3 elements for 2 rows"),
        ([2], "returned is 2, not 0 or 1"),
    ],
)
def test_contradictions_in_retracted(given, text):
    columns = ((UINT64, [1]), (UINT64, [1, 2]), (UINT32, [1]), (UINT8, given))
    with pytest.raises(WireError, match=text):
        decode(ROUTE, [columns_message(events.RETRACTED, columns)])


PRINTED: dict[str, Any] = {
    "clients": (UNSIGNED, [1]),
    "ids": (UNSIGNED, [1, 2]),
    "streams": (UINT8, [0, 1]),
    "labels": (UINT32, [2, 0]),
    "sizes": (UINT32, [3]),
    "text": (UINT8, b"aa1bbb"),
    "dropped": (UNSIGNED, [7]),
}


@pytest.mark.parametrize(
    "changed, text",
    [
        ({"ids": [], "clients": []}, "a batch without rows"),
        ({"ids": [1, BIG]}, r"column ids has a number of 2\^63 or more"),
        ({"clients": []}, "column clients has 0 elements for 2 rows"),
        ({"streams": [0, 2]}, "stream 2 is neither 0 nor 1"),
        ({"labels": [0, 1, 2]}, "column labels has 3 elements for 2 rows"),
        ({"labels": [3, 4]}, "a label of 4 bytes in a row of 3"),
        ({"sizes": [2]}, "text of 6 bytes, but 4 are announced"),
        ({"text": b""}, "text of 0 bytes, but 6 are announced"),
    ],
)
def test_contradictions_in_output(changed, text):
    columns = [(typecode, changed.get(name, values)) for name, (typecode, values) in PRINTED.items()]
    with pytest.raises(WireError, match=text):
        decode(ROUTE, [columns_message(events.OUTPUT, columns)])
    assert decode(ROUTE, [columns_message(events.OUTPUT, list(PRINTED.values()))]).kind == events.OUTPUT


def test_force_is_one_element():
    for force, expected in (([], False), ([0], False), ([1], True)):
        event = decode(ROUTE, [columns_message(events.CANCEL, ((UINT64, [1, 2]), (UINT8, force)))])
        assert isinstance(event, events.Cancel)
        assert event.force is expected
    for force, text in (([1, 1], "column force has 2 elements, more than 1"), ([2], "force is 2, not 0 or 1")):
        with pytest.raises(WireError, match=text):
            decode(ROUTE, [columns_message(events.CANCEL, ((UINT64, [1, 2]), (UINT8, force)))])


def with_wild_pointer(name: str) -> bytes:
    """The vector's message with a pointer to the union's member that points far beyond its end."""
    frame = bytearray(BY_NAME[name].frames[0])
    frame[27] = 1
    return bytes(frame)


@pytest.mark.parametrize(
    "frames, text",
    [
        ([], "a message without frames"),
        ([b""], "frame 0 is empty: it must be the message, without a delimiter frame before it"),
        ([b"", BY_NAME["submit"].frames[0]], "frame 0 is empty: .* delimiter frame"),
        ([b"garbage"], "frame 0 is not a Cap'n Proto message in stream framing, or it is truncated"),
        ([b'{"hello": {"role": "worker"}}'], "frame 0 is not a Cap'n Proto message"),
        ([BY_NAME["submit"].frames[0][:12]], "frame 0 is not a Cap'n Proto message"),
        (
            [with_wild_pointer("hello-client")],
            "malformed hello: frame 0 is truncated, a pointer is out of bounds, or a text is not UTF-8",
        ),
    ],
)
def test_errors_for_bytes_that_are_not_a_message(frames, text):
    with pytest.raises(WireError, match=text) as raised:
        decode(ROUTE, frames)
    assert "Error" not in str(raised.value)


def hello_with(*capabilities: tuple[str, int]) -> bytes:
    entries = [Capability(name=name, amount=amount) for name, amount in capabilities]
    return Message.new_hello(Hello(protocol_version=1, role=Role.worker, incarnation=1, capabilities=entries)).dumps()


def test_capabilities_up_to_the_limit():
    most = [(f"capability {number}", 1 + number) for number in range(CAPABILITIES_LIMIT)]
    event = decode(ROUTE, [hello_with(*most)])
    assert isinstance(event, events.Hello)
    assert event.capabilities == frozenset(most)
    long = decode(ROUTE, [hello_with(("x" * 5000, 0xFFFFFFFF))])
    assert isinstance(long, events.Hello)
    assert long.capabilities == {("x" * NAME_LIMIT, 0xFFFFFFFF)}


@pytest.mark.parametrize(
    "capabilities, text",
    [
        ([(f"{number}", 1) for number in range(CAPABILITIES_LIMIT + 1)], "65 capabilities, more than 64"),
        ([("gpu", 0)], "a capability without a name or an amount"),
        ([("", 1)], "a capability without a name or an amount"),
        ([("gpu", 1), ("gpu", 2)], "capability gpu is named twice"),
        ([("x" * 300, 1), ("x" * 301, 1)], "capability x{40} is named twice"),
    ],
)
def test_invalid_capabilities(capabilities, text):
    with pytest.raises(WireError, match=text):
        decode(ROUTE, [hello_with(*capabilities)])


def test_invalid_options():
    frame = Message.new_submit(Submit(ids=[1], functions=[1], sizes=[0], options=Options(retries=-2))).dumps()
    with pytest.raises(WireError, match="-2 retries"):
        decode(ROUTE, [frame])


def submit_of_calls(calls: int, **columns: Any) -> list[bytes]:
    submit = Submit(ids=[1], functions=[1], sizes=[0], options=Options(calls=calls), **columns)
    return [Message.new_submit(submit).dumps()]


def test_rows_of_calls():
    most: Any = decode(ROUTE, submit_of_calls(MAX_ROW_CALLS))
    assert (most.options.calls, most.options.weight) == (65_536, 65_536)
    single: Any = decode(ROUTE, submit_of_calls(1))
    assert (single.options.calls, single.options.weight) == (1, 1)
    for calls in (MAX_ROW_CALLS + 1, (1 << 32) - 1):
        with pytest.raises(WireError, match=f"rows of {calls:,} calls, more than 65,536"):
            decode(ROUTE, submit_of_calls(calls))


def test_results_of_rows_of_calls_are_not_kept():
    columns: dict[str, Any] = {"inputs": [], "input_counts": [0]}
    with pytest.raises(WireError, match="a row of calls whose result is kept"):
        decode(ROUTE, submit_of_calls(2, keep=[1], **columns))
    event: Any = decode(ROUTE, submit_of_calls(2, keep=[0], **columns))
    assert event.options.calls == 2


def test_columns_of_row_options():
    effect = effects.Dispatch(ROUTE)
    effect.clients = effect.attempts = effect.functions = [1, 1, 1]
    effect.ids = [1, 2, 3]
    effect.rows.append_run([0, 0, 0], b"")
    plain = encode(effect, identity())
    effect.row_options = {1: (effects.FLAG_PROFILE, 0, -(1 << 31)), 2: (0, 0xFFFFFFFF, (1 << 31) - 1)}
    assert len(encode(effect, identity())[0]) == len(plain[0]) + 8 + 16 + 16


def test_large_columns_and_payloads():
    rows = 100_000
    sizes = array("I", [row % 3 for row in range(rows)])
    payload = bytes(sum(sizes))
    event = decode(ROUTE, submit_frames(range(rows), [1], sizes, [], payload))
    assert isinstance(event, events.Submit)
    assert event.ids == array(UINT64, range(rows))
    assert event.sizes == sizes
    assert event.payload == payload
    event = decode(ROUTE, submit_frames([1], [1], [0], [0], b"", [bytes(20 << 20)]))
    assert isinstance(event, events.Submit)
    assert len(event.large[0]) == 20 << 20


def test_packages_of_an_agent_are_bounded_and_kept_once() -> None:
    def packages(text: str) -> str:
        hello = Hello(protocol_version=1, role=Role.agent, incarnation=1, packages=text)
        event = decode(ROUTE, [Message.new_hello(hello).dumps()])
        assert isinstance(event, events.Hello)
        return event.packages

    assert packages("") == "" and len(packages("x" * (PACKAGES_LIMIT + 1))) == PACKAGES_LIMIT
    text = "".join(f"package-{number} 1.0\n" for number in range(9))
    assert packages(text) == text and packages(text) is packages(text)


def hello_of_kinds(*kinds: str) -> bytes:
    return Message.new_hello(
        Hello(protocol_version=1, role=Role.worker, incarnation=1, kinds=list(kinds) or None)
    ).dumps()


def test_kinds_up_to_the_limit():
    most = [f"named json {number}" for number in range(KINDS_LIMIT)]
    assert decode(ROUTE, [hello_of_kinds(*most)]).kinds == frozenset(most)
    assert decode(ROUTE, [hello_of_kinds("x" * NAME_LIMIT)]).kinds == {"x" * NAME_LIMIT}
    assert decode(ROUTE, [hello_of_kinds()]).kinds == frozenset()


@pytest.mark.parametrize(
    "kinds, text",
    [
        ([f"{number}" for number in range(KINDS_LIMIT + 1)], "1025 kinds of functions, more than 1024"),
        (["fine", "x" * (NAME_LIMIT + 1)], "a function's kind of 257 characters, more than 256"),
    ],
)
def test_invalid_kinds(kinds, text):
    with pytest.raises(WireError, match=text):
        decode(ROUTE, [hello_of_kinds(*kinds)])


def test_long_kind_is_rejected():
    """Two kinds that differ only after the limit would be the same kind."""
    frame = Message.new_function(Function(number=1, name="f", kind="x" * (NAME_LIMIT + 1))).dumps()
    with pytest.raises(WireError, match="257 characters"):
        decode(ROUTE, [frame, b""])


@pytest.mark.parametrize("kind", ["", None])
def test_function_needs_a_kind(kind):
    with pytest.raises(WireError, match="a function without a kind"):
        decode(ROUTE, [Message.new_function(Function(number=1, name="f", kind=kind)).dumps(), b""])


def test_accepted_batches_without_rows():
    """PROTOCOL.md lists them. Not listed are messages that need an answer for each row, or have bytes."""
    kinds = (events.STARTED, events.SUSPENDED, events.RESUMED, events.RETRACTED, events.CANCEL)
    for kind in (*kinds, events.FORGET_FUNCTIONS, events.FORGET_OBJECTS):
        assert decode(ROUTE, [columns_message(kind, [(UINT64, [])])]).kind == kind
