"""Objects in the client's session: sending, credit, joins, forgetting; requests to shut down."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.client.session.stand_ins import (
    HELLO,
    UNLIMITED,
    MapRows,
    SinkRecorder,
    be_silent,
    joined_session,
    new_session,
    resolved,
    sent_without_functions,
    submit,
    welcome,
)

from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import CallWithInputs, StoredObject
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep
from scaler_client.session.backlog import BATCH_ROWS, TASK_OVERHEAD, Backlog
from scaler_client.session.held_objects import HeldObjects
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
    return SinkRecorder(payload=CallWithInputs(b"payload", ids, keep))


def ids_of(outgoing: list[Any]) -> list[Any]:
    """Return ids: a number for an object, a list for a submit, a tuple for forgotten objects."""
    found: list[Any] = []
    for message in outgoing:
        if isinstance(message, messages.Object):
            found.append(message.id)
        elif isinstance(message, messages.Submit):
            found.append(list(message.ids))
        elif isinstance(message, messages.ForgetObjects):
            found.append(tuple(message.ids))
    return found


def test_objects_and_tasks_share_a_counter() -> None:
    session = joined_session()
    submit(session, SinkRecorder())
    assert send(session, name="first").id == 1
    submit(session, reading(1))
    outgoing = sent_without_functions(session)
    assert outgoing == [
        messages.Submit([0], [1], [b"payload"]),
        an_object(1, name="first"),
        messages.Submit([2], [1], [b"payload"], None, [1], [1]),
    ]


def test_rows_with_and_without_inputs_share_a_batch() -> None:
    session = joined_session()
    send(session), send(session)
    sinks = [SinkRecorder(), reading(1, 0), SinkRecorder(), SinkRecorder(), reading(0), SinkRecorder()]
    for sink in sinks:
        submit(session, sink)
    (_, _, batch) = sent_without_functions(session)
    assert batch.ids == [2, 3, 4, 5, 6, 7]
    assert (batch.inputs, batch.input_counts, batch.keep) == ([1, 0, 0], [0, 2, 0, 0, 1, 0], ())


def test_rows_of_a_map_may_have_inputs() -> None:
    session = joined_session()
    send(session)
    payloads: list[Any] = [b"a", CallWithInputs(b"b", [0]), b"c"]
    first = MapRows(Function(2, "g", b""), payloads).submit(session)
    _, batch = sent_without_functions(session)
    assert (batch.ids, batch.inputs, batch.input_counts) == ([first, first + 1, first + 2], [0], [0, 1, 0])


def test_inputs_stay_with_their_rows_when_a_batch_is_split() -> None:
    session = joined_session(credit=0)
    rows = 2 * BATCH_ROWS + 10
    for row in range(rows):
        submit(session, SinkRecorder(payload=CallWithInputs(b"p", [row] * (row % 3))))
    assert sent_without_functions(session) == []
    for dropped in (1, BATCH_ROWS, rows - 1):
        session.cancel([dropped], lambda: None)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    seen = []
    for batch in sent_without_functions(session):
        assert len(batch.ids) <= BATCH_ROWS
        inputs = list(batch.inputs)
        for task_id, count in zip(batch.ids, batch.input_counts):
            mine, inputs = inputs[:count], inputs[count:]
            assert mine == [task_id] * (task_id % 3)
            seen.append(task_id)
        assert not inputs
    assert seen == [row for row in range(rows) if row not in (1, BATCH_ROWS, rows - 1)]


# --------------------------------------------------------------------------------------------------------------- credit


def test_an_object_uses_credit() -> None:
    session = joined_session(credit=1000)
    send(session, bytes(1000 - TASK_OVERHEAD - 1))
    submit(session, SinkRecorder())
    assert ids_of(sent_without_functions(session)) == [0, [1]]
    send(session)
    submit(session, reading(2))
    assert sent_without_functions(session) == []
    session.handle(messages.Credit(1000 + len(b"payload") + TASK_OVERHEAD), 1.0)
    assert ids_of(sent_without_functions(session)) == [2]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert ids_of(sent_without_functions(session)) == [[3]]


def test_any_credit_allows_an_object_of_any_size() -> None:
    session = joined_session(credit=1)
    send(session, bytes(1 << 20))
    assert ids_of(sent_without_functions(session)) == [0]


def test_an_object_that_is_forgotten_while_it_waits_is_not_sent() -> None:
    session = joined_session(credit=1)
    first, waiting, later = send(session), send(session), send(session)
    assert ids_of(sent_without_functions(session)) == [first.id]
    session.objects.forget(waiting)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert ids_of(sent_without_functions(session)) == [later.id]
    session.objects.forget(first)
    session.objects.forget(later)
    session.objects.forget(later)
    assert sent_without_functions(session) == [messages.ForgetObjects([0, 2])]


def test_waiting_objects_are_sent_even_if_the_tasks_were_given_up() -> None:
    session = joined_session(credit=1)
    submit(session, SinkRecorder())
    sent_without_functions(session)
    waiting = send(session)
    submit(session, reading(waiting.id))
    be_silent(session, 0.0, 100.0)
    session.handle(messages.Credit(UNLIMITED), 101.0)
    assert ids_of(sent_without_functions(session)) == [waiting.id]


# -------------------------------------------------------------------------------------------------------------- joining


def test_objects_are_sent_again_at_every_join_before_the_tasks() -> None:
    session = new_session()
    sent_without_functions(session)
    submit(session, SinkRecorder())
    kept, gone = send(session, name="kept"), send(session)
    submit(session, reading(kept.id))
    session.objects.forget(gone)
    for incarnation in (5, 5, 6):
        session.handle(welcome(incarnation, credit=1), 1.0)
        batches = sent_without_functions(session)
        assert batches[0] == an_object(1, name="kept")
        if incarnation == 5:
            assert batches[1:] in ([messages.ForgetObjects([2])], [])
        session.handle(messages.Credit(UNLIMITED), 1.0)
        (batch,) = sent_without_functions(session)
        assert (batch.ids, batch.inputs, batch.input_counts) == ([0, 3], [1], [0, 1])
        session.handle(messages.HelloWanted(), 2.0)
        assert sent_without_functions(session) == [replace(HELLO, scheduler=incarnation)]


def test_objects_forgotten_between_joins_are_reported_at_the_next_join() -> None:
    session = joined_session()
    sent = send(session)
    sent_without_functions(session)
    session.handle(messages.HelloWanted(), 1.0)
    sent_without_functions(session)
    session.objects.forget(sent)
    assert sent_without_functions(session) == []
    session.handle(welcome(), 2.0)
    assert sent_without_functions(session) == [messages.ForgetObjects([0])]


def test_an_object_sent_between_joins_goes_out_at_the_next_join() -> None:
    session = joined_session()
    session.handle(messages.HelloWanted(), 1.0)
    sent_without_functions(session)
    sent = send(session)
    assert sent_without_functions(session) == []
    session.handle(welcome(), 2.0)
    assert sent_without_functions(session) == [an_object(sent.id)]


def test_many_forgotten_objects_are_reported_in_batches() -> None:
    session = joined_session()
    for sent in [send(session) for _ in range(BATCH_ROWS + 1)]:
        session.objects.forget(sent)
    forgotten = [message for message in sent_without_functions(session) if isinstance(message, messages.ForgetObjects)]
    assert [len(message.ids) for message in forgotten] == [BATCH_ROWS, 1]


# --------------------------------------------------------------------------------------------------------------- ending


def test_clear_forgets_all_objects() -> None:
    session = joined_session()
    sent = [send(session), send(session)]
    sent_without_functions(session)
    session.objects.clear()
    assert sent_without_functions(session) == [messages.ForgetObjects([0, 1])]
    assert all(each.is_gone and not each.frames for each in sent)
    session.handle(welcome(6), 1.0)
    assert sent_without_functions(session) == []


def test_clear_of_a_task_forgets_its_objects() -> None:
    session = joined_session()
    task = (7, 3, 1)
    mine, other = send(session, parent=task), send(session, parent=(7, 4, 1))
    sent_without_functions(session)
    session.objects.clear_sent_by(task)
    assert sent_without_functions(session) == [messages.ForgetObjects([mine.id])]
    assert mine.is_gone and not other.is_gone


@pytest.mark.parametrize("ends", ["closed", "refused"])
def test_objects_end_with_the_client(ends: str) -> None:
    session = joined_session()
    sent = send(session)
    sent_without_functions(session)
    if ends == "closed":
        session.close("over")
    else:
        session.handle(messages.Refused("protocolVersion", "no", 9, "9"), 1.0)
    assert sent.is_gone and len(session.objects) == 0
    late = send(session)
    assert late.is_gone
    session.objects.forget(sent)
    session.objects.forget(late)
    assert not [message for message in sent_without_functions(session) if not isinstance(message, messages.Goodbye)]


def test_an_object_that_was_never_sent_sends_nothing_when_forgotten() -> None:
    session = joined_session()
    session.objects.forget(stored())
    assert sent_without_functions(session) == []


# -------------------------------------------------------------------------------------------------------- shutting down


def test_a_shutdown_that_is_accepted() -> None:
    session = joined_session()
    answers: list[str | None] = []
    session.shut_down(answers.append)
    assert sent_without_functions(session) == [messages.Shutdown()] and answers == []
    session.handle(messages.Goodbye("shut down"), 1.0)
    assert answers == [None] and session.scheduler is None


def test_a_shutdown_of_a_protected_scheduler(caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_shutdown_is_requested_again_from_the_same_scheduler() -> None:
    session = joined_session()
    answers: list[str | None] = []
    session.shut_down(answers.append)
    sent_without_functions(session)
    session.handle(messages.HelloWanted(), 1.0)
    sent_without_functions(session)
    session.handle(welcome(5), 1.0)
    assert sent_without_functions(session) == [messages.Shutdown()] and answers == []
    session.handle(welcome(6), 1.0)
    assert sent_without_functions(session) == [] and answers == [None]


@pytest.mark.parametrize("ends", ["lost", "closed", "refused", "was closed"])
def test_a_shutdown_is_answered_when_the_scheduler_has_ended(ends: str) -> None:
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
    return [each for each in ids_of(sent_without_functions(session)) if isinstance(each, tuple)]


def rejoin(session: Session) -> None:
    session.handle(messages.HelloWanted(), 0.0)
    sent_without_functions(session)
    session.handle(welcome(), 0.0)


def test_forgotten_ids_are_sent_again_after_a_lost_connection() -> None:
    session = joined_session()
    first, second = send(session), send(session)
    session.objects.forget(first)
    assert forgotten(session) == [(0,)]
    rejoin(session)
    session.objects.forget(second)
    assert forgotten(session) == [(0, 1)]
    session.reconnected(1.0)
    (beat,) = sent_without_functions(session)
    rejoin(session)
    assert forgotten(session) == [(0, 1)], "the heartbeat behind it had no answer"
    session.handle(messages.HeartbeatEcho(beat.sequence), 1.0)
    session.reconnected(2.0)
    (beat,) = sent_without_functions(session)
    session.handle(messages.HeartbeatEcho(beat.sequence), 2.0)
    rejoin(session)
    assert forgotten(session) == []


class Stalled:
    """A backlog in which a row waits before all others."""

    is_waiting = True

    def is_past(self, number: int) -> bool:
        return not self.is_waiting


def test_results_of_an_ended_graph_are_forgotten_after_a_join() -> None:
    backlog = Stalled()
    objects = HeldObjects(cast(Backlog, backlog))
    objects.forget_after(5, [3, 4])
    objects.forget_after(9, [8])
    assert objects.pop_messages(1, None) == []
    objects.send_all([])
    objects.forget_after(9, [8])  # this graph is still open
    objects.resend_forgotten()
    assert objects.pop_messages(1, None) == [messages.ForgetObjects([3, 4])]
    backlog.is_waiting = False
    assert objects.pop_messages(1, None) == [messages.ForgetObjects([8])]
