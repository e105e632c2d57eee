"""Objects in the client's session: when they are sent, sent again and forgotten, and what they count."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from tests.client.session.stand_ins import (
    HELLO,
    UNLIMITED,
    Chunk,
    SinkRecorder,
    be_silent,
    joined_session,
    new_session,
    resolved,
    said,
    submit,
    welcome,
)

from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import StoredObject, call_with_inputs
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep
from scaler_client.session.backlog import BATCH_ROWS, TASK_OVERHEAD
from scaler_client.session.session import Session


def stored(data: bytes = b"bytes", name: str = "", parent: Any = None) -> StoredObject:
    return StoredObject(name, [data], parent)


def send(session: Session, data: bytes = b"bytes", name: str = "", parent: Any = None) -> StoredObject:
    sent = stored(data, name, parent)
    session.send_object(sent)
    return sent


def an_object(object_id: int, data: bytes = b"bytes", name: str = "") -> messages.Object:
    return messages.Object(object_id, [data], name=name)


def reading(*ids: int, keep: int = Keep.NO) -> SinkRecorder:
    return SinkRecorder(payload=call_with_inputs(b"payload", ids, keep))


def ids_of(outgoing: list[Any]) -> list[Any]:
    """Of objects the id, of submits the list of theirs, of forgotten objects the tuple."""
    found: list[Any] = []
    for message in outgoing:
        if isinstance(message, messages.Object):
            found.append(message.id)
        elif isinstance(message, messages.Submit):
            found.append(list(message.ids))
        elif isinstance(message, messages.ForgetObjects):
            found.append(tuple(message.ids))
    return found


def test_objects_and_tasks_have_one_counter() -> None:
    session = joined_session()
    submit(session, SinkRecorder())
    assert send(session, name="first").id == 1
    submit(session, reading(1))
    outgoing = said(session)
    assert outgoing == [
        messages.Submit([0], [1], [b"payload"]),
        an_object(1, name="first"),
        messages.Submit([2], [1], [b"payload"], None, [1], [1]),
    ]


def test_rows_that_read_and_rows_that_don_t_share_a_batch() -> None:
    session = joined_session()
    send(session), send(session)
    sinks = [SinkRecorder(), reading(1, 0), SinkRecorder(), SinkRecorder(), reading(0), SinkRecorder()]
    for sink in sinks:
        submit(session, sink)
    (_, _, batch) = said(session)
    assert batch.ids == [2, 3, 4, 5, 6, 7]
    assert (batch.inputs, batch.input_counts, batch.keep) == ([1, 0, 0], [0, 2, 0, 0, 1, 0], ())


def test_the_rows_of_a_map_that_read() -> None:
    session = joined_session()
    send(session)
    payloads: list[Any] = [b"a", call_with_inputs(b"b", [0]), b"c"]
    first = Chunk(Function(2, "g", b""), payloads).submit(session)
    _, batch = said(session)
    assert (batch.ids, batch.inputs, batch.input_counts) == ([first, first + 1, first + 2], [0], [0, 1, 0])


def test_inputs_stay_with_their_rows_where_a_batch_is_cut() -> None:
    session = joined_session(credit=0)
    rows = 2 * BATCH_ROWS + 10
    for row in range(rows):
        submit(session, SinkRecorder(payload=call_with_inputs(b"p", [row] * (row % 3))))
    assert said(session) == []
    for dropped in (1, BATCH_ROWS, rows - 1):
        session.cancel([dropped], lambda: None)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    seen = []
    for batch in said(session):
        assert len(batch.ids) <= BATCH_ROWS
        inputs = list(batch.inputs)
        for task_id, count in zip(batch.ids, batch.input_counts):
            mine, inputs = inputs[:count], inputs[count:]
            assert mine == [task_id] * (task_id % 3)
            seen.append(task_id)
        assert not inputs
    assert seen == [row for row in range(rows) if row not in (1, BATCH_ROWS, rows - 1)]


# --------------------------------------------------------------------------------------------------------------- credit


def test_an_object_counts_its_bytes() -> None:
    session = joined_session(credit=1000)
    send(session, bytes(1000 - TASK_OVERHEAD - 1))
    submit(session, SinkRecorder())
    assert ids_of(said(session)) == [0, [1]]
    send(session)
    submit(session, reading(2))
    assert said(session) == []
    session.handle(messages.Credit(1000 + len(b"payload") + TASK_OVERHEAD), 1.0)
    assert ids_of(said(session)) == [2]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert ids_of(said(session)) == [[3]]


def test_a_client_with_any_credit_left_may_send_an_object_of_any_size() -> None:
    session = joined_session(credit=1)
    send(session, bytes(1 << 20))
    assert ids_of(said(session)) == [0]


def test_an_object_that_is_forgotten_while_it_waits_is_not_sent() -> None:
    session = joined_session(credit=1)
    first, waiting, later = send(session), send(session), send(session)
    assert ids_of(said(session)) == [first.id]
    session.objects.forget(waiting)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert ids_of(said(session)) == [later.id]
    session.objects.forget(first)
    session.objects.forget(later)
    session.objects.forget(later)
    assert said(session) == [messages.ForgetObjects([0, 2])]


def test_objects_that_wait_when_tasks_are_given_up_still_go() -> None:
    session = joined_session(credit=1)
    submit(session, SinkRecorder())
    said(session)
    waiting = send(session)
    submit(session, reading(waiting.id))
    be_silent(session, 0.0, 100.0)
    session.handle(messages.Credit(UNLIMITED), 101.0)
    assert ids_of(said(session)) == [waiting.id]


# -------------------------------------------------------------------------------------------------------------- joining


def test_objects_are_sent_again_at_every_join_before_the_tasks() -> None:
    session = new_session()
    said(session)
    submit(session, SinkRecorder())
    kept, gone = send(session, name="kept"), send(session)
    submit(session, reading(kept.id))
    session.objects.forget(gone)
    for incarnation in (5, 5, 6):
        session.handle(welcome(incarnation, credit=1), 1.0)
        batches = said(session)
        assert batches[0] == an_object(1, name="kept")
        if incarnation == 5:
            assert batches[1:] in ([messages.ForgetObjects([2])], [])
        session.handle(messages.Credit(UNLIMITED), 1.0)
        (batch,) = said(session)
        assert (batch.ids, batch.inputs, batch.input_counts) == ([0, 3], [1], [0, 1])
        session.handle(messages.HelloWanted(), 2.0)
        assert said(session) == [replace(HELLO, scheduler=incarnation)]


def test_what_is_forgotten_between_joins_is_said_at_the_next() -> None:
    session = joined_session()
    sent = send(session)
    said(session)
    session.handle(messages.HelloWanted(), 1.0)
    said(session)
    session.objects.forget(sent)
    assert said(session) == []
    session.handle(welcome(), 2.0)
    assert said(session) == [messages.ForgetObjects([0])]


def test_an_object_that_comes_between_joins() -> None:
    session = joined_session()
    session.handle(messages.HelloWanted(), 1.0)
    said(session)
    sent = send(session)
    assert said(session) == []
    session.handle(welcome(), 2.0)
    assert said(session) == [an_object(sent.id)]


def test_many_forgotten_objects_are_said_in_batches() -> None:
    session = joined_session()
    for sent in [send(session) for _ in range(BATCH_ROWS + 1)]:
        session.objects.forget(sent)
    forgotten = [message for message in said(session) if isinstance(message, messages.ForgetObjects)]
    assert [len(message.ids) for message in forgotten] == [BATCH_ROWS, 1]


# --------------------------------------------------------------------------------------------------------------- ending


def test_clear_forgets_all_objects() -> None:
    session = joined_session()
    sent = [send(session), send(session)]
    said(session)
    session.objects.clear()
    assert said(session) == [messages.ForgetObjects([0, 1])]
    assert all(each.is_gone and not each.frames for each in sent)
    session.handle(welcome(6), 1.0)
    assert said(session) == []


def test_clear_of_a_task_forgets_what_it_has_sent() -> None:
    session = joined_session()
    task = (7, 3, 1)
    mine, other = send(session, parent=task), send(session, parent=(7, 4, 1))
    said(session)
    session.objects.clear_sent_by(task)
    assert said(session) == [messages.ForgetObjects([mine.id])]
    assert mine.is_gone and not other.is_gone


@pytest.mark.parametrize("ends", ["closed", "refused"])
def test_objects_end_with_the_client(ends: str) -> None:
    session = joined_session()
    sent = send(session)
    said(session)
    if ends == "closed":
        session.close("over")
    else:
        session.handle(messages.Refused("protocolVersion", "no", 9, "9"), 1.0)
    assert sent.is_gone and len(session.objects) == 0
    late = send(session)
    assert late.is_gone
    session.objects.forget(sent)
    session.objects.forget(late)
    assert not [message for message in said(session) if not isinstance(message, messages.Goodbye)]


def test_an_object_that_was_never_handed_over_is_nobody_s() -> None:
    session = joined_session()
    session.objects.forget(stored())
    assert said(session) == []


# -------------------------------------------------------------------------------------------------------- shutting down


def test_a_scheduler_that_ends() -> None:
    session = joined_session()
    answers: list[str | None] = []
    session.shut_down(answers.append)
    assert said(session) == [messages.Shutdown()] and answers == []
    session.handle(messages.Goodbye("shut down"), 1.0)
    assert answers == [None] and session.scheduler is None


def test_a_scheduler_that_is_protected(caplog: pytest.LogCaptureFixture) -> None:
    session = joined_session()
    answers: list[str | None] = []
    session.shut_down(answers.append)
    with caplog.at_level(logging.ERROR):
        session.handle(messages.Error("submit names function 7"), 1.0)
        assert answers == [] and "function 7" in caplog.text
        caplog.clear()
        session.handle(messages.Error("protected: no"), 1.0)
    assert answers == ["protected: no"] and not caplog.text
    session.handle(messages.Goodbye("later"), 1.0)
    assert answers == ["protected: no"]


def test_the_wish_is_said_again_to_the_same_scheduler() -> None:
    session = joined_session()
    answers: list[str | None] = []
    session.shut_down(answers.append)
    said(session)
    session.handle(messages.HelloWanted(), 1.0)
    said(session)
    session.handle(welcome(5), 1.0)
    assert said(session) == [messages.Shutdown()] and answers == []
    session.handle(welcome(6), 1.0)
    assert said(session) == [] and answers == [None]


@pytest.mark.parametrize("ends", ["lost", "closed", "refused", "was closed"])
def test_nobody_waits_for_a_scheduler_that_is_gone(ends: str) -> None:
    session = joined_session()
    answers: list[str | None] = []
    if ends == "was closed":
        session.close("over")
    session.shut_down(answers.append)
    if ends == "lost":
        be_silent(session, 0.0, 100.0)
    elif ends == "closed":
        session.close("over")
    elif ends == "refused":
        session.handle(messages.Refused("protocolVersion", "no", 9, "9"), 1.0)
    assert answers == [None]
    session.handle(resolved(0), 1.0)


def forgotten(session: Session) -> list[Any]:
    return [each for each in ids_of(said(session)) if isinstance(each, tuple)]


def rejoin(session: Session) -> None:
    session.handle(messages.HelloWanted(), 0.0)
    said(session)
    session.handle(welcome(), 0.0)


def test_what_was_forgotten_is_told_again_after_a_lost_connection() -> None:
    session = joined_session()
    first, second = send(session), send(session)
    session.objects.forget(first)
    assert forgotten(session) == [(0,)]
    rejoin(session)
    session.objects.forget(second)
    assert forgotten(session) == [(0, 1)]
    session.reconnected(1.0)
    (beat,) = said(session)
    rejoin(session)
    assert forgotten(session) == [(0, 1)], "the heartbeat behind it had no answer"
    session.handle(messages.HeartbeatEcho(beat.sequence), 1.0)
    session.reconnected(2.0)
    (beat,) = said(session)
    session.handle(messages.HeartbeatEcho(beat.sequence), 2.0)
    rejoin(session)
    assert forgotten(session) == []
