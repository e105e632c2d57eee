"""Suspended tasks, with lost connections and joins in any order. Runs under PyPy and CPython."""

from __future__ import annotations

from tests.scheduler.core.harness import W2, C, W, resolved
from tests.scheduler.core.parents import N2, PARENT, N, child, held, nested, parent_waits


def test_the_worker_joins_again_while_a_parent_waits(core):
    parent_waits(core, 1)
    core.take()
    core.worker(W2, 22, agent=33, running=[PARENT])
    assert core.take_dispatched(W2) == [child(1, 2)]  # the task was only queued
    assert held(core) == 1
    core.resumed(N, PARENT)
    core.results(W2, [PARENT, child(1, 2)])
    assert core.take() == [resolved(1), resolved(1, route=N)]


def test_the_nested_client_joins_again_and_repeats_the_suspension(core):
    parent_waits(core, 1)
    core.take()
    core.client(N2, 99, worker=22)
    assert held(core) == 2  # no message came by this connection
    core.function(N2, 1, b"f")
    core.submit(N2, [1], depth=1)
    core.suspended(N2, PARENT)
    assert held(core) == 1
    core.results(W, [child(1)])
    assert core.take() == [resolved(1, route=N2)]


def test_the_resumption_was_lost_with_the_nested_clients_connection(core):
    nested(core)
    core.suspended(N, PARENT)
    core.client(N2, 99, worker=22)
    core.worker(W2, 23)
    core.submit(C, [2, 3])
    assert core.take_dispatched(W2) == [(11, 2, 1)]


def test_suspended_before_the_worker_joins(core):
    """After a restart of the scheduler, peers join in any order."""
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.client(N, 99, worker=22)
    core.function(N, 1, b"f")
    core.submit(N, [7], depth=1)
    core.suspended(N, PARENT)
    core.submit(C, [1])
    core.worker(W, 22, running=[PARENT])
    assert core.take_dispatched(W) == [child(7)]
    assert core.tables()["dispatched"] == 2
    core.results(W, [child(7)])
    core.resumed(N, PARENT)
    core.results(W, [PARENT])
    assert core.take() == [resolved(7, route=N), resolved(1)]


def test_resumed_before_the_worker_joins(core):
    core.client(N, 99, worker=22)
    core.suspended(N, PARENT)
    core.resumed(N, PARENT)
    core.worker(W, 22, running=[PARENT])
    assert held(core) == 1


def test_an_unclaimed_task_is_suspended_and_resumed(core):
    core.worker(W, 22, running=[PARENT])
    core.client(N, 99, worker=22)
    assert held(core) == 1
    core.suspended(N, PARENT)
    core.suspended(N, PARENT)
    assert held(core) == 0
    core.function(N, 1, b"f")
    core.submit(N, [7], depth=1)
    assert core.take_dispatched(W) == [child(7)]
    core.resumed(N, PARENT)
    assert held(core) == 2
    core.suspended(N, PARENT)
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1])  # attached as suspended
    assert core.take() == []
    assert core.tables()["unclaimed"] == 0
    assert held(core) == 1
    core.resumed(N, PARENT)
    assert held(core) == 2
    core.results(W, [child(7), PARENT])
    assert core.take() == [resolved(7, route=N), resolved(1)]


def test_an_unclaimed_parent_ends_suspended(core):
    core.client(N, 99, worker=22)
    core.suspended(N, PARENT)
    core.worker(W, 22, running=[PARENT])
    assert held(core) == 0
    core.results(W, [PARENT])
    assert held(core) == 0
    core.resumed(N, PARENT)
    assert held(core) == 0
    assert core.tables()["unclaimed"] == 0
