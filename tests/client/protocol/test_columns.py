"""Our own codec of batches against pycapnp."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.schema_messages import SCHEMA

from scaler_client.protocol import messages
from scaler_client.protocol.columns import BatchReader, UnusualLayoutError, body_of, write_batch
from scaler_client.protocol.wire import LARGE_PAYLOAD_BYTES, WireError, decode, encode

NUMBERS = {
    "none": [],
    "one": [5],
    "constant": [7] * 50,
    "odd length": list(range(1, 34)),
    "extremes": [0, 1, (1 << 32) - 1],
}


def read(frame: Any, kind: str) -> dict[str, Any]:
    """Return the fields that pycapnp reads in a message."""
    with SCHEMA.Message.from_bytes(bytes(frame)) as message:
        assert message.which() == kind
        struct = getattr(message, kind)
        return {name: values_of(getattr(struct, name)) for name in struct.schema.fieldnames}


def values_of(field: Any) -> Any:
    if isinstance(field, bytes):
        return field
    if isinstance(field, (int, str)):
        return field
    return list(field) if hasattr(field, "__len__") else field.to_dict()


def write(kind: str, segment_words: int = 4096, **fields: Any) -> bytes:
    """Return a message written by pycapnp."""
    message = SCHEMA.Message.new_message(num_first_segment_words=segment_words)
    body = message.init(kind)
    for name, value in fields.items():
        setattr(body, name, value)
    data: bytes = message.to_bytes()
    return data


@pytest.mark.parametrize("functions", NUMBERS.values(), ids=NUMBERS)
def test_a_submit(functions: list[int]) -> None:
    ids = [1000 + number * number for number in range(max(1, len(functions)))]
    payloads = [bytes([number % 251]) * (number % 9) for number in range(len(ids))]
    fields = read(encode(messages.Submit(ids, functions, payloads))[0], "submit")
    assert fields["ids"] == ids
    assert fields["functions"] in (functions, functions[:1])
    assert fields["payload"] == b"".join(payloads)
    sizes = list(map(len, payloads))
    assert fields["sizes"] in (sizes, sizes[:1])


def test_ids_up_to_the_limit() -> None:
    ids = [0, 1 << 32, (1 << 63) - 1]
    assert read(encode(messages.Cancel(ids))[0], "cancel")["ids"] == ids


def test_a_results_message() -> None:
    message = messages.Results([1, 1, 2], [5, 6, 7], [1, 1, 1], [0, 1, 3], [10, 1 << 40, 30], [b"a", b"", b"ccc"])
    fields = read(encode(message)[0], "results")
    assert fields["clients"] == [1, 1, 2] and fields["ids"] == [5, 6, 7]
    assert fields["attempts"] == [1] and fields["outcomes"] == [0, 1, 3]
    assert fields["durations"] == [10, 1 << 40, 30]
    assert (fields["sizes"], fields["payload"]) == ([1, 0, 3], b"accc")


def test_other_batches() -> None:
    assert read(encode(messages.ForgetFunctions([3, 4]))[0], "forgetFunctions") == {"numbers": [3, 4]}
    started = read(encode(messages.Started([9], [2], [1]))[0], "started")
    assert started == {"clients": [2], "ids": [9], "attempts": [1]}


def test_large_payloads_travel_in_their_own_frames() -> None:
    big = bytes(LARGE_PAYLOAD_BYTES)
    frames = encode(messages.Submit([1, 2, 3, 4], [1] * 4, [b"a", big, b"b", big + b"x"]))
    assert frames[1] is big and frames[2] == big + b"x" and len(frames) == 3
    fields = read(frames[0], "submit")
    assert (fields["large"], fields["sizes"], fields["payload"]) == ([1, 3], [1, 0, 1, 0], b"ab")


def test_a_message_has_standard_framing_and_no_trailing_bytes() -> None:
    frame = write_batch(14, [("Q", [1, 2]), ("B", [])])
    assert len(frame) % 8 == 0
    assert frame == write("cancel", 16, ids=[1, 2])


def test_profiled_results() -> None:
    message = messages.Results([1], [5], [1], [4], [10], [b"a"], [7], [1 << 40])
    fields = read(encode(message)[0], "results")
    assert (fields["outcomes"], fields["cpuTimes"], fields["peaks"]) == ([messages.Outcome.RETRYABLE], [7], [1 << 40])


def test_tasks_by_name() -> None:
    tasks = [(1 << 62, 5, 1), (2, 6, 1)]
    columns = {"clients": [1 << 62, 2], "ids": [5, 6], "attempts": [1]}
    assert read(encode(messages.Suspended(tasks))[0], "suspended") == columns
    assert read(encode(messages.Resumed(tasks))[0], "resumed") == columns
    assert read(encode(messages.Retracted(tasks, [1, 0]))[0], "retracted") == {**columns, "returned": [1, 0]}
    assert read(encode(messages.Retracted([], []))[0], "retracted") == {name: [] for name in [*columns, "returned"]}


def test_cancel_with_and_without_force() -> None:
    assert read(encode(messages.Cancel([3, 4], True))[0], "cancel") == {"ids": [3, 4], "force": [1]}
    assert read(encode(messages.Cancel([3, 4]))[0], "cancel") == {"ids": [3, 4], "force": []}


OPTIONS = messages.Options(-7, 3, 0, 2500, True, "Zoë", (("gpu", 2), ("linux", 1)), True, 9, "a, b", 7)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_submit_with_options(rows: int) -> None:
    payloads: list[messages.Payload] = [b"odd" * row for row in range(rows)]
    frame = encode(messages.Submit(range(rows), [1] * rows, payloads, OPTIONS))[0]
    fields = read(frame, "submit")
    assert fields["options"] == {
        "priority": -7,
        "depth": 3,
        "retries": 0,
        "timeoutMilliseconds": 2500,
        "profiling": True,
        "name": "Zoë",
        "capabilities": [{"name": "gpu", "amount": 2}, {"name": "linux", "amount": 1}],
        "streamOutput": True,
        "graph": 9,
        "keys": "a, b",
        "calls": 7,
        "releaseResources": False,
        "gangSize": 0,
    }
    assert (fields["ids"], fields["payload"]) == (list(range(rows)), b"".join(payloads))


@pytest.mark.parametrize("options", [None, OPTIONS], ids=["plain", "options"])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_submit_with_inputs(rows: int, options: messages.Options | None) -> None:
    counts = [row % 3 for row in range(rows)]
    inputs = [1 << 62] * sum(counts)
    keep = [messages.Keep.BOTH, *[messages.Keep.NO] * (rows - 1)]
    submit = messages.Submit(range(rows), [1] * rows, [b"odd"] * rows, options, inputs, counts, keep)
    fields = read(encode(submit)[0], "submit")
    assert (fields["inputs"], fields["inputCounts"], fields["keep"]) == (inputs, counts, keep)
    assert fields["options"].get("name") == (None if options is None else "Zoë")
    assert (fields["ids"], fields["payload"]) == (list(range(rows)), b"odd" * rows)


def test_constant_counts_and_keeps_have_one_element() -> None:
    submit = messages.Submit([1, 2], [1, 1], [b"a", b"b"], None, [5, 5], [1, 1], [1, 1])
    fields = read(encode(submit)[0], "submit")
    assert (fields["inputs"], fields["inputCounts"], fields["keep"]) == ([5, 5], [1], [1])


def test_a_forget_objects_message() -> None:
    assert read(encode(messages.ForgetObjects([3, 4]))[0], "forgetObjects") == {"clients": [], "ids": [3, 4]}


def test_an_object_and_its_frames() -> None:
    frames: list[messages.Payload] = [b"pickle", memoryview(b"buffer")]
    written = encode(messages.Object(5, frames, name="Zoë"))
    assert read(written[0], "object") == {"client": 0, "id": 5, "name": "Zoë", "fileBytes": 0, "data": {}}
    assert all(one is other for one, other in zip(written[1:], frames)) and len(written) == 3
    assert decode(written) == messages.Object(5, frames, 0, "Zoë")


def test_body_of_rejects_unusual_layouts() -> None:
    frame = SCHEMA.Options.new_message(num_first_segment_words=1, name="in a segment of its own").to_bytes()
    with pytest.raises(UnusualLayoutError):
        body_of(frame)
    with pytest.raises(UnusualLayoutError):
        body_of(write("cancel", ids=[1]) + bytes(8))


# -------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_a_resolved_message(segment_words: int) -> None:
    frame = write("resolved", segment_words, ids=[4, 5, 6], outcomes=[0, 1, 5], sizes=[1, 2, 0], payload=b"abb")
    assert decode([frame]) == messages.Resolved([4, 5, 6], [0, 1, 5], [b"a", b"bb", b""])


def test_resolved_with_constant_columns_and_large_payloads() -> None:
    frame = write("resolved", ids=[4, 5, 6], outcomes=[0], sizes=[0], large=[0, 2])
    assert decode([frame, b"first", b"third"]) == messages.Resolved([4, 5, 6], [0, 0, 0], [b"first", b"", b"third"])


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_a_dispatch(segment_words: int) -> None:
    fields = {"clients": [1], "ids": [7, 8], "attempts": [1, 2], "functions": [3], "sizes": [2], "payload": b"xxyy"}
    assert decode([write("dispatch", segment_words, **fields)]) == messages.Dispatch(
        [1, 1], [7, 8], [1, 2], [3, 3], [b"xx", b"yy"]
    )


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_a_dispatch_with_flags_depths_and_priorities(segment_words: int) -> None:
    fields = {"clients": [1], "ids": [7, 8], "attempts": [1], "functions": [3], "sizes": [0]}
    frame = write("dispatch", segment_words, **fields, flags=[3, 0], depths=[5], priorities=[0, 0xFFFFFFFE])
    assert decode([frame]) == messages.Dispatch([1, 1], [7, 8], [1, 1], [3, 3], [b"", b""], [3, 0], [5, 5], [0, -2])
    # All three columns are of full length, or all are empty.
    frame = write("dispatch", segment_words, **fields, flags=[2])
    assert decode([frame]) == messages.Dispatch([1, 1], [7, 8], [1, 1], [3, 3], [b"", b""], [2, 2], [0, 0], [0, 0])


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_a_dispatch_with_inputs(segment_words: int) -> None:
    fields = {"clients": [1], "ids": [7, 8], "attempts": [1], "functions": [3], "sizes": [0]}
    dispatch = messages.Dispatch([1, 1], [7, 8], [1, 1], [3, 3], [b"", b""])
    for counts, shared in (([0, 2], [1, 0]), ([1], [0])):
        frame = write("dispatch", segment_words, **fields, inputs=[5, 1 << 62], inputCounts=counts, inputSources=shared)
        dispatch.inputs, dispatch.input_counts = [5, 1 << 62], counts if len(counts) == 2 else counts * 2
        dispatch.input_sources = shared if len(shared) == 2 else shared * 2
        assert decode([frame]) == dispatch


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_forgotten_objects(segment_words: int) -> None:
    frame = write("forgetObjects", segment_words, clients=[1 << 62], ids=[5, 6])
    assert decode([frame]) == messages.ForgetObjects([5, 6], [1 << 62] * 2)
    with pytest.raises(WireError, match="clients has 0 elements for 2 rows"):
        decode([write("forgetObjects", segment_words, ids=[5, 6])])


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_profiles(segment_words: int) -> None:
    fields: dict[str, Any] = {"ids": [7, 8], "outcomes": [0], "sizes": [0]}
    frame = write("resolved", segment_words, **fields, durations=[1 << 40, 0], cpuTimes=[9, 0], peaks=[5])
    assert decode([frame]) == messages.Resolved([7, 8], [0, 0], [b"", b""], [1 << 40, 0], [9, 0], [5, 5])


@pytest.mark.parametrize("segment_words", [4096, 1], ids=["one segment", "many segments"])
def test_retract_and_stop(segment_words: int) -> None:
    fields = {"clients": [1 << 63], "ids": [7, 8], "attempts": [1, 2]}
    names = [(1 << 63, 7, 1), (1 << 63, 8, 2)]
    assert decode([write("retract", segment_words, **fields)]) == messages.Retract(names)
    assert decode([write("stop", segment_words, **fields)]) == messages.Stop(names)
    with pytest.raises(WireError, match="attempts has 0 elements for 2 rows"):
        decode([write("stop", segment_words, clients=[1], ids=[7, 8])])


def test_messages_that_are_no_batches() -> None:
    assert decode([write("credit", bytes=1 << 62)]) == messages.Credit(1 << 62)
    frame = write("endWorker", incarnation=1, client=2, id=3, attempt=4, reason="cancelled")
    assert decode([frame]) == messages.EndWorker(1, (2, 3, 4), "cancelled")


def test_started_and_cancel_refused() -> None:
    assert decode([write("started", ids=[1, 2])]) == messages.Started([1, 2], [], [])
    assert decode([write("cancelRefused", ids=[1 << 62])]) == messages.CancelRefused([1 << 62])
    assert decode([write("forgetFunctions", numbers=[1, 2])]) == messages.ForgetFunctions([1, 2])


def test_written_columns_are_read_back() -> None:
    rng = random.Random(20260319)
    for _ in range(50):
        rows = rng.randrange(1, 200)
        ids = sorted(rng.sample(range(1 << 40), rows))
        outcomes = [rng.randrange(6) for _ in range(rows)]
        payloads = [rng.randbytes(rng.randrange(20)) for _ in range(rows)]
        frame = write_batch(
            12,
            [("Q", ids), ("B", outcomes), ("I", list(map(len, payloads))), ("I", ()), ("B", b"".join(payloads))],
        )
        assert decode([frame]) == messages.Resolved(ids, outcomes, payloads)
        assert read(frame, "resolved")["ids"] == ids


# --------------------------------------------------------------------------------------------------- what is no message


@pytest.mark.parametrize(
    ("fields", "frames", "expected_error"),
    [
        ({"ids": [1, 2], "outcomes": [0], "sizes": [1], "payload": b"a"}, [], "1 bytes, but 2 are announced"),
        ({"ids": [1], "outcomes": [0], "sizes": [2], "payload": b"a"}, [], "1 bytes, but \\[2\\] are announced"),
        ({"ids": [1, 2], "outcomes": [0, 0, 0], "sizes": [0]}, [], "outcomes has 3 elements for 2 rows"),
        ({"ids": [1, 2], "outcomes": [0], "sizes": [0], "large": [1]}, [], "0 large payloads, but 1 are announced"),
        ({"ids": [1, 2], "outcomes": [0], "sizes": [0]}, [b"x"], "1 large payloads, but 0 are announced"),
        ({"ids": [1], "outcomes": [0], "sizes": [0], "large": [1]}, [b"x"], "row 1 of 1"),
        ({"ids": [1, 2], "outcomes": [0], "sizes": [0], "peaks": [1]}, [], "durations has 0 elements for 2 rows"),
        (
            {"ids": [1, 2], "outcomes": [0], "sizes": [0], "durations": [1], "cpuTimes": [1], "peaks": [1, 2, 3]},
            [],
            "peaks has 3 elements for 2 rows",
        ),
    ],
)
def test_contradicting_columns_are_rejected(fields: dict[str, Any], frames: list[bytes], expected_error: str) -> None:
    with pytest.raises(WireError, match=expected_error):
        decode([write("resolved", **fields), *frames])


def test_a_list_with_another_element_size_is_rejected() -> None:
    frame = write_batch(15, [("I", [1, 2])])  # cancelRefused's ids are 64 bits wide
    with pytest.raises(WireError):
        decode([frame])


def test_messages_for_the_scheduler_are_rejected() -> None:
    for message in (messages.Cancel([1]), messages.Heartbeat(1), messages.Submit([1], [1], [b""])):
        with pytest.raises(WireError, match="not for a peer"):
            decode(encode(message))


@pytest.mark.parametrize(
    "garbage", [b"", b"junk", bytes(8), bytes(16), b"\xff" * 64, b"\0\0\0\0\2\0\0\0" + b"\xff" * 16]
)
def test_garbage_is_rejected(garbage: bytes) -> None:
    with pytest.raises(WireError):
        decode([garbage])
    with pytest.raises(UnusualLayoutError):
        BatchReader(garbage).numbers(0, "Q")


def test_a_message_without_frames_is_rejected() -> None:
    with pytest.raises(WireError, match="without frames"):
        decode([])


def test_truncated_and_flipped_messages_raise_only_wire_errors() -> None:
    rng = random.Random(77)
    frame = write("resolved", ids=list(range(40)), outcomes=[0], sizes=[3], payload=b"abc" * 40)
    for length in range(len(frame)):
        with pytest.raises(WireError):
            decode([frame[:length]])
    for _ in range(5000):
        broken = bytearray(frame)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            message = decode([bytes(broken)])
        except WireError:
            continue
        assert isinstance(message, messages.Message.__args__)  # type: ignore[attr-defined]
