"""The client's session: joining, submitting, answers, options, nested tasks."""

from __future__ import annotations

import pytest
from tests.client.session.stand_ins import (
    ADDRESS,
    AGAIN,
    HELLO,
    TIMEOUT_SECONDS,
    MapRows,
    SinkRecorder,
    be_silent,
    joined_session,
    new_session,
    resolved,
    sent,
    sent_without_functions,
    submit,
    welcome,
)

from scaler_client.pickling import serializer
from scaler_client.pickling.functions import Function
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Outcome
from scaler_client.session.backlog import BATCH_BYTES, BATCH_ROWS
from scaler_client.session.session import Session, State


@pytest.fixture
def session() -> Session:
    return joined_session()


# -------------------------------------------------------------------------------------------------------------- joining


def test_a_rejected_client_logs_the_rejection_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    session = new_session()
    for _ in range(3):
        session.handle(messages.Error("there are 2 peers already"), 0.0)
    assert session.rejection == "there are 2 peers already"
    session.handle(welcome(), 0.0)
    session.handle(welcome(), 0.0)
    assert session.rejection == ""
    assert caplog.messages == [
        f"the scheduler at {ADDRESS} does not accept this client for now: there are 2 peers already",
        f"the scheduler at {ADDRESS} accepts this client now",
    ]


def test_hello_is_sent_first_and_tasks_after_the_welcome() -> None:
    session, sink = new_session(), SinkRecorder()
    submit(session, sink)
    assert sent(session) == [HELLO]
    session.handle(welcome(), 0.1)
    assert session.state is State.JOINED
    assert sent(session) == [
        messages.Function(1, "f", serializer.CLOUDPICKLE_KIND, b"code"),
        messages.Submit([0], [1], [b"payload"]),
    ]


def test_ids_ascend(session: Session) -> None:
    function = Function(1, "f", b"code")
    sinks = [SinkRecorder(function) for _ in range(3)]
    assert [submit(session, sink) for sink in sinks[:2]] == [0, 1]
    rows = MapRows(function, [b"a", b"b", b"c"])
    assert rows.submit(session) == 2
    assert submit(session, sinks[0]) == 5
    payloads = [b"payload", b"payload", b"a", b"b", b"c", b"payload"]
    assert sent(session)[1:] == [messages.Submit([0, 1, 2, 3, 4, 5], [1] * 6, payloads)]


def test_a_function_is_sent_once(session: Session) -> None:
    one, other = SinkRecorder(Function(1, "f", b"code")), SinkRecorder(Function(2, "g", b"more"))
    submit(session, one)
    submit(session, other)
    submit(session, one)
    out = sent(session)
    assert {message.number for message in out[:2]} == {1, 2}
    assert out[2].functions == [1, 2, 1]
    submit(session, one)
    assert sent(session) == [messages.Submit([3], [1], [b"payload"])]


def test_answers_reach_their_sinks(session: Session) -> None:
    sinks = [SinkRecorder() for _ in range(3)]
    ids = [submit(session, sink) for sink in sinks]
    session.handle(messages.Started([ids[1]]), 1.0)
    session.handle(messages.Resolved([2, 0], [Outcome.VALUE, Outcome.EXCEPTION], [b"v", b"e"]), 1.0)
    assert [sink.told for sink in sinks] == [[(0, Outcome.EXCEPTION, b"e")], ["started"], [(2, Outcome.VALUE, b"v")]]
    assert list(session.pending) == [1]


def test_answers_of_unknown_tasks_are_dropped(session: Session) -> None:
    sink = SinkRecorder()
    submit(session, sink)
    session.handle(resolved(0, 7), 1.0)
    session.handle(resolved(0), 1.0)
    session.handle(messages.Started([0, 9]), 1.0)
    session.handle(messages.CancelRefused([0, 9]), 1.0)
    assert sink.told == [(0, Outcome.VALUE, b"answer")]


# -------------------------------------------------------------------------------------------------------------- batches


def test_batches_are_split_by_rows(session: Session) -> None:
    function = Function(1, "f", b"")
    for _ in range(2 * BATCH_ROWS + 5):
        session.submit(SinkRecorder(), function, b"x")
    batches = sent(session)[1:]
    assert [len(batch.ids) for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert [task_id for batch in batches for task_id in batch.ids] == list(range(2 * BATCH_ROWS + 5))


def test_batches_are_split_by_bytes(session: Session) -> None:
    half = bytes(BATCH_BYTES // 2)
    payloads = [half, half, b"small", bytes(BATCH_BYTES), b"1", b"2"]
    rows = MapRows(Function(1, "f", b""), payloads)
    rows.submit(session)
    batches = sent(session)[1:]
    assert [list(batch.payloads) for batch in batches] == [[half, half], [b"small", payloads[3]], [b"1", b"2"]]
    assert [batch.ids for batch in batches] == [[0, 1], [2, 3], [4, 5]]


# -------------------------------------------------------------------------------------------------------------- options


def test_all_rows_of_a_batch_have_the_same_options(session: Session) -> None:
    urgent, also_urgent = messages.Options(priority=5), messages.Options(priority=5)
    for options in (None, urgent, also_urgent, None, messages.Options(retries=1)):
        submit(session, SinkRecorder(options=options))
    assert sent_without_functions(session) == [
        messages.Submit([0], [1], [b"payload"]),
        messages.Submit([1, 2], [1, 1], [b"payload"] * 2, urgent),
        messages.Submit([3], [1], [b"payload"]),
        messages.Submit([4], [1], [b"payload"], messages.Options(retries=1)),
    ]


def test_a_map_sends_its_options(session: Session) -> None:
    options = messages.Options(timeout_milliseconds=10)
    MapRows(Function(1, "f", b""), [b"a", b"b"], options).submit(session)
    submit(session, SinkRecorder(options=options))
    submit(session, SinkRecorder())
    assert [message.options for message in sent(session) if isinstance(message, messages.Submit)] == [options, None]


def test_options_are_sent_again_after_a_join(session: Session) -> None:
    options = messages.Options(name="mine")
    submit(session, SinkRecorder())
    submit(session, SinkRecorder(options=options))
    MapRows(Function(2, "g", b""), [b"a"], options).submit(session)
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(incarnation=6), 1.0)
    submits = [message for message in sent(session) if isinstance(message, messages.Submit)]
    assert [(message.ids, message.options) for message in submits] == [([0], None), ([1, 2], options)]


def test_a_sink_gets_measurements_before_the_answer(session: Session) -> None:
    sinks = [SinkRecorder(), SinkRecorder()]
    for sink in sinks:
        submit(session, sink)
    MapRows(Function(1, "f", b""), [b"a"]).submit(session)
    ids = [0, 1, 2, 77]
    session.handle(messages.Resolved(ids, [0] * 4, [b""] * 4, [5, 6, 7, 8], [1, 2, 3, 4], [0, 9, 9, 9]), 1.0)
    assert [sink.told for sink in sinks] == [[(0, 0, b"")], [(6, 2, 9), (1, 0, b"")]]


# --------------------------------------------------------------------------------------------------------- nested tasks


def test_suspended_is_sent_behind_earlier_tasks(session: Session) -> None:
    name = (9, 4, 1)
    submit(session, SinkRecorder())
    session.suspend(name)
    session.resume(name)
    submit(session, SinkRecorder())
    assert sent_without_functions(session) == [
        messages.Submit([0], [1], [b"payload"]),
        messages.Suspended([name]),
        messages.Resumed([name]),
        messages.Submit([1], [1], [b"payload"]),
    ]


def test_the_next_scheduler_learns_of_suspended_tasks(session: Session) -> None:
    submit(session, SinkRecorder())
    for name in ((9, 4, 1), (9, 5, 2)):
        session.suspend(name)
    session.handle(messages.HelloWanted(), 1.0)
    session.resume((9, 4, 1))
    session.suspend((9, 6, 1))
    assert session.pop_outgoing() == [AGAIN]
    session.handle(welcome(incarnation=6), 1.0)
    assert sent_without_functions(session) == [
        messages.Submit([0], [1], [b"payload"]),
        messages.Suspended([(9, 5, 2), (9, 6, 1)]),
    ]


# ---------------------------------------------------------------------------------------------------- about the hosts


def test_a_heartbeat_asks_about_the_hosts(session: Session) -> None:
    answers: list[messages.HeartbeatEcho | None] = []
    session.ask_hosts(answers.append, 1.0)
    assert sent(session) == [messages.Heartbeat(1, wants_hosts=True)]
    session.tick(4.0)
    assert sent(session) == [messages.Heartbeat(2)], "the next one asks nothing"
    session.handle(messages.HeartbeatEcho(2), 4.1)
    assert answers == []
    echo = messages.HeartbeatEcho(1, hosts=[messages.Host("node-7", "python 3.11.7", "1.0", 0, 0)])
    session.handle(echo, 4.2)
    session.handle(echo, 4.3)
    assert answers == [echo], "it is answered once"


def test_a_second_welcome_of_the_same_scheduler_changes_nothing() -> None:
    """The tasks were submitted behind both hellos, and their answers may be on their way."""
    session = joined_session()
    submit(session, SinkRecorder())
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.tick(100.0)
    session.handle(messages.HelloWanted(), 100.1)
    sent(session)
    session.handle(welcome(incarnation=6), 101.0)
    assert [type(message) for message in sent(session)] == [messages.Function, messages.Submit]
    session.handle(welcome(incarnation=6), 101.1)
    assert sent(session) == []
    session.handle(welcome(incarnation=7), 102.0)
    assert [type(message) for message in sent(session)] == [messages.Function, messages.Submit], "another scheduler"


def test_questions_about_the_hosts_end_with_the_connection(session: Session) -> None:
    answers: list[messages.HeartbeatEcho | None] = []

    def ask(session: Session) -> None:
        session.ask_hosts(answers.append, 1.0)

    ask(session)
    session.handle(welcome(6), 2.0)
    session.handle(messages.HeartbeatEcho(1), 2.1)
    assert answers == [None], "another scheduler does not know the question"
    ask(session)
    session.handle(messages.Refused(messages.NOT_AUTHORIZED, "its key was revoked", 1, ""), 3.0)
    ask(session)
    assert answers == [None] * 3, "a session that is closed asks nobody"
    session = joined_session()
    ask(session)
    session.close("done")
    assert answers == [None] * 4
    session = new_session()
    ask(session)
    assert answers == [None] * 5 and sent(session) == [HELLO], "nobody is there to answer"
    be_silent(session := joined_session(), 0.0, 2.0)
    ask(session)
    be_silent(session, 2.0, TIMEOUT_SECONDS + 5.0)
    assert answers == [None] * 6, "the scheduler is lost"
