"""The codec of one-row batches against the general codec: the same messages, the same errors."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.one_row_batches import draw_flaw, resized

from scaler_client.protocol import messages, one_row_codec
from scaler_client.protocol.columns import write_batch
from scaler_client.protocol.schema import DISPATCH, RESOLVED
from scaler_client.protocol.wire import LARGE_PAYLOAD_BYTES, WireError, decode, encode

PATIENT = settings(max_examples=300, database=None, derandomize=True)

BYTE = st.integers(0, 255)
WORD = st.integers(0, (1 << 32) - 1)
LONG = st.integers(0, (1 << 64) - 1)
PAYLOAD = st.binary(max_size=40)


def outcome(frames: list[Any]) -> Any:
    try:
        return decode(frames)
    except WireError as error:
        return str(error)


def assert_both_ways_agree(frames: list[Any]) -> None:
    short = outcome(frames)
    with patch.object(one_row_codec, "decode", return_value=None):
        assert outcome(frames) == short


@st.composite
def frames_for_peers(draw: Any) -> bytes:
    """Generate batches of one row: correct, or with one wrong or unusual detail."""
    payload = draw(PAYLOAD)
    payloads: list[Any] = [("I", [len(payload)]), ("I", []), ("B", payload)]
    tag = draw(st.sampled_from([DISPATCH, RESOLVED]))
    if tag == DISPATCH:
        columns = [("Q", [draw(LONG)]), ("Q", [draw(LONG)]), ("I", [draw(WORD)]), ("I", [draw(WORD)]), *payloads]
        columns += [("B", []), ("I", []), ("I", []), ("Q", []), ("I", []), ("B", []), *[("I", [])] * 5]
    else:
        columns = [("Q", [draw(LONG)]), ("B", [draw(BYTE)]), *payloads, ("Q", []), ("Q", []), ("Q", [])]
    draw_flaw(draw, columns, 6 if tag == DISPATCH else 4, {"B": BYTE, "I": WORD, "Q": LONG}, PAYLOAD)
    return write_batch(tag, columns)


@PATIENT
@pytest.mark.main_environment
@given(frames_for_peers(), st.lists(PAYLOAD, max_size=1))
def test_both_codecs_read_the_same(frame: bytes, further: list[bytes]) -> None:
    assert_both_ways_agree([memoryview(frame)])
    assert_both_ways_agree([frame, *further])


@pytest.mark.parametrize("tag", [DISPATCH, RESOLVED])
@pytest.mark.parametrize("payload", [b"p", b"two words of it."])
def test_both_codecs_agree_on_flipped_bits(tag: int, payload: bytes) -> None:
    columns: list[Any] = (
        [("Q", [7]), ("Q", [5]), ("I", [1]), ("I", [2])] if tag == DISPATCH else [("Q", [5]), ("B", [1])]
    )
    columns += [("I", [len(payload)]), ("I", []), ("B", payload), *[("I", [])] * (11 if tag == DISPATCH else 3)]
    frame = write_batch(tag, columns)
    assert one_row_codec.decode(frame) is not None
    for position in range(len(frame)):
        for bit in range(8):
            changed = bytearray(frame)
            changed[position] ^= 1 << bit
            assert_both_ways_agree([bytes(changed)])
    for words in range(-len(frame) // 8 + 2, 4):
        assert_both_ways_agree([resized(frame, words)])
        assert_both_ways_agree([frame[: len(frame) + words * 8] + bytes(max(words, 0) * 8)])


def test_one_row_from_the_scheduler_uses_the_short_codec() -> None:
    payloads = [("I", [3]), ("I", []), ("B", b"abc")]
    task = [("Q", [7]), ("Q", [5]), ("I", [1]), ("I", [2])]
    none: list[Any] = [("B", []), ("I", []), ("I", [])]
    frame = write_batch(DISPATCH, [*task, *payloads, *none, *none, *none, *none[:2]])
    assert one_row_codec.decode(frame) == messages.Dispatch([7], [5], [1], [2], [b"abc"])
    inputs: list[Any] = [("Q", [8]), ("I", [1]), ("B", [1])]
    assert one_row_codec.decode(write_batch(DISPATCH, [*task, *payloads, *none, *inputs, *none, *none[:2]])) is None
    frame = write_batch(RESOLVED, [("Q", [5]), ("B", [6]), *payloads, *none])
    assert one_row_codec.decode(frame) == messages.Resolved([5], [6], [b"abc"])
    assert one_row_codec.decode(write_batch(RESOLVED, [("Q", [5, 6]), ("B", [6]), *payloads, *none])) is None


def assert_written_alike(message: messages.Message) -> None:
    short = encode(message)
    with (
        patch.object(one_row_codec, "submit", return_value=None),
        patch.object(one_row_codec, "results", return_value=None),
    ):
        assert encode(message) == short


PAYLOADS = PAYLOAD | PAYLOAD.map(bytearray) | PAYLOAD.map(memoryview)


@PATIENT
@pytest.mark.main_environment
@given(LONG, WORD, PAYLOADS, st.booleans())
def test_both_codecs_write_the_same_submit(task_id: int, function: int, payload: Any, asks: bool) -> None:
    message = messages.Submit([task_id], [function], [payload], messages.Options(depth=1) if asks else None)
    assert (one_row_codec.submit(message) is None) == (asks or not payload or type(payload) is not bytes)
    assert_written_alike(message)


@pytest.mark.parametrize(
    "reads", [{"inputs": [7], "input_counts": [1]}, {"input_counts": [0]}, {"keep": [1]}, {"keep": (2,)}]
)
def test_a_row_with_inputs_or_kept_result_uses_the_general_codec(reads: dict[str, Any]) -> None:
    message = messages.Submit([5], [1], [b"p"], **reads)
    assert one_row_codec.submit(message) is None
    assert_written_alike(message)


@PATIENT
@pytest.mark.main_environment
@given(LONG, LONG, WORD, BYTE, LONG, PAYLOADS, st.booleans())
def test_both_codecs_write_the_same_results(
    client: int, task_id: int, attempt: int, outcome: int, duration: int, payload: Any, is_profiled: bool
) -> None:
    message = messages.Results([client], [task_id], [attempt], [outcome], [duration], [payload])
    if is_profiled:
        message.cpu_times, message.peaks = [1], [2]
    assert (one_row_codec.results(message) is None) == (is_profiled or not payload or type(payload) is not bytes)
    assert_written_alike(message)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, LARGE_PAYLOAD_BYTES - 1, LARGE_PAYLOAD_BYTES, LARGE_PAYLOAD_BYTES + 1])
def test_payloads_of_any_size(size: int) -> None:
    payload = b"p" * size
    for message in (messages.Submit([5], [1], [payload]), messages.Results([1], [5], [1], [0], [9], [payload])):
        assert len(encode(message)) == (2 if size >= LARGE_PAYLOAD_BYTES else 1)
        assert_written_alike(message)
