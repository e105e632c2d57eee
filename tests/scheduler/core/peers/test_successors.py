"""Tasks that may have to be ended with their process do not run beside suspended tasks. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import EPOCH, SECOND, W2, A, C, W, resolved
from tests.scheduler.core.parents import PARENT, N, child, nested

from scaler_scheduler.core import effects
from scaler_scheduler.core.peers.successors import MIN_HOLDERS, SPARE_SECONDS, START_SECONDS

LIMIT = {"timeout_seconds": 1.0}
ALONE = {0: (effects.FLAG_REPORT_START, 0, 0)}


def order(mode, worker=22):
    return ("change worker", A, worker, "", mode)


def row(task_id, attempt=1):
    return (99, task_id, attempt, 1, b"")


def wait(core, seconds):
    """Let time pass in which the agent's heartbeats come."""
    for _ in range(int(seconds)):
        core.wait(1)
        core.heartbeat(A, 22, 23, 24)


def holder(core, *ids):
    """The parent waits for children with a time limit, and its worker's slot passes on."""
    nested(core)
    core.submit(N, ids or [1], **LIMIT)
    core.suspended(N, PARENT)
    assert core.take() == [order("beside")]


def test_a_successor_runs_the_task(core):
    holder(core)
    core.submit(C, [2])
    assert core.take() == [], "the slot has passed on"
    core.worker(W2, 23, agent=33)
    assert core.take()[1:] == [("dispatch", W2, [row(1)], ALONE)]
    core.died(A, 23, child(1))
    assert core.take() == []
    core.worker(b"worker 3", 24, agent=33)
    core.take()
    core.results(b"worker 3", [child(1, 2)], SECOND)
    core.resumed(N, PARENT)
    core.results(W, [PARENT])
    assert resolved(1) in core.take()


def test_a_worker_without_suspended_tasks_takes_it(core):
    nested(core)
    core.worker(W2, 23, agent=33)
    core.submit(N, [1], **LIMIT)
    core.take()
    core.results(W2, [child(1)], SECOND)
    core.suspended(N, PARENT)
    core.take()
    core.submit(N, [2], **LIMIT)
    assert core.take() == [("dispatch", W2, [row(2)], ALONE)]


def test_other_tasks_run_beside_the_suspended_one(core):
    nested(core)
    core.suspended(N, PARENT)
    core.submit(C, [2])
    assert core.take() == [("dispatch", W, [(11, 2, 1, 1, b"")])]


def test_what_has_ended_a_process_runs_alone(core):
    nested(core)
    core.worker(W2, 23, agent=33)
    core.suspended(N, PARENT)
    core.submit(N, [1, 2])
    core.take()
    core.died(A, 23, child(1))
    core.results(W, [child(2)], SECOND)
    assert core.take() == [order("beside"), resolved(2, route=N)]


def test_what_has_a_function_that_has_ended_a_process_runs_alone(core):
    nested(core)
    core.worker(W2, 23, agent=33)
    core.suspended(N, PARENT)
    core.function(N, 2, b"deadly")
    core.submit(N, [1, 2], 2, retries=0)
    core.take()
    core.died(A, 23, child(1))
    core.results(W, [child(2)], SECOND)
    core.submit(N, [3])
    assert core.take()[-1] == ("dispatch", W, [row(3)]), "a task of another function shares the process"
    core.results(W, [child(3)], SECOND)
    core.submit(N, [4], 2)
    assert order("beside") in core.take()


def test_a_worker_without_suspended_tasks_goes_first(core):
    """A suspended task goes on only when the task that runs in its process has ended."""
    nested(core)
    core.worker(W2, 23, agent=33)
    core.suspended(N, PARENT)
    core.submit(N, [1])
    assert core.take() == [("function", W2, 1, b"f"), ("dispatch", W2, [row(1)])]


def test_a_task_that_came_before_the_suspension_was_known(core):
    """Its worker gives it back. The suspension is reported by another connection, perhaps later."""
    nested(core)
    core.submit(C, [2], **LIMIT)
    assert core.take() == []
    core.results(W, [PARENT], 1000)
    core.take()
    core.teach(C, W, 2, b"g", 1000, 0) if False else None
    assert core.scheduler.tables.workers.find(22).task_count == 1
    core.retracted(W, [(11, 2, 1)], 1)
    assert core.scheduler.tables.workers.find(22).has_parents
    assert core.take() == [order("beside")]
    core.suspended(N, PARENT)
    core.worker(W2, 23, agent=33)
    assert core.take()[1:] == [("dispatch", W2, [(11, 2, 2, 1, b"")], ALONE)]


def test_one_successor_for_each_waiting_task(core):
    nested(core)
    for number in (23, 24):
        core.worker(b"worker %d" % number, number, agent=33)
        core.client(b"nested %d" % number, 1000 + number, worker=number)
    core.submit(C, [2, 3])
    core.take()
    holders = {task.id: task.worker for task in core.scheduler.tables.clients.find(11).tasks.values()}
    for task_id in (2, 3):
        core.suspended(b"nested %d" % holders[task_id].incarnation, (11, task_id, 1))
    core.suspended(N, PARENT)
    assert core.take() == [("started", C, [2]), ("started", C, [3])]
    core.submit(N, [1, 2], **LIMIT)
    core.submit(N, [3], **LIMIT)
    orders = core.take()
    assert [sent[0] for sent in orders] == ["change worker"] * 3
    assert len({sent[2] for sent in orders}) == 3


def test_no_successor_comes(core):
    """The tasks share the process. The row does not say that it must not."""
    holder(core)
    wait(core, START_SECONDS + 1)
    assert core.take() == [("dispatch", W, [row(1)])]


def test_a_successor_that_is_gone_is_not_waited_for_for_ever(core):
    """The agent had another connection, and the order to start one was lost; or another worker was taken for it."""
    holder(core)
    core.agent(A, 33, slots=1)
    core.worker(W2, 23, agent=33)
    core.take()
    core.goodbye(W2)
    core.take()
    wait(core, START_SECONDS - 1)
    assert core.take() == []
    wait(core, 3)
    assert core.take() == [("dispatch", W, [row(1, 2)])], "it shares the process"


@pytest.mark.parametrize("agent", [0, 34])
def test_without_an_agent(core, agent):
    core.client(C, 11)
    core.worker(W, 22, agent=agent)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    core.client(N, 99, worker=22)
    core.function(N, 1, b"f")
    core.take()
    core.submit(N, [1], **LIMIT)
    core.suspended(N, PARENT)
    if agent:  # it may join soon
        assert core.take() == [("started", C, [1])]
        core.wait(30)
    assert ("dispatch", W, [row(1)]) in core.take()


def test_a_chain_of_tasks_with_time_limits(core):
    """The processes of a host are bounded. Beyond the bound tasks share them, and each chain gets on."""
    nested(core)
    parent, client = PARENT, N
    orders = 0
    for level in range(1, 2 * MIN_HOLDERS):
        core.submit(client, [1], depth=level, **LIMIT)
        core.suspended(client, parent)
        sent = [each for each in core.take() if each[0] != "started"]
        if sent[0][0] != "change worker":
            break
        orders += 1
        core.worker(b"successor %d" % orders, 100 + orders, agent=33)
        parent = core.take()[-1][2][0][:3]
        client = b"nested %d" % orders
        core.client(client, 1000 + orders, worker=100 + orders)
        core.function(client, 1, b"f")
    assert orders == MIN_HOLDERS
    assert sent == [("dispatch", b"successor %d" % orders, [(1000 + orders, 1, 1, 1, b"")], {0: (0, level, 0)})]


def test_a_holder_without_tasks_is_the_next_successor(core):
    holder(core)
    core.worker(W2, 23, agent=33)
    core.take()
    core.results(W2, [child(1)], SECOND)
    core.resumed(N, PARENT)
    core.results(W, [PARENT])
    core.client(b"nested 2", 98, worker=23)
    core.function(b"nested 2", 1, b"f")
    core.submit(C, [2])
    core.take()
    core.submit(b"nested 2", [1], **LIMIT)
    core.suspended(b"nested 2", (11, 2, 1))
    assert core.take() == [("started", C, [2]), ("dispatch", W, [(98, 1, 1, 1, b"")], ALONE)]


def test_a_holder_that_is_not_needed_ends(core):
    holder(core)
    core.worker(W2, 23, agent=33)
    core.take()
    core.results(W2, [child(1)], SECOND)
    wait(core, SPARE_SECONDS + 3)
    core.resumed(N, PARENT)
    assert order("end") not in core.take(), "its suspended task waits for something else"
    core.results(W, [PARENT])
    core.take()
    wait(core, SPARE_SECONDS + 2)
    assert core.take() == [order("end")]
    core.goodbye(W)
    core.submit(C, [3])
    assert core.take() == [("dispatch", W2, [(11, 3, 1, 1, b"")])]


def test_after_a_restart_of_the_scheduler(core):
    """A host has more workers than slots, until one of them has nothing to do."""
    core.client(C, 11, scheduler=EPOCH - 1)
    core.agent(A, 33, slots=1)
    core.worker(W2, 23, agent=33)
    core.worker(W, 22, agent=33, running=[PARENT])
    core.wait(2)
    core.heartbeat(A, 22, 23)
    core.take()
    wait(core, SPARE_SECONDS + 2)
    assert core.take() == [order("end", 23)]


def test_a_holder_joins_again(core):
    holder(core)
    core.worker(W, 22, agent=33, running=[PARENT])
    core.submit(C, [2])
    assert core.take() == []
    core.worker(W2, 23, agent=33)
    assert [sent[0] for sent in core.take()] == ["function", "dispatch"]
