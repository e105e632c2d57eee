"""Futures as arguments of clients with a serializer of their own: at any depth, without serializing results again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import cloudpickle
import pytest
from tests.client.graph_stand_ins import Cluster, SessionClient

from scaler_client.errors import ObjectNotFoundError, SerializerError
from scaler_client.futures.future import TaskFuture
from scaler_client.pickling.call_pickles import SMALL_BYTES
from scaler_client.pickling.custom_serializer import call_dumper
from scaler_client.protocol import messages

SMALL = "a small result"
LARGE = "a large result" * SMALL_BYTES


class Own:
    """A serializer that counts the values that it was given."""

    counts: ClassVar[Counter[str]] = Counter()

    @staticmethod
    def serialize(obj: Any) -> bytes:
        Own.counts[repr(obj)] += 1
        return b"own" + bytes(cloudpickle.dumps(obj))

    @staticmethod
    def deserialize(payload: bytes) -> Any:
        assert payload.startswith(b"own")
        return cloudpickle.loads(payload[3:])


class Json:
    """A serializer that knows no futures."""

    @staticmethod
    def serialize(obj: Any) -> bytes:
        return b"function " + bytes(cloudpickle.dumps(obj)) if callable(obj) else json.dumps(obj).encode()

    @staticmethod
    def deserialize(payload: bytes) -> Any:
        begin, _, rest = payload.partition(b" ")
        return cloudpickle.loads(rest) if begin == b"function" else json.loads(payload)


@dataclass
class Trade:
    price: Any


def same(value: Any) -> Any:
    return value


def echo(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


@pytest.fixture
def client() -> Iterator[SessionClient]:
    yield SessionClient(serializer=Own)
    Own.counts.clear()


def submit(client: SessionClient, fn: Any, *args: Any, **kwargs: Any) -> TaskFuture[Any]:
    future: TaskFuture[Any] = TaskFuture(client._io_thread, client._function(fn), client._dump_call(args, kwargs))
    future.task_id = client.session.submit(future, *future.row(-1))  # type: ignore[arg-type]
    return future


def in_state(client: SessionClient, cluster: Cluster, state: str, value: str) -> TaskFuture[Any]:
    """Return the future of a task that returns the value."""
    if state == "of a literal":
        (future,) = client.submit_graph({"a": value}, ["a"])
        return future
    future = client.submit_graph({"a": (same, value)}, ["a"])[0] if state == "node" else submit(client, same, value)
    if state != "open":
        cluster.run(client.session)
    if state == "read":
        assert future.result(0) == value
    return future


@pytest.mark.parametrize("value", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("state", ["open", "done", "read", "node", "of a literal"])
def test_at_any_depth(client: SessionClient, state: str, value: str) -> None:
    cluster = Cluster()
    future = in_state(client, cluster, state, value)
    reader = submit(client, echo, future, [future, Trade({"k": (future,)})], 5, k=future, other={future})
    alone = submit(client, echo, future)
    cluster.run(client.session)
    args = (value, [value, Trade({"k": (value,)})], 5)
    assert reader.result(0) == (args, {"k": value, "other": {value}})
    assert alone.result(0) == ((value,), {})


@pytest.mark.parametrize("state", ["open", "done", "read"])
def test_a_result_is_neither_serialized_nor_sent_for_each_reader(client: SessionClient, state: str) -> None:
    cluster = Cluster()
    future = in_state(client, cluster, state, LARGE)
    for _ in range(3):
        submit(client, len, future)
        submit(client, len, [future])
    sent = client.session.pop_outgoing()
    assert sum(isinstance(each, messages.Object) for each in sent) == (state != "open")
    submits = [each for each in sent if isinstance(each, messages.Submit)]
    assert all(len(payload) < len(LARGE) for each in submits for payload in list(each.payloads)[state == "open" :])
    # As the argument and, if it has run, as the result of its task; if its bytes were dropped, once again.
    assert Own.counts[repr(LARGE)] == {"open": 1, "done": 2, "read": 3}[state]


def test_nodes_of_graphs_read_futures_and_objects(client: SessionClient) -> None:
    cluster = Cluster()
    future, ref = submit(client, same, 7), client.send_object([1, 2])
    graph = {"a": (same, future), "b": [future, {"k": ref}], "c": future, "d": (echo, Trade(future), "a"), "e": ref}
    targets = client.submit_graph(graph, list(graph))
    reader = submit(client, same, [ref, (future, ref)])
    cluster.run(client.session)
    assert [each.result(0) for each in targets] == [7, [7, {"k": [1, 2]}], 7, ((Trade(7), 7), {}), [1, 2]]
    assert reader.result(0) == [[1, 2], (7, [1, 2])]


def test_a_serializer_without_pickle_takes_futures_that_are_arguments(client: SessionClient) -> None:
    client = SessionClient(serializer=Json)
    cluster = Cluster()
    future = submit(client, same, 7)
    reader = submit(client, echo, future, k=future)
    cluster.run(client.session)
    assert reader.result(0) == [[7], {"k": 7}]
    text = "argument 0 of type list can't be serialized .*It contains a future, .* as an argument of its own"
    with pytest.raises(SerializerError, match=text):
        submit(client, echo, [1, {"k": (future,)}])
    looped: list[Any] = []
    looped.append(looped)
    with pytest.raises(SerializerError, match=r"Circular reference detected'\)$"):
        submit(client, echo, looped)


def test_errors_of_futures_in_containers(client: SessionClient) -> None:
    future = submit(client, same, 1)
    with pytest.raises(ValueError, match=r"the result of same belongs to another client: pass its result\(\)"):
        SessionClient(serializer=Own)._dump_call(([future],), {})
    ref = client.send_object([1])
    client.session.close("over")
    with pytest.raises(ObjectNotFoundError, match="is not kept any more"):
        submit(client, echo, {"k": ref})


def test_a_result_that_cannot_be_serialized_again(client: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    future = in_state(client, cluster, "read", SMALL)

    def refuse(_: Any) -> bytes:
        raise ValueError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(Own, "serialize", staticmethod(refuse))
        for _ in range(2):
            with pytest.raises(SerializerError, match="the result of same of type str can't be serialized in the clie"):
                client._dump_call((future,), {})
    reader = submit(client, echo, future)
    cluster.run(client.session)
    assert reader.result(0) == ((SMALL,), {})


@pytest.mark.parametrize("state", ["open", "done", "read"])
def test_clients_of_one_connection_with_different_serializers(client: SessionClient, state: str) -> None:
    """Clients inside one task share its connection."""
    cluster = Cluster()
    future = in_state(client, cluster, state, SMALL)
    for serializer in (None, Json):
        other = SessionClient(client.session, serializer)
        other._io_thread = client._io_thread
        other._dump_call = call_dumper(serializer, client._io_thread)
        for read in (
            lambda other=other: other._dump_call((future,), {}),
            lambda other=other: other._dump_call(([future],), {}),
            lambda other=other: other.submit_graph({"a": future}, ["a"]),
        ):
            with pytest.raises(TypeError, match="made with another serializer|an argument of its own"):
                read()
    with pytest.raises(ValueError, match="belongs to another client"):
        SessionClient()._dump_call((future,), {})
