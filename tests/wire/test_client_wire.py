"""Encoding and decoding of client and scheduler against pycapnp. CPython only."""

from __future__ import annotations

import dataclasses
import struct
import sys
from typing import Any

import pytest

capnp = pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from tests.wire import make_vectors  # noqa: E402
from tests.wire.effects_of_vectors import effect_of, identity, signed  # noqa: E402
from tests.wire.test_scheduler_wire import CHECKS, names  # noqa: E402
from tests.wire.vectors import (  # noqa: E402
    ALL,
    BETWEEN_AGENTS,
    BY_NAME,
    FOLDER,
    TO_PEERS,
    Vector,
    is_for_peers,
    is_for_scheduler,
)

from scaler_client.protocol import encode, messages, snapshots, wire  # noqa: E402
from scaler_client.protocol.columns import write_batch  # noqa: E402
from scaler_client.protocol.schema import SCHEMA  # noqa: E402
from scaler_scheduler.core import events  # noqa: E402
from scaler_scheduler.wire import decode  # noqa: E402
from scaler_scheduler.wire.decode import decode as scheduler_decode  # noqa: E402
from scaler_scheduler.wire.encode import encode as scheduler_encode  # noqa: E402

BATCHES = {"submit", "dispatch", "results", "resolved", "objects"}
TASKS = {"retract", "retracted", "stop", "suspended", "resumed"}


MADE_ELSEWHERE = ("snapshot", "history", "graphs")
"""Published messages are not made from effects."""


def test_vectors_are_up_to_date():
    made = make_vectors.make(SCHEMA)
    assert made == {name: (FOLDER / name).read_bytes() for name in made}
    assert set(made) == {path.name for path in FOLDER.iterdir()} - {"README.md"}


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


LISTED = ("sizes", "large", "payload", "options", "inputs", "errors", "tracebacks")
"""Fields of batches that are not columns of numbers."""


def message_of(vector: Vector) -> messages.Message:
    """The golden message as a message of the client library."""
    if vector.message == "snapshot":
        return snapshot_of(vector.fields)
    if vector.message == "history":
        return history_of(vector)
    if vector.message == "graphs":
        return graphs_of(vector)
    kind = getattr(messages, vector.message[0].upper() + vector.message[1:])
    fields = {snake(name): value for name, value in vector.fields.items()}
    if vector.message in BATCHES:
        rows = len(fields["ids"])
        columns = [name for name in vector.fields if name not in LISTED]
        full: dict[str, Any] = {snake(name): vector.column(name, rows) for name in columns}
        full.update({snake(name): values for name, values in vector.inputs().items()})
        full["payloads"] = vector.payloads()
        if full.pop("error_sizes", None):
            full["errors"] = vector.lines()
        if full.pop("traceback_sizes", None):
            full["tracebacks"] = vector.tracebacks()
        if full.pop("name_sizes", None):
            full["names"] = vector.names()
        if full.pop("row_bookings", None):
            full["bookings"] = vector.bookings()
        if "priorities" in full:
            full["priorities"] = list(map(signed, full["priorities"]))
        if "options" in fields:
            full["options"] = _options(fields["options"])
        return kind(**full)  # type: ignore[no-any-return]
    if vector.message == "exchange":
        payload, sizes = fields.pop("payload"), fields.pop("sizes")
        begins = [sum(sizes[:row]) for row in range(len(sizes))]
        fields["values"] = [payload[begin : begin + size] for begin, size in zip(begins, sizes)]
    if vector.message in TASKS:
        fields = {"tasks": names(vector.fields), **{name: fields[name] for name in fields if name == "returned"}}
    elif vector.message == "endWorker":
        fields["task"] = (fields.pop("client"), fields.pop("id"), fields.pop("attempt"))
    elif vector.message == "cancel":
        fields["force"] = bool(fields.get("force"))
    if "data" in fields:
        fields["data"] = messages.DataAddress(**fields["data"])
    if vector.message == "hello":
        fields["role"] = messages.Role[fields["role"].upper()]
        fields["capabilities"] = dict(_capabilities(fields))
        fields["running"] = names(fields["running"]) if "running" in fields else []
        resources = fields.get("resources", ())
        fields["resources"] = tuple(messages.HostResource(*resource.values()) for resource in resources)
    elif vector.message == "welcome":
        fields["lease_seconds"] = fields.pop("lease_milliseconds") / 1000
    elif vector.message == "objectChunk":
        fields["payload"] = vector.frames[1]
    elif vector.message == "object":
        fields["frames"] = vector.frames[1:]
    elif vector.message == "transferObjects":
        for name in ("clients", "bytes"):
            fields[name] = vector.column(name, len(fields["ids"]))
    elif vector.message in ("forgetObjects", "fetchObjects"):
        fields["clients"] = vector.column("clients", len(fields["ids"]))
    elif vector.message == "output":
        return _output(vector)
    elif vector.message == "environment":
        fields["manifest"] = vector.frames[1]
    elif vector.message == "contents":
        del fields["count"]
        fields["payloads"] = vector.frames[1:]
    elif vector.message == "function":
        fields["payload"] = vector.frames[1]
    elif vector.message == "heartbeat":
        fields["workers"] = [
            messages.WorkerHeartbeat(*(worker[name] for name in ("incarnation", "residentBytes", "cpuMilliseconds")))
            for worker in fields.get("workers", [])
        ]
        fields["pools"] = pools_of(fields)
    elif vector.message == "heartbeatEcho":
        fields["hosts"] = [messages.Host(*host.values()) for host in fields.get("hosts", [])]
    return kind(**fields)  # type: ignore[no-any-return]


def pools_of(fields: dict[str, Any]) -> list[snapshots.PoolState]:
    return [
        snapshots.PoolState(**{snake(name): value for name, value in pool.items()}) for pool in fields.get("pools", [])
    ]


def snapshot_of(stated_fields: dict[str, Any]) -> snapshots.Snapshot:
    fields = {snake(name): value for name, value in stated_fields.items() if name not in ("protocolVersion", "texts")}
    text, texts = stated_fields["texts"]["text"], []
    for size in stated_fields["texts"]["sizes"]:
        texts.append(text[:size].decode())
        text = text[size:]
    for unit in ("uptime", "unix"):
        fields[f"{unit}_seconds"] = fields.pop(f"{unit}_milliseconds") / 1000
    for name, times in (("dropped", "dropped_times"), ("deaths", "death_times")):
        last = {counter["name"]: counter.get("lastMilliseconds", 0) / 1000 for counter in fields[name]}
        fields[times] = {name: seconds for name, seconds in last.items() if seconds}
    for name in ("received", "sent", "dropped", "deaths", "unreachable_hosts"):
        fields[name] = {counter["name"]: counter["count"] for counter in fields[name]}
    shares = [{snake(name): value for name, value in share.items()} for share in fields["shares"]]
    fields["shares"] = [
        snapshots.Share(used_seconds=share.pop("used_milliseconds") / 1000, **share) for share in shares
    ]
    fields["limits"] = [
        snapshots.TaskLimit(**{snake(name): value for name, value in limit.items()}) for limit in fields["limits"]
    ]
    fields["resources"] = [snapshots.HostPool(*pool.values()) for pool in fields["resources"]]
    fields["reservation_seconds"] = fields.pop("reservation_milliseconds") / 1000
    needs = [{snake(name): value for name, value in need.items()} for need in fields["needs"]]
    for need in needs:
        need["resources"] = {each["name"]: each["amount"] for each in need["resources"]}
    fields["needs"] = [snapshots.Need(known_seconds=need.pop("milliseconds") / 1000, **need) for need in needs]
    fields["pools"] = pools_of(fields)
    process = {snake(name): value for name, value in fields["process"].items()}
    fields["process"] = snapshots.SchedulerProcess(**process)
    for name in [name for name in fields if name.endswith("_columns")]:
        columns = {snake(column): values for column, values in fields[name].items()}
        rows = max(map(len, columns.values()))
        kind = getattr(snapshots, name.title().replace("_", ""))
        for column in columns:
            columns[column] = columns[column] * rows if len(columns[column]) == 1 else columns[column]
            is_of_workers = kind is snapshots.WorkerColumns and column == "tasks"
            named = ("task_names", "names", "hosts", "languages", "versions", "capabilities", "shares", "environments")
            if is_of_workers or column in named:
                columns[column] = [texts[number] for number in columns[column]]
        fields[name] = kind(**columns)
    return snapshots.Snapshot(**fields)


def history_of(vector: Vector) -> snapshots.History:
    fields = vector.fields
    rows, texts = len(fields.get("ids", [])), texts_of(fields)
    every = ("kinds", "times", "clients", "ids", "attempts", "workers", "outcomes", "durations")
    columns = {name: vector.column(name, rows) for name in every}
    names = [texts[number] for number in vector.column("names", rows)]
    errors = [texts[number] for number in vector.column("errors", rows)] or [""] * rows
    columns |= {"errors": errors, "functions": [texts[number] for number in vector.column("functions", rows)] or names}
    columns["tracebacks"] = [texts[number] for number in vector.column("tracebacks", rows)] or [""] * rows
    columns["wait_reasons"] = [texts[number] for number in vector.column("waitReasons", rows)] or [""] * rows
    return snapshots.History(fields["incarnation"][0], fields["first"][0], names=names, **columns)


def graphs_of(vector: Vector) -> snapshots.Graphs:
    fields = vector.fields
    rows, texts, inputs, left = len(fields["ids"]), texts_of(fields), [], fields.get("inputs", [])
    for count in vector.column("inputCounts", rows) or [0] * rows:
        inputs.append(left[:count])
        left = left[count:]
    columns = {name: vector.column(name, rows) for name in ("clients", "ids", "states")}
    columns |= {name: vector.column(name, rows) or [0] * rows for name in ("graphs",)}
    columns["submit_milliseconds"] = vector.column("submitMilliseconds", rows) or [0] * rows
    columns["keys"] = [texts[number] for number in vector.column("keys", rows)] or [""] * rows
    names = [texts[number] for number in vector.column("names", rows)]
    return snapshots.Graphs(fields["incarnation"][0], fields["total"][0], names=names, inputs=inputs, **columns)


def texts_of(fields: dict[str, Any]) -> list[str]:
    texts, text = [], fields.get("text", b"")
    for size in fields.get("sizes", []):
        texts.append(text[:size].decode())
        text = text[size:]
    return texts


def _output(vector: Vector) -> messages.Output:
    rows, fields = len(vector.fields.get("ids", [])), vector.fields
    printed = vector.printed()
    labels, texts = [label for label, _ in printed], [text for _, text in printed]
    ids, clients, dropped = fields.get("ids", []), fields.get("clients", []), sum(fields.get("dropped", []))
    return messages.Output(ids, vector.column("streams", rows), labels, texts, clients, dropped)


def _capabilities(fields: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((entry["name"], entry["amount"]) for entry in fields.get("capabilities", []))


def _options(fields: dict[str, Any]) -> messages.Options:
    options = {snake(name): value for name, value in fields.items()}
    limits = tuple(fields.get("limits", ()))
    resources = tuple((entry["name"], entry["amount"]) for entry in fields.get("resources", ()))
    options |= {"capabilities": _capabilities(fields), "limits": limits, "resources": resources}
    return messages.Options(**options)


def stated(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that differ from the schema's defaults."""
    inner = {name: stated(value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {name: value for name, value in inner.items() if value not in (0, "", [], b"", {})}


def content(frame: bytes) -> tuple[str, dict[str, Any]]:
    """The fields that pycapnp reads, without fields that have the schema's default."""
    with SCHEMA.Message.from_bytes(frame) as root:
        member = str(root.which())
        fields = root.to_dict()[member] or {}
    return member, stated(fields)


def golden_content(vector: Vector) -> tuple[str, dict[str, Any]]:
    return vector.message, stated(vector.fields)


@pytest.mark.parametrize("vector", ALL, ids=lambda v: v.name)
def test_pycapnp_reads_vectors(vector):
    member, fields = content(vector.frames[0])
    assert (member, fields) == golden_content(vector)


@pytest.mark.parametrize("vector", [v for v in ALL if is_for_peers(v)], ids=lambda v: v.name)
def test_client_decodes_vectors(vector):
    assert wire.decode(vector.frames) == message_of(vector)
    # Frames may come as anything bytes-like.
    assert wire.decode([memoryview(frame) for frame in vector.frames]) == message_of(vector)


@pytest.mark.parametrize("vector", [v for v in ALL if v.message not in TO_PEERS], ids=lambda v: v.name)
def test_client_rejects_messages_for_others(vector):
    with pytest.raises(wire.WireError, match="is not for a peer"):
        wire.decode(vector.frames)


def is_encoded_by_the_client(vector: Vector) -> bool:
    return is_for_scheduler(vector) and not vector.name.endswith("-segments")


@pytest.mark.parametrize("vector", [v for v in ALL if is_encoded_by_the_client(v)], ids=lambda v: v.name)
def test_client_encodes_vectors(vector, monkeypatch):
    large = vector.fields.get("large", [])
    if large:
        # The library chooses large payloads by size, so an empty payload in its own frame cannot be made.
        monkeypatch.setattr(encode, "LARGE_PAYLOAD_BYTES", 100)
    frames = [bytes(frame) for frame in wire.encode(message_of(vector))]
    event = scheduler_decode(b"route", frames)
    CHECKS[vector.message](event, vector)
    if b"" not in vector.frames:
        assert content(frames[0]) == golden_content(vector)
        assert frames[1:] == vector.frames[1:]


@pytest.mark.parametrize(
    "vector",
    [
        v
        for v in ALL
        if is_for_peers(v)
        and v.message not in {*MADE_ELSEWHERE, *BETWEEN_AGENTS}
        and "-from-worker" not in v.name
        and v.name != "function-environment"  # from a client alone
    ],
    ids=lambda v: v.name,
)
def test_pycapnp_and_client_decode_messages_of_the_scheduler(vector):
    frames = scheduler_encode(effect_of(vector), identity())
    assert content(frames[0]) == golden_content(vector)
    assert wire.decode(frames) == message_of(vector)


@pytest.mark.parametrize("vector", [v for v in ALL if v.message in BETWEEN_AGENTS], ids=lambda v: v.name)
def test_agents_encode_and_decode_what_they_send_one_another(vector):
    frames = [bytes(frame) for frame in wire.encode(message_of(vector))]
    assert content(frames[0]) == golden_content(vector)
    assert frames[1:] == vector.frames[1:]
    assert wire.decode(vector.frames) == message_of(vector)


def test_snapshot_of_another_version():
    with pytest.raises(wire.OtherVersionError, match=r"version 9\.0\.0, has protocol version 99: this is 1") as raised:
        wire.decode_published(b"snapshot" + BY_NAME["snapshot-other-version"].frames[0])
    assert (raised.value.protocol_version, raised.value.version) == (99, "9.0.0")


def test_snapshots_with_contradicting_columns():
    content_of_case = next(case for case in make_vectors.CASES if case[0] == "snapshot")[2]
    for table, column, values, text in (
        ("workerColumns", "pids", [1, 2, 3], "column pids has 3 elements for 2 rows"),
        ("workerColumns", "hosts", [10], "column hosts names text 10 of 10"),
        ("texts", "sizes", [1], "texts of 57 bytes, but 1 are announced"),
    ):
        changed = {**content_of_case, table: {**content_of_case[table], column: values}}
        with pytest.raises(wire.WireError, match=text):
            wire.decode([make_vectors.build(SCHEMA, "snapshot", changed, 4096)])


@pytest.mark.parametrize("words", [1, 2, 3, 5, 8, 13, 21, 64])
@pytest.mark.parametrize("vector", ALL, ids=lambda v: v.name)
def test_segments_of_any_size(vector, words):
    """The size of the first segment decides which pointers are far pointers."""
    content_of_case = next(case for case in make_vectors.CASES if case[0] == vector.name)
    frame = make_vectors.build(SCHEMA, vector.message, content_of_case[2], words)
    if is_for_scheduler(vector):
        CHECKS[vector.message](scheduler_decode(b"r", [frame, *vector.frames[1:]]), vector)
    if is_for_peers(vector):
        assert wire.decode([frame, *vector.frames[1:]]) == message_of(vector)


def double_far(vector: Vector) -> bytes:
    """The message with its root in a second segment, after a far pointer with a landing pad of two words."""
    words = vector.frames[0][8:]
    root = int.from_bytes(words[:8], "little")
    # Segment 0: a far pointer to the pad. Segment 1, the pad: a far pointer to the content, and the tag. Segment 2: the
    # whole of the old segment, whose root's content begins at word 1.
    to_pad, to_content, tag = 2 | 1 << 2 | 1 << 32, 2 | 1 << 3 | 2 << 32, root >> 32 << 32
    head = struct.pack("<4I3Q", 2, 1, 2, len(words) // 8, to_pad, to_content, tag)
    return head + words


@pytest.mark.parametrize("vector", [v for v in ALL if not v.name.endswith("-segments")], ids=lambda v: v.name)
def test_landing_pads_of_two_words(vector):
    frame = double_far(vector)
    assert content(frame) == golden_content(vector)
    if is_for_scheduler(vector):
        CHECKS[vector.message](scheduler_decode(b"r", [frame, *vector.frames[1:]]), vector)
    if is_for_peers(vector):
        assert wire.decode([frame, *vector.frames[1:]]) == message_of(vector)


@pytest.mark.parametrize(
    "sizes", [[], [0], [0, 0, 0], [1], [3, 3, 3], [1, 2, 0], [65535, 65536, 0], [65536], [200_000, 1, 65536, 70_000]]
)
def test_round_trip_of_payloads(sizes):
    """The same payloads in submit and results to the scheduler, and in dispatch and resolved from it."""
    rows = len(sizes)
    payloads: list[messages.Payload] = [bytes([row + 1]) * size for row, size in enumerate(sizes)]
    submit = messages.Submit(range(5, 5 + rows), [3] * rows, payloads)
    frames = [bytes(frame) for frame in wire.encode(submit)]
    large = [row for row, size in enumerate(sizes) if size >= wire.LARGE_PAYLOAD_BYTES]
    assert frames[1:] == [payloads[row] for row in large]
    if not rows:
        return
    event = scheduler_decode(b"r", frames)
    assert isinstance(event, events.Submit)
    dispatch = _copy_rows(event)
    decoded = wire.decode(scheduler_encode(dispatch, identity()))
    assert isinstance(decoded, messages.Dispatch)
    assert decoded.payloads == payloads
    assert (decoded.ids, decoded.clients) == (list(range(5, 5 + rows)), [1] * rows)


def _copy_rows(event: events.Submit) -> Any:
    from scaler_scheduler.core import effects

    dispatch = effects.Dispatch(b"w")
    rows = len(event.ids)
    position = 0
    for row in range(rows):
        if row in event.large:
            dispatch.rows.append_large(event.large[row])
        else:
            dispatch.rows.append_run([event.sizes[row]], event.payload[position : position + event.sizes[row]])
        position += event.sizes[row]
    dispatch.ids = list(event.ids)
    dispatch.clients = dispatch.attempts = dispatch.functions = [1] * rows
    return dispatch


def test_only_constant_columns_are_compacted():
    vector = BY_NAME["results"]
    message = message_of(vector)
    assert isinstance(message, messages.Results)
    assert content(wire.encode(message)[0])[1]["attempts"] == [1]
    changed = dataclasses.replace(message, attempts=[1, 2, 1])
    assert content(wire.encode(changed)[0])[1]["attempts"] == [1, 2, 1]


def test_options_are_encoded_once_and_sent_with_every_batch():
    vector = BY_NAME["submit-options"]
    message = message_of(vector)
    assert isinstance(message, messages.Submit) and message.options is not None
    encode._options_body.cache_clear()
    for ids in ([20, 21], [22, 23], [24]):
        part = dataclasses.replace(message, ids=ids, payloads=[b"yy"] * len(ids))
        options = content(wire.encode(part)[0])[1]["options"]
        assert options == stated(vector.fields["options"])
    assert encode._options_body.cache_info().misses == 1


def test_options_with_long_texts():
    capabilities = tuple((f"{number}" * 300, number + 1) for number in range(9))
    options = messages.Options(name="Ω" * 5000, capabilities=capabilities)
    read = content(wire.encode(messages.Submit([1], [1], [b"x"], options))[0])[1]["options"]
    assert read["name"] == options.name
    assert _capabilities(read) == capabilities


def test_missing_columns_of_a_dispatch_are_zeros():
    columns = [("Q", [1]), ("Q", [1, 2]), ("I", [1]), ("I", [1]), ("I", [0]), ("I", ()), ("B", b"")]
    decoded = wire.decode([write_batch(10, [*columns, ("B", ()), ("I", ()), ("I", [(1 << 32) - 1, 1])])])
    assert isinstance(decoded, messages.Dispatch)
    assert (decoded.flags, decoded.depths, decoded.priorities) == ([0, 0], [0, 0], [-1, 1])


def test_dispatch_without_input_sources_is_malformed():
    columns: list[Any] = [("Q", [1]), ("Q", [1, 2]), ("I", [1]), ("I", [1]), ("I", [0]), ("I", ()), ("B", b"")]
    columns += [("B", ()), ("I", ()), ("I", ())]
    for inputs, counts, sources, text in (
        ([5, 6], [1], [], "inputSources has 0 elements for 2 rows"),
        ([5, 6], [1], [1, 1, 1], "inputSources has 3 elements for 2 rows"),
        ([5, 6], [1, 0], [1], "2 inputs, but 1 are announced"),
        ([], [1], [1], "0 inputs, but 2 are announced"),
        ([5, 6], [], [1], "inputCounts has 0 elements for 2 rows"),
    ):
        with pytest.raises(wire.WireError, match=text):
            wire.decode([write_batch(10, [*columns, ("Q", inputs), ("I", counts), ("B", sources)])])
    decoded = wire.decode([write_batch(10, [*columns, ("Q", ()), ("I", [0]), ("B", ())])])
    assert isinstance(decoded, messages.Dispatch)
    assert (decoded.inputs, decoded.input_counts, decoded.input_sources) == ([], [0, 0], [])


def test_missing_inline_inputs_are_malformed():
    columns: list[Any] = [("Q", [1]), ("Q", [1, 2]), ("I", [1]), ("I", [1]), ("I", [2]), ("I", ()), ("B", b"aabb")]
    columns += [("B", ()), ("I", ()), ("I", ()), ("Q", [5, 6, 7]), ("I", [1, 2]), ("B", [0])]
    for inline_sizes, text in (
        ([3, 3], "inlineSizes has 2 elements for 3 rows"),
        ([0, 2, 3], "inputs of 3 bytes in the payload of row 1, which has 2"),
        ([(1 << 32) - 1, 0, 0], "inputs of 4294967294 bytes in the payload of row 0, which has 2"),
    ):
        with pytest.raises(wire.WireError, match=text):
            wire.decode([write_batch(10, [*columns, ("I", inline_sizes)])])
    decoded = wire.decode([write_batch(10, [*columns, ("I", [3, 0, 2])])])
    assert isinstance(decoded, messages.Dispatch)
    assert (decoded.inline_sizes, decoded.payloads) == ([3, 0, 2], [b"aa", b"bb"])


def test_objects_with_too_many_frames():
    frame = BY_NAME["object-to-worker"].frames[0]
    assert isinstance(wire.decode([frame, *[b"f"] * messages.OBJECT_FRAMES]), messages.Object)
    for count in (0, messages.OBJECT_FRAMES + 1):
        with pytest.raises(wire.WireError, match=f"{count} frames of an object, not 1 to 64"):
            wire.decode([frame, *[b"f"] * count])
    assert messages.OBJECT_FRAMES == decode.OBJECT_FRAMES


def test_objects_with_long_names():
    frames = wire.encode(messages.Object(5, [b"f"], name="\U0001f600" * 5000))
    assert content(bytes(frames[0])) == ("object", {"id": 5, "name": "\U0001f600" * 5000})
    assert bytes(frames[0])[:4] == bytes(4)  # one segment


def test_canonical_message_of_another_writer():
    """A canonical writer omits trailing zeros, so structs are shorter than in the schema."""
    # The root: one data word, one pointer; the tag; the pointer to a Heartbeat of one data word; sequence 9.
    words = [1 << 32 | 1 << 48, events.HEARTBEAT, 1 << 32, 9]
    canonical = struct.pack("<II4Q", 0, len(words), *words)
    assert content(canonical) == ("heartbeat", {"sequence": 9})
    event = scheduler_decode(b"r", [canonical])
    assert isinstance(event, events.Heartbeat)
    assert (event.sequence, event.workers) == (9, [])


def test_refused_for_an_unknown_reason():
    frame = bytearray(BY_NAME["refused"].frames[0])
    frame[32:34] = (9).to_bytes(2, "little")
    assert wire.decode([bytes(frame)]) == dataclasses.replace(message_of(BY_NAME["refused"]), reason="reason 9")
