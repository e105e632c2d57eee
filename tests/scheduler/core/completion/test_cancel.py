"""A user's cancel of tasks in every state, and messages that cross it. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    C2,
    CANCELLED,
    EXCEPTION,
    MILLISECOND,
    RETRYABLE,
    VALUE,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    running,
    submit_event,
)

from scaler_scheduler.core import events

ROW = (11, 1, 1)
RETRACT = ("retract", W, [ROW])
REFUSED = ("cancel refused", C, [1])


def cancelled(*ids):
    return resolved(*ids, outcome=CANCELLED)


def queued(core):
    """Task 1 is held by the worker, which has not reported that it runs."""
    joined(core)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [ROW]


# ------------------------------------------------------------------------------------------------------ waiting tasks


def test_a_waiting_task(core):
    joined(core)
    core.submit(C, [1, 2, 3, 4], body=b"x")
    assert core.take_dispatched(W) == [ROW]
    core.cancel(C, 3)
    assert core.take() == [cancelled(3)]
    core.cancel(C, 3)  # named twice: it is answered once
    core.results(W, [ROW])
    assert core.take() == [("dispatch", W, [(11, 2, 1, 1, b"x"), (11, 4, 1, 1, b"x")]), resolved(1)]


@pytest.mark.parametrize("force", [False, True])
def test_right_after_submit(core, force):
    joined(core)
    core.feed(submit_event(C, [1], [1], [b""], []), events.Cancel(C, array("q", [1]), force))
    assert core.take() == [cancelled(1)]
    assert core.tables()["waiting"] == core.tables()["ranks"] == 0


def test_a_task_named_twice_in_one_cancel(core):
    joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.cancel(C, 2, 2)
    assert core.take() == [cancelled(2)]


@pytest.mark.parametrize("force", [False, True])
def test_a_requeued_task(core, force):
    joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.died(A, 22)
    core.cancel(C, 1, force=force)
    assert core.take() == [cancelled(1)]
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 2, 1)]


def test_unknown_and_finished_tasks(core):
    joined(core)
    core.submit(C, [5])
    core.results(W, core.take_dispatched(W))
    core.take()
    for force in (False, True):
        core.cancel(C, 5, 6, 4, (1 << 63) - 1, force=force)
        core.cancel(C, force=force)
    assert core.take() == []


def test_one_cancel_names_tasks_in_all_states(core):
    joined(core)
    core.submit(C, [1, 2, 3, 4, 5, 6], large=[2], body=b"x")
    assert core.take_dispatched(W) == [ROW]
    core.cancel(C, 6, 1, 3, 3, 2, 99)
    assert core.take() == [cancelled(6, 3, 2), RETRACT]
    core.results(W, [ROW])
    assert core.take() == [("dispatch", W, [(11, 4, 1, 1, b"x"), (11, 5, 1, 1, b"x")]), resolved(1)]


def test_cancelling_all_tasks_without_a_worker_keeps_nothing(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    for begin in range(0, 100, 10):
        core.submit(C, range(begin, begin + 10), body=b"x" * 1000, priority=begin)
    assert core.tables()["ranks"] == 10
    core.cancel(C, *range(100))
    assert core.take() == [cancelled(*range(100))]
    (client,) = core.scheduler.tables.clients
    assert not client.lanes and not core.tables()["ranks"]
    core.forget(C, 1)
    assert core.tables()["functions"] == 0


def test_a_cancelled_task_submitted_again_waits_again(core):
    joined(core)
    core.submit(C, [1, 2, 3])
    core.take()
    core.cancel(C, 2)
    assert core.take() == [cancelled(2)]
    core.received(C, 0)  # the client has read the answer
    core.submit(C, [2, 3])
    assert core.tables()["waiting"] == 2


def test_a_task_of_another_client_with_the_same_id(core):
    joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.client(C2, 12)
    core.cancel(C2, 1, 2, force=True)
    assert core.take() == []
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 1


# ---------------------------------------------------------------------------------- what a worker holds, without force


def test_a_queued_task_is_given_back(core):
    queued(core)
    core.cancel(C, 1)
    assert core.take() == [RETRACT]
    core.retracted(W, [ROW], 1)
    assert core.take() == [cancelled(1)]
    assert core.tables()["dispatched"] == core.tables()["waiting"] == core.tables()["timers"] == 0
    assert core.scheduler.counts.retracted == 1
    core.retracted(W, [ROW], 1)  # the same answer again
    core.results(W, [ROW])  # an unknown connection is ignored
    assert core.take() == []
    assert core.scheduler.counts.late_results == 1


def test_a_queued_task_had_begun(core):
    queued(core)
    core.cancel(C, 1)
    core.retracted(W, [ROW], 0)
    assert core.take() == [RETRACT, REFUSED]
    core.cancel(C, 1)
    assert core.take() == [REFUSED]  # the task is known to run, so the worker is not asked again
    core.results(W, [ROW], outcome=EXCEPTION, body=b"e")
    assert core.take() == [resolved(1, outcome=EXCEPTION, body=b"e")]


def test_a_running_task_is_refused(core):
    joined(core)
    running(core)
    core.cancel(C, 1)
    core.cancel(C, 1)
    assert core.take() == [REFUSED, REFUSED]
    core.results(W, [ROW])
    assert core.take() == [resolved(1)]


def test_the_task_begins_before_the_retract_arrives(core):
    queued(core)
    core.cancel(C, 1)
    core.started(W, ROW)
    core.cancel(C, 1)  # the answer of the first cancel counts
    assert core.take() == [RETRACT, ("started", C, [1])]
    core.retracted(W, [ROW], 0)
    assert core.take() == [REFUSED]


@pytest.mark.parametrize("outcome", [VALUE, EXCEPTION])
@pytest.mark.parametrize("given", [0, 1])
def test_the_result_crosses_the_retract(core, outcome, given):
    queued(core)
    core.cancel(C, 1)
    core.results(W, [ROW], outcome=outcome)
    assert core.take() == [RETRACT, resolved(1, outcome=outcome)]
    core.retracted(W, [ROW], given)
    assert core.take() == []
    assert core.scheduler.counts.retracted == 0


@pytest.mark.parametrize("retries", [0, 1])
def test_a_retryable_result_crosses_the_retract(core, retries):
    """Without the cancel, the task would wait for a retry. It is cancelled like a waiting task."""
    joined(core)
    core.submit(C, [1], retries=retries)
    core.take()
    core.cancel(C, 1)
    core.results(W, [ROW], outcome=RETRYABLE, body=b"e")
    answer = cancelled(1) if retries else resolved(1, outcome=EXCEPTION, body=b"e")
    assert core.take() == [RETRACT, answer]
    core.retracted(W, [ROW], 0)


def test_the_worker_dies_in_the_middle_of_a_retract(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.take()
    core.cancel(C, 2)
    assert core.take() == [("retract", W, [(11, 2, 1)])]
    core.died(A, 22, ROW)
    assert core.take() == [cancelled(2)]
    assert core.tables()["waiting"] == 1
    core.retracted(W, [(11, 2, 1)], 1)
    assert core.take() == [("hello wanted", W)]


def test_the_connection_is_lost_in_the_middle_of_a_retract(core):
    queued(core)
    core.cancel(C, 1)
    assert core.take() == [RETRACT]
    core.worker(W2, 22, agent=33)
    assert core.take() == [cancelled(1)]
    core.retracted(W2, [ROW], 0)
    assert core.take() == []


def test_the_connection_is_lost_in_the_middle_of_a_retract_and_the_task_runs(core):
    queued(core)
    core.cancel(C, 1)
    assert core.take() == [RETRACT]
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == [REFUSED]
    core.results(W2, [ROW])
    assert core.take() == [resolved(1)]


def test_an_unsent_retract_is_not_sent_to_a_worker_that_left(core):
    queued(core)
    core.feed(events.Cancel(C, array("q", [1])), events.Goodbye(W, ""))
    assert core.take() == [cancelled(1)]


def test_a_thousand_at_once(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 2001), 2)
    rows = core.take_dispatched(W)
    assert len(rows) == 1000
    core.cancel(C, *range(1, 2001))
    assert core.take() == [cancelled(*range(1001, 2001)), ("retract", W, rows)]
    core.retracted(W, rows[1:], 1)
    assert [sent for sent in core.take() if sent[0] != "credit"] == [cancelled(*range(2, 1001))]
    core.retracted(W, rows[:1], 0)
    assert core.take() == [REFUSED]


def test_cancel_during_a_retract_for_balance(core):
    """Work stealing has retracted the task already. One answer serves both."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3], 2)
    core.take()
    core.started(W, ROW)
    core.worker(W2, 23)
    assert core.take() == [("started", C, [1]), ("retract", W, [(11, 3, 1)])]
    core.cancel(C, 3)
    assert core.take() == []
    core.retracted(W, [(11, 3, 1)], 1)
    assert core.take() == [cancelled(3), ("retract", W, [(11, 2, 1)])]
    core.cancel(C, 2)
    core.retracted(W, [(11, 2, 1)], 0)
    assert core.take() == [("cancel refused", C, [2])]


def test_cancel_of_a_task_that_began_before_the_retract_for_balance(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.take()
    core.started(W, ROW)
    core.worker(W2, 23)
    assert core.take() == [("started", C, [1]), ("retract", W, [(11, 2, 1)])]
    core.results(W, [ROW], 20 * MILLISECOND)
    core.started(W, (11, 2, 1))
    core.cancel(C, 2)
    assert core.take() == [resolved(1), ("started", C, [2]), ("cancel refused", C, [2])]
    core.retracted(W, [(11, 2, 1)], 0)
    assert core.take() == []
    core.results(W, [(11, 2, 1)])
    assert core.take() == [resolved(2)]


def test_one_answer_for_tasks_of_several_clients(core):
    joined(core)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.teach(C, W, 2, b"g", 1000, 0)
    core.function(C2, 2, b"g")
    core.feed(submit_event(C, [1], [2], [b""], []), submit_event(C2, [1], [2], [b""], []))
    rows = core.take_dispatched(W)
    assert sorted(rows) == [(11, 1, 1), (12, 1, 1)]
    core.feed(events.Cancel(C, array("q", [1])), events.Cancel(C2, array("q", [1])))
    assert core.take() == [("retract", W, [(11, 1, 1), (12, 1, 1)])]
    core.retracted(W, [(11, 1, 1), (12, 1, 1)], 0)
    assert core.take() == [REFUSED, ("cancel refused", C2, [1])]


def test_a_worker_gives_back_a_task_that_it_reported_as_running(core):
    """The scheduler accepts the answer, because the worker will not run the task. The contradiction must not end the
    scheduler."""
    queued(core)
    core.cancel(C, 1)
    core.started(W, ROW)
    assert core.take() == [RETRACT, ("started", C, [1])]
    core.retracted(W, [ROW], 1)
    assert core.take() == [cancelled(1)]


@pytest.mark.parametrize("given", [0, 1])
def test_unexpected_retract_answers_are_ignored(core, given):
    queued(core)
    core.worker(W2, 23)
    core.retracted(W, [ROW, (11, 2, 1), (12, 1, 1), (11, 1, 2)], given)
    core.cancel(C, 1)
    assert core.take() == [RETRACT]
    core.retracted(W2, [ROW], given)  # not the worker that holds it
    core.retracted(W, [(11, 1, 2)], given)  # not this attempt
    assert core.take() == []
    core.retracted(W, [ROW], 1)
    assert core.take() == [cancelled(1)]
