"""options(timeout=…): a task that exceeds its time limit is stopped. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    CANCELLED,
    EXCEPTION,
    TIMED_OUT,
    VALUE,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    results_event,
    running,
)

from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS
from scaler_scheduler.core.effects import FLAG_REPORT_START

ROW = (11, 1, 1)
RETRACT, STOP = ("retract", W, [ROW]), ("stop", W, [ROW])
SPECIAL = (FLAG_REPORT_START, 0, 0)
TEXT = b"function 1#1: stopped after its time limit of 5 s"
TIMED_OUT_1 = resolved(1, outcome=TIMED_OUT, body=TEXT)
END = ("end worker", A, 22, ROW, "time limit of 5 s")


def started(core, **options):
    joined(core)
    assert running(core, 1, timeout_seconds=5.0, **options) == ROW


def test_the_worker_is_asked_to_report_the_start(core):
    joined(core)
    core.submit(C, [1, 2], timeout_seconds=0.5)
    assert core.take()[1:] == [("dispatch", W, [(11, 1, 1, 1, b"")], {0: SPECIAL})]
    core.results(W, [ROW])
    assert core.take() == [("dispatch", W, [(11, 2, 1, 1, b"")], {0: SPECIAL}), resolved(1)]
    core.died(A, 22)
    core.worker(W2, 23)  # so is the next attempt
    assert core.take()[1:] == [("dispatch", W2, [(11, 2, 2, 1, b"")], {0: SPECIAL})]


def test_a_task_within_its_limit(core):
    started(core)
    core.wait(4.9)
    core.results(W, [ROW], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]
    core.wait(10)
    assert core.tables()["timers"] == 0


def test_the_limit_counts_from_the_start(core):
    joined(core)
    core.submit(C, [1], timeout_seconds=5.0)
    core.take()
    core.wait(20)
    core.started(W, ROW)
    core.wait(4.9)
    assert core.take() == [("started", C, [1])]
    core.wait(0.2)
    assert core.take() == [STOP]


def test_a_task_past_its_limit_is_interrupted(core):
    started(core)
    core.wait(5)
    assert core.take() == [STOP]
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == [TIMED_OUT_1]
    core.wait(3 * GRACE_SECONDS)
    assert core.tables()["timers"] == core.tables()["dispatched"] == 0


def test_the_answer_says_where_the_task_was(core):
    started(core)
    core.wait(5)
    assert core.take() == [STOP]
    event = results_event(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    event.tracebacks = [b"Traceback (most recent call last):\n  here\n"]
    core.feed(event)
    assert core.take() == [resolved(1, outcome=TIMED_OUT, body=TEXT + b"\n" + event.tracebacks[0])]


def test_its_process_is_ended_if_the_interruption_fails(core):
    started(core, name="mine", retries=3)
    core.wait(5)
    assert core.take() == [STOP]
    core.wait(2 * GRACE_SECONDS)
    assert core.take() == [END, END]
    core.died(A, 22, ROW)
    text = b"mine#1: stopped after its time limit of 5 s"  # it is not retried
    assert core.take() == [resolved(1, outcome=TIMED_OUT, body=text)]


def test_a_value_that_comes_before_the_stop_counts(core):
    started(core)
    core.wait(5)
    core.results(W, [ROW], body=b"v")
    assert core.take() == [STOP, resolved(1, body=b"v")]
    core.wait(3 * GRACE_SECONDS)


def test_a_task_that_ignores_its_stop_has_failed(core):
    started(core, retries=3)
    core.wait(5.5)
    core.results(W, [ROW], 5_400_000_000, body=b"v")
    assert core.take() == [STOP, TIMED_OUT_1]
    core.wait(3 * GRACE_SECONDS)


def test_a_repeated_start_changes_nothing(core):
    """The long-task watcher repeats it, as for every long task."""
    started(core)
    core.wait(4)
    core.started(W, ROW)
    assert core.take() == [("started", C, [1])]
    core.wait(1)
    assert core.take() == [STOP]
    core.started(W, ROW)
    assert core.take() == [("started", C, [1])]
    core.wait(GRACE_SECONDS)
    assert core.take() == [END]


def test_the_limit_holds_for_a_suspended_task(core):
    started(core)
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW)
    core.wait(5)
    assert core.take() == [STOP]
    core.resumed(b"nested", ROW)
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [TIMED_OUT_1]


def test_the_start_is_reported_after_the_suspension(core):
    """They come by two connections."""
    joined(core)
    core.submit(C, [1], timeout_seconds=5.0)
    core.take()
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW)
    assert core.take() == [("started", C, [1])]
    core.started(W, ROW)
    core.wait(5)
    assert core.take() == [("started", C, [1]), STOP]


@pytest.mark.parametrize("force", [False, True])
def test_cancelled_while_it_is_stopped(core, force):
    started(core)
    core.wait(5)
    core.cancel(C, 1, force=force)
    assert core.take() == [STOP]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [TIMED_OUT_1]


def test_its_limit_ends_while_it_is_being_cancelled(core):
    started(core)
    core.wait(4)
    core.cancel(C, 1, force=True)
    assert core.take() == [STOP]
    core.wait(GRACE_SECONDS)
    assert core.take() == [("end worker", A, 22, ROW, "cancelled")]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=CANCELLED)]


def test_it_begins_before_the_cancel_arrives(core):
    """The cancel is refused, and the limit still holds."""
    joined(core)
    core.submit(C, [1], timeout_seconds=5.0)
    core.take()
    core.cancel(C, 1)
    core.started(W, ROW)
    core.retracted(W, [ROW], 0)
    assert core.take() == [RETRACT, ("started", C, [1]), ("cancel refused", C, [1])]
    core.wait(5)
    assert core.take() == [STOP]


def test_its_limit_ends_before_the_retract_is_answered(core):
    joined(core)
    core.submit(C, [1], timeout_seconds=5.0)
    core.take()
    core.cancel(C, 1)
    core.started(W, ROW)
    assert core.take() == [RETRACT, ("started", C, [1])]
    core.wait(5)
    assert core.take() == [STOP]
    core.retracted(W, [ROW], 0)  # neither refused nor stopped again
    assert core.take() == []
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [TIMED_OUT_1]


def test_it_begins_before_the_retract_for_balance_arrives(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2, timeout_seconds=5.0)
    core.take()
    core.started(W, ROW)
    core.worker(W2, 23)
    assert core.take() == [("started", C, [1]), ("retract", W, [(11, 2, 1)])]
    core.results(W, [ROW])
    core.started(W, (11, 2, 1))
    core.retracted(W, [(11, 2, 1)], 0)
    assert core.take() == [resolved(1), ("started", C, [2])]
    core.wait(5)
    assert core.take() == [("stop", W, [(11, 2, 1)])]


def test_another_attempt_has_the_whole_limit(core):
    started(core)
    core.wait(4)
    core.died(A, 22, ROW)
    core.worker(W, 23, agent=33)
    assert core.take_dispatched(W) == [(11, 1, 2)]
    core.wait(10)
    core.started(W, (11, 1, 2))
    assert core.take() == [("started", C, [1])]
    core.wait(4.9)
    assert core.take() == []
    core.wait(0.2)
    assert core.take() == [("stop", W, [(11, 1, 2)])]


def test_the_connection_is_lost_while_it_is_stopped(core):
    started(core)
    core.wait(5)
    assert core.take() == [STOP]
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == [("stop", W2, [ROW])]
    core.wait(GRACE_SECONDS)
    assert core.take() == [END]
    core.died(A, 22, ROW)
    assert core.take() == [TIMED_OUT_1]


def test_many_limits_at_many_times(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    for task_id in range(1, 11):
        core.submit(C, [task_id], 2, timeout_seconds=float(task_id % 5 + 1))
    rows = core.take_dispatched(W)
    assert len(rows) == 10
    core.started(W, *rows)
    core.take()
    for second in range(5):
        core.wait(1)
        assert core.take() == [("stop", W, [row for row in rows if row[1] % 5 == second])]
        core.results(W, [row for row in rows if row[1] % 5 == second], outcome=VALUE)
        assert [sent[0] for sent in core.take()] == ["resolved"]
    assert core.tables()["timers"] == 0
