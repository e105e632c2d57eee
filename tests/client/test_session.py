"""The client's session: messages in, messages out, no socket and no clock."""

from __future__ import annotations

import pytest
from tests.client.session_stand_ins import (
    HELLO,
    Answered,
    Chunk,
    Owner,
    joined_session,
    new_session,
    resolved,
    sent,
    submit,
    welcome,
)

from scaler_client import messages
from scaler_client.functions import Function
from scaler_client.messages import Outcome
from scaler_client.session import BATCH_BYTES, BATCH_ROWS, CHUNK_ROWS, Session, State


@pytest.fixture
def session() -> Session:
    return joined_session()


# -------------------------------------------------------------------------------------------------------------- joining


def test_hello_comes_first_and_tasks_only_after_the_welcome() -> None:
    session, owner = new_session(), Owner()
    submit(session, owner)
    assert sent(session) == [HELLO]
    session.handle(welcome(), 0.1)
    assert session.state is State.JOINED
    assert sent(session) == [
        messages.Function(1, "f", "cloudpickle", b"code"),
        messages.Submit([0], [1], [b"payload"]),
    ]


def test_ids_count_on(session: Session) -> None:
    function = Function(1, "f", b"code")
    owners = [Owner(function) for _ in range(3)]
    assert [submit(session, owner) for owner in owners[:2]] == [0, 1]
    chunk = Chunk(function, [b"a", b"b", b"c"])
    assert chunk.submit(session) == CHUNK_ROWS
    assert submit(session, owners[0]) == CHUNK_ROWS + 3
    assert sent(session)[1:] == [
        messages.Submit([0, 1], [1, 1], [b"payload"] * 2),
        messages.Submit([CHUNK_ROWS, CHUNK_ROWS + 1, CHUNK_ROWS + 2], [1], [b"a", b"b", b"c"]),
        messages.Submit([CHUNK_ROWS + 3], [1], [b"payload"]),
    ]


def test_a_function_goes_once(session: Session) -> None:
    one, other = Owner(Function(1, "f", b"code")), Owner(Function(2, "g", b"more"))
    submit(session, one)
    submit(session, other)
    submit(session, one)
    out = sent(session)
    assert {message.number for message in out[:2]} == {1, 2}
    assert out[2].functions == [1, 2, 1]
    submit(session, one)
    assert sent(session) == [messages.Submit([3], [1], [b"payload"])]


def test_answers_reach_their_owners(session: Session) -> None:
    owners = [Owner() for _ in range(3)]
    ids = [submit(session, owner) for owner in owners]
    session.handle(messages.Started([ids[1]]), 1.0)
    session.handle(messages.Resolved([2, 0], [Outcome.VALUE, Outcome.EXCEPTION], [b"v", b"e"]), 1.0)
    assert [owner.told for owner in owners] == [[(0, Outcome.EXCEPTION, b"e")], ["started"], [(2, Outcome.VALUE, b"v")]]
    assert list(session.pending) == [1]


def test_answers_to_nobody_are_dropped(session: Session) -> None:
    owner = Owner()
    submit(session, owner)
    session.handle(resolved(0, 7), 1.0)
    session.handle(resolved(0), 1.0)
    session.handle(messages.Started([0, 9]), 1.0)
    session.handle(messages.CancelRefused([0, 9]), 1.0)
    assert owner.told == [(0, Outcome.VALUE, b"answer")]


# -------------------------------------------------------------------------------------------------------------- batches


def test_batches_are_cut_by_rows(session: Session) -> None:
    function = Function(1, "f", b"")
    for _ in range(2 * BATCH_ROWS + 5):
        session.submit(Owner(), function, b"x")
    batches = sent(session)[1:]
    assert [len(batch.ids) for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert [task_id for batch in batches for task_id in batch.ids] == list(range(2 * BATCH_ROWS + 5))


def test_batches_are_cut_by_bytes(session: Session) -> None:
    half = bytes(BATCH_BYTES // 2)
    payloads = [half, half, b"small", bytes(BATCH_BYTES), b"1", b"2"]
    chunk = Chunk(Function(1, "f", b""), payloads)
    chunk.submit(session)
    batches = sent(session)[1:]
    assert [list(batch.payloads) for batch in batches] == [[half, half], [b"small", payloads[3]], [b"1", b"2"]]
    assert [batch.ids for batch in batches] == [[0, 1], [2, 3], [4, 5]]


# --------------------------------------------------------------------------------------------------------------- cancel


def test_a_cancel_that_is_granted(session: Session) -> None:
    owner, answered = Owner(), Answered()
    task_id = submit(session, owner)
    session.cancel([task_id], answered)
    assert sent(session)[1:] == [messages.Submit([0], [1], [b"payload"]), messages.Cancel([0])]
    assert answered.times == 0
    session.handle(resolved(0, outcome=Outcome.CANCELLED), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"answer")])


def test_a_cancel_that_is_refused(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (answered.times, owner.told) == (1, [])
    session.handle(resolved(0), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_a_cancel_that_crosses_the_result(session: Session) -> None:
    owner, answered = Owner(), Answered()
    submit(session, owner)
    session.cancel([0], answered)
    session.handle(resolved(0), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.VALUE, b"answer")])


def test_two_threads_cancel_the_same_task(session: Session) -> None:
    first, second = Answered(), Answered()
    submit(session, Owner())
    session.cancel([0], first)
    session.cancel([0], second)
    session.handle(messages.CancelRefused([0]), 1.0)
    session.handle(messages.CancelRefused([0]), 1.0)
    assert (first.times, second.times) == (1, 1)


def test_cancel_of_what_is_over_asks_nothing(session: Session) -> None:
    submit(session, Owner())
    session.handle(resolved(0), 1.0)
    session.take_outgoing()
    session.cancel([0], Answered())
    assert session.take_outgoing() == []


def test_cancel_before_the_welcome() -> None:
    session, owner, other, answered = new_session(), Owner(), Owner(), Answered()
    submit(session, owner)
    submit(session, other)
    session.cancel([0], answered)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"")])
    session.handle(welcome(), 1.0)
    assert sent(session)[-1] == messages.Submit([1], [1], [b"payload"])


def test_a_cancel_on_its_way_when_the_scheduler_was_started_anew(session: Session) -> None:
    owner, other, answered = Owner(), Owner(), Answered()
    submit(session, owner)
    submit(session, other)
    session.cancel([0], answered)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    assert (answered.times, owner.told) == (1, [(0, Outcome.CANCELLED, b"")])
    assert sent(session)[-1] == messages.Submit([1], [1], [b"payload"])
