"""The scheduler's side of the wire against the golden messages. Runs under PyPy and CPython."""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, Callable, Dict

import pytest
from tests.wire.effects_of_vectors import effect_of, identity
from tests.wire.vectors import ALL, BY_NAME, FOLDER, TO_PEERS, TO_SCHEDULER, Vector, is_for_peers, is_for_scheduler

from scaler_scheduler.core import effects, events
from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.encode import encode
from scaler_scheduler.wire.errors import WireError
from scaler_scheduler.wire.kinds import KIND_NAMES

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


def _goodbye(event: events.Goodbye, vector: Vector) -> None:
    assert event.reason == vector.fields["reason"]


def _heartbeat(event: events.Heartbeat, vector: Vector) -> None:
    assert event.sequence == vector.fields["sequence"]
    assert event.workers == [worker["incarnation"] for worker in vector.fields.get("workers", [])]


def _function(event: events.Function, vector: Vector) -> None:
    fields = vector.fields
    assert (event.number, event.name, event.serializer) == (fields["number"], fields["name"], fields["serializer"])
    assert event.payload == vector.frames[1]
    assert event.digest == hashlib.blake2b(vector.frames[1], digest_size=16).digest()


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


def _results(event: events.Results, vector: Vector) -> None:
    rows = len(event.ids)
    assert list(event.ids) == vector.fields["ids"]
    for column in ("clients", "attempts", "outcomes", "durations"):
        assert list(getattr(event, column)) == vector.column(column, rows)
    _payloads(event, vector)


def _started(event: events.Started, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]
    assert list(event.clients) == vector.fields["clients"]
    assert list(event.attempts) == vector.fields["attempts"]


def _cancel(event: events.Cancel, vector: Vector) -> None:
    assert list(event.ids) == vector.fields["ids"]


def _worker_died(event: events.WorkerDied, vector: Vector) -> None:
    fields = vector.fields
    assert (event.incarnation, event.pid, event.cause) == (fields["incarnation"], fields["pid"], fields["cause"])
    assert event.peak_bytes == fields.get("peakBytes", 0)
    assert (event.client, event.id, event.attempt) == (
        fields.get("client", 0), fields.get("id", 0), fields.get("attempt", 0),
    )  # fmt: skip


CHECKS: Dict[str, Callable[[Any, Vector], None]] = {
    "hello": _hello,
    "goodbye": _goodbye,
    "heartbeat": _heartbeat,
    "function": _function,
    "forgetFunctions": _forget_functions,
    "submit": _submit,
    "results": _results,
    "started": _started,
    "cancel": _cancel,
    "workerDied": _worker_died,
}


def test_there_is_a_vector_for_every_message():
    members = {vector.message for vector in ALL}
    assert members == TO_SCHEDULER | TO_PEERS
    assert len(members) == len(KIND_NAMES)
    files = {path.name for path in FOLDER.iterdir()} - {"README.md"}
    named = {f"{vector.name}.json" for vector in ALL} | {f"{vector.name}.bin" for vector in ALL}
    named |= {f"{vector.name}.{number}.bin" for vector in ALL for number in range(1, len(vector.frames))}
    assert files == named


@pytest.mark.parametrize("vector", [vector for vector in ALL if is_for_scheduler(vector)], ids=lambda v: v.name)
def test_the_scheduler_reads(vector):
    event = decode(ROUTE, vector.frames)
    assert event.route == ROUTE
    CHECKS[vector.message](event, vector)


@pytest.mark.parametrize("vector", [v for v in ALL if v.message in TO_PEERS - TO_SCHEDULER], ids=lambda v: v.name)
def test_the_scheduler_refuses_what_is_not_for_it(vector):
    with pytest.raises(WireError, match="is not for the scheduler"):
        decode(ROUTE, vector.frames)


def is_written_by_the_scheduler(vector: Vector) -> bool:
    # Snapshots are made in status.py; what came in several segments goes out in one.
    if vector.message == "snapshot" or vector.name.endswith("-segments") or vector.name == "started-from-worker":
        return False
    return is_for_peers(vector)


@pytest.mark.parametrize("vector", [v for v in ALL if is_written_by_the_scheduler(v)], ids=lambda v: v.name)
def test_the_scheduler_writes_byte_for_byte(vector):
    assert encode(effect_of(vector), identity()) == vector.frames


def test_segments_say_the_same():
    for name in ("submit", "results"):
        event = decode(ROUTE, BY_NAME[f"{name}-segments"].frames)
        CHECKS[name](event, BY_NAME[f"{name}-segments"])
    assert BY_NAME["hello-segments"].fields == BY_NAME["hello-client"].fields
    assert BY_NAME["hello-segments"].frames[0][:4] != b"\0\0\0\0"


def test_a_batch_grows_from_runs_and_large_payloads():
    effect = effects.Resolved(ROUTE)
    effect.ids = [1, 2, 3, 4]
    effect.outcomes = [0, 0, 0, 0]
    effect.rows.append_run([1, 2], b"abb")
    effect.rows.append_large(b"L" * 70000)
    effect.rows.append_run([0], b"")
    frames = encode(effect, identity())
    assert frames[1:] == [b"L" * 70000]
    assert b"abb\0\0\0\0\0" in frames[0]


def submit_frames(ids: Any, functions: Any, sizes: Any, large: Any, payload: bytes, further: Any = ()) -> Any:
    from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, columns_message

    columns = ((UINT64, ids), (UINT32, functions), (UINT32, sizes), (UINT32, large), (UINT8, payload))
    return [columns_message(events.SUBMIT, columns), *further]


@pytest.mark.parametrize(
    "frames, text",
    [
        (submit_frames([], [1], [0], [], b""), "a batch without rows"),
        (submit_frames([2, 1], [1], [0], [], b""), "ids do not ascend"),
        (submit_frames([1, 1], [1], [0], [], b""), "ids do not ascend"),
        (submit_frames([1 << 63], [1], [0], [], b""), r"an id of 2\^63 or more"),
        (submit_frames([1, 2], [], [0], [], b""), "column functions has 0 elements for 2 rows"),
        (submit_frames([1, 2], [1, 2, 3], [0], [], b""), "column functions has 3 elements for 2 rows"),
        (submit_frames([1, 2], [1], [], [], b""), "column sizes has 0 elements for 2 rows"),
        (submit_frames([1, 2], [1], [1], [], b"x"), "payload of 1 bytes where 2 are announced"),
        (submit_frames([1, 2], [1], [0xFFFFFFFF], [], b"x"), "payload of 1 bytes where 8589934590 are announced"),
        (submit_frames([1, 2], [1], [0], [0], b""), "0 payload frames where 1 are announced"),
        (submit_frames([1, 2], [1], [0], [], b"", [b""]), "1 payload frames where 0 are announced"),
        (submit_frames([1, 2], [1], [0], [2], b"", [b""]), "large payload for row 2 of 2"),
        (submit_frames([1, 2], [1], [0], [1, 0], b"", [b"", b""]), "large payload for row 0 of 2"),
        (submit_frames([1, 2], [1], [0], [1, 1], b"", [b"", b""]), "large payload for row 1 of 2"),
        (submit_frames([1, 2], [1], [0, 1], [1], b"x", [b""]), "large payload for row 1 of 2"),
    ],
)
def test_contradictions_in_a_batch(frames, text):
    with pytest.raises(WireError, match=text):
        decode(ROUTE, frames)


def test_results_with_an_outcome_that_is_not_a_workers():
    results = BY_NAME["results-mixed-large"]
    frame = bytearray(results.frames[0])
    outcomes = bytes(results.fields["outcomes"])
    frame[frame.index(outcomes + bytes(5)) + 1] = effects.OUTCOME_WORKER_DIED
    with pytest.raises(WireError, match="outcome 4 is not a worker's to give"):
        decode(ROUTE, [bytes(frame), *results.frames[1:]])


def test_large_columns_and_payloads():
    rows = 100_000
    sizes = array("I", [row % 3 for row in range(rows)])
    payload = bytes(sum(sizes))
    event = decode(ROUTE, submit_frames(range(rows), [1], sizes, [], payload))
    assert isinstance(event, events.Submit)
    assert event.ids == array("Q", range(rows))
    assert event.sizes == sizes
    assert event.payload == payload
    event = decode(ROUTE, submit_frames([1], [1], [0], [0], b"", [bytes(20 << 20)]))
    assert isinstance(event, events.Submit)
    assert len(event.large[0]) == 20 << 20
