"""Functions by name: the bytes of their calls, and how their answers are read."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.client.graph_stand_ins import SessionClient

from scaler_client import FunctionLoadError, RemoteError, ResultPickleError, WorkerDiedError, named
from scaler_client.pickling import serializer
from scaler_client.pickling.functions import FunctionTable
from scaler_client.pickling.retry_policy import TaskPolicy
from scaler_client.protocol.messages import Outcome


@pytest.fixture
def table() -> FunctionTable:
    return FunctionTable(lambda number: None)


def test_a_json_call() -> None:
    price = named("price")
    assert price.kind == "named json price"
    assert price.dump_call((1, "Zoë", None, [2.5, {"a": True}]), {}) == '[1,"Zoë",null,[2.5,{"a":true}]]'.encode()
    assert price.dump_call((), {}) == b"[]"


def test_a_raw_call() -> None:
    size = named("size", codec="raw")
    assert size.kind == "named raw size"
    assert size.dump_call((b"abc",), {}) == size.dump_call((memoryview(b"abc"),), {}) == b"abc"
    assert size.read_answer(Outcome.VALUE, memoryview(b"3")) == (b"3", None)


@pytest.mark.main_environment
def test_a_msgpack_call() -> None:
    msgpack = pytest.importorskip("msgpack", reason="pip install msgpack")
    function = named("price", codec="msgpack")
    assert msgpack.unpackb(function.dump_call((1, "a"), {})) == [1, "a"]
    assert function.read_answer(Outcome.VALUE, msgpack.packb({"a": 1})) == ({"a": 1}, None)


@pytest.mark.parametrize(
    "codec, args, kwargs, text",
    [
        ("json", (1,), {"x": 2}, "takes positional arguments only, not x="),
        ("json", ({1, 2},), {}, "can't be sent as json: Object of type set is not JSON serializable"),
        ("json", (float("nan"),), {}, "can't be sent as json: Out of range float"),
        ("raw", ("text",), {}, "can't be sent as raw: pass exactly one, of bytes"),
        ("raw", (b"1", b"2"), {}, "can't be sent as raw: pass exactly one, of bytes"),
    ],
)
def test_arguments_that_the_codec_cannot_encode(codec: str, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        named("price", codec=codec).dump_call(args, kwargs)


@pytest.mark.parametrize(
    "name, codec, error, text",
    [
        ("price", "xml", ValueError, "codec must be one of json, msgpack, raw, not 'xml'"),
        ("", "json", ValueError, "must have 1 to 245 characters"),
        ("x" * 246, "json", ValueError, "must have 1 to 245 characters"),
        (5, "json", TypeError, "a function's name must be a string, not 5"),
    ],
)
def test_invalid_arguments_are_rejected(name: Any, codec: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        named(name, codec)


def test_the_longest_name_fits_into_a_kind() -> None:
    assert len(named("x" * 245).kind) == 256


@pytest.mark.parametrize(
    "outcome, answer, error, text",
    [
        (Outcome.EXCEPTION, b"no such curve: EUR", RemoteError, "no such curve: EUR"),
        (Outcome.EXCEPTION, b"\xff", RemoteError, "\ufffd"),
        (Outcome.FUNCTION_FAILED, b"the library is missing", FunctionLoadError, "price: the library is missing"),
        (Outcome.WORKER_DIED, b"attempt 1: signal 9", WorkerDiedError, "attempt 1: signal 9"),
        (Outcome.VALUE, b"{", ResultPickleError, "the result of price is not valid json: Expecting property name"),
    ],
)
def test_answers_without_a_value(
    table: FunctionTable, outcome: int, answer: bytes, error: type[Exception], text: str
) -> None:
    value, exception = table.get(named("price")).read_answer(outcome, answer)
    assert value is None
    assert type(exception) is error
    assert text in str(exception)


def test_equal_named_functions_are_one_function(table: FunctionTable) -> None:
    price = table.get(named("price"))
    assert (price.name, price.payload, price.kind) == ("price", b"", "named json price")
    assert table.get(named("price")) is price
    assert table.get(named("price", codec="raw")).number != price.number
    assert table.get(len).kind == serializer.CLOUDPICKLE_KIND


def test_a_custom_serializer_does_not_change_named_functions() -> None:
    table = FunctionTable(lambda number: None, serializer)  # type: ignore[arg-type]  # never asked
    assert table.get(named("price")).read_answer(Outcome.VALUE, b"[3]") == ([3], None)


def test_named_functions_reject_retry_on(table: FunctionTable) -> None:
    with pytest.raises(TypeError, match="retry_on needs a Python function"):
        table.get_with_policy(named("price"), TaskPolicy((OSError,)))


def test_calling_or_pickling_a_named_function_explains_its_use() -> None:
    with pytest.raises(TypeError, match=r"named\('price', codec='json'\) runs on workers only"):
        named("price")(1)
    with pytest.raises(TypeError, match="can't be pickled: pass it to submit or map"):
        pickle.dumps(named("price"))


def test_named_functions_are_rejected_in_graphs() -> None:
    with pytest.raises(TypeError, match="can't be a node of a graph"):
        SessionClient().submit_graph({"a": (named("price"), 1)}, ["a"])
