"""Host agents that retire: their workers get no new tasks and finish running ones, and other workers run the rest.

Runs under PyPy and CPython.
"""

from __future__ import annotations

from tests.scheduler.core.harness import W2, A, C, W, joined, resolved

from scaler_scheduler.core import events

AGENT_OF_W2 = 8


def beat(core, is_retiring=True):
    """A heartbeat of the retiring agent. Returns whether the echo says that it is drained, and all other messages."""
    core.feed(events.Heartbeat(A, 5, [], is_retiring=is_retiring))
    sent = core.take()
    (echo,) = [each for each in sent if each[0] == "echo"]
    return echo[-1] == "drained", [each for each in sent if each[0] != "echo"]


def busy(core):
    """A worker has four short tasks, and runs the first."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3, 4], 2)
    rows = core.take_dispatched(W)
    assert [row[1] for row in rows] == [1, 2, 3, 4]
    core.started(A, rows[0])
    core.take()
    return rows


def retract(rows):
    return ("retract", W, [row[:3] for row in rows])


def test_queued_tasks_move_and_the_running_task_goes_on(core):
    rows = busy(core)
    is_drained, sent = beat(core)
    assert not is_drained and sent == [retract(rows[1:])]
    core.worker(W2, 23)
    core.retracted(W, rows[1:], 1)
    assert [row[1] for row in core.take_dispatched(W2)] == [2, 3, 4]
    assert beat(core) == (False, []), "it is asked once"
    core.results(W, [rows[0]])
    assert core.take() == [resolved(1)]
    assert beat(core) == (True, [])


def test_its_workers_get_no_new_tasks(core):
    joined(core)
    assert beat(core) == (True, [])
    core.submit(C, [1, 2], 1)
    assert core.take() == []
    core.wait(20)
    core.worker(W2, 23)
    assert [row[1] for row in core.take_dispatched(W2)] == [1]


def test_workers_that_join_later_get_no_tasks(core):
    joined(core)
    beat(core)
    core.worker(W, 22, agent=33)
    core.submit(C, [1], 1)
    assert core.take() == []
    assert beat(core, is_retiring=False) == (True, []), "a retiring agent stays retiring"


def test_results_of_running_tasks_are_answered_as_usual(core):
    rows = busy(core)
    beat(core)
    core.retracted(W, rows[1:], 0)  # the retract came too late: all tasks have begun
    core.results(W, rows)
    assert core.take() == [resolved(1, 2, 3, 4)]
    assert beat(core) == (True, [])


def test_the_log_says_that_tasks_wait_without_a_worker(core):
    joined(core)
    beat(core)
    core.scheduler.operator_log.drain()
    core.submit(C, [1], 1)
    core.wait(10)
    assert [text for _, text in core.scheduler.operator_log.drain()] == ["1 task(s) wait: all workers retire"]
