"""cancel(force=True): the task is interrupted first, then its process is ended. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    CANCELLED,
    EXCEPTION,
    RETRYABLE,
    VALUE,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    results_event,
    running,
    submit_event,
)

from scaler_scheduler.core import events
from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS

ROW = (11, 1, 1)
RETRACT, STOP = ("retract", W, [ROW]), ("stop", W, [ROW])
REFUSED = ("cancel refused", C, [1])
END = ("end worker", A, 22, ROW, "cancelled")


def cancelled(*ids):
    return resolved(*ids, outcome=CANCELLED)


def queued(core):
    """Task 1 is held by the worker, which has not reported that it runs."""
    joined(core)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [ROW]


def test_a_queued_task_is_given_back(core):
    queued(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [RETRACT]
    core.retracted(W, [ROW], 1)
    assert core.take() == [cancelled(1)]
    core.wait(3 * GRACE_SECONDS)  # no process is ended
    assert core.tables()["timers"] == 0


def test_a_queued_task_had_begun(core):
    queued(core)
    core.cancel(C, 1, force=True)
    core.wait(1)
    assert core.take() == [RETRACT]
    core.retracted(W, [ROW], 0)
    assert core.take() == [STOP]
    core.wait(1)  # the grace period begins with the interruption
    assert core.take() == []
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == [cancelled(1)]
    assert core.tables()["timers"] == core.tables()["dispatched"] == 0


def test_a_running_task_is_stopped(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    assert core.scheduler.counts.stopped == 1
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == [cancelled(1)]
    core.wait(3 * GRACE_SECONDS)
    core.submit(C, [2])  # the worker is free again
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_the_answer_says_where_the_task_was(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    event = results_event(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    event.tracebacks = [b"Traceback (most recent call last):\n  here\n"]
    core.feed(event)
    assert core.take() == [resolved(1, outcome=CANCELLED, body=event.tracebacks[0])]


def test_the_end_of_its_process_is_requested_until_it_has_ended(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.wait(GRACE_SECONDS - 0.01)
    assert core.take() == []
    core.wait(0.02)
    assert core.take() == [END]
    for _ in range(3):
        core.wait(GRACE_SECONDS - 0.02)
        assert core.take() == []
        core.wait(0.03)
        assert core.take() == [END]
    core.died(A, 22, ROW)
    assert core.take() == [cancelled(1)]
    core.wait(3 * GRACE_SECONDS)
    assert core.tables()["timers"] == core.tables()["waiting"] == 0


def test_a_worker_that_cannot_even_answer_the_retract_is_ended(core):
    """The task runs and holds the GIL, so that its worker has not reported it."""
    queued(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [RETRACT]
    core.wait(2 * GRACE_SECONDS)
    assert core.take() == [END, END]
    core.died(A, 22, ROW)
    assert core.take() == [cancelled(1)]


def test_the_process_dies_while_it_runs_another_task(core):
    """The cancelled task is answered as cancelled. The running task counts the death."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.take()
    core.cancel(C, 1, force=True)
    assert core.take() == [RETRACT]
    core.died(A, 22, (11, 2, 1))
    assert core.take() == [cancelled(1)]
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 2, 2)]


def test_without_an_agent_the_process_cannot_be_ended(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.worker(W, 22)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.wait(3 * GRACE_SECONDS)
    assert core.take() == []
    core.agent(A, 33)  # another attempt
    core.wait(GRACE_SECONDS)
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [cancelled(1)]


def test_the_agent_comes_back_before_the_process_is_ended(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.agent(b"agent anew", 33)
    core.wait(GRACE_SECONDS)
    assert core.take() == [("end worker", b"agent anew", 22, ROW, "cancelled")]


@pytest.mark.parametrize("is_running", [False, True])
def test_the_result_comes_before_the_stop(core, is_running):
    joined(core)
    core.submit(C, [1])
    core.take()
    if is_running:
        core.started(W, ROW)
        core.take()
    core.cancel(C, 1, force=True)
    core.results(W, [ROW], outcome=VALUE, body=b"v")
    assert core.take() == [STOP if is_running else RETRACT, resolved(1, body=b"v")]
    core.retracted(W, [ROW], 0)
    core.wait(2 * GRACE_SECONDS)
    assert core.take() == []
    assert core.tables()["timers"] == 0


@pytest.mark.parametrize("outcome", [EXCEPTION, RETRYABLE, 2, 3])
@pytest.mark.parametrize("is_running", [False, True])
def test_every_other_outcome_is_a_cancel(core, outcome, is_running):
    joined(core)
    core.submit(C, [1], retries=5)
    core.take()
    if is_running:
        core.started(W, ROW)
        core.take()
    core.cancel(C, 1, force=True)
    core.results(W, [ROW], outcome=outcome, body=b"e")
    assert core.take() == [STOP if is_running else RETRACT, cancelled(1)]


def test_a_cancel_by_force_twice(core):
    joined(core)
    running(core)
    core.cancel(C, 1, 1, force=True)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.wait(GRACE_SECONDS)
    core.cancel(C, 1, force=True)
    assert core.take() == [END]
    core.results(W, [ROW], outcome=EXCEPTION)
    core.cancel(C, 1, force=True)
    assert core.take() == [cancelled(1)]


def test_force_after_a_plain_cancel_that_was_refused(core):
    joined(core)
    running(core)
    core.cancel(C, 1)
    core.cancel(C, 1, force=True)
    assert core.take() == [REFUSED, STOP]


def test_force_after_a_plain_cancel_without_an_answer(core):
    queued(core)
    core.cancel(C, 1)
    assert core.take() == [RETRACT]
    core.cancel(C, 1, force=True)
    assert core.take() == []
    core.retracted(W, [ROW], 0)
    assert core.take() == [STOP]  # the cancel is not refused
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [cancelled(1)]


def test_force_after_a_plain_cancel_that_a_stuck_worker_does_not_answer(core):
    queued(core)
    core.cancel(C, 1)
    core.wait(10)
    core.cancel(C, 1, force=True)
    assert core.take() == [RETRACT]
    core.wait(GRACE_SECONDS)
    assert core.take() == [END]


@pytest.mark.parametrize("is_running", [False, True])
def test_a_plain_cancel_after_force(core, is_running):
    joined(core)
    core.submit(C, [1])
    core.take()
    if is_running:
        core.started(W, ROW)
        core.take()
    core.cancel(C, 1, force=True)
    core.cancel(C, 1)
    assert core.take() == [STOP if is_running else RETRACT]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [cancelled(1)]


def test_a_retract_and_a_stop_interrupt_the_task_once(core):
    """A second interruption would hit the task in its cleanup."""
    queued(core)
    core.cancel(C, 1)
    core.started(W, ROW)
    core.cancel(C, 1, force=True)
    assert core.take() == [RETRACT, ("started", C, [1]), STOP]
    core.retracted(W, [ROW], 0)
    assert core.take() == []
    assert core.scheduler.counts.stopped == 1


def test_a_suspended_task(core):
    joined(core)
    running(core)
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.resumed(b"nested", ROW)
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [cancelled(1)]


def test_the_worker_is_lost_while_it_is_stopped(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    core.feed(events.Goodbye(W, ""))
    assert core.take() == [STOP, cancelled(1)]
    assert core.tables()["timers"] == 0


def test_a_worker_that_has_left_gets_no_stop(core):
    joined(core)
    running(core)
    core.feed(events.Cancel(C, array("q", [1]), True), events.Goodbye(W, ""))
    assert core.take() == [cancelled(1)]


def test_the_connection_is_lost_and_the_task_runs_on(core):
    """The stop may be lost with the connection. Without a second stop, the task would occupy its worker for ever."""
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == [("stop", W2, [ROW])]
    core.wait(GRACE_SECONDS)
    assert core.take() == [END]
    core.died(A, 22, ROW)
    assert core.take() == [cancelled(1)]
    assert core.tables()["unclaimed"] == core.tables()["timers"] == 0


def test_the_connection_is_lost_before_a_queued_task_was_given_back(core):
    queued(core)
    core.cancel(C, 1, force=True)
    core.worker(W2, 22, agent=33)
    assert core.take() == [RETRACT, cancelled(1)]
    core.wait(2 * GRACE_SECONDS)
    assert core.tables()["timers"] == 0


def test_stops_of_one_worker_are_one_message(core):
    """One task runs; its parents are suspended."""
    joined(core)
    core.client(b"nested", 99, worker=22)
    rows = []
    for task_id in range(1, 6):
        rows.append(running(core, task_id))
        core.suspended(b"nested", rows[-1])
    core.cancel(C, *range(1, 6), force=True)
    assert core.take() == [("stop", W, rows)]
    core.results(W, rows, outcome=EXCEPTION)
    assert core.take() == [cancelled(1, 2, 3, 4, 5)]


def test_a_thousand_at_once(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 2001), 2)
    rows = core.take_dispatched(W)
    core.cancel(C, *range(1, 2001), force=True)
    assert core.take() == [cancelled(*range(1001, 2001)), ("retract", W, rows)]
    core.retracted(W, rows[1:], 1)
    core.retracted(W, rows[:1], 0)
    assert [sent for sent in core.take() if sent[0] != "credit"] == [cancelled(*range(2, 1001)), STOP]
    core.results(W, rows[:1], outcome=EXCEPTION)
    assert core.take() == [cancelled(1)]
    assert core.tables()["timers"] == 0


def test_a_cancel_in_the_turn_of_the_dispatch(core):
    joined(core)
    core.feed(submit_event(C, [1, 2], [1], [b"", b""], []))
    assert core.take_dispatched(W) == [ROW]
    core.feed(events.Cancel(C, array("q", [1, 2]), True), events.Cancel(C, array("q", [1, 2]), False))
    assert core.take() == [cancelled(2), RETRACT]
