"""The lines of the operator log about peers. Runs under PyPy and CPython."""

from __future__ import annotations

from tests.scheduler.core.harness import A, C, W, joined, running, warnings_of

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits

LOST = "worker name on host (process 4711) was lost"


def test_tasks_without_any_worker(core):
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2])
    core.wait(4)
    core.heartbeat(C)
    assert warnings_of(core) == [], "a cluster may be just starting"
    for _ in range(4):
        core.wait(4)
        core.heartbeat(C)
    assert warnings_of(core) == ["2 task(s) wait: no worker is connected"]
    assert core.notices == [(C, "2 task(s) wait: no worker is connected")]
    core.worker(W, 22)
    core.wait(1)
    core.goodbye(W)
    core.wait(8)
    core.take()
    assert warnings_of(core) == ["2 task(s) wait: no worker is connected"]


def test_clients_wait_in_silence_for_an_autoscaler(core):
    core.client(C, 11)
    core.agent(A, 33)
    pool = events.PoolState("pool", 2, 2, 0, 0, 0, 0, 0, False)
    core.feed(events.Heartbeat(A, 77, [], pools=[pool]))
    core.take_one("echo", A, 77)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2])
    for _ in range(4):
        core.wait(4)
        core.heartbeat(C)
    assert warnings_of(core) == ["2 task(s) wait: no worker is connected"] and core.notices == []


def test_peers_that_leave(core):
    core.client(C, 11)
    core.agent(A, 33)
    core.goodbye(C)
    core.goodbye(A)
    assert core.scheduler.operator_log.drain() == [(False, "client name has left"), (False, "agent name has left")]


def test_peers_that_are_lost(make_core):
    limits = Limits()
    core = make_core(client_timeout_seconds=10 * limits.worker_timeout_seconds)
    core.client(C, 11)
    core.agent(A, 33)
    core.worker(W, 22, agent=33)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    core.take()
    core.wait(limits.worker_timeout_seconds + 2)
    assert warnings_of(core)[:2] == [
        "agent name on host sent no heartbeat within its lease and is removed with 1 worker(s)",
        f"{LOST}: lease ran out. It ran function 1 (task 11/1 of client name), which runs again",
    ]
    core.wait(10 * limits.worker_timeout_seconds)
    assert "client name sent no heartbeat within its lease: its tasks are cancelled" in warnings_of(core)
    core.take()


def test_the_task_of_a_worker_that_died(make_core):
    """One line for each death."""
    core = make_core(task_retries=1)
    joined(core)
    core.submit(C, [7])
    ran = f"{LOST}: signal 9 (SIGKILL). It ran function 1 (task 11/7 of client name)"
    for attempt, follows in ((1, "runs again"), (2, "has no retries left")):
        core.take()
        core.died(A, 21 + attempt, (11, 7, attempt))
        assert warnings_of(core) == [f"{ran}, which {follows}"]
        core.worker(W, 22 + attempt, agent=33)
    core.died(A, 24)
    assert warnings_of(core) == [f"{LOST}: signal 9 (SIGKILL). It ran no task"]
    core.died(A, 24)
    core.take()
    assert warnings_of(core) == [], "the death was logged before"


def test_requested_deaths(core):
    joined(core)
    row = running(core)
    core.cancel(C, 1, force=True)
    core.died(A, 22, row)
    core.take()
    assert warnings_of(core) == []
