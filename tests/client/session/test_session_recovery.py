"""Recovery of graphs whose results were lost with a host: what the session submits again, and how often."""

from __future__ import annotations

import pytest
from tests.client.graph_stand_ins import SessionClient
from tests.client.session.stand_ins import Answered, SinkRecorder, joined_session, submit
from tests.client.session.test_session_graphs import (
    ALL,
    GRAPH,
    A,
    B,
    C,
    D,
    E,
    answer,
    graph_tasks,
    join_anew,
    rows,
    submits,
)

from scaler_client.errors import ObjectNotFoundError
from scaler_client.futures.open_graphs import MAX_RECOVERIES
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_client.session.backlog import TASK_OVERHEAD
from scaler_client.session.session import Session

LOST = Outcome.INPUT_LOST


@pytest.fixture
def client() -> SessionClient:
    return SessionClient()


def lose(session: Session, first: int, *lost: int) -> None:
    session.handle(messages.Resolved([first + row for row in lost], [LOST] * len(lost), [b"lost"] * len(lost)), 1.0)


def test_nodes_that_open_targets_need_are_submitted_again(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    lose(client.session, first, C, E)
    outgoing = client.session.pop_outgoing()
    assert [type(message) for message in outgoing] == [messages.Submit, messages.ForgetObjects], "once for both"
    assert outgoing[1] == messages.ForgetObjects([first + A, first + B, first + C])
    assert not e.done() and not d.done()
    answer(client.session, first, D, value=3)
    lose(client.session, first, E)
    assert rows(client.session, first) == [(A, [], 1), (B, [], 1), (C, [A, B], 1), (E, [C], 0)]
    assert d.result(0) == 3, "what is resolved stays so"
    answer(client.session, first, E, value=6)
    assert e.result(0) == 6 and not client.session.tasks.graphs()


def test_a_lost_node_that_is_no_target_resubmits_nothing(client: SessionClient) -> None:
    client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    lose(client.session, first, A, C)
    assert client.session.pop_outgoing() == []


def test_recoveries_are_limited(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    for _ in range(MAX_RECOVERIES):
        lose(client.session, first, E)
        assert rows(client.session, first) == ALL
    lose(client.session, first, E)
    assert client.session.pop_outgoing() == []
    with pytest.raises(ObjectNotFoundError, match="lost"):
        e.result(0)
    answer(client.session, first, D)
    assert d.result(0) == 5 and not client.session.tasks.graphs()


def test_progress_resets_the_limit_of_recoveries(client: SessionClient) -> None:
    e, _ = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    lose(client.session, first, E)
    for row in (A, B, C):
        for _ in range(MAX_RECOVERIES - 1):
            lose(client.session, first, E)
        answer(client.session, first, row, Outcome.KEPT)
    for _ in range(MAX_RECOVERIES):
        answer(client.session, first, C, Outcome.KEPT)
        lose(client.session, first, E)
    assert not e.done()
    lose(client.session, first, E)
    assert e.done(), "the same node again is no progress"


def end(session: Session, first: int, **outcomes: Outcome) -> None:
    """Answer several rows in one message."""
    ids = [first + "ABCED".index(name) for name in outcomes]
    session.handle(messages.Resolved(ids, list(outcomes.values()), [b""] * len(ids)), 1.0)


CANCELLED = Outcome.CANCELLED


def test_cancelling_an_unneeded_node_is_no_failure(client: SessionClient) -> None:
    """A is lost with its host, so C and E can't run. Then no node needs B, which D does not read here."""
    (e,) = client.submit_graph(GRAPH, ["e"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    end(client.session, first, C=LOST, E=LOST, B=CANCELLED)
    assert rows(client.session, first) == ALL[:4]
    end(client.session, first, B=CANCELLED)  # this answer comes later
    end(client.session, first, C=LOST, E=LOST)
    assert rows(client.session, first) == ALL[:4]
    answer(client.session, first, E, value=6)
    assert e.result(0) == 6


def test_a_cancelled_target_fails_its_readers(client: SessionClient) -> None:
    c, e = client.submit_graph(GRAPH, ["c", "e"])
    first = graph_tasks(client).first
    client.session.cancel([c.task_id], lambda: None)
    client.session.pop_outgoing()
    end(client.session, first, C=CANCELLED)
    end(client.session, first, E=LOST)  # E reached the scheduler too late to wait for C
    assert c.cancelled() and e.cancelled()


def test_one_message_may_break_two_graphs(client: SessionClient) -> None:
    client.submit_graph({"x": (abs, 1), "y": (abs, "x")}, ["y"])
    one = graph_tasks(client).first
    client.submit_graph({"x": (abs, 1), "y": (abs, "x")}, ["y"])
    two = next(graph.first for graph in client.session.tasks.graphs() if graph.first != one)
    client.session.pop_outgoing()
    client.session.handle(messages.Resolved([two + 1, one + 1], [LOST] * 2, [b""] * 2), 1.0)
    ids = [list(batch.ids) for batch in submits(client.session)]
    assert sorted(ids) == sorted([[one, one + 1], [two, two + 1]])


def test_unsent_rows_are_sent_once() -> None:
    session = joined_session(credit=4 * TASK_OVERHEAD)
    client = SessionClient(session)
    client.submit_graph(GRAPH, ["a", "e"])
    first = graph_tasks(client).first
    assert len(submits(session)) == 1
    submit(session, SinkRecorder())
    behind = client.submit_graph({"x": (abs, 1), "y": (abs, "x")}, ["y"])
    lose(session, first, A)
    outgoing = session.pop_outgoing()
    [again] = [message for message in outgoing if isinstance(message, messages.Submit)]
    assert list(again.ids) == [first, first + 1, first + 2, first + 3], "whatever the credit is"
    session.handle(messages.Credit(8 * TASK_OVERHEAD + 1000), 1.0)
    ids = [task_id for batch in submits(session) for task_id in batch.ids]
    assert ids == sorted(set(ids)) and behind[0].task_id in ids


def test_a_cancel_applies_to_resubmitted_tasks(client: SessionClient) -> None:
    (e,) = client.submit_graph(GRAPH, ["e"])
    first = graph_tasks(client).first
    answered = Answered()
    client.session.cancel([e.task_id], answered)
    client.session.pop_outgoing()
    lose(client.session, first, 3)
    outgoing = client.session.pop_outgoing()
    assert answered.times == 0
    assert [type(message) for message in outgoing] == [messages.Submit, messages.Cancel, messages.ForgetObjects]
    client.session.handle(messages.Resolved([e.task_id], [Outcome.CANCELLED], [b""]), 1.0)
    assert answered.times == 1 and e.cancelled()


def test_other_answers_of_the_same_message_count(client: SessionClient) -> None:
    sink = SinkRecorder()
    submit(client.session, sink)
    e, _ = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    answered = Answered()
    client.session.cancel([0], answered)
    values = [dumps(1), b"lost"]
    client.session.handle(messages.Resolved([0, first + E], [Outcome.VALUE, LOST], values), 1.0)
    assert answered.times == 1 and len(sink.told) == 1 and not e.done()


def test_results_lost_while_joining(client: SessionClient) -> None:
    client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    client.session.handle(messages.HelloWanted(), 2.0)
    client.session.pop_outgoing()
    lose(client.session, first, E)
    assert client.session.pop_outgoing() == []
    join_anew(client.session)
    assert rows(client.session, first) == ALL
