"""Each task gets a callable and inputs of its own: what one task changes, no other task sees.

One worker runs all tasks, so that each state that is kept would show.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import pytest

from scaler_client import AsyncClient, Client, LocalCluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

TIMES = 4


class Model:
    """Learns in place, as the models of scikit-learn do."""

    def __init__(self) -> None:
        self.rows = 0

    def partial_fit(self, part: list[int]) -> Model:
        self.rows += len(part)
        return self

    def __call__(self, part: list[int]) -> int:
        return self.partial_fit(part).rows

    @functools.singledispatchmethod
    def dispatched(self, part: list[int]) -> int:
        return self(part)

    @property
    def by_property(self) -> Callable[[list[int]], int]:
        return lambda part: self(part)


def rows_after(model: Model, part: list[int]) -> int:
    return model.partial_fit(part).rows


def push(seen: list[int], item: int) -> list[int]:
    seen.append(item)
    return list(seen)


def double(table: dict[str, Any]) -> float:
    table["amount"] = [2 * each for each in table["amount"]]
    table["extra"] = [0]
    return float(sum(table["amount"]))


def make_table(count: int) -> dict[str, Any]:
    return {"amount": [1] * count}


def draw_then_fail(generator: random.Random, path: str) -> float:
    """Fails once: the next attempt must begin with the generator that was sent."""
    number = generator.random()
    with open(path, "a") as file:
        print(number, file=file)
    with open(path) as file:
        if len(file.readlines()) < 2:
            raise KeyError(number)
    return number


def place_of(value: Any) -> int:
    return id(value)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=1) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as client:
        yield client


def test_callables_of_submit(client: Client) -> None:
    part = [0] * 20
    model = Model()
    assert [client.submit(model.partial_fit, part).result().rows for _ in range(TIMES)] == [20] * TIMES
    assert [client.submit(model, part).result() for _ in range(TIMES)] == [20] * TIMES
    assert [client.submit([3, 1, 2].pop).result() for _ in range(TIMES)] == [2] * TIMES
    draw = random.Random(7).gauss
    assert len({client.submit(draw, 0, 1).result() for _ in range(TIMES)}) == 1
    fn = functools.partial(push, [])
    assert [client.submit(fn, each).result() for each in range(TIMES)] == [[each] for each in range(TIMES)]


@pytest.mark.parametrize("way", ["singledispatchmethod", "property", "closure", "default"])
def test_functions_that_hold_a_model(client: Client, way: str, tmp_path: Any) -> None:
    model = Model()
    fns: dict[str, Callable[..., int]] = {
        "singledispatchmethod": model.dispatched,
        "property": model.by_property,
        "closure": lambda part: model(part),
        "default": lambda part, own=model: own(part),
    }
    fn, part = fns[way], [0] * 20
    assert [client.submit(fn, part).result() for _ in range(TIMES)] == [20] * TIMES
    assert client.map(fn, [(part,)] * 50) == [20] * 50
    with client.executor() as executor:
        assert list(executor.map(fn, [part] * 50)) == [20] * 50
    assert [client.options(keep=True).submit(fn, part).result() for _ in range(TIMES)] == [20] * TIMES
    graph = {f"rows {number}": (fn, part) for number in range(TIMES)}
    assert set(client.get(graph, list(graph)).values()) == {20}
    path = tmp_path / "runs"

    def fail_once(part: list[int]) -> int:
        rows = fn(part)
        with path.open("a") as file:
            print(rows, file=file)
        if len(path.read_text().split()) < 2:
            raise KeyError(rows)
        return rows

    assert client.options(retry_on=KeyError).submit(fail_once, part).result() == 20
    assert path.read_text().split() == ["20", "20"]


def test_a_client_in_a_closure_is_loaded_once(client: Client) -> None:
    seen: list[int] = []

    def call(item: int) -> tuple[int, int]:
        seen.append(client.submit(abs, item).result())
        return id(client), len(seen)

    assert len({client.submit(call, -1).result() for _ in range(TIMES)}) == 1


def test_callables_of_map_executors_kept_results_and_graphs(client: Client) -> None:
    model, parts = Model(), [[0] * 20] * 50
    items = [(part,) for part in parts]
    assert client.map(model, items) == [20] * 50
    assert [each.rows for each in client.map(model.partial_fit, items)] == [20] * 50
    assert list(client.imap(functools.partial(push, []), [(" ",)] * 3)) == [[" "]] * 3
    with client.executor() as executor:
        assert list(executor.map(model, parts)) == [20] * 50
    kept = [client.options(keep=True).submit(model, parts[0]) for _ in range(TIMES)]
    assert [each.result() for each in kept] == [20] * TIMES
    graph = {f"rows {number}": (model, parts[0]) for number in range(TIMES)}
    assert set(client.get(graph, list(graph)).values()) == {20}


def test_a_retry_begins_with_the_state_that_was_sent(client: Client, tmp_path: Any) -> None:
    path = str(tmp_path / "numbers")
    fn = functools.partial(draw_then_fail, random.Random(7))
    assert client.options(retry_on=KeyError).submit(fn, path).result() == random.Random(7).random()
    assert len(set((tmp_path / "numbers").read_text().split())) == 1


def test_callables_of_asyncclient(cluster: LocalCluster) -> None:
    async def run() -> list[Any]:
        async with AsyncClient(cluster) as client:
            return [await client.submit(Model().partial_fit, [0] * 20) for _ in range(TIMES)]

    assert [model.rows for model in asyncio.run(run())] == [20] * TIMES


@pytest.mark.parametrize("count", [10, 1000, 100_000])
def test_inputs(client: Client, count: int) -> None:
    """Objects, futures, kept results and nodes of graphs, small and large."""
    ref = client.send_object(make_table(count))
    assert [client.submit(double, ref).result() for _ in range(TIMES)] == [2.0 * count] * TIMES
    assert client.map(double, [(ref,)] * 20) == [2.0 * count] * 20
    for view in (client, client.options(keep=True)):
        future = view.submit(make_table, count)
        assert [client.submit(double, future).result() for _ in range(TIMES)] == [2.0 * count] * TIMES
    graph: dict[str, Any] = {"table": (make_table, count)}
    graph |= {f"sum {number}": (double, "table") for number in range(TIMES)}
    sums = client.get(graph, [key for key in graph if key != "table"])
    assert set(sums.values()) == {2.0 * count}


@pytest.mark.parametrize("count", [10, 100_000])
def test_arrays_are_read_only_whatever_their_size_and_their_way(client: Client, count: int) -> None:
    numpy = pytest.importorskip("numpy")

    def can_write(array: Any) -> bool:
        return bool(array.flags.writeable)

    future = client.submit(numpy.ones, count)
    kept = client.options(keep=True).submit(numpy.ones, count)
    for each in (client.send_object(numpy.ones(count)), future, kept):
        assert [client.submit(can_write, each).result() for _ in range(3)] == [False] * 3
    assert client.submit(can_write, numpy.ones(count)).result(), "an argument belongs to its task"
    graph = {"array": (numpy.ones, count), "read": (can_write, "array")}
    assert client.get(graph, ["read"]) == {"read": False}


def test_an_object_that_a_call_reads_twice_is_one_value(client: Client) -> None:
    ref = client.send_object([1])

    def are_one(first: Any, second: Any, third: Any) -> bool:
        return first is second is third[0]

    assert client.submit(are_one, ref, ref, [ref]).result()


def test_shared_values_are_loaded_once(client: Client) -> None:
    count = 100_000
    ref = client.send_object(make_table(count), shared=True)
    view = client.options(shared_inputs=True)
    assert len({client.submit(place_of, ref).result() for _ in range(TIMES)}) == 1
    plain = client.send_object(make_table(count))
    assert len({view.submit(place_of, plain).result() for _ in range(TIMES)}) == 1
    assert len(set(view.map(place_of, [(plain,)] * 20))) == 1
    with pytest.raises(TypeError, match="shared must be True or False, not 1"):
        client.send_object([], shared=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="shared_inputs must be True or False"):
        client.options(shared_inputs="yes")  # type: ignore[arg-type]


def test_a_worker_that_loads_the_same_input_again_and_again_says_so() -> None:
    value = {number: str(number) for number in range(1_000_000)}
    output = io.StringIO()  # pytest's capture may lose what a thread writes while it is read
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        LocalCluster(n_workers=1) as cluster,
        Client(cluster, stream_output=True) as client,
    ):
        ref = client.send_object(value)
        for _ in range(1000):
            assert client.submit(len, ref).result() == 1_000_000
            if "shared_inputs=True" in output.getvalue():
                break
        text = output.getvalue()
        assert "of its time on loading object" in text and "client.send_object(value, shared=True)" in text, text
