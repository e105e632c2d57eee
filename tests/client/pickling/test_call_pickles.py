"""Hand-written pickles of calls equal what pickle writes."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scaler_client.pickling.call_pickles import arguments_pickle, dump_simple_call, load_arguments_pickle
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.references import InputCollector, NodeRef

SIMPLE_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.just("x" * 100_000)
)


def load(payload: bytes, values: list[Any]) -> Any:
    with with_inputs(values.__getitem__):
        return pickle.loads(payload)


@given(st.lists(st.one_of(SIMPLE_VALUES, st.integers(0, 3).map(NodeRef)), max_size=6))
def test_a_simple_call_has_the_bytes_of_pickle(args: list[Any]) -> None:
    by_row = {each.row: each for each in args if isinstance(each, NodeRef)}  # one reference for each row
    args = [by_row[each.row] if isinstance(each, NodeRef) else each for each in args]
    collector = InputCollector(None)
    payload = dump_simple_call(args, collector)
    assert payload is not None
    values = [f"value {each.row}" for each in collector.inputs if isinstance(each, NodeRef)]
    expected = tuple(f"value {each.row}" if isinstance(each, NodeRef) else each for each in args)
    loaded = load(payload, values)
    assert loaded == expected and list(map(type, loaded)) == list(map(type, expected))


def test_more_than_256_inputs() -> None:
    collector = InputCollector(None)
    payload = dump_simple_call([NodeRef(row) for row in range(70_000)], collector)
    assert payload is not None
    assert load(payload, list(range(70_000))) == tuple(range(70_000))


def test_other_calls_go_through_pickle() -> None:
    assert dump_simple_call([1, [2]], InputCollector(None)) is None


def test_arguments_that_are_an_input() -> None:
    arguments = pickle.dumps(((1, 2), {}))
    payload = load_arguments_pickle(300)
    values = {300: memoryview(arguments)}
    with with_inputs(values.__getitem__):
        assert pickle.loads(payload) == ((1, 2), {})
        assert bytes(arguments_pickle(payload)) == arguments
    assert arguments_pickle(arguments) is arguments
