"""Graphs in the client's session: submission, forgotten results, cancels, resubmission, the end."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import pytest
from tests.client.graph_stand_ins import SessionClient
from tests.client.session.stand_ins import UNLIMITED, Answered, SinkRecorder, be_silent, joined_session, submit, welcome

from scaler_client.api.task_options import TaskOptions
from scaler_client.errors import ClientClosedError, SchedulerLostError
from scaler_client.futures.future import TaskFuture
from scaler_client.futures.open_graphs import GraphTasks
from scaler_client.pickling.serializer import dumps
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Outcome
from scaler_client.session.backlog import BATCH_ROWS, TASK_OVERHEAD
from scaler_client.session.session import Session


def inc(x: int) -> int:
    return x + 1


def add(*args: int) -> int:
    return sum(args)


# Rows in the order of submission, for the targets e and d: a, b, c, e, d.
GRAPH = {"a": (inc, 1), "b": (inc, 2), "c": (add, "a", "b"), "d": (inc, "b"), "e": (inc, "c"), "f": (inc, "c")}
A, B, C, E, D = range(5)


@pytest.fixture
def client() -> SessionClient:
    return SessionClient()


def submits(session: Session) -> list[messages.Submit]:
    return [message for message in session.pop_outgoing() if isinstance(message, messages.Submit)]


def rows(session: Session, first: int) -> list[tuple[int, list[int], int]]:
    """Return the submitted rows: number, rows that it reads, `keep`."""
    found = []
    for batch in submits(session):
        inputs = list(batch.inputs)
        for place, task_id in enumerate(batch.ids):
            count = batch.input_counts[place] if batch.input_counts else 0
            keep = batch.keep[place] if batch.keep else Keep.NO
            found.append((task_id - first, [each - first for each in inputs[:count]], keep))
            inputs = inputs[count:]
    return found


def graph_tasks(client: SessionClient) -> GraphTasks:
    (tasks,) = client.session.tasks.graphs()
    assert isinstance(tasks, GraphTasks)
    return tasks


def answer(session: Session, first: int, row: int, outcome: int = Outcome.VALUE, value: Any = 5) -> None:
    payload = dumps(value) if outcome == Outcome.VALUE else b""
    session.handle(messages.Resolved([first + row], [outcome], [payload]), 1.0)


ALL = [(A, [], 1), (B, [], 1), (C, [A, B], 1), (E, [C], 0), (D, [B], 0)]


def test_a_graph_is_submitted_in_order(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    assert (e.task_id, d.task_id) == (first + E, first + D)
    outgoing = client.session.pop_outgoing()
    assert [type(message) for message in outgoing] == [
        messages.Function,
        messages.Function,
        messages.Submit,
        messages.ForgetObjects,
    ]
    assert outgoing[-1] == messages.ForgetObjects([first + A, first + B, first + C])
    assert client.session.tasks.count() == 2


def test_targets_that_other_nodes_read_are_forgotten_too(client: SessionClient) -> None:
    client.submit_graph(GRAPH, ["c", "e"])
    first = graph_tasks(client).first
    assert client.session.pop_outgoing()[-1] == messages.ForgetObjects([first, first + 1, first + 2])


def test_answers(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    for row in (A, B, C):
        answer(client.session, first, row, Outcome.KEPT)
    assert not e.done() and not d.done()
    client.session.handle(messages.Started([first + D, first + A, first + E]), 1.0)
    assert d.running() and e.running()
    answer(client.session, first, D, value=3)
    assert d.result(0) == 3 and client.session.tasks.graphs()
    answer(client.session, first, E, value=6)
    assert e.result(0) == 6 and not client.session.tasks.graphs()
    answer(client.session, first, E, value=7)
    assert e.result(0) == 6


def test_tasks_around_a_graph_have_other_ids(client: SessionClient) -> None:
    before, behind = SinkRecorder(), SinkRecorder()
    submit(client.session, before)
    (e,) = client.submit_graph(GRAPH, ["e"])
    submit(client.session, behind)
    ids = [list(batch.ids) for batch in submits(client.session)]
    assert sum(ids, []) == sorted(sum(ids, []))
    answered = Answered()
    client.session.cancel([ids[-1][-1]], answered)
    client.session.handle(messages.Resolved([ids[-1][-1]], [Outcome.CANCELLED], [b""]), 1.0)
    assert len(behind.told) == 1 and answered.times == 1 and not e.done()


def test_measurements() -> None:
    client = SessionClient(options=TaskOptions(profiling=True))
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    ids = [first + row for row in (A, D, E)]
    outcomes = [Outcome.KEPT, Outcome.VALUE, Outcome.VALUE]
    costs = [5000, 6000, 7000], [1000, 2000, 3000], [100, 200, 300]
    client.session.handle(messages.Resolved(ids, outcomes, [b"", dumps(1), dumps(2)], *costs), 1.0)
    assert (d.profiling_info().duration_us, e.profiling_info().peak_memory) == (6, 300)


# ------------------------------------------------------------------------------------------------------- without credit


def test_the_backlog_keeps_inputs_and_forgotten_ids_in_order() -> None:
    session = joined_session(credit=BATCH_ROWS * TASK_OVERHEAD)
    client = SessionClient(session)
    count = 2 * BATCH_ROWS
    graph: dict[str, Any] = {f"k{number}": (inc, f"k{number - 1}") for number in range(1, count)}
    client.submit_graph({**graph, "k0": (inc, 0)}, [f"k{count - 1}"])
    other = SinkRecorder()
    submit(session, other)
    first = graph_tasks(client).first
    sent_rows = rows(session, first)
    assert sent_rows == [(row, [row - 1] if row else [], Keep.YES) for row in range(len(sent_rows))]
    assert 0 < len(sent_rows) < BATCH_ROWS
    assert session.pop_outgoing() == []
    session.handle(messages.Credit(UNLIMITED), 1.0)
    outgoing = session.pop_outgoing()
    kinds = [type(message) for message in outgoing]
    assert kinds == [messages.Submit] * 3 + [messages.ForgetObjects] * 2
    given_up = [
        task_id for message in outgoing if isinstance(message, messages.ForgetObjects) for task_id in message.ids
    ]
    assert given_up == list(range(first, first + count - 1))


def test_forgotten_ids_wait_for_their_graph_only() -> None:
    session = joined_session(credit=1)
    client = SessionClient(session)
    submit(session, SinkRecorder())
    assert len(submits(session)) == 1
    client.submit_graph(GRAPH, ["e"])
    submit(session, SinkRecorder())
    session.suspend((1, 1, 1))  # closes the batch
    assert not submits(session)
    first = graph_tasks(client).first
    session.handle(messages.Credit(3 * TASK_OVERHEAD), 1.0)
    outgoing = session.pop_outgoing()
    assert [list(message.ids) for message in outgoing] == [[first, first + 1]], "all readers are sent before a forget"
    session.handle(messages.Credit(5 * TASK_OVERHEAD), 1.0)
    outgoing = session.pop_outgoing()
    assert [list(message.ids) for message in outgoing if isinstance(message, messages.Submit)] == [
        [first + 2, first + 3]
    ]
    assert outgoing[-1] == messages.ForgetObjects([first, first + 1, first + 2])


# ---------------------------------------------------------------------------------------------------------------- again


def join_anew(session: Session, incarnation: int = 6) -> None:
    session.handle(messages.HelloWanted(), 2.0)
    session.pop_outgoing()
    session.handle(welcome(incarnation), 2.0)


def test_everything_that_open_targets_need_is_submitted_again(client: SessionClient) -> None:
    client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    assert rows(client.session, first) == ALL
    join_anew(client.session)
    assert rows(client.session, first) == ALL
    for row in (A, B, C):
        answer(client.session, first, row, Outcome.KEPT)
    join_anew(client.session, 7)
    outgoing = client.session.pop_outgoing()
    assert outgoing[-1] == messages.ForgetObjects([first, first + 1, first + 2])
    answer(client.session, first, E)
    join_anew(client.session, 8)
    assert rows(client.session, first) == [(B, [], 1), (D, [B], 0)]
    answer(client.session, first, D)
    join_anew(client.session, 9)
    assert client.session.pop_outgoing() == []


def test_options_and_objects_are_sent_again_too() -> None:
    client = SessionClient(options=TaskOptions(priority=2))
    ref = client.send_object([1])
    client.submit_graph({"a": (sum, ref), "b": (add, "a", 1)}, ["b"])
    first = graph_tasks(client).first
    client.session.pop_outgoing()
    join_anew(client.session)
    outgoing = client.session.pop_outgoing()
    assert [type(message) for message in outgoing] == [
        messages.Object,
        messages.Function,
        messages.Function,
        messages.Submit,
        messages.ForgetObjects,
    ]
    batch = outgoing[3]
    assert isinstance(batch, messages.Submit) and batch.options is not None
    assert replace(batch.options, graph=0, keys="") == messages.Options(priority=2)
    assert (list(batch.ids), batch.inputs) == ([first, first + 1], [ref.object_id, first])


def test_a_graph_that_is_submitted_before_the_join() -> None:
    session = joined_session()
    client = SessionClient(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.pop_outgoing()
    client.submit_graph(GRAPH, ["e", "d"])
    assert session.pop_outgoing() == []
    session.handle(welcome(), 1.0)
    assert rows(session, graph_tasks(client).first) == ALL


# --------------------------------------------------------------------------------------------------------------- cancel


def cancel(client: SessionClient, future: TaskFuture[Any]) -> Answered:
    answered = Answered()
    client.session.cancel([future.task_id], answered)
    return answered


def test_the_cancel_of_a_target_sends_its_id(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    client.session.pop_outgoing()
    answered = cancel(client, e)
    assert client.session.pop_outgoing() == [messages.Cancel([e.task_id])] and answered.times == 0
    first = graph_tasks(client).first
    client.session.handle(messages.Resolved([first + C, e.task_id], [Outcome.CANCELLED] * 2, [b"", b""]), 1.0)
    assert answered.times == 1 and e.cancelled() and not d.done()


def without_credit() -> SessionClient:
    session = joined_session(credit=1)
    submit(session, SinkRecorder())
    session.pop_outgoing()
    return SessionClient(session)


@pytest.mark.parametrize(
    ("keys", "cancelled", "left", "over"),
    [
        (["e", "d"], "e", [(B, [], 1), (D, [B], 0)], ["e"]),
        (["e", "d"], "d", [(A, [], 1), (B, [], 1), (C, [A, B], 1), (E, [C], 0)], ["d"]),
        (["c", "e", "d"], "c", [(B, [], 1), (D, [B], 0)], ["c", "e"]),
        (["c", "e"], "e", [(0, [], 1), (1, [], 1), (2, [0, 1], 2)], ["e"]),
        (["e"], "e", [], ["e"]),
    ],
)
def test_an_unsent_target_is_cancelled_with_the_nodes_that_only_it_needs(
    keys: list[str], cancelled: str, left: Any, over: list[str]
) -> None:
    client = without_credit()
    futures = dict(zip(keys, client.submit_graph(GRAPH, keys)))
    first = graph_tasks(client).first
    answered = cancel(client, futures[cancelled])
    assert answered.times == 1
    assert [key for key, future in futures.items() if future.cancelled()] == over
    client.session.handle(messages.Credit(UNLIMITED), 1.0)
    assert rows(client.session, first) == left


def test_a_target_that_waits_for_credit_is_cancelled_with_its_inputs_that_were_sent() -> None:
    session = joined_session(credit=TASK_OVERHEAD + 100)
    client = SessionClient(session)
    (e,) = client.submit_graph(GRAPH, ["e"])
    first = graph_tasks(client).first
    [batch] = submits(session)
    assert list(batch.ids) == [first, first + 1]
    answered = cancel(client, e)
    cancels = [message for message in session.pop_outgoing() if isinstance(message, messages.Cancel)]
    assert cancels == [messages.Cancel([first, first + 1], False)]
    session.handle(messages.Resolved([first, first + 1], [Outcome.CANCELLED] * 2, [b"", b""]), 1.0)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    outgoing = session.pop_outgoing()
    assert outgoing == [messages.ForgetObjects([first, first + 1, first + 2])]
    assert answered.times == 1 and e.cancelled()


def test_cancelling_target_after_target(client: SessionClient) -> None:
    client = without_credit()
    e, d, f = client.submit_graph(GRAPH, ["e", "d", "f"])
    first = graph_tasks(client).first
    cancel(client, e)
    cancel(client, d)
    client.session.handle(messages.Credit(UNLIMITED), 1.0)
    assert rows(client.session, first) == [(A, [], 1), (B, [], 1), (C, [A, B], 1), (5, [C], 0)]
    assert not f.done()


def test_inputs_of_finished_targets_are_not_needed(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    first = graph_tasks(client).first
    submits(client.session)
    answer(client.session, first, D)
    client.session.handle(messages.HelloWanted(), 2.0)
    client.session.handle(welcome(credit=0), 2.0)
    client.session.pop_outgoing()
    assert cancel(client, e).times == 1 and e.cancelled()
    client.session.handle(messages.Credit(UNLIMITED), 3.0)
    assert rows(client.session, first) == []


def test_clear_cancels_only_targets(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    assert client.session.tasks.ids() == [e.task_id, d.task_id]


# --------------------------------------------------------------------------------------------------------------- ending


def test_closing_the_client_cancels_the_targets(client: SessionClient) -> None:
    e, _ = client.submit_graph(GRAPH, ["e", "a"])
    client.session.close("over")
    with pytest.raises(CancelledError):
        e.result(0)
    late, literal = client.submit_graph({**GRAPH, "l": 5}, ["e", "l"])
    assert type(late.exception(0)) is ClientClosedError and literal.result(0) == 5
    assert not client.session.tasks.graphs()


def test_a_lost_scheduler_fails_the_targets(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    client.session.pop_outgoing()
    be_silent(client.session, 0.0, 100.0)
    assert type(e.exception(0)) is type(d.exception(0)) is SchedulerLostError
    assert not client.session.tasks.graphs()
    client.session.handle(welcome(6), 1001.0)
    assert not submits(client.session)


def test_the_first_failure_wakes_the_waiting_caller(client: SessionClient) -> None:
    e, d = client.submit_graph(GRAPH, ["e", "d"])
    tasks = graph_tasks(client)
    news: list[Any] = []
    tasks.on_change = lambda: news.append(tasks.failed)
    answer(client.session, tasks.first, C, Outcome.KEPT)
    assert news == []
    answer(client.session, tasks.first, D, Outcome.WORKER_DIED)
    answer(client.session, tasks.first, E)
    assert news == [d, d] and tasks.failed is d and e.result(0) == 5
