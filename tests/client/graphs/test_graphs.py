"""Graphs of the client: how nodes are read, and the values when their rows are run."""

from __future__ import annotations

import dataclasses
import graphlib
import pickle
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.graph_stand_ins import Buffer, Cluster, SessionClient

from scaler_client.api.task_options import TaskOptions
from scaler_client.errors import GraphCycleError, ObjectNotFoundError
from scaler_client.futures.gang_future import GangFuture
from scaler_client.graphs.nodes import is_call
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Options


def inc(x: int) -> int:
    return x + 1


def add(x: Any, y: Any) -> Any:
    return x + y


def minus(x: int, y: int) -> int:
    return x - y


def pack(*args: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the arguments of the call."""
    return "packed", args


class Packed:
    """A class whose instances keep the arguments of the call."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packed) and other.args == self.args

    __hash__ = None  # type: ignore[assignment]


def run(graph: Any, keys: list[Any], client: SessionClient | None = None) -> list[Any]:
    """Run a graph and return the values of the keys."""
    client = client or SessionClient()
    futures = client.submit_graph(graph, keys)
    Cluster().run(client.session)
    assert all(future.done() for future in futures)
    return [future.result(0) for future in futures]


def sent_rows(client: SessionClient) -> list[messages.Submit]:
    return [message for message in client.session.pop_outgoing() if isinstance(message, messages.Submit)]


def test_the_graph_of_the_readme() -> None:
    graph = {"a": 2, "b": 2, "c": (inc, "a"), "d": (add, "a", "b"), "e": (minus, "d", "c")}
    assert run(graph, ["e"]) == [1]
    assert run(graph, ["a", "e", "c", "e"]) == [2, 1, 3, 1]


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ((pack, "x", "x"), ("packed", (10, 10))),
        ((pack,), ("packed", ())),
        ((pack, ["x", ["x", 1]], ("x", "no key"), {"x": "x", "k": ["x"]}),
         ("packed", ([10, [10, 1]], (10, "no key"), {"x": 10, "k": [10]}))),
        ((pack, (inc, "x"), [(inc, (inc, "x")), 5], {"k": (inc, 1)}), ("packed", (11, [12, 5], {"k": 2}))),
        ((pack, ("key", 1), ("key", 2)), ("packed", ("tuple", ("key", 2)))),
        ((pack, None, 1.5, b"bytes", True, 1 << 80), ("packed", (None, 1.5, b"bytes", True, 1 << 80))),
        ((pack, *range(40), "x"), ("packed", (*range(40), 10))),
        ((Packed, "x", {1, 2}), Packed(10, {1, 2})),
        ("x", 10),
        ("alias", 10),
        (["x", 5, ["alias"]], [10, 5, [10]]),
        ([(inc, "x")], [11]),
        ({"k": "x"}, {"k": 10}),
        ((), ()),
        ([1, [2]], [1, [2]]),
        (None, None),
        ((pack, "nothing"), ("packed", (None,))),
    ],
)  # fmt: skip
def test_kinds_of_nodes(node: Any, value: Any) -> None:
    graph = {"x": 10, "alias": "x", ("key", 1): "tuple", "nothing": None, "node": node}
    assert run(graph, ["node"]) == [value]
    assert run({**graph, "reader": (pack, "node", "node")}, ["reader"]) == [("packed", (value, value))]


def test_keys_are_any_hashable_values() -> None:
    graph: dict[Hashable, Any] = {1: (inc, 0), ("a", 1): (inc, 1), frozenset({2}): (add, 1, ("a", 1)), None: (inc, 7)}
    assert run(graph, [frozenset({2}), None]) == [3, 8]
    assert SessionClient().get({b"literal": 1, 2.5: "two"}, {b"literal", 2.5}) == {b"literal": 1, 2.5: "two"}


def test_arguments_that_are_not_hashable() -> None:
    array = Buffer(b"array")
    (value,) = run({"a": (pack, array, {"k": array}, [array, "b"]), "b": array}, ["a"])
    assert value == ("packed", (array, {"k": array}, [array, array]))


def test_only_needed_nodes_are_sent() -> None:
    client = SessionClient()
    graph = {"a": (inc, 1), "b": (inc, "a"), "not": (inc, "b"), "circle": (inc, "circle"), "too deep": _nested(5000)}
    client.submit_graph(graph, ["b"])
    (batch,) = sent_rows(client)
    assert len(batch.ids) == 2


def test_which_results_are_kept() -> None:
    client = SessionClient()
    graph = {"a": (inc, 1), "b": (inc, "a"), "c": (inc, "b"), "d": (add, "a", "b")}
    client.submit_graph(graph, ["b", "d"])
    (batch,) = sent_rows(client)
    first = batch.ids[0]
    assert list(batch.keep) == [Keep.YES, Keep.BOTH, Keep.NO]
    assert (list(batch.inputs), list(batch.input_counts)) == ([first, first, first + 1], [0, 1, 2])


def test_a_graph_without_dependencies_becomes_plain_tasks() -> None:
    client = SessionClient()
    client.submit_graph({"a": (inc, 1), "b": (inc, 2)}, ["a", "b"])
    (batch,) = sent_rows(client)
    assert (batch.inputs, batch.input_counts, batch.keep) == ((), (), ())


def test_inputs_are_computed_just_before_their_reader() -> None:
    graph = {"e": (add, "c", "d"), "d": (inc, "b"), "c": (inc, "a"), "b": (inc, 1), "a": (pack, "b")}
    client = SessionClient()
    client.submit_graph(graph, ["e"])
    (batch,) = sent_rows(client)
    first = batch.ids[0]
    # b, a, c, d, e
    assert [each - first for each in batch.inputs] == [0, 1, 0, 2, 3]


def test_functions_are_sent_once() -> None:
    client = SessionClient()
    client.submit_graph({number: (inc, str(number)) for number in range(9)} | {"s": (add, (inc, 1), 2)}, [*range(9)])
    functions = [message for message in client.session.pop_outgoing() if isinstance(message, messages.Function)]
    assert len(functions) == 1


def test_nested_calls_of_the_same_form_share_a_function() -> None:
    client = SessionClient()
    graph = {f"n{number}": (add, (inc, number), [(inc, "a"), number]) for number in range(9)}
    client.submit_graph({**graph, "a": 1}, list(graph))
    functions = [message for message in client.session.pop_outgoing() if isinstance(message, messages.Function)]
    assert [function.name for function in functions] == ["add"]


def test_each_node_has_the_options_of_the_view() -> None:
    client = SessionClient(options=TaskOptions(priority=3))
    client.submit_graph({"a": (inc, 1), "b": (inc, "a")}, ["b"])
    (batch,) = sent_rows(client)
    assert batch.options == messages.Options(priority=3, graph=1, keys="b")


def test_chains_of_any_depth() -> None:
    count = 100_000
    graph = {f"k{number}": (inc, f"k{number - 1}") for number in range(count)}
    assert run({**graph, "k-1": 0}, [f"k{count - 1}"]) == [count]
    aliases = {f"k{number}": f"k{number - 1}" for number in range(count)}
    assert run({**aliases, "k-1": 5}, [f"k{count - 1}"]) == [5]


def test_a_failed_node_fails_only_its_readers() -> None:
    graph = {"bad": (inc, None), "x": (inc, "bad"), "y": (inc, "x"), "good": (inc, 1), "z": (add, "good", 1)}
    client = SessionClient()
    futures = client.submit_graph(graph, ["x", "y", "z", "bad"])
    Cluster().run(client.session)
    x, y, z, bad = futures
    assert z.result(0) == 3
    for future in (x, y, bad):
        assert type(future.exception(0)) is TypeError
        assert str(future.exception(0).__cause__) == '\n"""\nremote frames\n(node \'bad\' of the graph)\n"""'


def test_the_error_names_the_failed_node_and_not_its_alias() -> None:
    graph = {"first": ("k", 1), ("k", 1): (inc, None), "last": ("k", 1), "reader": (inc, "last")}
    client = SessionClient()
    futures = client.submit_graph(graph, ["reader", "first"])
    Cluster().run(client.session)
    for future in futures:
        assert "(node ('k', 1) of the graph)" in str(future.exception(0).__cause__)


def test_the_error_names_a_node_that_cannot_be_pickled() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"^node 'b' of the graph: argument 1 of type _thread.lock can't be pickled"):
        SessionClient().submit_graph({"a": 1, "b": (add, "a", lock)}, ["b"])
    with pytest.raises(TypeError, match=r"^node 'held' of the graph: the object of type _thread.lock can't be pickled"):
        SessionClient().submit_graph({"held": lock, "b": (inc, "held"), "c": (inc, "held")}, ["b", "c"])


def test_a_large_literal_that_several_nodes_read_is_sent_once() -> None:
    client = SessionClient()
    array = Buffer(bytearray(100_000))
    graph = {"x": array, "alias": "x", "a": (len, "x"), "b": (bool, "alias"), "c": (add, "a", 1)}
    futures = client.submit_graph(graph, ["a", "b", "c", "x"])
    outgoing = client.session.pop_outgoing()
    (sent,) = [message for message in outgoing if isinstance(message, messages.Object)]
    assert sum(map(len, sent.frames)) > len(array)
    assert futures[3].result(0) is array
    (batch,) = [message for message in outgoing if isinstance(message, messages.Submit)]
    assert sum(map(len, batch.payloads)) < 1000 and sent.id < batch.ids[0]


def test_a_small_literal_is_sent_with_each_reader() -> None:
    assert run({"x": [1, 2], "a": (len, "x"), "b": (sum, "x"), "c": (add, "a", "b")}, ["c"]) == [5]


@pytest.mark.parametrize("keys", [["c", "b"], ["a"]])
def test_references_to_objects(keys: list[str]) -> None:
    client = SessionClient()
    ref = client.send_object("large", [1, 2, 3])
    graph = {"a": ref, "b": (sum, "a"), "c": (pack, [ref, {"k": "a"}], ref)}
    values = {"a": [1, 2, 3], "b": 6, "c": ("packed", ([[1, 2, 3], {"k": [1, 2, 3]}], [1, 2, 3]))}
    assert run(graph, keys, client) == [values[key] for key in keys]


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        ({"a": (inc, "b"), "b": (inc, "c"), "c": (inc, "a")}, "the graph has a cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ({"a": (inc, "b"), "b": "c", "c": [5, "b"]}, "the graph has a cycle: 'b' -> 'c' -> 'b'"),
        ({"a": "a"}, "the graph has a cycle: 'a' -> 'a'"),
        ({"a": (inc, (inc, [{"k": "a"}]))}, "the graph has a cycle: 'a' -> 'a'"),
    ],
)
def test_cycles(graph: Any, text: str) -> None:
    client = SessionClient()
    with pytest.raises(ValueError) as raised:
        client.submit_graph(graph, ["a"])
    assert str(raised.value) == text
    assert isinstance(raised.value, graphlib.CycleError) and isinstance(raised.value, GraphCycleError)
    assert " -> ".join(map(repr, raised.value.args[1])) in text
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.args) == (text, raised.value.args)
    assert client.session.pop_outgoing() == []


def test_the_error_shortens_a_long_cycle() -> None:
    graph = {f"k{number}": (inc, f"k{(number + 1) % 1000}") for number in range(1000)}
    with pytest.raises(ValueError, match=r"'k0' -> 'k1' -> .*\.\.\. \(1,001 in all\)$"):
        SessionClient().submit_graph(graph, ["k0"])


def test_a_cycle_beside_nodes_that_are_visited_first() -> None:
    """Nodes on the stack that are not visited yet are no part of the cycle."""
    graph = {"a": (pack, "x", "b"), "b": (pack, "c", "x"), "x": (pack, "y"), "y": (pack, "c"), "c": (pack, "b")}
    with pytest.raises(ValueError) as raised:
        SessionClient().submit_graph(graph, ["a"])
    names = str(raised.value).removeprefix("the graph has a cycle: ").replace("'", "").split(" -> ")
    assert names[0] == names[-1]
    for reader, read in zip(names, names[1:]):
        assert read in graph[reader]


def _nested(depth: int) -> Any:
    node: Any = "a"
    for _ in range(depth):
        node = [node]
    return node


@pytest.mark.parametrize("has_own_serializer", [False, True])
@pytest.mark.parametrize("kind", ["future", "object"])
def test_references_in_keys_of_dicts_beside_calls(kind: str, has_own_serializer: bool) -> None:
    client = SessionClient(serializer=PickledObject if has_own_serializer else None)
    reference: Any = client.send_object("large", 1)
    if kind == "future":
        (reference,) = client.submit_graph({"b": (inc, 1)}, ["b"])
    name = "TaskFuture" if kind == "future" else "ObjectRef"
    text = rf"node 'a' of the graph: <{name}.* can't be a key of a dict beside nested calls: build"
    for key in (reference, (reference, 1), (0, frozenset({reference}))):
        for node in ((pack, {key: (inc, 1)}), {key: (inc, "b")}, (pack, [(inc, 1), {"x": {key: "b"}}])):
            with pytest.raises(TypeError, match=text):
                client.submit_graph({"a": node, "b": 7}, ["a"])
    client.submit_graph({"a": (pack, [(inc, 1), {"b": (inc, "b")}]), "b": 7}, ["a"])
    if not has_own_serializer:
        client.submit_graph({"a": (pack, {reference: 1}, {(reference, 1): "b"}), "b": 7}, ["a"])


@pytest.mark.parametrize(
    ("graph", "keys", "error", "text"),
    [
        ({"a": 1}, ["a", "b", ("c", 1)], ValueError, r"the graph has no 'b', \('c', 1\)$"),
        ([("a", 1)], ["a"], TypeError, "a graph must be a dict of keys and nodes, not list"),
        ({"a": 1}, "a", TypeError, "keys must be a list of a graph's keys, not 'a'"),
        ({"a": 1}, 5, TypeError, "keys must be a list of a graph's keys, not 5"),
        ({"a": 1}, [["a"]], TypeError, r"\['a'\] can't be a graph's key: .*unhashable"),
        ({"a": 1}, [("a", ["b"])], TypeError, "can't be a graph's key: .*unhashable"),
        ({"a": (pack, (i for i in ()))}, ["a"], TypeError, "argument 0 of type generator can't be pickled"),
        ({"a": _nested(5000)}, ["a"], ValueError, "node 'a' of the graph is nested too deep, or contains itself"),
    ],
)
def test_arguments_that_are_no_graph(graph: Any, keys: Any, error: type[Exception], text: str) -> None:
    client = SessionClient()
    for call in (client.submit_graph, client.get):
        with pytest.raises(error, match=text):
            call(graph, keys)
    assert client.session.pop_outgoing() == []


def test_references_of_other_clients_and_of_freed_objects_raise() -> None:
    client, other = SessionClient(), SessionClient()
    ref = other.send_object([1])
    for graph in ({"a": ref, "b": (sum, "a")}, {"b": (sum, ref)}, {"b": [ref]}, {"b": ref}):
        with pytest.raises(ValueError, match="belongs to another client"):
            client.submit_graph(graph, ["b"])
    stale = client.send_object([1])
    client.session.objects.clear()
    with pytest.raises(ObjectNotFoundError, match="not kept any more"):
        client.submit_graph({"b": (sum, stale)}, ["b"])


# ------------------------------------------------------------------------------------------------------------------ get


def test_get_of_literals_needs_no_cluster() -> None:
    client = SessionClient()
    assert client.get({"a": 1, "b": "a", "c": [2]}, ["a", "b", "c", "a"]) == {"a": 1, "b": 1, "c": [2]}
    assert client.get({}, []) == {}
    assert client.session.pop_outgoing() == []


# --------------------------------------------------------------------------------- against a straightforward evaluation

KEYS: list[Hashable] = ["k0", "k1", ("k", 2), 1003, b"k4", ("k", ("k", 5)), "k6", frozenset({7}), None, 9.5]


@dataclasses.dataclass(frozen=True)
class Opaque:
    """A hashable value that is no key."""

    number: int


LITERALS = st.one_of(
    st.integers(-5, 5), st.sampled_from(["text", b"", True, 2.5]), st.just(Opaque(1)), st.just(()), st.just([])
)


def _arguments(keys: list[Hashable]) -> st.SearchStrategy[Any]:
    leaves = st.one_of(LITERALS, st.sampled_from(keys)) if keys else LITERALS
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.sampled_from(["p", "q"]), inner, max_size=2),
            st.lists(inner, max_size=2).map(lambda args: (pack, *args)),
        ),
        max_leaves=5,
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[Hashable, Any], list[Hashable]]:
    names = draw(st.permutations(KEYS))[: draw(st.integers(1, len(KEYS)))]
    nodes = {}
    for number, name in enumerate(names):
        arguments = _arguments(names[:number])
        call = st.lists(arguments, max_size=3).map(lambda args: (pack, *args))
        nodes[name] = draw(st.one_of(arguments, call, call))
    shuffled = draw(st.permutations(names))
    return {name: nodes[name] for name in shuffled}, draw(st.lists(st.sampled_from(names), max_size=4))


def evaluate(graph: dict[Hashable, Any], node: Any) -> Any:
    if is_call(node):
        return node[0](*[evaluate(graph, each) for each in node[1:]])
    try:
        if node in graph:
            return evaluate(graph, graph[node])
    except TypeError:
        pass
    if type(node) in (list, tuple):
        return type(node)(evaluate(graph, each) for each in node)
    if type(node) is dict:
        return {key: evaluate(graph, each) for key, each in node.items()}
    return node


class PickledObject:
    """A custom serializer, which does not know references."""

    @staticmethod
    def serialize(obj: Any) -> bytes:
        return b"own" + bytes(cloudpickle.dumps(obj))

    @staticmethod
    def deserialize(payload: bytes) -> Any:
        assert type(payload) is bytes and payload.startswith(b"own")
        return cloudpickle.loads(payload[3:])


@pytest.mark.main_environment
@given(graphs())
@settings(max_examples=100)
def test_any_graph(drawn: tuple[dict[Hashable, Any], list[Hashable]]) -> None:
    graph, keys = drawn
    assert run(graph, keys) == [evaluate(graph, key) for key in keys]


@pytest.mark.main_environment
@given(graphs())
@settings(max_examples=40)
def test_any_graph_with_a_custom_serializer(drawn: tuple[dict[Hashable, Any], list[Hashable]]) -> None:
    graph, keys = drawn
    assert run(graph, keys, SessionClient(serializer=PickledObject)) == [evaluate(graph, key) for key in keys]


def test_a_target_is_a_standard_future() -> None:
    client = SessionClient()
    futures = client.submit_graph({"a": 1, "b": (inc, "a")}, ["a", "b"])
    assert all(isinstance(future, Future) for future in futures)
    assert wait(futures[:1], 0).done == {futures[0]}
    assert repr(futures[0]).endswith("returned int>") and not futures[0].cancel()


@dataclasses.dataclass(frozen=True)
class Trade:
    price: Any


@pytest.mark.parametrize("around", [lambda each: each, Trade, lambda each: {each}, lambda each: [(Trade(each), 1)]])
def test_requested_literals_have_the_results_of_futures(around: Callable[[Any], Any]) -> None:
    client, cluster = SessionClient(), Cluster()
    futures = [client.submit_graph({"a": (add, 1, 2)}, ["a"])[0] for _ in range(2)]
    literals = client.submit_graph({"x": around(futures[0]), "y": (lambda x: x, "x"), "z": "x"}, ["x", "y", "z"])
    cluster.run(client.session)
    assert [each.result(0) for each in literals] == [around(3)] * 3
    again = client.submit_graph({"x": around(futures[0])}, ["x"])
    cluster.run(client.session)
    assert again[0].result(0) == around(3)


def test_other_requested_literals_stay_in_the_client() -> None:
    client = SessionClient()
    lock = threading.Lock()
    values = {"text": "a" * 1000, "buffer": Buffer(b"123"), "lock": [lock], "object": Trade(1)}
    futures = client.submit_graph(values, list(values))
    assert all(future.result(0) is value for future, value in zip(futures, values.values()))
    assert not client.session.pop_outgoing()


def test_the_future_of_a_gang_is_no_literal() -> None:
    client = SessionClient()
    options = Options(gang_size=2)
    gang: GangFuture[int] = GangFuture(client._io_thread, client._function(add), b"", options=options, parent=None)
    gang.task_id = 3
    for node in (gang, [gang], Trade(gang), (add, gang)):
        with pytest.raises(TypeError, match="node 'a' of the graph: .*the future of gang .* can't be an argument"):
            client.submit_graph({"a": node}, ["a"])
