"""Tasks that wait for tasks of their own. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    CANCELLED,
    EXCEPTION,
    MILLISECOND,
    SECOND,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    rows_of,
    running,
    submit_event,
)
from tests.scheduler.core.parents import PARENT, N, child, held, nested, parent_waits

from scaler_scheduler.core import events


def test_the_slot_is_free_while_the_parent_waits(core):
    nested(core)
    core.submit(N, [1], depth=1)
    assert core.take() == []  # its function's mean is long
    core.suspended(N, PARENT)
    assert core.take() == [("dispatch", W, [(99, 1, 1, 1, b"")], {0: (0, 1, 0)})]
    core.results(W, [child(1)], body=b"v")
    assert core.take() == [resolved(1, body=b"v", route=N)]
    core.resumed(N, PARENT)
    core.results(W, [PARENT], body=b"w")
    assert core.take() == [resolved(1, body=b"w")]


def test_the_children_are_known_before_the_slot_is_free(core):
    """Both messages come by one connection, in this order. A task of another client must not take the slot in
    between."""
    nested(core)
    core.submit(C, [2, 3])
    names = array("q", [11]), array("q", [1]), array("I", [1])
    submitted = submit_event(N, [1], [1], [b""], [])
    submitted.options = events.Options(depth=1)
    core.feed(submitted, events.Suspended(N, *names))
    assert core.take_dispatched(W) == [child(1)]


def test_deeper_tasks_go_first(core):
    parent_waits(core, 1, 2)
    core.submit(C, [2, 3])
    assert core.take_dispatched(W) == [child(1)]
    core.submit(N, [3], depth=2)
    core.results(W, [child(1)], SECOND)
    assert rows_of(core) == [child(3)]
    core.results(W, [child(3)], SECOND)
    assert rows_of(core) == [child(2)]
    core.results(W, [child(2)], SECOND)
    assert rows_of(core) == [(11, 2, 1)]


@pytest.mark.parametrize("depth", [1, 10, 100])
def test_a_chain_on_one_worker(core, depth):
    """Any number of waiting parents leaves a slot for a child."""
    nested(core)
    parent = PARENT
    for level in range(1, depth + 1):
        core.submit(N, [level], depth=level)
        core.suspended(N, parent)
        *told, dispatch = core.take()
        assert told == ([("started", N, [parent[1]])] if level > 1 else [])
        assert dispatch[0] == "dispatch" and [row[:3] for row in dispatch[2]] == [child(level)]
        parent = child(level)
    assert core.tables()["dispatched"] == depth + 1
    assert held(core) == 1
    for level in range(depth, 0, -1):
        core.results(W, [child(level)], SECOND)
        assert core.take() == [resolved(level, route=N)]
        core.resumed(N, child(level - 1) if level > 1 else PARENT)
    core.results(W, [PARENT])
    assert core.take() == [resolved(1)]
    assert held(core) == 0


def test_many_parents_that_wait_for_many_children(core):
    """All parents begin on one worker, before the first child runs."""
    joined(core)
    core.client(N, 99, worker=22)
    core.function(N, 1, b"f")
    core.submit(C, range(100, 164))
    for parent in range(64):
        core.suspended(N, (11, 100 + parent, 1))
    rows = rows_of(core)
    assert rows == [(11, 100 + parent, 1) for parent in range(64)]
    core.submit(N, range(64 * 64), depth=1)
    done = 0
    while core.scheduler.counts.dispatched > 64:
        rows = rows_of(core)
        core.results(W, rows, MILLISECOND)
        done += len(rows)
    assert done == 64 * 64
    core.take()


def test_a_resumed_parent_has_its_slot_again(core):
    parent_waits(core, 1)
    core.take()
    core.resumed(N, PARENT)  # it waited with a timeout; the child goes on behind it
    assert held(core) == 2
    core.submit(C, [2])
    assert core.take() == []
    core.results(W, [child(1)], SECOND)
    assert core.take() == [resolved(1, route=N)]  # the parent runs: nothing is queued behind it
    core.results(W, [PARENT], SECOND)
    assert core.take() == [("dispatch", W, [(11, 2, 1, 1, b"")]), resolved(1)]


def test_a_worker_with_a_resumed_parent_is_not_idle(core):
    nested(core)
    core.suspended(N, PARENT)
    core.resumed(N, PARENT)
    core.worker(W2, 23)
    core.submit(C, [2])
    assert core.take_dispatched(W2) == [(11, 2, 1)]
    core.submit(C, [3])
    assert core.take() == []


def test_tasks_behind_a_resumed_parent_are_balanced(core):
    nested(core)
    core.suspended(N, PARENT)
    core.submit(C, [2])
    assert core.take_dispatched(W) == [(11, 2, 1)]
    core.resumed(N, PARENT)
    core.worker(W2, 23)
    assert core.take() == [("retract", W, [(11, 2, 1)])]
    core.retracted(W, [(11, 2, 1)], 1)
    assert core.take_dispatched(W2) == [(11, 2, 2)]


def test_a_suspension_reported_twice(core):
    parent_waits(core, 1)
    core.suspended(N, PARENT, PARENT)
    assert core.take_dispatched(W) == [child(1)]
    assert held(core) == 1
    core.resumed(N, PARENT, PARENT)
    assert held(core) == 2


def test_names_of_tasks_of_other_workers(core):
    nested(core)
    core.worker(W2, 23)
    core.submit(C, [2])
    assert core.take_dispatched(W2) == [(11, 2, 1)]
    for said in (core.suspended, core.resumed):
        said(N, (11, 1, 2), (11, 2, 1), (11, 3, 1), (98, 1, 1))
    assert core.take() == []
    assert held(core) == held(core, 23) == 1


def test_the_result_comes_before_the_resumption(core):
    """The result comes by the worker's connection, the resumption by its nested client's."""
    parent_waits(core, 1)
    core.take()
    core.results(W, [PARENT, child(1)])
    assert core.take() == [resolved(1), resolved(1, route=N)]
    core.resumed(N, PARENT)
    assert held(core) == 0
    (client,) = [client for client in core.scheduler.tables.clients if client.worker]
    assert not client.suspended


def test_the_suspension_comes_after_the_result(core):
    nested(core)
    core.results(W, [PARENT])
    core.suspended(N, PARENT)
    core.resumed(N, PARENT)
    assert core.take() == [resolved(1)]
    assert held(core) == 0


def test_the_start_comes_after_the_suspension(core):
    parent_waits(core, 1)
    core.take()
    core.started(W, PARENT)
    assert core.take() == [("started", C, [1])]
    assert held(core) == 1


def test_a_task_is_suspended_before_its_start_is_reported(core):
    """It suspends itself quickly. Its client learns that it has begun."""
    joined(core)
    core.client(N, 99, worker=22)
    core.function(N, 1, b"f")
    core.submit(C, [1, 2])
    assert core.take_dispatched(W) == [PARENT]
    core.suspended(N, PARENT)
    told, dispatch = core.take()
    assert told == ("started", C, [1]) and [row[:3] for row in dispatch[2]] == [(11, 2, 1)]
    core.results(W, [PARENT])
    assert core.take() == [resolved(1)]


def test_a_suspended_task_fails(core):
    parent_waits(core, 1)
    core.take()
    core.results(W, [PARENT], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=EXCEPTION)]


# ------------------------------------------------------------------------------------------------------ who goes first


def test_the_worker_of_suspended_parents_dies(core):
    """The children are removed with their parents: waiting children are dropped, and running children are stopped."""
    parent_waits(core, 1, 2, 3)
    core.worker(W2, 23)
    assert sorted(rows_of(core)) == [child(1), child(2)]
    holders = {task.id: task.worker.route for task in core.scheduler.tables.clients.find(99).tasks.values()}
    elsewhere = next(task_id for task_id, route in holders.items() if route == W2)
    core.started(W2, child(elsewhere))
    core.take()
    core.died(A, 22, child(3 - elsewhere))
    assert core.take() == [("stop", W2, [child(elsewhere)])]
    assert core.tables()["waiting"] == 1  # the parent runs again from its start
    core.results(W2, [child(elsewhere)], outcome=EXCEPTION)
    assert core.take() == [("dispatch", W2, [(11, 1, 2, 1, b"")], {0: (2, 0, 0)})]
    assert core.tables()["clients by incarnation"] == 1


def test_children_queued_on_other_workers_are_retracted(core):
    nested(core)
    core.worker(W2, 23)
    core.submit(N, [1], depth=1)
    assert core.take_dispatched(W2) == [child(1)]
    core.goodbye(W)
    assert core.take() == [("retract", W2, [child(1)])]
    core.retracted(W2, [child(1)], 1)
    assert core.take() == [("dispatch", W2, [(11, 1, 2, 1, b"")])]


def test_the_workers_lease_runs_out(make_core):
    core = make_core(worker_timeout_seconds=10)
    parent_waits(core, 1, 2)
    assert core.take_dispatched(W) == [child(1)]
    core.wait(8)
    core.heartbeat(A)
    core.wait(3)
    assert core.tables()["waiting"] == 1
    assert core.tables()["clients by incarnation"] == 1
    core.submit(N, [4])
    assert core.take() == [("hello wanted", N)]


def test_a_nested_client_is_quiet_while_its_worker_lives(make_core):
    """A task of the worker holds the GIL for longer than a client's lease. The children of its suspended tasks go
    on, and none is begun again."""
    core = make_core(client_timeout_seconds=10)
    parent_waits(core, 1, 2)
    core.worker(W2, 23)
    core.take()
    for _ in range(6):
        core.wait(8)
        core.heartbeat(A, 22, 23)
        core.feed(events.Heartbeat(C, 1, []))
    (nested_client,) = [client for client in core.scheduler.tables.clients if client.worker]
    assert len(nested_client.tasks) == 2
    assert {sent[0] for sent in core.take()} == {"echo"}
    core.died(A, 22)
    core.take()
    assert [client for client in core.scheduler.tables.clients if client.worker] == []


def test_the_connection_of_the_worker_is_replaced_by_another_worker(core):
    parent_waits(core, 1, 2)
    assert core.take_dispatched(W) == [child(1)]
    core.worker(W, 23, agent=33)
    assert core.take_dispatched(W) == [(11, 1, 2)]
    assert core.tables()["clients by incarnation"] == 1
    assert core.tables()["waiting"] == 0


def test_the_nested_client_leaves(core):
    """Its worker stays connected. Its tasks are ended, because no client waits for them. The parent stays on the
    worker."""
    parent_waits(core, 1, 2)
    assert core.take_dispatched(W) == [child(1)]
    core.goodbye(N)
    assert core.take() == [("retract", W, [child(1)])]
    core.retracted(W, [child(1)], 1)
    core.results(W, [PARENT])
    assert core.take() == [resolved(1)]
    assert core.tables()["clients by incarnation"] == 1


def test_the_parents_client_leaves(core):
    """The parent is stopped while it waits. Its children belong to its nested client."""
    parent_waits(core, 1)
    core.take()
    core.goodbye(C)
    assert core.take() == [("stop", W, [PARENT])]
    core.resumed(N, PARENT)
    core.results(W, [PARENT], outcome=EXCEPTION)
    core.results(W, [child(1)])
    assert core.take() == [resolved(1, route=N)]


def test_a_suspended_parent_and_its_child_are_cancelled_together(core):
    parent_waits(core, 1)
    core.take()
    core.cancel(C, 1, force=True)
    core.cancel(N, 1, force=True)
    assert core.take() == [("stop", W, [PARENT]), ("retract", W, [child(1)])]
    core.retracted(W, [child(1)], 1)
    core.results(W, [PARENT], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=CANCELLED, route=N), resolved(1, outcome=CANCELLED)]


@pytest.mark.parametrize("said", ["suspended", "resumed"])
def test_only_a_nested_client_may_report_it(core, said):
    joined(core)
    row = running(core)
    getattr(core, said)(C, row)
    getattr(core, said)(W, row)
    getattr(core, said)(b"stranger", row)
    assert core.take() == [
        ("error", C, "only a nested client may send this message"),
        ("error", W, "only a client may send this message"),
        ("hello wanted", b"stranger"),
    ]
