"""Clients that leave with tasks on workers, and may come back. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    C2,
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
    running,
)

from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS
from scaler_scheduler.core.state.history import ENDED

ROW = (11, 1, 1)
RETRACT, STOP = ("retract", W, [ROW]), ("stop", W, [ROW])
AGAIN = ("dispatch", W, [(11, 1, 2, 1, b"")])


def left(core, is_running):
    """A client has left while the worker held its task, queued or running."""
    joined(core)
    if is_running:
        running(core)
    else:
        core.submit(C, [1])
        core.take()
    core.goodbye(C)
    assert core.take() == [STOP if is_running else RETRACT]
    assert core.tables()["clients"] == 0
    assert core.tables()["clients by incarnation"] == 1


def came_back(core):
    core.client(C2, 11)
    core.function(C2, 1, b"f")


def is_empty(core):
    tables = core.tables()
    return not (tables["clients by incarnation"] or tables["functions"] or tables["timers"] or tables["dispatched"])


def test_all_tasks_of_a_client_that_has_left_are_counted_and_recorded(core):
    """Some wait as rows of a batch, and one is on a worker."""
    joined(core)
    core.submit(C, [1])
    core.submit(C, range(10, 40), capabilities=frozenset({("gpu", 1)}))
    core.cancel(C, 12)
    core.take()
    counts, kept = core.scheduler.counts, core.scheduler.tables.history
    before, begin = counts.outcomes[CANCELLED], kept.next_row
    core.goodbye(C)
    core.take()
    core.retracted(W, [ROW], 1)
    core.take()
    ended = [
        (run.ids[row], run.outcomes[row % len(run.outcomes)], run.errors[row])
        for run in kept.rows(begin, 1000)[1]
        for row in range(len(run.ids))
        if run.kinds[row % len(run.kinds)] == ENDED
    ]
    gone = [*range(10, 12), *range(13, 40), 1]
    assert sorted(ended) == sorted((task_id, CANCELLED, "its client has left") for task_id in gone)
    assert counts.outcomes[CANCELLED] - before == len(gone) and is_empty(core)
    assert len(kept.rows(begin, 1000)[1]) <= 3, "a run for a batch, and the others packed"


@pytest.mark.parametrize("given", [0, 1])
def test_a_queued_task(core, given):
    left(core, False)
    core.retracted(W, [ROW], given)
    if not given:
        assert core.take() == [STOP]
        core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [("forget", W, [1])]
    assert is_empty(core)


@pytest.mark.parametrize("outcome", [VALUE, EXCEPTION, RETRYABLE, 2, 3])
@pytest.mark.parametrize("is_running", [False, True])
def test_late_answers(core, outcome, is_running):
    left(core, is_running)
    core.results(W, [ROW], outcome=outcome, body=b"x")
    core.retracted(W, [ROW], 0)
    assert core.take() == [("forget", W, [1])]
    assert is_empty(core)
    core.results(W, [ROW])
    assert core.scheduler.counts.late_results == 1


def test_a_running_task_is_stopped_and_then_its_process_is_ended(core):
    left(core, True)
    core.wait(2 * GRACE_SECONDS)
    end = ("end worker", A, 22, ROW, "its client has left")
    assert core.take() == [end, end]
    core.died(A, 22, ROW)
    assert is_empty(core)


def test_the_lease_runs_out(make_core):
    core = make_core(client_timeout_seconds=10)
    joined(core)
    running(core)
    core.submit(C, [2, 3])
    core.wait(11)
    assert core.take() == [STOP]
    assert core.tables()["waiting"] == 0
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [("forget", W, [1])]
    assert is_empty(core)


def test_the_worker_leaves_too(core):
    left(core, True)
    core.goodbye(A)
    assert is_empty(core)


def test_two_clients_leave_and_one_stays(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.client(b"client 3", 13)
    core.function(b"client 3", 2, b"g")
    for route in (C, C2, b"client 3"):
        core.submit(route, [1], 2)
    assert len(core.take_dispatched(W)) == 3
    core.goodbye(C)
    core.goodbye(C2)
    assert core.take() == [RETRACT, ("retract", W, [(12, 1, 1)])]
    core.results(W, [(11, 1, 1), (13, 1, 1), (12, 1, 1)], body=b"x")
    credit, answer = core.take()
    assert credit[:2] == ("credit", b"client 3")  # this client is alone now
    assert answer == resolved(1, body=b"x", route=b"client 3")
    assert core.tables()["clients by incarnation"] == 1


@pytest.mark.parametrize("intent", ["cancel", "force", "time limit"])
def test_the_task_has_an_intent_already(core, intent):
    joined(core)
    core.submit(C, [1], timeout_seconds=1.0)
    core.take()
    if intent == "time limit":
        core.started(W, ROW)
        core.wait(1)
        assert core.take() == [("started", C, [1]), STOP]
    else:
        core.cancel(C, 1, force=intent == "force")
        assert core.take() == [RETRACT]
    core.goodbye(C)
    assert core.take() == []
    core.wait(GRACE_SECONDS)
    assert core.take() == [("end worker", A, 22, ROW, "its client has left")]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [("forget", W, [1])]
    assert is_empty(core)


# ------------------------------------------------------------------------------------------------------- it comes back


def test_the_client_returns_and_the_task_runs_again(core):
    left(core, False)
    came_back(core)
    core.submit(C2, [1])
    assert core.take() == []  # the row is known
    core.retracted(W, [ROW], 1)
    assert core.take() == [AGAIN]
    core.results(W, [(11, 1, 2)])
    assert core.take() == [resolved(1, route=C2)]
    assert core.tables()["timers"] == 0


def test_the_client_returns_while_the_task_is_stopped(core):
    left(core, True)
    came_back(core)
    core.submit(C2, [1])
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == [AGAIN]
    core.results(W, [(11, 1, 2)])
    assert core.take() == [resolved(1, route=C2)]


def test_the_client_returns_and_the_value_comes_before_the_stop(core):
    left(core, True)
    came_back(core)
    core.results(W, [ROW], body=b"v")
    assert core.take() == [resolved(1, body=b"v", route=C2)]


def test_the_worker_kept_the_task(core):
    """The task had begun before the retract. It is stopped all the same, and runs again."""
    left(core, False)
    came_back(core)
    core.retracted(W, [ROW], 0)
    assert core.take() == [STOP]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [AGAIN]


def test_a_requested_death_does_not_count(make_core):
    core = make_core(task_retries=0)
    left(core, True)
    came_back(core)
    core.wait(GRACE_SECONDS)
    assert core.take() == [("end worker", A, 22, ROW, "its client had left")]
    core.died(A, 22, ROW)
    core.worker(W, 23)
    assert core.take_dispatched(W) == [(11, 1, 2)]


def test_a_client_leaves_returns_and_leaves_again(core):
    """The task must not run for a client that has left."""
    left(core, True)
    came_back(core)
    core.submit(C2, [1])
    core.goodbye(C2)
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [("forget", W, [1])]
    assert is_empty(core)


def test_a_client_leaves_and_returns_many_times(core):
    left(core, False)
    for number in range(5):
        core.client(b"client %d" % number, 11)
        core.goodbye(b"client %d" % number)
    came_back(core)
    core.submit(C2, [1])
    core.retracted(W, [ROW], 1)
    assert core.take() == [AGAIN]


@pytest.mark.parametrize("force", [False, True])
def test_a_returned_client_cancels_its_task(core, force):
    left(core, True)
    came_back(core)
    core.cancel(C2, 1, force=force)
    assert core.take() == []  # it is being stopped
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=CANCELLED, route=C2)]


@pytest.mark.parametrize("force", [False, True])
def test_a_returned_client_cancels_its_task_during_the_retract(core, force):
    left(core, False)
    came_back(core)
    core.cancel(C2, 1, force=force)
    core.retracted(W, [ROW], 1)
    assert core.take() == [resolved(1, outcome=CANCELLED, route=C2)]


def test_a_start_is_reported_after_the_client_returns(core):
    left(core, False)
    core.started(W, ROW)
    assert core.take() == []
    came_back(core)
    core.started(W, ROW)
    assert core.take() == [("started", C2, [1])]


def test_the_worker_is_lost_after_the_client_returns(core):
    left(core, True)
    came_back(core)
    core.goodbye(W)
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 1, 2)]


def test_waiting_tasks_are_submitted_again(core):
    """Rows that were dropped when it left are new ones."""
    joined(core)
    core.submit(C, [1, 2, 3], body=b"x")
    core.take()
    core.goodbye(C)
    came_back(core)
    core.submit(C2, [1, 2, 3], body=b"x")
    assert core.tables()["waiting"] == 2
    core.retracted(W, [ROW], 1)
    assert core.take()[:2] == [RETRACT, ("dispatch", W, [(11, 1, 2, 1, b"x")])]


def test_the_worker_joins_again_with_a_task_of_a_client_that_has_left(core):
    """The task is stopped on the new connection too, and no attempt is counted."""
    left(core, True)
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == [("stop", W2, [ROW])]
    core.results(W2, [ROW], outcome=EXCEPTION)
    assert core.take() == []  # it was not sent the function
    assert is_empty(core)
    assert core.tables()["ranks"] == core.tables()["unclaimed"] == 0


def test_the_client_returns_and_the_worker_joins_again(core):
    left(core, True)
    came_back(core)
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == [("stop", W2, [ROW])]
    core.results(W2, [ROW], outcome=EXCEPTION)
    assert core.take_dispatched(W2) == [(11, 1, 2)]
