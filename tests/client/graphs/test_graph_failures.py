"""Failed nodes: which node caused the failure, and the errors of its readers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.client.graph_stand_ins import SessionClient
from tests.client.session.test_session_graphs import GRAPH, A, B, C, D, E, graph_tasks, submits

from scaler_client.pickling.serializer import dumps
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome


@pytest.fixture
def client() -> SessionClient:
    return SessionClient()


def answer(client: SessionClient, rows: Sequence[int], outcome: Outcome, payload: bytes = b"") -> None:
    """Answer several rows in one message of the scheduler."""
    ids = [graph_tasks(client).first + row for row in rows]
    client.session.handle(messages.Resolved(ids, [outcome] * len(ids), [payload] * len(ids)), 1.0)


@pytest.mark.parametrize("rows", [(A, C, E), (E, C, A)])
def test_the_first_failure_is_named_in_any_order_of_answers(client: SessionClient, rows: list[int]) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    graph_tasks_first = graph_tasks(client).first
    answer(client, rows, Outcome.WORKER_DIED, b"it died")
    answer(client, [D], Outcome.VALUE, dumps(5))
    assert str(e.exception(0)) == "it died (node 'a' of the graph)" and d.result(0) == 5
    name = e.exception(0).__notes__[0]
    assert name.startswith("of task ") and name.endswith(f"#{graph_tasks_first + A}")
    assert e.exception(0).__notes__[1:] == ["of node 'a' of the graph"]


def test_rows_sent_after_the_failure_of_their_input_fail_alike(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    submits(client.session)
    answer(client, [B], Outcome.EXCEPTION, dumps((KeyError("b"), "remote frames\n")))
    answer(client, [D, C, E], Outcome.INPUT_LOST, b"it is not there")
    for future in (d, e):
        assert "(node 'b' of the graph)" in str(future.exception(0).__cause__)
    assert not submits(client.session)


def test_a_row_cancelled_after_its_reader_failed_is_not_the_cause(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    ids = [first + row for row in (A, B, C, E, D)]
    outcomes = [Outcome.CANCELLED, *[Outcome.WORKER_DIED] * 4]
    client.session.handle(messages.Resolved(ids, outcomes, [b"", *[b"it died"] * 4]), 1.0)
    assert str(e.exception(0)) == str(d.exception(0)) == "it died (node 'b' of the graph)"


def test_a_failure_that_a_rerun_repaired_is_not_the_cause(client: SessionClient) -> None:
    (e,) = client.submit_graph(GRAPH, ["e"])
    answer(client, [A, E], Outcome.INPUT_LOST)
    answer(client, [C, E], Outcome.TIMED_OUT, b"too long")
    assert str(e.exception(0)) == "too long (node 'c' of the graph)"


def test_failures_reported_by_a_lost_scheduler_do_not_count(client: SessionClient) -> None:
    (e,) = client.submit_graph(GRAPH, ["e"])
    answer(client, [A], Outcome.WORKER_DIED)
    answer(client, [A], Outcome.KEPT)
    submits(client.session)
    answer(client, [E], Outcome.INPUT_LOST)
    assert not e.done() and submits(client.session)
