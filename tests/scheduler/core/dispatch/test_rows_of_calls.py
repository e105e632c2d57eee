"""Rows that stand for several calls: how they are counted, dispatched and ended. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from tests.scheduler.core.harness import (
    C2,
    CANCELLED,
    EXCEPTION,
    MILLISECOND,
    RETRYABLE,
    VALUE,
    W2,
    WORKER_DIED,
    A,
    C,
    Core,
    Row,
    W,
    dispatched,
    joined,
    resolved,
    results_event,
    rows_of,
)

from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS
from scaler_scheduler.core.effects import FLAG_CALLS
from scaler_scheduler.core.placement.prefetch import TARGET_NS
from scaler_scheduler.core.scheduler import LONG_TASK_NS
from scaler_scheduler.core.state.functions import MOST_ROW_NS


def answer(
    core: Core, rows: Sequence[Row], calls: Sequence[int] = (), nanoseconds: int = 1000, outcome: int = VALUE
) -> None:
    """The worker answers these rows. `calls` is the column of that name."""
    event = results_event(W, rows, nanoseconds, outcome)
    event.calls = array("I", calls)
    core.feed(event)


def open_calls(core: Core) -> tuple[int, int]:
    """The calls that wait, and the calls that workers hold. The tables of functions must agree with them."""
    counts = core.scheduler.counts
    of_functions = sum(function.tasks + function.further_calls for function in core.scheduler.tables.functions)
    assert of_functions == counts.waiting_calls + counts.dispatched_calls
    return counts.waiting_calls, counts.dispatched_calls


def ended_calls(core: Core) -> dict[int, int]:
    """The number of resolved calls by outcome, without zeros."""
    return {outcome: count for outcome, count in enumerate(core.scheduler.counts.by_outcome()) if count}


def done(core: Core) -> tuple[int, int]:
    """What the client and the worker have done, in calls."""
    tables = core.scheduler.tables
    client, worker = tables.clients.find(11), tables.workers.find(22)
    return client.answered_tasks, worker.done_tasks


def taught(core: Core, nanoseconds: int = 1000) -> None:
    """A client, a worker, and function 2, whose run time is known from task 0. Its counts are included in tests."""
    joined(core)
    core.teach(C, W, 2, b"g", nanoseconds, 0)


@pytest.mark.parametrize("calls, flags", [(0, 0), (1, FLAG_CALLS), (1000, FLAG_CALLS)])
def test_the_worker_learns_that_a_row_stands_for_calls(core, calls, flags):
    joined(core)
    core.submit(C, [1], body=b"x", calls=calls, priority=1)
    assert core.take()[-1] == ("dispatch", W, [(11, 1, 1, 1, b"x")], {0: (flags, 0, 1)})


def test_rows_count_as_their_calls(core):
    taught(core)
    core.submit(C, [1, 2], 2, calls=1000)
    core.submit(C, [3], 2)
    assert (open_calls(core), core.tables()["dispatched"]) == ((0, 2001), 3)
    rows = core.take_dispatched(W)
    assert core.scheduler.tables.workers.find(22).sent_tasks == 2002
    answer(core, rows, [1000, 1000, 0], 100_000)
    assert core.take() == [resolved(1, 2, 3)]
    assert (open_calls(core), ended_calls(core), done(core)) == ((0, 0), {VALUE: 2002}, (2002, 2002))
    function = next(iter(core.scheduler.tables.functions))
    assert function.done_tasks + function.failed_tasks == 0, "no other function is counted"
    function = list(core.scheduler.tables.functions)[1]
    assert (function.done_tasks, function.run_ns) == (2002, 301_000)


def test_waiting_rows_count_as_their_calls(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, range(1, 4), calls=500)
    assert (open_calls(core), core.tables()["waiting"]) == ((1500, 0), 3)
    assert core.scheduler.tables.clients.find(11).waiting_calls == 1500


@pytest.mark.parametrize(
    "calls, ended", [((), 1000), ((0,), 1000), ((1000,), 1000), ((17,), 17), ((1 << 32 - 1,), 1000)]
)
def test_a_row_may_end_with_fewer_calls(core, calls, ended):
    """The client submits the other calls again. A number above that of the row is wrong, and changes nothing."""
    taught(core)
    core.submit(C, [1], 2, calls=1000)
    answer(core, core.take_dispatched(W), calls, ended * 3000)
    assert core.take() == [resolved(1)]
    assert (open_calls(core), ended_calls(core), done(core)) == ((0, 0), {VALUE: ended + 1}, (ended + 1, ended + 1))
    function = list(core.scheduler.tables.functions)[1]
    assert (function.done_tasks, function.mean_ns > 1000) == (ended + 1, True)


def test_a_long_call_in_a_row_counts_little_in_the_mean(core):
    """Its row counts with MOST_ROW_NS in the mean of the run times, and fully in their sum."""
    taught(core)
    core.submit(C, [1], 2, calls=10)
    answer(core, core.take_dispatched(W), [10], 1_000_000_000)
    assert core.take() == [resolved(1)]
    function = list(core.scheduler.tables.functions)[1]
    assert function.mean_ns <= MOST_ROW_NS // 10 and function.run_ns >= 1_000_000_000


def test_calls_of_a_plain_row_are_ignored(core):
    taught(core)
    core.submit(C, [1], 2)
    answer(core, core.take_dispatched(W), [1_000_000])
    assert core.take() == [resolved(1)]
    assert (ended_calls(core), done(core)) == ({VALUE: 2}, (2, 2))


def test_a_failed_call_ends_its_row(core):
    taught(core)
    core.submit(C, [1], 2, calls=1000)
    answer(core, core.take_dispatched(W), [5], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=EXCEPTION)]
    assert (open_calls(core), ended_calls(core), done(core)) == ((0, 0), {VALUE: 5, EXCEPTION: 1}, (6, 6))
    assert list(core.scheduler.tables.functions)[1].failed_tasks == 1


@pytest.mark.parametrize("calls, is_retried", [(1, True), (2, False)])
def test_only_a_row_of_one_call_is_retried(core, calls, is_retried):
    taught(core)
    core.submit(C, [1], 2, calls=calls, retries=1)
    answer(core, core.take_dispatched(W), [calls], outcome=RETRYABLE)
    if is_retried:
        assert core.take_dispatched(W) == [(11, 1, 2)]
        assert ended_calls(core) == {VALUE: 1}
    else:
        assert core.take() == [resolved(1, outcome=EXCEPTION)]
        assert ended_calls(core) == {VALUE: 2, EXCEPTION: 1}


def test_a_worker_that_dies_in_a_row_of_several_calls(core):
    """The row is answered at once. The client sends its calls again, so none of them counts as ended."""
    taught(core)
    core.submit(C, [1, 2], 2, calls=1000, retries=5)
    assert len(core.take_dispatched(W)) == 2
    core.died(A, 22, (11, 1, 1))
    ((name, route, rows),) = core.take()
    assert (name, route, [row[:2] for row in rows]) == ("resolved", C, [(1, WORKER_DIED)])
    assert b"the worker died in its only attempt" in rows[0][2]
    assert (open_calls(core), ended_calls(core)) == ((1000, 0), {VALUE: 1}), "the queued row waits again"
    assert core.scheduler.tables.clients.find(11).answered_tasks == 1
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 2, 2)]


def test_a_worker_that_dies_in_a_row_of_one_call(make_core):
    core = make_core(task_retries=1)
    taught(core)
    core.submit(C, [1], 2, calls=1)
    core.take()
    core.died(A, 22, (11, 1, 1))
    assert (core.take(), open_calls(core)) == ([], (1, 0))
    core.worker(W2, 23, agent=33)
    assert core.take_dispatched(W2) == [(11, 1, 2)]
    core.died(A, 23, (11, 1, 2))
    assert [row[:2] for row in core.take()[0][2]] == [(1, WORKER_DIED)]
    assert ended_calls(core) == {VALUE: 1, WORKER_DIED: 1}


def test_cancelled_rows(core):
    """A row that waits, one that is queued at a worker, and one that runs."""
    taught(core)
    core.submit(C, [1, 2], 2, calls=10)
    core.take()
    core.started(W, (11, 1, 1))
    core.submit(C, [3], 2, calls=100)
    core.take()
    assert open_calls(core) == (100, 20)
    core.cancel(C, 1, 2, 3)
    assert core.take() == [
        ("cancel refused", C, [1]),
        resolved(3, outcome=CANCELLED),
        ("retract", W, [(11, 2, 1)]),
    ]
    assert (open_calls(core), ended_calls(core)) == ((0, 20), {VALUE: 1, CANCELLED: 100})
    core.retracted(W, [(11, 2, 1)], 1)
    assert core.take() == [resolved(2, outcome=CANCELLED)]
    answer(core, [(11, 1, 1)], [10])
    assert core.take() == [resolved(1)]
    assert (open_calls(core), ended_calls(core)) == ((0, 0), {VALUE: 11, CANCELLED: 110})
    assert done(core) == (121, 11)


def test_a_running_row_that_is_cancelled_by_force(core):
    taught(core)
    core.submit(C, [1], 2, calls=10)
    core.take()
    core.started(W, (11, 1, 1))
    core.cancel(C, 1, force=True)
    assert ("stop", W, [(11, 1, 1)]) in core.take()
    answer(core, [(11, 1, 1)], [4], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=CANCELLED)]
    assert (open_calls(core), ended_calls(core)) == ((0, 0), {VALUE: 1, CANCELLED: 10})
    assert core.scheduler.tables.clients.find(11).answered_tasks == 11


@pytest.mark.parametrize("is_waiting_again", [False, True])
def test_rows_of_a_client_that_leaves(core, is_waiting_again):
    """A row that waits, one that waits again, and one that a worker holds."""
    taught(core)
    core.submit(C, [1, 2], 2, calls=10)
    core.take()
    if is_waiting_again:
        core.died(A, 22)
        assert open_calls(core) == (20, 0)
    else:
        core.started(W, (11, 1, 1))
        core.submit(C, [3], 2, calls=100)
        assert open_calls(core) == (100, 20)
    core.goodbye(C)
    counts = core.scheduler.counts
    if is_waiting_again:
        assert ended_calls(core) == {VALUE: 1, CANCELLED: 20}
    else:
        assert (counts.waiting_calls, counts.dispatched_calls) == (0, 20)
        core.retracted(W, [(11, 2, 1)], 1)
        answer(core, [(11, 1, 1)], [10])
        assert sum(ended_calls(core).values()) == 121
    assert (counts.waiting_calls, counts.dispatched_calls) == (0, 0)
    core.take()


def test_a_client_that_leaves_is_counted_once_for_each_task(core):
    """A plain task that waits again is one cancelled task."""
    taught(core)
    core.submit(C, [1, 2, 3], 2)
    core.died(A, 22)
    core.take()
    core.goodbye(C)
    assert ended_calls(core) == {VALUE: 1, CANCELLED: 3}


def test_queued_rows_move_to_an_idle_worker(core):
    taught(core)
    core.submit(C, range(1, 5), 2, calls=1000)
    core.take()
    core.started(W, (11, 1, 1))
    core.worker(W2, 23)
    (retract,) = [sent for sent in core.take() if sent[0] == "retract"]
    assert [row[1] for row in retract[2]] == [4, 3]
    assert list(core.scheduler.tables.functions)[1].mean_ns * 1000 < 2 * LONG_TASK_NS, (
        "a call is not as long as its row"
    )
    core.retracted(W, retract[2], 1)
    (given,) = [sent for sent in core.take() if sent[0] == "dispatch"]
    assert given[1] == W2 and set(given[3].values()) == {(FLAG_CALLS, 0, 0)}
    assert open_calls(core) == (0, 4000)


def test_long_and_short_rows_that_wait_again_are_not_mixed(core):
    """How many rows a worker gets depends on the cost of the first."""
    taught(core)
    core.submit(C, range(1, 4), 2, calls=1)
    core.submit(C, range(4, 7), 2, calls=15_000)
    core.died(A, 22)
    core.take()
    core.worker(W, 24)
    (given,) = [sent[2] for sent in core.take() if sent[0] == "dispatch"]
    assert [row[1] for row in given] == [1, 2, 3, 4]
    worker = core.scheduler.tables.workers.find(24)
    assert worker.load_ns == 3 * 1000 + TARGET_NS
    assert open_calls(core) == (30_000, 15_003)


def test_prefetch_goes_by_the_cost_of_rows(core):
    taught(core)
    core.submit(C, range(1, 101), 2, calls=4000)
    assert dispatched(core) == {W: TARGET_NS // (4000 * 1000) + 1}
    assert core.scheduler.tables.workers.find(22).load_ns == 4 * 4000 * 1000


def test_rows_after_a_restart(core):
    """The client submits its rows again, and a worker names one of them as running."""
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2], calls=1000)
    core.worker(W, 22, running=[(11, 1, 1)])
    assert open_calls(core) == (1000, 1000)
    answer(core, [(11, 1, 1)], [400])
    sent = core.take()
    assert resolved(1) in sent
    assert [row[:3] for each in sent if each[0] == "dispatch" for row in each[2]] == [(11, 2, 1)]
    assert (open_calls(core), ended_calls(core)) == ((0, 1000), {VALUE: 400})


def test_a_row_that_is_submitted_again(core):
    """The scheduler still has it."""
    taught(core)
    core.submit(C, [1], 2, calls=1000)
    core.submit(C, [1, 2], 2, calls=1000)
    assert open_calls(core) == (0, 2000)
    assert rows_of(core) == [(11, 1, 1), (11, 2, 1)]


def test_time_is_shared_between_rows_and_plain_tasks(core):
    """One client sends rows of 1000 no-ops, and another plain tasks that run for as long as such a row."""
    taught(core, 2000)
    core.client(C2, 12)
    core.function(C2, 3, b"h")
    core.submit(C2, [0], 3)
    core.results(W, core.take_dispatched(W), 2 * MILLISECOND)
    core.take()
    core.submit(C, range(1, 401), 2, calls=1000)
    core.submit(C2, range(1, 401), 3)
    spent = {11: 0, 12: 0}
    for _ in range(40):
        rows = rows_of(core)
        for client, _, _ in rows:
            spent[client] += 2 * MILLISECOND
        answer(core, rows, [1000 if row[0] == 11 else 0 for row in rows], 2 * MILLISECOND)
    assert sum(spent.values()) > 500 * MILLISECOND
    assert abs(spent[11] - spent[12]) <= 3 * TARGET_NS
    core.take()


def test_time_is_shared_between_rows_and_plain_no_ops(core):
    """A worker's queue is full of plain tasks long before it has as much work as some rows are."""
    taught(core, 2000)
    core.client(C2, 12)
    core.function(C2, 3, b"g")
    core.submit(C, range(1, 401), 2, calls=1000)
    for first in range(1, 24_001, 4000):
        core.submit(C2, range(first, first + 4000), 3)
    spent = {11: 0, 12: 0}
    for _ in range(12):
        rows = rows_of(core)
        times = [2 * MILLISECOND if row[0] == 11 else 4000 for row in rows]
        for row, nanoseconds in zip(rows, times):
            spent[row[0]] += nanoseconds
        event = results_event(W, rows)
        event.durations = array("q", times)
        core.feed(event)
    assert min(spent.values()) > 20 * MILLISECOND
    assert abs(spent[11] - spent[12]) <= 2 * TARGET_NS
    core.take()


def test_the_grace_time_of_a_row_that_does_not_stop(core):
    taught(core)
    core.submit(C, [1], 2, calls=10)
    core.take()
    core.started(W, (11, 1, 1))
    core.cancel(C, 1, force=True)
    core.take()
    core.wait(GRACE_SECONDS + 1)
    assert [sent[0] for sent in core.take()] == ["end worker"]
    core.died(A, 22, (11, 1, 1))
    assert core.take() == [resolved(1, outcome=CANCELLED)]
    assert ended_calls(core) == {VALUE: 1, CANCELLED: 10}
