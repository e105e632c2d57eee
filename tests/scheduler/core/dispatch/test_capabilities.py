"""options(capabilities=…): which worker can serve which task, and which tasks wait. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    C2,
    MILLISECOND,
    W2,
    A,
    C,
    W,
    dispatched,
    joined,
    resolved,
    rows_of,
    running,
    warnings_of,
)

GPU, BIG, LINUX = ("gpu", 1), ("gpu", 4), ("linux", 1)


def needs(*wanted):
    return {"capabilities": frozenset(wanted)}


def test_a_task_goes_where_it_can_run(core):
    joined(core)
    core.worker(W2, 23, capabilities=[GPU])
    core.submit(C, [1], **needs(GPU))
    assert core.take_dispatched(W2) == [(11, 1, 1)]


@pytest.mark.parametrize(
    "has, wanted, is_able",
    [
        ([GPU], [GPU], True),
        ([BIG], [GPU], True),
        ([GPU], [BIG], False),
        ([GPU], [LINUX], False),
        ([GPU, LINUX], [LINUX], True),
        ([GPU], [GPU, LINUX], False),
        ([BIG, LINUX], [GPU, LINUX], True),
        ([], [GPU], False),
        ([GPU], [], True),
    ],
)
def test_a_worker_needs_every_capability_in_the_amount(core, has, wanted, is_able):
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.worker(W, 22, capabilities=has)
    core.submit(C, [1], **needs(*wanted))
    assert core.take_dispatched(W) == ([(11, 1, 1)] if is_able else [])


def test_an_unschedulable_task_does_not_block_others(core):
    joined(core)
    core.submit(C, [1], priority=9, **needs(GPU))
    core.submit(C, [2], **needs(GPU))
    core.submit(C, [3])
    assert core.take_dispatched(W) == [(11, 3, 1)]
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C2, [4])
    core.results(W, [(11, 3, 1)], 50 * MILLISECOND)
    assert rows_of(core) == [(12, 4, 1)]
    core.worker(W2, 23, capabilities=[GPU])
    assert core.take_dispatched(W2) == [(11, 1, 1)]  # by rank
    core.results(W2, [(11, 1, 1)], 50 * MILLISECOND)
    assert core.take()[-2:] == [("dispatch", W2, [(11, 2, 1, 1, b"")]), resolved(1)]


def test_the_able_worker_is_busy(core):
    """The task waits for this worker; other tasks run meanwhile."""
    joined(core)
    core.worker(W2, 23, capabilities=[GPU])
    core.submit(C, [1], **needs(GPU))
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    core.submit(C, [2, 3], **needs(GPU))
    core.submit(C, [4])
    assert core.take_dispatched(W) == [(11, 4, 1)]
    core.results(W2, [(11, 1, 1)], 50 * MILLISECOND)
    assert rows_of(core) == [(11, 2, 1)]


def test_an_idle_worker_with_the_capability_is_chosen(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    for number in range(20):
        core.worker(b"worker %d" % number, 100 + number, capabilities=[GPU] if number in (3, 7) else [])
    core.submit(C, [1, 2], **needs(GPU))
    core.submit(C, range(10, 28))
    counts = dispatched(core)
    assert len(counts) == 20 and set(counts.values()) == {1}


def test_a_busy_worker_with_the_capability_and_room_is_chosen(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23, capabilities=[GPU])
    core.submit(C, [1, 2], 2, **needs(GPU))
    core.submit(C, [3, 4], 2)
    assert dispatched(core) == {W: 2, W2: 2}
    core.submit(C, [5], 2, **needs(GPU))
    assert core.take_dispatched(W2) == [(11, 5, 1)]


def test_the_notice_is_sent_once_while_no_worker_can_run_the_task(core):
    joined(core)
    core.submit(C, [1, 2], **needs(BIG, LINUX))
    core.submit(C, [3], priority=2, **needs(BIG, LINUX))
    core.wait_for_hosts()
    notice = "3 task(s) wait: no connected worker has gpu=4, linux=1 (scaler_cluster --capabilities gpu=4,linux=1)"
    assert warnings_of(core) == [notice]
    assert warnings_of(core) == []
    core.submit(C, [4], **needs(BIG, LINUX))
    core.wait(5)
    assert warnings_of(core) == []
    core.worker(W2, 23, capabilities=[BIG, LINUX])
    assert core.take_dispatched(W2) == [(11, 3, 1)]
    core.wait(2)
    assert warnings_of(core) == []
    core.goodbye(W2)  # again no worker can run it
    core.wait_for_hosts()
    assert warnings_of(core) == [notice.replace("3", "4")]


def test_each_client_and_requirement_has_a_notice(core):
    joined(core)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C, [1], **needs(GPU))
    core.submit(C, [2], **needs(LINUX))
    core.submit(C2, [3], **needs(GPU))
    core.wait_for_hosts()
    assert sorted(warnings_of(core)) == [
        "1 task(s) wait: no connected worker has gpu=1 (scaler_cluster --capabilities gpu=1)",
        "1 task(s) wait: no connected worker has gpu=1 (scaler_cluster --capabilities gpu=1)",
        "1 task(s) wait: no connected worker has linux=1 (scaler_cluster --capabilities linux=1)",
    ]


def test_no_notice_while_the_able_worker_is_busy_or_no_task_waits(core):
    joined(core)
    core.worker(W2, 23, capabilities=[GPU])
    core.submit(C, [1, 2], **needs(GPU))
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    core.wait_for_hosts()
    core.goodbye(W2)
    core.cancel(C, 1, 2)
    core.take()
    core.wait_for_hosts()
    assert warnings_of(core) == []


def test_a_task_whose_able_worker_died_waits_for_the_next(core):
    joined(core)
    core.worker(W2, 23, agent=33, capabilities=[GPU])
    core.submit(C, [1], **needs(GPU))
    core.take()
    core.died(A, 23, (11, 1, 1))
    assert core.take() == []
    assert core.tables()["waiting"] == 1
    core.worker(W2, 24, capabilities=[BIG])
    assert core.take_dispatched(W2) == [(11, 1, 2)]


def test_capabilities_may_change_with_the_next_hello(core):
    joined(core)
    core.submit(C, [1], **needs(GPU))
    core.worker(W, 22, agent=33, capabilities=[GPU])
    assert core.take_dispatched(W) == [(11, 1, 1)]
    core.worker(W, 22, agent=33)
    assert core.take() == []
    assert core.tables()["waiting"] == 1


def test_an_unschedulable_task_is_cancelled_and_dropped_like_others(core):
    joined(core)
    core.submit(C, [1, 2], **needs(GPU))
    core.cancel(C, 1)
    assert core.take() == [resolved(1, outcome=6)]
    core.goodbye(C)
    assert core.tables()["ranks"] == core.tables()["waiting"] == 0


def test_the_two_lanes_of_a_rank_take_turns(core):
    """Both lanes belong to one client. Tasks with one requirement must not delay tasks with another."""
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, range(10), **needs(GPU))
    core.submit(C, range(10, 20))
    core.worker(W, 22, capabilities=[GPU])
    order = []
    for _ in range(20):
        (row,) = rows_of(core)
        order.append(row[1])
        core.results(W, [row], 100 * MILLISECOND)
    core.take()
    assert {task_id >= 10 for task_id in order[:4]} == {False, True}


def test_no_worker_is_reserved_for_a_capability(core):
    """An idle worker with a capability serves tasks that need none."""
    joined(core)
    running(core)
    core.worker(W2, 23, capabilities=[GPU])
    core.submit(C, [2])
    assert core.take_dispatched(W2) == [(11, 2, 1)]


def test_the_log_of_a_local_cluster_does_not_warn_beside_the_notice(core):
    core.scheduler.operator_log.are_clients_operators = True
    joined(core)
    core.submit(C, [1], **needs(GPU))
    core.wait_for_hosts()
    text = "1 task(s) wait: no connected worker has gpu=1 (scaler_cluster --capabilities gpu=1)"
    assert (False, text) in core.scheduler.operator_log.drain()
    assert (C, text) in core.notices
