"""Flow control of the client's session: credit for tasks and objects, acknowledgements of results."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.session.stand_ins import (
    UNLIMITED,
    Answered,
    MapRows,
    SinkRecorder,
    be_silent,
    joined_session,
    resolved,
    sent,
    submit,
    welcome,
)

from scaler_client.pickling.functions import Function
from scaler_client.pickling.references import CallWithInputs, StoredObject
from scaler_client.protocol import messages
from scaler_client.protocol.messages import Keep, Options, Outcome
from scaler_client.session.backlog import BATCH_BYTES, BATCH_ROWS, TASK_OVERHEAD, Backlog
from scaler_client.session.session import Session


def sent_ids(session: Session) -> list[list[int]]:
    return [message.ids for message in sent(session) if isinstance(message, messages.Submit)]


def submit_each(session: Session, payloads: list[bytes]) -> list[SinkRecorder]:
    """Submit tasks one by one, with the outgoing messages taken in between."""
    sinks = []
    for payload in payloads:
        sinks.append(SinkRecorder(payload=payload))
        submit(session, sinks[-1])
    return sinks


def test_any_credit_allows_a_task_of_any_size() -> None:
    session = joined_session(credit=1)
    submit_each(session, [bytes(2 * BATCH_BYTES), b"2", b"3"])
    assert sent_ids(session) == [[0]]
    submit_each(session, [b"4"])
    assert sent_ids(session) == []


def test_only_the_rows_that_the_credit_allows_are_sent() -> None:
    session = joined_session(credit=10 * TASK_OVERHEAD)
    first = MapRows(Function(1, "f", b""), [b""] * 100).submit(session)
    assert sent_ids(session) == [list(range(first, first + 10))]
    session.handle(messages.Credit(10 * TASK_OVERHEAD + 1), 1.0)
    assert sent_ids(session) == [[first + 10]], "a row that exceeds the credit is sent if there is any"
    session.handle(messages.Credit(11 * TASK_OVERHEAD), 1.0)
    assert sent_ids(session) == []
    session.handle(messages.Credit(13 * TASK_OVERHEAD), 1.0)
    assert sent_ids(session) == [[first + 11, first + 12]]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert sent_ids(session) == [list(range(first + 13, first + 100))]


@pytest.mark.parametrize("dropped", [0, 1, 2, 5])
def test_a_dropped_task_is_left_out_of_a_batch_that_is_sent_in_parts(dropped: int) -> None:
    session = joined_session(credit=1)
    first = MapRows(Function(1, "f", b""), [b""] * 6).submit(session)
    assert sent_ids(session) == [[first]]
    session.cancel([first + dropped], lambda: None)
    session.pop_outgoing()
    ids = []
    for tasks in range(2, 8):
        session.handle(messages.Credit(tasks * TASK_OVERHEAD), 1.0)
        ids += sent_ids(session)
    assert ids == [[first + each] for each in range(1, 6) if each != dropped]


def test_credit_counts_from_the_welcome() -> None:
    session = joined_session(credit=TASK_OVERHEAD + 10)
    for _ in range(4):
        submit_each(session, [bytes(10)])
        session.suspend((1, 1, 1))  # closes the batch
    assert sent_ids(session) == [[0]]
    session.handle(messages.Credit(TASK_OVERHEAD + 10), 1.0)
    assert sent_ids(session) == []
    session.handle(messages.Credit(TASK_OVERHEAD + 11), 1.0)
    assert sent_ids(session) == [[1]]
    session.handle(messages.Credit(4 * TASK_OVERHEAD), 1.0)
    assert sent_ids(session) == [[2], [3]]
    session.handle(messages.Credit(6 * TASK_OVERHEAD), 1.0)
    submit_each(session, [b"fifth", b"sixth"])
    assert sent_ids(session) == [[4, 5]]


def test_the_backlog_keeps_the_order() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    submit_each(session, [b"1", b"2"])
    first = MapRows(Function(2, "g", b""), [b"a", b"b"]).submit(session)
    submit_each(session, [b"last"])
    assert sent_ids(session) == []
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert sent_ids(session) == [[1, 2, first, first + 1, first + 2]]


def submit_at(session: Session, priority: int, count: int = 1) -> list[int]:
    """Submit tasks of a priority; return their ids."""
    return [submit(session, SinkRecorder(options=Options(priority=priority))) for _ in range(count)]


def test_waiting_tasks_go_by_priority() -> None:
    session = joined_session(credit=1)
    first, *low = submit_at(session, -1, 3)
    zero = submit_at(session, 0, 2)
    high = submit_at(session, 7, 2)
    zero += submit_at(session, 0)
    session.suspend((1, 1, 1))  # closes the batch
    high += submit_at(session, 7)  # this one is still open
    assert sent_ids(session) == [[first]]
    session.handle(messages.Credit(5 * (TASK_OVERHEAD + len(b"payload"))), 1.0)
    assert [each for ids in sent_ids(session) for each in ids] == [*high, zero[0]]
    high = submit_at(session, 7)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert [each for ids in sent_ids(session) for each in ids] == [*high, *zero[1:], *low]


def test_each_waiting_task_may_have_a_priority_of_its_own() -> None:
    """The cost of a task is logarithmic in their number."""
    session, count = joined_session(credit=1), 20_000
    submit_at(session, 0)
    sent(session)
    ids = {}
    for number in range(count):
        priority = number * 7919 % count
        ids[priority] = submit_at(session, priority)[0]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    order = [each for ids in sent_ids(session) for each in ids]
    assert order == [ids[priority] for priority in reversed(range(count))]


def test_a_waiting_task_goes_behind_what_it_reads() -> None:
    session = joined_session(credit=1)
    sent_first, *low = submit_at(session, -1, 3)
    zero = submit_at(session, 0)
    options = Options(priority=7)
    reader_of_sent = submit(session, SinkRecorder(payload=CallWithInputs(b"", [sent_first]), options=options))
    session.suspend((1, 1, 1))  # closes the batch
    reader = submit(session, SinkRecorder(payload=CallWithInputs(b"", [zero[0], low[1]]), options=options))
    session.suspend((1, 1, 1))
    high = submit_at(session, 7)
    sent(session)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert [each for ids in sent_ids(session) for each in ids] == [reader_of_sent, *high, *zero, *low, reader]


def test_what_a_row_reads_can_be_sent_ahead() -> None:
    backlog, outgoing = Backlog(), []
    backlog.restart(1)
    backlog.add(messages.Submit([0], [1], [b"x"]), outgoing)
    read = messages.Object(1, [b"object"])
    backlog.add_object(read, outgoing)
    rows = messages.Submit([2, 3, 4, 5], [1], [b"x"] * 4, Options(priority=-1))
    rows.inputs, rows.input_counts, rows.keep = [1, 2], [1, 0, 1, 0], [Keep.BOTH, Keep.NO, Keep.NO, Keep.NO]
    backlog.add(rows, outgoing)
    outgoing.clear()
    backlog.send_ahead([0, 4, 77], outgoing)
    assert outgoing[0] is read
    ahead = [(each.ids, each.inputs, each.keep) for each in outgoing[1:]]
    assert ahead == [([2], [1], [Keep.BOTH]), ([4], [2], [Keep.NO])]
    assert [backlog.has_sent(each) for each in range(2, 6)] == [True, False, True, False]
    outgoing.clear()
    backlog.grant(UNLIMITED, outgoing)
    assert [each.ids for each in outgoing] == [[3, 5]]


def test_a_dropped_task_is_not_sent_ahead() -> None:
    backlog, outgoing = Backlog(), []
    backlog.restart(0)
    backlog.add(messages.Submit([0, 1], [1], [b"x"] * 2), outgoing)
    backlog.drop(0)
    backlog.send_ahead([0], outgoing)
    backlog.grant(UNLIMITED, outgoing)
    assert [each.ids for each in outgoing] == [[1]]


def test_what_was_answered_meanwhile_is_not_submitted_again() -> None:
    """The answers were on their way when the connection broke, and the credit does not allow all tasks at once."""
    session = joined_session(credit=UNLIMITED)
    submit_each(session, [b""] * 5)
    assert sent_ids(session) == [[0, 1, 2, 3, 4]]
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(credit=TASK_OVERHEAD), 1.0)
    assert sent_ids(session) == [[0]]
    outcomes = [Outcome.VALUE, Outcome.EXCEPTION, Outcome.KEPT]
    session.handle(messages.Resolved([1, 2, 3], outcomes, [b""] * 3), 1.0)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert sent_ids(session) == [[3, 4]]


def test_objects_wait_at_the_usual_priority() -> None:
    session = joined_session(credit=1)
    submit_at(session, 0)
    low = submit_at(session, -1)
    sent(session)
    stored = StoredObject("", [b"value"], None)
    session.send_object(stored)
    (high,) = submit_at(session, 7)
    session.suspend((1, 1, 1))
    reader = submit(session, SinkRecorder(payload=CallWithInputs(b"", [stored.id]), options=Options(priority=7)))
    sent(session)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    ids = [message.id if isinstance(message, messages.Object) else message.ids for message in session.pop_outgoing()]
    assert ids == [[high], stored.id, [reader], low]


def test_cancels_of_waiting_tasks_of_several_priorities() -> None:
    session = joined_session(credit=1)
    first, *low = submit_at(session, -1, 4)
    high = submit_at(session, 7, 4)
    assert sent_ids(session) == [[first]]
    session.handle(messages.Credit(3 * (TASK_OVERHEAD + len(b"payload"))), 1.0)
    assert sent_ids(session) == [high[:2]]
    answered = Answered()
    session.cancel([low[1], high[1], high[2]], answered)
    assert answered.times == 2, "only the scheduler can cancel what it has"
    assert [message.ids for message in session.pop_outgoing() if isinstance(message, messages.Cancel)] == [[high[1]]]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert [each for ids in sent_ids(session) for each in ids] == [high[3], low[0], low[2]]


def test_functions_are_sent_ahead_of_waiting_tasks() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    submit(session, SinkRecorder(Function(7, "g", b"code")))
    assert [message.number for message in sent(session)] == [7]
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert [type(message) for message in sent(session)] == [messages.Submit]


def test_tasks_submitted_one_by_one_wait_in_long_batches() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    for _ in range(BATCH_ROWS + 10):
        submit_each(session, [b"x"])
        assert sent_ids(session) == []
    session.handle(messages.Credit(UNLIMITED), 1.0)
    assert [len(ids) for ids in sent_ids(session)] == [BATCH_ROWS, 10]


def test_a_backlog_of_large_tasks_is_sent_batch_by_batch() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    MapRows(Function(1, "f", b""), [bytes(BATCH_BYTES // 2)] * 6).submit(session)
    sizes = []
    for credit in range(1, 4):
        session.handle(messages.Credit(credit * BATCH_BYTES), 1.0)
        sizes += [len(ids) for ids in sent_ids(session)]
    assert sizes == [2, 2, 2]


def test_each_join_resets_the_count() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    submit_each(session, [b"1"])
    assert sent_ids(session) == []
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(messages.Credit(UNLIMITED), 1.0)
    session.handle(welcome(credit=TASK_OVERHEAD + 2), 1.0)
    assert sent_ids(session) == [[0, 1]]
    submit_each(session, [b"2"])
    assert sent_ids(session) == []
    session.handle(messages.Credit(2 * TASK_OVERHEAD + 3), 1.0)
    assert sent_ids(session) == [[2]]


def test_waiting_tasks_fail_when_the_scheduler_is_lost() -> None:
    session = joined_session(credit=1)
    submit_each(session, [b"0"])
    sent(session)
    (sink,) = submit_each(session, [b"1"])
    session.suspend((1, 1, 1))
    be_silent(session, 0.0, 100.0)
    assert len(sink.told) == 1
    sent(session)
    session.handle(messages.Credit(UNLIMITED), 101.0)
    assert sent_ids(session) == []


def test_an_answer_ends_a_task_in_the_backlog() -> None:
    """The scheduler knows the task from before the lost connection; the session has not sent it again yet."""
    session = joined_session()
    sinks = submit_each(session, [b"0", b"1"])
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(welcome(credit=0), 1.0)
    session.handle(resolved(1), 1.0)
    assert sinks[1].told == [(1, Outcome.VALUE, b"answer")]


# ------------------------------------------------------------------------------------------------------------- received


@pytest.mark.parametrize(("window", "told"), [(0, []), (400, [100, 210]), (40, [40, 50, 60, 100, 110, 210])])
def test_results_are_acknowledged_once_per_quarter_of_the_window(window: int, told: list[int]) -> None:
    session = joined_session(result_window=window)
    said: list[Any] = []
    for size in (40, 10, 10, 40, 10, 100):
        session.handle(messages.Resolved([99], [Outcome.VALUE], [bytes(size)]), 1.0)
        said += sent(session)
    assert said == [messages.Received(count) for count in told]


@pytest.mark.parametrize("window", [0, 400])
def test_results_are_acknowledged_with_each_heartbeat(window: int) -> None:
    """The scheduler keeps answers until then."""
    session = joined_session(result_window=window)
    session.handle(messages.Resolved([99], [Outcome.VALUE], [bytes(40)]), 1.0)
    assert sent(session) == []
    said = []
    for now in (10.0, 20.0):
        session.tick(now)
        said.append([message for message in sent(session) if isinstance(message, messages.Received)])
    assert said == [[messages.Received(40)] if window else [], []]


def test_acknowledgements_start_over_after_a_join() -> None:
    session = joined_session(result_window=40)
    session.handle(messages.Resolved([99], [Outcome.VALUE], [bytes(30)]), 1.0)
    sent(session)
    session.handle(messages.HelloWanted(), 1.0)
    session.handle(messages.Resolved([99], [Outcome.VALUE], [bytes(30)]), 1.0)
    session.handle(welcome(result_window=40), 1.0)
    session.handle(messages.Resolved([99], [Outcome.VALUE], [bytes(15)]), 1.0)
    assert [message for message in sent(session) if isinstance(message, messages.Received)] == [messages.Received(15)]
