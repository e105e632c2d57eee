"""Cancels: those that the client's session requests from the scheduler, and those that it does locally."""

from __future__ import annotations

import pytest
from tests.client.session.stand_ins import (
    AGAIN,
    Answered,
    MapRows,
    SinkRecorder,
    joined_session,
    new_session,
    resolved,
    sent,
    sent_without_functions,
    submit,
    welcome,
)

from scaler_client.pickling.functions import Function
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_client.session.backlog import BATCH_ROWS, TASK_OVERHEAD
from scaler_client.session.session import Session


@pytest.fixture
def session() -> Session:
    return joined_session()


def test_a_granted_cancel(session: Session) -> None:
    sink, answered = SinkRecorder(), Answered()
    task_id = submit(session, sink)
    sent(session)
    session.cancel([task_id], answered)
    assert sent(session) == [messages.Cancel([0])]
    assert answered.times == 0
    session.handle(resolved(0, outcome=Outcome.CANCELLED), 1.0)
    assert (answered.times, sink.told) == (1, [(0, Outcome.CANCELLED, b"answer")])


def test_many_cancels_are_split_into_messages_of_limited_length(session: Session) -> None:
    ids = [submit(session, SinkRecorder()) for _ in range(BATCH_ROWS + 1)]
    sent(session)
    session.cancel(ids, Answered(), force=True)
    assert sent(session) == [messages.Cancel(ids[:BATCH_ROWS], True), messages.Cancel(ids[BATCH_ROWS:], True)]


def test_a_refused_cancel(session: Session) -> None:
    sink, answered = SinkRecorder(), Answered()
    submit(session, sink)
    sent(session)
    session.cancel([0], answered)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (answered.times, sink.told) == (1, [])
    session.handle(resolved(0), 1.0)
    assert (answered.times, sink.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_a_cancel_that_crosses_the_result_is_answered_by_it(session: Session) -> None:
    sink, answered = SinkRecorder(), Answered()
    submit(session, sink)
    sent(session)
    session.cancel([0], answered)
    session.handle(resolved(0), 1.0)
    assert (answered.times, sink.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_two_threads_cancel_the_same_task(session: Session) -> None:
    first, second = Answered(), Answered()
    submit(session, SinkRecorder())
    sent(session)
    session.cancel([0], first)
    session.cancel([0], second)
    session.handle(messages.CancelRefused([0]), 1.0)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (first.times, second.times) == (1, 1)


def test_the_cancel_of_a_finished_task_sends_nothing(session: Session) -> None:
    submit(session, SinkRecorder())
    session.handle(resolved(0), 1.0)
    session.pop_outgoing()
    session.cancel([0], Answered())
    assert session.pop_outgoing() == []


def test_cancel_before_the_welcome() -> None:
    session, sink, other, answered = new_session(), SinkRecorder(), SinkRecorder(), Answered()
    submit(session, sink)
    submit(session, other)
    session.cancel([0], answered)
    assert (answered.times, sink.told) == (1, [(0, Outcome.CANCELLED, b"")])
    session.handle(welcome(), 1.0)
    assert sent(session)[-1] == messages.Submit([1], [1], [b"payload"])


def test_a_cancel_without_an_answer_is_sent_again_after_a_lost_connection(session: Session) -> None:
    sinks, answered, forced = [SinkRecorder() for _ in range(3)], Answered(), Answered()
    for sink in sinks:
        submit(session, sink)
    sent(session)
    session.cancel([0], answered)
    session.cancel([1], forced, force=True)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    assert sent_without_functions(session) == [
        AGAIN,
        messages.Submit([0, 1, 2], [1, 1, 1], [b"payload"] * 3),
        messages.Cancel([0]),
        messages.Cancel([1], True),
    ]
    assert (answered.times, forced.times) == (0, 0)
    session.handle(messages.CancelRefused([0]), 1.0)
    session.handle(resolved(1, outcome=Outcome.CANCELLED), 1.0)
    assert (answered.times, forced.times) == (1, 1)


def test_a_cancel_without_a_scheduler_is_sent_to_the_next_one(session: Session) -> None:
    sink, waiting, new, answered = SinkRecorder(), SinkRecorder(), SinkRecorder(), Answered()
    submit(session, sink)
    submit(session, waiting)
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    submit(session, new)
    session.cancel([0, 2], answered, force=True)
    assert answered.times == 2
    assert sink.told == [(0, Outcome.CANCELLED, b"")] and new.told == [(2, Outcome.CANCELLED, b"")]
    session.handle(welcome(incarnation=6), 1.0)
    # It may still run the sent task. The cancel of the unsent task needs no message.
    assert sent_without_functions(session) == [
        AGAIN,
        messages.Submit([1], [1], [b"payload"]),
        messages.Cancel([0], True),
    ]
    session.handle(resolved(0, outcome=Outcome.CANCELLED), 1.0)
    assert answered.times == 2


def test_a_cancel_right_after_submit_is_never_sent(session: Session) -> None:
    sinks, answered = [SinkRecorder() for _ in range(3)], Answered()
    for sink in sinks:
        submit(session, sink)
    session.cancel([1], answered)
    assert (answered.times, sinks[1].told) == (1, [(1, Outcome.CANCELLED, b"")])
    assert sent_without_functions(session) == [messages.Submit([0, 2], [1, 1], [b"payload"] * 2)]


def test_a_forced_cancel_outlives_the_refusal_of_another(session: Session) -> None:
    sink, plain, forced = SinkRecorder(), Answered(), Answered()
    submit(session, sink)
    sent(session)
    session.cancel([0], plain)
    session.cancel([0], forced, force=True)
    assert sent(session) == [messages.Cancel([0]), messages.Cancel([0], True)]
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (plain.times, forced.times) == (0, 0)
    session.handle(resolved(0, outcome=Outcome.CANCELLED), 1.0)
    assert (plain.times, forced.times) == (1, 1)


def test_a_task_in_the_backlog_is_cancelled_locally() -> None:
    session, answered = joined_session(credit=1), Answered()
    sinks = [SinkRecorder() for _ in range(3)]
    submit(session, sinks[0])
    assert sent(session)[-1].ids == [0]
    rows = MapRows(Function(1, "f", b""), [b"a", b"b", b"c"])
    first = rows.submit(session)
    for sink in sinks[1:]:
        submit(session, sink)
    single = first + 3
    session.cancel([0, first, first + 2, single], answered)
    assert sent_without_functions(session) == [messages.Cancel([0])]
    assert answered.times == 3
    assert sinks[1].told == [(single, Outcome.CANCELLED, b"")]
    assert [task_id for task_id, _, _ in rows.told] == [first, first + 2]
    session.handle(messages.Credit(1 << 20), 1.0)
    assert sent(session) == [
        messages.Submit([first + 1, single + 1], [1, 1], [b"b", b"payload"]),
    ]


def test_cancelled_tasks_use_no_credit() -> None:
    session = joined_session(credit=1)
    for payload in (b"first", bytes(5000), b"small", b"last"):
        submit(session, SinkRecorder(payload=payload))
        sent(session)
        session.suspend((1, 1, 1))  # closes the batch
    session.cancel([1], Answered())
    session.handle(messages.Credit(3 * TASK_OVERHEAD), 1.0)
    ids = [message.ids for message in sent(session) if isinstance(message, messages.Submit)]
    assert ids == [[2], [3]]


def test_the_cancel_of_a_waiting_task_that_an_earlier_scheduler_got(session: Session) -> None:
    answered = Answered()
    submit(session, SinkRecorder())
    submit(session, SinkRecorder(options=messages.Options(priority=1)))
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(credit=1), 1.0)  # enough for the first batch
    assert sent_without_functions(session)[-1].ids == [0]
    session.cancel([1], answered)
    assert answered.times == 1
    assert sent(session) == [messages.Cancel([1])], "it may be the same scheduler, and run it"


def test_a_cancelled_backlog_keeps_no_payloads() -> None:
    """Payloads go when half of the rows are cancelled, so the cost is linear in the number of rows."""
    session, rows = joined_session(credit=1), 40_000
    submit(session, SinkRecorder())
    sent(session)
    function, sink = Function(1, "f", b""), SinkRecorder()
    for _ in range(rows):
        session.submit(sink, function, b"x")
    sent(session)
    for task_id in range(1, rows + 1):
        session.cancel([task_id], Answered())
    assert sum(len(entry.waiting[0].ids) for entry in session._batch.backlog._waiting._entries) < rows // 4
    session.handle(messages.Credit(1 << 30), 1.0)
    assert sent(session) == []


def test_closing_answers_every_cancel(session: Session) -> None:
    submit(session, SinkRecorder())
    sent(session)
    answered = Answered()
    session.cancel([0], answered)
    session.close("enough")
    assert answered.times == 1
