"""The client's session with schedulers that restart, leave, fall silent or refuse."""

from __future__ import annotations

import pickle

import pytest
from tests.client.session.stand_ins import (
    ADDRESS,
    AGAIN,
    HEARTBEAT_SECONDS,
    TIMEOUT_SECONDS,
    Answered,
    MapRows,
    SinkRecorder,
    be_silent,
    joined_session,
    new_session,
    resolved,
    sent,
    submit,
    welcome,
)

from scaler_client.errors import ClientClosedError, SchedulerLostError
from scaler_client.pickling.functions import Function
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_client.session.session import Session, State


@pytest.fixture
def session() -> Session:
    return joined_session()


def test_a_silent_scheduler_is_logged_once_if_tasks_are_open(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    be_silent(session, 0.0, 20.0)
    assert not caplog.messages
    session.handle(messages.HeartbeatEcho(1), 20.0)
    submit(session, SinkRecorder())
    be_silent(session, 20.0, 40.0)
    assert caplog.messages == [f"the scheduler at {ADDRESS} does not answer; open tasks fail in 56 s"]
    session.handle(messages.HeartbeatEcho(2), 40.0)
    be_silent(session, 40.0, 42.0)
    assert caplog.messages[1:] == [f"the scheduler at {ADDRESS} answers again"]


def test_a_lost_scheduler_is_not_said_to_answer_again(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    submit(session, SinkRecorder())
    be_silent(session, 0.0, 200.0)
    assert caplog.messages == [f"the scheduler at {ADDRESS} does not answer; open tasks fail in 56 s"]


def test_open_tasks_are_submitted_again(session: Session) -> None:
    sinks = [SinkRecorder(payload=b"%d" % number) for number in range(4)]
    for sink in sinks:
        submit(session, sink)
    session.handle(resolved(1), 1.0)
    session.pop_outgoing()
    session.handle(messages.HelloWanted(), 2.0)
    session.handle(messages.HelloWanted(), 2.0)
    submit(session, SinkRecorder(payload=b"4"))
    assert session.pop_outgoing() == [AGAIN]
    session.handle(welcome(incarnation=6), 2.0)
    out = sent(session)
    assert out[-1].ids == [0, 2, 3, 4] and out[-1].payloads == [b"0", b"2", b"3", b"4"]


def test_a_function_without_pending_tasks_is_sent_again_to_a_new_scheduler(session: Session) -> None:
    sink = SinkRecorder()
    submit(session, sink)
    session.pop_outgoing()
    session.handle(resolved(0), 1.0)
    session.handle(messages.HelloWanted(), 2.0)
    session.handle(welcome(incarnation=6), 2.0)
    session.pop_outgoing()
    submit(session, sink)
    assert [type(message) for message in sent(session)] == [messages.Function, messages.Submit]


def test_open_rows_of_a_map_are_submitted_again(session: Session) -> None:
    submit(session, SinkRecorder(payload=b"single"))
    rows = MapRows(Function(1, "f", b""), [b"row 0", b"row 1", b"row 2"])
    first = rows.submit(session)
    session.handle(resolved(first + 1), 1.0)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    assert sent(session)[-1].payloads == [b"single", b"row 0", b"row 2"]
    session.handle(resolved(first, first + 2), 1.0)
    assert list(session.pending) == [0]


def test_rows_of_a_map_fail_and_are_cancelled(session: Session) -> None:
    lost, closed = (MapRows(Function(1, "f", b""), [b"1", b"2"]) for _ in range(2))
    lost.submit(session)
    be_silent(session, 0.0, 100.0)
    assert [type(error) for _, error in lost.told] == [SchedulerLostError] * 2
    closed.submit(session)
    session.close("enough")
    assert [outcome for _, outcome, _ in closed.told] == [Outcome.CANCELLED] * 2
    assert not session.pending


def test_a_goodbye_of_the_scheduler_keeps_the_tasks(session: Session) -> None:
    sink = SinkRecorder()
    submit(session, sink)
    session.handle(messages.Goodbye("stops"), 1.0)
    assert sink.told == [] and list(session.pending) == [0]


def test_a_lost_hello_is_sent_again(session: Session) -> None:
    session.handle(messages.HelloWanted(), 1.0)
    assert session.pop_outgoing() == [AGAIN]
    session.handle(messages.HelloWanted(), 1.0)  # the answer to an earlier message
    assert session.pop_outgoing() == []
    session.tick(2.0)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]
    session.handle(messages.HelloWanted(), 2.1)
    session.handle(messages.HelloWanted(), 2.1)
    assert session.pop_outgoing() == [AGAIN]
    session.handle(welcome(), 2.2)
    assert session.state is State.JOINED


def test_a_heartbeat_follows_a_reconnect_at_once(session: Session) -> None:
    session.reconnected(0.5)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline == 0.5 + HEARTBEAT_SECONDS
    session.close("enough")
    session.pop_outgoing()
    session.reconnected(1.0)
    assert session.pop_outgoing() == []


def test_unsent_messages_are_dropped_for_a_hello(session: Session) -> None:
    submit(session, SinkRecorder())
    session.forget_function(9)
    session.handle(messages.HelloWanted(), 1.0)
    assert session.pop_outgoing() == [AGAIN]
    session.handle(welcome(incarnation=6), 1.0)
    assert [type(message) for message in sent(session)] == [messages.Function, messages.Submit]


def test_heartbeats(session: Session) -> None:
    session.tick(HEARTBEAT_SECONDS - 0.1)
    assert session.pop_outgoing() == []
    session.tick(HEARTBEAT_SECONDS)
    session.tick(HEARTBEAT_SECONDS + 0.1)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline == 2 * HEARTBEAT_SECONDS
    session.tick(2 * HEARTBEAT_SECONDS)
    assert session.pop_outgoing() == [messages.Heartbeat(2)]


def test_heartbeats_come_often_enough_for_a_short_lease() -> None:
    session = new_session()
    session.handle(welcome(lease_seconds=1.5), 0.0)
    session.pop_outgoing()
    assert session.next_deadline <= 0.5
    session.tick(0.5)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline <= 1.0


def test_a_lost_scheduler_fails_open_tasks(session: Session) -> None:
    sink, answered = SinkRecorder(), Answered()
    submit(session, sink)
    sent(session)
    session.cancel([0], answered)
    session.handle(messages.HeartbeatEcho(1), 10.0)
    be_silent(session, 0.0, 10.0 + TIMEOUT_SECONDS)
    assert sink.told == []
    session.tick(10.1 + TIMEOUT_SECONDS)
    ((task_id, error),) = sink.told
    assert task_id == 0 and isinstance(error, SchedulerLostError)
    assert ADDRESS in str(error) and "60 seconds" in str(error)
    assert answered.times == 1 and not session.pending


def test_a_silent_scheduler_that_returns_gets_cancels_for_abandoned_tasks(session: Session) -> None:
    submit(session, SinkRecorder())
    sent(session)
    be_silent(session, 0.0, 100.0)
    assert messages.Cancel([0], force=True) in sent(session), "it may only have been silent"
    session.handle(messages.HelloWanted(), 101.0)
    session.handle(welcome(), 101.0)
    assert messages.Cancel([0], force=True) in sent(session), "what was said before may be lost"


def test_a_pause_of_the_process_does_not_count_as_silence(session: Session) -> None:
    sink = SinkRecorder()
    submit(session, sink)
    be_silent(session, 0.0, 10.0)
    be_silent(session, 1000.0, 1040.0)
    assert sink.told == []
    be_silent(session, 1040.0, 1080.0)
    assert isinstance(sink.told[0][1], SchedulerLostError)


def test_a_pause_of_the_process_is_not_logged_as_silence(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    """A program may hold the interpreter's lock for long, for example while it pickles an argument of a gigabyte."""
    submit(session, SinkRecorder())
    be_silent(session, 0.0, 2 * HEARTBEAT_SECONDS - 0.1)
    session.tick(30.0)  # the scheduler has answered, and the answer is read behind this tick
    session.handle(messages.HeartbeatEcho(2), 30.0)
    session.tick(30.0 + HEARTBEAT_SECONDS)
    assert not caplog.messages


def test_after_a_loss_the_session_works_with_the_next_scheduler(session: Session) -> None:
    submit(session, SinkRecorder())
    be_silent(session, 0.0, 100.0)
    session.handle(messages.HelloWanted(), 101.0)
    session.handle(welcome(incarnation=9), 101.0)
    session.pop_outgoing()
    sink = SinkRecorder()
    submit(session, sink)
    assert sent(session)[-1].ids == [1]
    session.handle(resolved(1), 102.0)
    assert sink.told == [(1, Outcome.VALUE, b"answer")]


def test_refused_names_both_versions(session: Session) -> None:
    sink = SinkRecorder()
    submit(session, sink)
    session.handle(messages.Refused("protocolVersion", "too old", 9, "4.2"), 1.0)
    ((_, error),) = sink.told
    assert isinstance(error, SchedulerLostError)
    for part in (ADDRESS, "4.2", "protocol version 9", "protocol version 1", "too old"):
        assert part in str(error)


def test_a_refused_session_fails_new_tasks_and_sends_nothing(session: Session) -> None:
    session.handle(messages.Refused("protocolVersion", "too old", 9, "4.2"), 1.0)
    session.pop_outgoing()
    sink = SinkRecorder()
    submit(session, sink)
    session.tick(100.0)
    assert len(sink.told) == 1 and isinstance(sink.told[0][1], SchedulerLostError)
    assert session.pop_outgoing() == []
    assert session.next_deadline > 100.0, "a deadline that is over makes the I/O thread turn without rest"


def test_a_closed_session_fails_new_tasks(session: Session) -> None:
    session.close("enough")
    sink, rows = SinkRecorder(), MapRows(Function(1, "f", b""), [b"1", b"2"])
    submit(session, sink)
    rows.submit(session)
    assert isinstance(sink.told[0][1], ClientClosedError) and isinstance(rows.told[0][1], ClientClosedError)
    assert not session.pending


def test_close_logs_how_many_tasks_it_has_cancelled(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    for calls in (0, 0, 10):
        submit(session, SinkRecorder(options=messages.Options(calls=calls)))
    session.cancel([1], lambda: None)
    session.close("enough")
    assert [each.getMessage() for each in caplog.records] == [
        f"11 open tasks were cancelled, because this client has left the scheduler at {session.address}: enough"
    ]
    caplog.clear()
    session.close("again")
    assert not caplog.records


def test_close_sends_goodbye_and_cancels(session: Session) -> None:
    sink, answered = SinkRecorder(), Answered()
    submit(session, sink)
    sent(session)
    session.cancel([0], answered)
    session.pop_outgoing()
    session.close("enough")
    assert sent(session) == [messages.Goodbye("enough")]
    assert session.state is State.CLOSED
    why = b"the client has left the scheduler: enough"
    assert sink.told == [(0, Outcome.CANCELLED, why)] and answered.times == 1
    session.tick(1000.0)
    assert session.pop_outgoing() == []


def test_a_function_is_forgotten_after_its_tasks(session: Session) -> None:
    submit(session, SinkRecorder())
    session.forget_function(1)
    assert sent(session)[1:] == [messages.Submit([0], [1], [b"payload"]), messages.ForgetFunctions([1])]


def test_payloads_are_not_copied(session: Session) -> None:
    payload = pickle.dumps(((1,), {}))
    sink = SinkRecorder(payload=payload)
    submit(session, sink)
    assert session.pop_outgoing()[-1].payloads[0] is payload  # type: ignore[union-attr]
