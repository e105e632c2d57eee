"""Objects, graphs and shutdown of Client, with a fake scheduler."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.graph_stand_ins import Buffer
from tests.client.scheduler_stand_in import NEVER, WAIT_SECONDS, FakeScheduler

from scaler_client import Client, ClientClosedError, ObjectNotFoundError, ProtectedSchedulerError
from scaler_client.errors import ScalerError
from scaler_client.pickling.call_rows import pack_answer
from scaler_client.pickling.input_lookup import with_inputs
from scaler_client.pickling.serializer import dumps, loads
from scaler_client.protocol.messages import Keep, Outcome
from scaler_client.protocol.wire import LARGE_PAYLOAD_BYTES


def inc(x: int) -> int:
    return x + 1


def add(x: int, y: int) -> int:
    return x + y


def run_in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run a call in a thread; the list receives its result or exception."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def test_an_object_and_a_task_that_reads_it(scheduler: FakeScheduler, client: Client) -> None:
    value = Buffer(bytes(range(256)) * 1000)
    ref = client.send_object("numbers", value)
    future = client.submit(len, ref)
    sent = scheduler.receive("object")
    assert (sent["id"], sent["name"]) == (0, "numbers")
    first, buffer = scheduler.payloads
    assert len(first) < 200 and pickle.loads(first, buffers=[buffer]) == value
    submitted = scheduler.receive("submit")
    assert (submitted["inputs"], submitted["inputCounts"]) == ([0], [1])
    with with_inputs([value].__getitem__):
        (argument,) = loads(submitted["payload"])
    assert argument is value
    scheduler.resolve(submitted["ids"], dumps(5))
    assert future.result(WAIT_SECONDS) == 5


def test_a_map_that_reads_an_object(scheduler: FakeScheduler, client: Client) -> None:
    ref = client.send_object([1])
    thread, results = run_in_thread(lambda: client.map(add, [(1, 2), (ref, 3), (4, ref)]))
    submitted = scheduler.receive("submit")
    assert (submitted["inputs"], submitted["inputCounts"]) == ([0, 0], [0, 1, 1])
    scheduler.resolve(submitted["ids"], pack_answer([7], None, 1000))
    thread.join(WAIT_SECONDS)
    assert results == [[7, 7, 7]]


def test_a_large_payload_that_reads_an_object(scheduler: FakeScheduler, client: Client) -> None:
    ref = client.send_object([1])
    client.submit(add, ref, b"x" * LARGE_PAYLOAD_BYTES)
    submitted = scheduler.receive("submit")
    assert submitted["inputs"] == [0] and submitted["large"] == [0]
    with with_inputs([[1]].__getitem__):
        assert loads(scheduler.payloads[0]) == ([1], b"x" * LARGE_PAYLOAD_BYTES)


def test_forgotten_objects_are_reported_with_the_next_message(scheduler: FakeScheduler, client: Client) -> None:
    client.send_object([1])
    gc.collect()
    client.submit(inc, 1)
    assert scheduler.receive("forgetObjects")["ids"] == [0]


def test_views_share_the_objects_of_their_client(scheduler: FakeScheduler, client: Client) -> None:
    view = client.options(priority=5)
    ref = view.send_object([1])
    client.submit(len, ref)
    view.submit(len, ref)
    assert scheduler.receive("submit")["inputs"] == [0]
    submitted = scheduler.receive("submit")
    assert submitted["inputs"] == [0] and submitted["options"]["priority"] == 5


def test_references_after_disconnect_raise(scheduler: FakeScheduler, client: Client) -> None:
    ref = client.send_object([1])
    other = Client(scheduler.address, heartbeat_interval_seconds=NEVER)
    with pytest.raises(ValueError, match="belongs to another client"):
        other.submit(len, ref)
    with pytest.raises(ValueError, match="belongs to another client"):
        other.map(len, [(ref,)])
    other.disconnect()
    client.disconnect()
    for call in (client.submit, other.submit):
        with pytest.raises(ObjectNotFoundError):
            call(len, ref)
    with pytest.raises(ClientClosedError):
        client.send_object([1])


def test_clearing_forgets_objects(scheduler: FakeScheduler, client: Client) -> None:
    ref = client.send_object([1])
    over = threading.Event()
    client._io_thread.clear(None, over.set)
    assert over.wait(WAIT_SECONDS)
    with pytest.raises(ObjectNotFoundError, match="not kept any more"):
        client.submit(len, ref)
    assert scheduler.receive("forgetObjects")["ids"] == [0]
    again = client.send_object([1])
    client.submit(len, again)
    assert scheduler.receive("submit")["inputs"] == [again.object_id]


# --------------------------------------------------------------------------------------------------------------- graphs


GRAPH = {"a": (inc, 1), "b": (inc, "a"), "c": (add, "a", "b")}


def test_get(scheduler: FakeScheduler, client: Client) -> None:
    thread, results = run_in_thread(lambda: client.get(GRAPH, ["c", "b"]))
    submitted = scheduler.receive("submit")
    first = submitted["ids"][0]
    assert submitted["inputs"] == [first, first, first + 1] and submitted["inputCounts"] == [0, 1, 2]
    assert list(submitted["keep"]) == [Keep.YES, Keep.BOTH, Keep.NO]
    assert scheduler.receive("forgetObjects")["ids"] == [first, first + 1]
    scheduler.resolve([first], outcome=Outcome.KEPT)
    scheduler.resolve([first + 1], dumps(3))
    scheduler.resolve([first + 2], dumps(5))
    thread.join(WAIT_SECONDS)
    assert results == [{"c": 5, "b": 3}]


def test_a_failure_in_get_cancels_the_other_nodes(scheduler: FakeScheduler, client: Client) -> None:
    thread, results = run_in_thread(lambda: client.get({**GRAPH, "d": (inc, 1)}, ["c", "d"]))
    submitted = scheduler.receive("submit")
    d = submitted["ids"][3]
    scheduler.resolve([d], pickle.dumps((ZeroDivisionError("no"), "frames\n")), outcome=Outcome.EXCEPTION)
    thread.join(WAIT_SECONDS)
    assert type(results[0]) is ZeroDivisionError
    assert scheduler.receive("cancel")["ids"] == [submitted["ids"][2]]


def test_disconnect_ends_get(scheduler: FakeScheduler, client: Client) -> None:
    thread, results = run_in_thread(lambda: client.get(GRAPH, ["c"]))
    scheduler.receive("submit")
    client.disconnect()
    thread.join(WAIT_SECONDS)
    assert type(results[0]) is ClientClosedError
    with pytest.raises(ClientClosedError):
        client.get(GRAPH, ["c"])
    assert client.get({"a": 1}, ["a"]) == {"a": 1}


def test_a_target_can_be_cancelled(scheduler: FakeScheduler, client: Client) -> None:
    (future,) = client.submit_graph(GRAPH, ["c"])
    scheduler.receive("submit")
    thread, results = run_in_thread(future.cancel)
    assert scheduler.receive("cancel")["ids"] == [future.task_id]
    scheduler.resolve([future.task_id], outcome=Outcome.CANCELLED)
    thread.join(WAIT_SECONDS)
    assert results == [True]


def test_graph_backend_of_a_client(scheduler: FakeScheduler) -> None:
    with pytest.raises(ValueError, match="^graph_backend must be one of python, graphblas, not 'dask'$"):
        Client(scheduler.address, graph_backend="dask")


# -------------------------------------------------------------------------------------------------------- shutting down


def test_shutdown(scheduler: FakeScheduler, client: Client) -> None:
    future = client.submit(inc, 1)
    thread, results = run_in_thread(client.shutdown)
    scheduler.receive("shutdown")
    scheduler.say("goodbye", reason="a client has asked for it")
    thread.join(WAIT_SECONDS)
    assert results == [None] and future.cancelled()
    with pytest.raises(ClientClosedError):
        client.submit(inc, 1)


def test_shutdown_of_a_protected_scheduler(scheduler: FakeScheduler, client: Client) -> None:
    thread, results = run_in_thread(client.shutdown)
    scheduler.receive("shutdown")
    scheduler.say("error", text="protected: clients may not end this scheduler")
    thread.join(WAIT_SECONDS)
    (error,) = results
    assert type(error) is ProtectedSchedulerError
    assert isinstance(error, PermissionError) and isinstance(error, ScalerError)
    assert str(error) == "protected: clients may not end this scheduler"
    client.submit(inc, 1)
    assert scheduler.receive("submit")["ids"]
