"""Workers that do not answer while their agent still sends heartbeats: their queued tasks run elsewhere.

Their task holds the GIL, or their process is stopped. Runs under PyPy and CPython.
"""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import CANCELLED, W2, A, C, W, dispatched, joined, resolved, rows_of

LOOKS = 3
"""Seconds: in the first one it has last said something."""

ROW = (11, 1, 1)


def queued(core, *runs):
    """One silent worker holds short tasks, and another worker is idle. The agent has reported which task runs."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3, 4], 2)
    assert core.take_dispatched(W) == [(11, task_id, 1) for task_id in (1, 2, 3, 4)]
    core.worker(W2, 23)
    core.started(A, *runs or [ROW])
    return core.take()


def retract(*ids):
    return ("retract", W, [(11, task_id, 1) for task_id in ids])


def take_all(core):
    """The other worker runs all tasks that it gets. Returns ids and attempts."""
    ran = []
    while True:
        rows = [row[:3] for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
        if not rows:
            return sorted(row[1:] for row in ran)
        ran += rows
        core.results(W2, rows)


def test_its_queue_runs_elsewhere(core):
    assert queued(core) == [("started", C, [1]), retract(4, 3)]
    core.wait(LOOKS - 1)
    assert core.take() == []
    core.wait(1)
    core.take_one(*retract(2, 3, 4))
    assert take_all(core) == [(2, 2), (3, 2), (4, 2)]
    core.retracted(W, [(11, 3, 1), (11, 4, 1)], 1)
    core.results(W, [ROW, (11, 2, 1)])
    assert core.take() == [resolved(1)]
    assert core.scheduler.counts.late_results == 1


def test_what_has_begun_stays_with_its_worker(core):
    """Earlier tasks have ended, or they are suspended, and the worker's process could not report it."""
    assert queued(core, (11, 3, 1)) == [("started", C, [3]), retract(4)]
    core.wait(LOOKS)
    assert take_all(core) == [(4, 2)]
    core.wait(20)
    assert core.take() == []
    core.results(W, [(11, 1, 1), (11, 3, 1), (11, 2, 1)])
    assert core.take() == [resolved(1, 3, 2)]


def test_nothing_moves_if_the_running_task_is_unknown(core):
    """Any of the tasks may prevent the worker from answering."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3, 4], 2)
    core.worker(W2, 23)
    core.take()
    core.wait(10)
    assert core.take() == []


def test_a_silent_worker_gets_no_tasks(core):
    queued(core)
    core.wait(LOOKS)
    core.take()
    core.submit(C, range(5, 50), 2)
    assert set(dispatched(core)) <= {W2}
    core.results(W, [ROW])
    assert W in dispatched(core), "it has answered"


@pytest.mark.parametrize("route", [W, A])
def test_a_worker_with_heartbeats_is_not_silent(core, route):
    """Its own heartbeats show that it lives; its agent's do not."""
    queued(core)
    for _ in range(5):
        core.wait(1)
        core.heartbeat(route)
    assert (core.take() == []) == (route == W)


def test_nothing_moves_without_an_idle_worker(core):
    queued(core)
    core.goodbye(W2)
    core.wait(10)
    assert core.take() == []
    core.worker(W2, 23)
    core.wait(1)
    core.take_one(*retract(2, 3, 4))
    core.take()


def test_a_cancel_waits_for_the_workers_answer(core):
    """A task that the worker may begin is not answered as cancelled."""
    queued(core)
    core.cancel(C, 4)
    core.wait(LOOKS)
    core.take_one(*retract(2, 3))
    assert take_all(core) == [(2, 2), (3, 2)]
    core.retracted(W, [(11, 4, 1)], 1)
    assert core.take() == [resolved(4, outcome=CANCELLED)]


def test_a_stall_of_the_scheduler_is_not_their_silence(core):
    queued(core)
    core.now += 30
    core.scheduler.tick(core.now)
    core.retracted(W, [(11, 3, 1), (11, 4, 1)], 1)
    assert take_all(core) == [(3, 2), (4, 2)]


def test_a_later_death_counts_for_the_running_task(core):
    queued(core)
    core.wait(LOOKS)
    core.take()
    core.died(A, 22, ROW)
    assert core.scheduler.tables.clients.find(11).tasks[1].failures == 1
    core.take()


def test_an_agent_reports_only_unstarted_tasks_of_its_workers(core):
    joined(core)
    core.agent(b"another agent", 34)
    core.submit(C, [1])
    assert rows_of(core) == [ROW]
    core.started(b"another agent", ROW)
    core.started(A, (11, 1, 2), (11, 9, 1), (12, 1, 1))
    assert core.take() == []
    core.started(A, ROW)
    core.started(A, ROW)
    assert core.take() == [("started", C, [1])]  # it is told once
