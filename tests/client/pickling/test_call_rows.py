"""Rows that stand for several calls: what is packed comes back, and calls share nothing that can change."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler_client.pickling.call_rows import (
    CALLS_EACH,
    PICKLES,
    SINGLES,
    CallBlock,
    PackError,
    RowAnswer,
    has_row_form,
    pack_answer,
    pack_calls,
    row_calls,
)
from scaler_client.pickling.references import ObjectRef, StoredObject
from scaler_client.pickling.serializer import dumps, loads


def unpacked(calls: list[tuple[Any, ...]], begin: int = 0, end: int | None = None) -> list[Any]:
    end = len(calls) if end is None else end
    payload = CallBlock(0, len(calls), pack_calls(None, calls)).row(begin, end)
    form, count, rows, _ = row_calls(payload)
    found = [loads(each) if form == PICKLES else (each,) if form == SINGLES else each for each in rows]
    assert len(found) == count
    return found


SIMPLE = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
VALUES = st.recursive(SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner), max_leaves=5)


@given(st.lists(st.lists(VALUES, max_size=3).map(tuple), min_size=1, max_size=20), st.data())
def test_any_range_of_calls_comes_back(calls: list[tuple[Any, ...]], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(calls) - 1))
    end = data.draw(st.integers(begin + 1, len(calls)))
    assert unpacked(calls, begin, end) == calls[begin:end]


@pytest.mark.parametrize("arity", [0, 1, 3])
def test_a_row_carries_only_the_pickles_that_hold_its_calls(arity: int) -> None:
    calls = [(number,) * arity for number in range(2 * CALLS_EACH + 3)]
    begin, end = CALLS_EACH - 1, 2 * CALLS_EACH + 1
    assert unpacked(calls, begin, end) == calls[begin:end]
    packed = pack_calls(None, calls)
    assert len(packed.row(0, 1)) <= 40 + len(packed.pickles[0] if arity else b"")


def test_calls_do_not_share_mutable_arguments() -> None:
    shared: list[int] = []
    first, second = unpacked([(shared,), (shared,)])
    first[0].append(1)
    assert second == ([],)


def test_functions_of_the_main_module_travel_by_value() -> None:
    [(function,)] = unpacked([(lambda: 42,)])
    assert function() == 42


def test_an_argument_that_cannot_be_pickled_names_its_call() -> None:
    with pytest.raises(PackError) as error:
        pack_calls(None, [(1,), ([1],), (threading.Lock(),)])
    assert error.value.position == 2 and "argument 0 of type _thread.lock" in str(error.value.error)


class Holder:
    def forget_object(self, stored: StoredObject) -> None: ...


def test_a_row_has_the_inputs_of_its_block() -> None:
    holder = Holder()
    ref = ObjectRef(holder, StoredObject("", [b"x"], None))
    payload = pack_calls(holder, [(1, ref), (ref, 2), (3, 4)])
    row: Any = CallBlock(0, 3, payload).row(2, 3)
    assert list(row.inputs) == [ref]


def read(answer: RowAnswer) -> list[Any]:
    payloads = answer.payloads()
    return answer.values() if payloads is None else list(map(loads, payloads))


@given(st.lists(SIMPLE, max_size=20), st.integers(0, 1 << 62), st.binary(max_size=20), st.booleans())
def test_an_answer_comes_back(values: list[Any], run_ns: int, failure: bytes, are_separate: bool) -> None:
    pickles = list(map(dumps, values)) if are_separate else None
    payload = pack_answer(values, pickles, run_ns, failure)
    assert has_row_form(payload)
    answer = RowAnswer(payload)
    assert (answer.count, answer.run_ns, bytes(answer.failure)) == (len(values), run_ns, failure)
    assert read(answer) == values


@pytest.mark.parametrize("payload", [b"", b"text", dumps(1), dumps((ValueError("x"), "text"))])
def test_other_answers_do_not_have_the_form_of_rows(payload: bytes) -> None:
    assert not has_row_form(payload)


def test_a_truncated_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match="malformed"):
        RowAnswer(b"\0\0\0")
