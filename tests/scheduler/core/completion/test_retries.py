"""Workers that die, and tasks with retryable results. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    EXCEPTION,
    MILLISECOND,
    RETRYABLE,
    W2,
    WORKER_DIED,
    A,
    C,
    W,
    joined,
    resolved,
    results_event,
    rows_of,
)


def test_what_has_begun_counts_an_attempt(make_core):
    """A worker begins tasks in order. What came before the running task is suspended, or its answer is lost."""
    core = make_core(task_retries=0)
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3], 2)
    core.take()
    core.died(A, 22, (number, 2, 1))
    (sent,) = core.take()
    assert sorted(row[:2] for row in sent[2]) == [(1, WORKER_DIED), (2, WORKER_DIED)]
    assert core.tables()["waiting"] == 1
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(number, 3, 2)]


def test_retries_and_the_final_error(make_core):
    core = make_core(task_retries=2)
    number = joined(core)
    core.submit(C, [1])
    for attempt in (1, 2, 3):
        assert core.take_dispatched(W) == [(number, 1, attempt)]
        core.died(A, 21 + attempt, (number, 1, attempt), peak_bytes=attempt << 20)
        if attempt < 3:
            core.worker(W, 22 + attempt, agent=33)
    (sent,) = core.take()
    deaths = [
        f"attempt {attempt} on host (pid 4711): signal 9 (SIGKILL), peak memory {attempt} MiB" for attempt in (1, 2, 3)
    ]
    text = f"function 1#1: the worker died in each of 3 attempts: {'; '.join(deaths)}"
    assert sent == ("resolved", C, [(1, WORKER_DIED, text.encode())])
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0


def test_a_queued_task_counts_no_attempt(make_core):
    core = make_core(task_retries=0)
    number = joined(core)
    core.submit(C, [1])
    for attempt in range(1, 10):
        assert core.take_dispatched(W) == [(number, 1, attempt)]
        core.died(A, 21 + attempt)
        core.worker(W, 22 + attempt, agent=33)
    assert core.take_dispatched(W) == [(number, 1, 10)]


@pytest.mark.parametrize("running", [(11, 1, 2), (11, 9, 1), (99, 1, 1)])
def test_a_death_that_names_a_task_of_another_worker(make_core, running):
    core = make_core(task_retries=0)
    joined(core)
    core.submit(C, [1])
    core.take()
    core.died(A, 22, running)
    assert core.tables()["waiting"] == 1


def test_a_worker_that_dies_twice_or_is_unknown(core):
    joined(core)
    core.submit(C, [1])
    core.take()
    core.died(A, 22, (11, 1, 1))
    core.died(A, 22, (11, 1, 1))
    core.died(A, 99)
    core.worker(W2, 23, agent=77)
    core.take()
    core.died(A, 23)  # a worker of another agent
    assert core.tables()["workers"] == 1


def test_requeued_tasks_go_first_and_in_their_order(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 10 * MILLISECOND, 0)
    core.submit(C, range(1, 7), 2)
    assert [row[1] for row in core.take_dispatched(W)] == [1, 2]
    core.died(A, 22)
    for name in range(4):
        core.worker(b"worker %d" % name, 100 + name)
    rows = rows_of(core)
    assert rows[:2] == [(number, 1, 2), (number, 2, 2)]
    assert sorted(row[1] for row in rows) == [1, 2, 3, 4, 5, 6]


def test_a_worker_dies_after_its_client_left(core):
    number = joined(core)
    core.submit(C, [1])
    core.take()
    core.goodbye(C)
    assert core.take() == [("retract", W, [(number, 1, 1)])]
    core.died(A, 22, (number, 1, 1))
    assert core.tables()["functions"] == core.tables()["clients by incarnation"] == 0


def death(attempt, cause="signal 9 (SIGKILL)"):
    return f"attempt {attempt} on host (pid 4711): {cause}"


def died_text(count, of, *deaths):
    if of == 1:
        return f"function 1#1: the worker died in its only attempt: {deaths[0]}".encode()
    return f"function 1#1: the worker died in {count} of {of} attempts: {'; '.join(deaths)}".encode()


def try_once(core, attempt, outcome=None):
    """The attempt fails with this outcome, or with the death of its worker, which is replaced."""
    row = (11, 1, attempt)
    assert core.take_dispatched(W) == [row]
    if outcome is None:
        core.died(A, 21 + attempt, row)
        core.worker(W, 22 + attempt, agent=33)
    else:
        core.worker(W, 22 + attempt, agent=33, running=[row])
        core.results(W, [row], outcome=outcome, body=b"attempt %d" % attempt)


@pytest.mark.parametrize("retries, attempts", [(-1, 3), (0, 1), (1, 2), (5, 6)])
@pytest.mark.parametrize("outcome", [None, RETRYABLE])
def test_a_task_may_have_its_own_limit(make_core, retries, attempts, outcome):
    core = make_core(task_retries=2)
    joined(core)
    core.submit(C, [1], retries=retries)
    for attempt in range(1, attempts + 1):
        try_once(core, attempt, outcome)
    if outcome is None:
        deaths = [death(attempt) for attempt in range(1, attempts + 1)]
        expected = resolved(1, outcome=WORKER_DIED, body=died_text("each", attempts, *deaths))
    else:
        expected = resolved(1, outcome=EXCEPTION, body=b"attempt %d" % attempts)
    assert core.take() == [expected]
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0


@pytest.mark.parametrize(
    "failures, last",
    [
        ((None, RETRYABLE, None), (WORKER_DIED, died_text(2, 3, death(1), death(3)))),
        ((RETRYABLE, RETRYABLE, None), (WORKER_DIED, died_text(1, 3, death(3)))),
        ((None, None, RETRYABLE), (EXCEPTION, b"attempt 3")),
    ],
)
def test_deaths_and_retryable_outcomes_count_together(core, failures, last):
    joined(core)
    core.submit(C, [1], retries=2)
    for attempt, outcome in enumerate(failures, 1):
        try_once(core, attempt, outcome)
    assert core.take() == [resolved(1, outcome=last[0], body=last[1])]


def test_another_outcome_ends_the_retries(core):
    joined(core)
    core.submit(C, [1], retries=5)
    core.results(W, core.take_dispatched(W), outcome=RETRYABLE, body=b"not yet")
    assert core.take_dispatched(W) == [(11, 1, 2)]
    core.results(W, [(11, 1, 2)], outcome=EXCEPTION, body=b"e")
    assert core.take() == [resolved(1, outcome=EXCEPTION, body=b"e")]


def test_retracted_and_queued_attempts_do_not_count(core):
    joined(core)
    core.submit(C, [1], retries=0)
    assert core.take_dispatched(W) == [(11, 1, 1)]
    core.worker(W, 22, agent=33)  # a lost connection
    assert core.take_dispatched(W) == [(11, 1, 2)]
    core.died(A, 22)  # it ran no task
    core.worker(W, 23)
    assert core.take_dispatched(W) == [(11, 1, 3)]
    core.goodbye(W)
    core.worker(W, 24, agent=33)
    assert core.take_dispatched(W) == [(11, 1, 4)]
    core.died(A, 24, (11, 1, 4))
    assert core.take() == [resolved(1, outcome=WORKER_DIED, body=died_text("each", 1, death(1)))]


def test_a_retryable_outcome_among_others_of_one_message(core):
    """Its bytes are cut out of the run of bytes for the client."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3], 2, body=b"x")
    rows = core.take_dispatched(W)
    event = results_event(W, rows, body=b"ab")
    event.outcomes[1] = RETRYABLE
    event.payload = b"aabbcc"
    core.feed(event)
    assert core.take() == [
        ("dispatch", W, [(11, 2, 2, 2, b"x")]),
        ("resolved", C, [(1, 0, b"aa"), (3, 0, b"cc")]),
    ]


def test_a_poison_task_costs_other_tasks_nothing(core):
    """The other tasks are queued behind it on the first worker that it kills. From then on it runs alone."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 11), 2)
    for attempt in range(1, 5):
        rows = core.take_dispatched(W)
        assert rows == [(11, task_id, attempt) for task_id in (range(1, 11) if attempt == 1 else [1])]
        core.died(A, 21 + attempt, (11, 1, attempt))
        if attempt < 4:
            core.worker(W, 22 + attempt, agent=33)
    (sent,) = core.take()
    assert [row[:2] for row in sent[2]] == [(1, WORKER_DIED)]
    core.worker(W, 30)
    rows = core.take_dispatched(W)
    for task_id in range(2, 11):
        assert [row[:2] for row in rows] == [(11, task_id)]
        core.results(W, rows)
        *dispatched, answer = core.take()
        assert answer == resolved(task_id)
        rows = [tuple(row[:3]) for sent in dispatched for row in sent[2]]


def test_the_oldest_task_of_a_silent_worker_counts_the_attempt(make_core):
    """The lease ran out without a report of a running task. The first task of the worker's queue ran, not the task that
    was submitted first."""
    core = make_core(task_retries=0, worker_timeout_seconds=10, client_timeout_seconds=1000)
    joined(core)
    core.teach(C, W, 2, b"g", MILLISECOND, 0)
    core.submit(C, [1], 2)
    core.take()
    core.worker(W2, 23)
    core.submit(C, [2], 2)
    assert core.take_dispatched(W2)[-1:] == [(11, 2, 1)]
    core.goodbye(W)  # task 1 goes behind task 2
    assert core.take_dispatched(W2) == [(11, 1, 2)]
    core.wait(11)
    (sent,) = core.take()
    assert [row[:2] for row in sent[2]] == [(2, WORKER_DIED)]


def test_a_suspended_task_counts_an_attempt(make_core):
    """Its user learns which task ended its process."""
    core = make_core(task_retries=0)
    joined(core)
    core.client(b"nested", 99, worker=22)
    core.submit(C, [1])
    core.take()
    core.suspended(b"nested", (11, 1, 1))
    core.submit(C, [2])
    core.take()
    core.died(A, 22, (11, 2, 1))
    (sent,) = core.take()
    assert [row[:2] for row in sent[2]] == [(2, WORKER_DIED), (1, WORKER_DIED)]
    assert sent[2][1][2].endswith(b"signal 9 (SIGKILL), while function 1#2 ran in the same process")
    assert core.tables()["waiting"] == 0


def test_an_exhausted_task_of_a_client_that_left(make_core):
    core = make_core(task_retries=0)
    joined(core)
    core.submit(C, [1])
    core.take()
    core.goodbye(C)
    assert core.take() == [("retract", W, [(11, 1, 1)])]
    core.results(W, [(11, 1, 1)], outcome=RETRYABLE)
    assert core.take() == [("forget", W, [1])]
    assert core.tables()["clients by incarnation"] == 0
