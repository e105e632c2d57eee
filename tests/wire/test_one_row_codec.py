"""The one-row codec gives the same messages and errors as the general codec. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.one_row_batches import draw_flaw, resized
from tests.wire.effects_of_vectors import identity
from tests.wire.vectors import BY_NAME

from scaler_scheduler.core import effects, events
from scaler_scheduler.wire import one_row_codec
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, columns_message
from scaler_scheduler.wire.decode import decode
from scaler_scheduler.wire.encode import encode
from scaler_scheduler.wire.errors import WireError

ROUTE = b"route"
PATIENT = settings(max_examples=300, database=None, derandomize=True)

UNSIGNED = "Q"
BYTE = st.integers(0, 255)
WORD = st.integers(0, (1 << 32) - 1) | st.sampled_from([0, 1, (1 << 31), (1 << 32) - 1])
ID = st.integers(0, (1 << 63) - 1)
LONG = ID | st.sampled_from([1 << 63, (1 << 64) - 1])
PAYLOAD = st.binary(max_size=40)


def comparable(value: Any) -> Any:
    """A comparable form: the class and fields of an object, the type and numbers of a column."""
    if isinstance(value, array):
        return value.typecode, list(value)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return (type(value), {name: comparable(getattr(value, name)) for name in slots}) if slots else value


def outcome(frames: list[bytes]) -> Any:
    try:
        return comparable(decode(ROUTE, frames))
    except WireError as error:
        return str(error)


def assert_both_codecs_agree(frames: list[bytes]) -> None:
    short = outcome(frames)
    with patch.object(one_row_codec, "decode", return_value=None):
        assert outcome(frames) == short


@st.composite
def frames_for_the_scheduler(draw: Any) -> bytes:
    """A batch of one row with at most one wrong or unusual part."""
    payload = draw(PAYLOAD)
    kind = draw(st.sampled_from([events.SUBMIT, events.RESULTS]))
    sizes: Any = (UINT32, [len(payload)])
    columns: list[Any] = [(UNSIGNED, [draw(ID)]), (UINT32, [draw(WORD)]), sizes, (UINT32, []), (UINT8, payload)]
    if kind == events.RESULTS:
        outcomes, durations = (UINT8, [draw(st.integers(0, 4))]), (UNSIGNED, [draw(ID)])
        columns[:2] = [(UNSIGNED, [draw(ID)]), columns[0], columns[1], outcomes, durations]
        columns += [*[(UNSIGNED, [])] * 2, (UINT8, b""), (UINT32, [])]
    elements = {UINT8: BYTE, UINT32: WORD, UNSIGNED: LONG}
    draw_flaw(draw, columns, 4 if kind == events.SUBMIT else 7, elements, PAYLOAD)
    return columns_message(kind, columns)


@PATIENT
@given(frames_for_the_scheduler(), st.lists(PAYLOAD, max_size=1))
def test_both_codecs_decode_alike(frame: bytes, further: list[bytes]) -> None:
    assert_both_codecs_agree([frame])
    assert_both_codecs_agree([frame, *further])


@pytest.mark.parametrize("kind", [events.SUBMIT, events.RESULTS])
@pytest.mark.parametrize("payload", [b"p", b"two words of it."])
def test_messages_with_a_wrong_bit(kind, payload):
    frame = one_row_frame(kind, payload)
    assert one_row_codec.decode(ROUTE, frame) is not None
    for position in range(len(frame)):
        for bit in range(8):
            changed = bytearray(frame)
            changed[position] ^= 1 << bit
            assert_both_codecs_agree([bytes(changed)])
    for words in range(-len(frame) // 8 + 2, 4):
        assert_both_codecs_agree([resized(frame, words)])
        assert_both_codecs_agree([frame[: len(frame) + words * 8] + bytes(max(words, 0) * 8)])


@PATIENT
@given(ID, WORD, PAYLOAD)
def test_one_row_codec_decodes_messages_of_the_client(task_id: int, function: int, payload: bytes) -> None:
    columns = ((UINT64, [task_id]), (UINT32, [function]), (UINT32, [len(payload)]), (UINT32, []), (UINT8, payload))
    frame = columns_message(events.SUBMIT, columns)
    event = one_row_codec.decode(ROUTE, frame)
    assert (event is None) == (not payload)
    assert_both_codecs_agree([frame])


def test_vectors_of_the_one_row_codec():
    """Other writers reserve space for all columns, which needs the general codec."""
    for name in ("submit-one", "submit", "submit-options-large", "submit-keep"):
        assert one_row_codec.decode(ROUTE, BY_NAME[name].frames[0]) is None
    for name in ("results-retryable", "results-profiled", "results-calls", "hello-client"):
        assert one_row_codec.decode(ROUTE, BY_NAME[name].frames[0]) is None


@pytest.mark.parametrize(
    "size", [0, 1, 7, 8, 9, one_row_codec.MAX_PAYLOAD_BYTES - 200, one_row_codec.MAX_PAYLOAD_BYTES, 1 << 20]
)
@pytest.mark.parametrize("kind", ["dispatch", "resolved", "submit", "results"])
def test_payloads_of_any_size(kind, size):
    payload = b"p" * size
    if kind in ("dispatch", "resolved"):
        assert_written_alike(one_row(kind, payload, {}))
        return
    assert_both_codecs_agree([one_row_frame(getattr(events, kind.upper()), payload)])


def one_row_frame(kind: int, payload: bytes) -> bytes:
    columns: list[Any] = [(UINT64, [5]), (UINT32, [1]), (UINT32, [len(payload)]), (UINT32, []), (UINT8, payload)]
    if kind == events.RESULTS:
        columns[1:2] = [(UINT64, [1]), (UINT32, [1]), (UINT8, [0]), (UINT64, [1])]
        columns += [*[(UINT64, [])] * 2, *[(UINT8, b""), (UINT32, [])] * 2]
    return columns_message(kind, columns)


def one_row(kind: str, payload: bytes, asked: dict[int, Any]) -> Any:
    effect: Any = effects.Dispatch(ROUTE) if kind == "dispatch" else effects.Resolved(ROUTE)
    effect.ids = [5]
    if kind == "dispatch":
        effect.clients, effect.attempts, effect.functions, effect.row_options = [7], [1], [2], asked
    else:
        effect.outcomes, effect.profiles = [0], asked
    effect.rows.append_run([len(payload)], payload)
    return effect


def assert_written_alike(effect: Any) -> None:
    short = encode(effect, identity())
    with (
        patch.object(one_row_codec, "dispatch", return_value=None),
        patch.object(one_row_codec, "resolved", return_value=None),
    ):
        assert encode(effect, identity()) == short


@PATIENT
@given(st.tuples(ID, ID, WORD, WORD), PAYLOAD, st.booleans(), st.booleans(), st.booleans())
def test_both_codecs_encode_alike(numbers: Any, payload: bytes, asks: bool, is_large: bool, is_split: bool) -> None:
    client, task_id, attempt, function = numbers
    for kind in ("dispatch", "resolved"):
        effect = one_row(kind, payload, {0: (1, 2, 3)} if asks else {})
        effect.ids = [task_id]
        if kind == "dispatch":
            effect.clients, effect.attempts, effect.functions = [client], [attempt], [function]
        else:
            effect.outcomes = [attempt & 7]
        if is_large:
            effect.rows = effects.Rows()
            effect.rows.append_large(payload)
        elif is_split:
            effect.rows.append_run([], b"")
        write: Any = getattr(one_row_codec, kind)
        assert (write(effect) is None) == (asks or is_large or is_split or not payload)
        assert_written_alike(effect)


def test_row_with_inputs_uses_the_general_codec():
    effect = one_row("dispatch", b"p", {})
    plain = encode(effect, identity())[0]
    effect.inputs, effect.input_sources, effect.inline_sizes, effect.input_counts = [5, 6], [1, 1], [0, 0], {0: 2}
    assert one_row_codec.dispatch(effect) is None
    assert len(encode(effect, identity())[0]) == len(plain) + 16 + 8 + 8


def test_client_decodes_one_row_of_the_scheduler_by_its_one_row_codec():
    library = pytest.importorskip(
        "scaler_client.protocol.one_row_codec", reason="the client's library is for CPython from 3.10 on"
    )
    for kind in ("dispatch", "resolved"):
        frame = getattr(one_row_codec, kind)(one_row(kind, b"p", {}))
        assert library.decode(frame) is not None


def test_row_with_a_name_uses_the_general_codec():
    effect = one_row("dispatch", b"p", {})
    plain = encode(effect, identity())[0]
    effect.names = {0: "Zoë"}
    assert one_row_codec.dispatch(effect) is None
    assert len(encode(effect, identity())[0]) == len(plain) + 8 + 8


def test_batches_of_two_rows_use_the_general_codec():
    for kind in ("dispatch", "resolved"):
        effect = one_row(kind, b"p", {})
        for column in ("clients", "ids", "attempts", "functions", "outcomes"):
            if hasattr(effect, column):
                getattr(effect, column).append(9)
        effect.rows.append_run([0], b"")
        effect.rows.parts.pop()
        assert getattr(one_row_codec, kind)(effect) is None
        assert_written_alike(effect)
