"""The tasks of messages that cannot be sent, because their connection has ended, are not lost. Runs under PyPy and
CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import CANCELLED, SECOND, W2, A, C, Core, W, joined, resolved, rows_of

from scaler_scheduler.core import effects
from scaler_scheduler.core.dispatch.work_stealing import QUIET_CHECKS
from scaler_scheduler.core.limits import Limits

LEASE = 8.0


@pytest.fixture
def core():
    """A client with function 1, and an agent with one worker, whose connection is lost."""
    core = Core(Limits(worker_timeout_seconds=LEASE))
    joined(core)
    core.take()
    core.gone.add(W)
    return core


def let_live(core, seconds):
    """The agent keeps renewing the lease of its worker."""
    for _ in range(int(seconds)):
        core.wait(1.0)
        core.heartbeat(A, 22)
        core.heartbeat(C)


def test_a_dispatch_goes_to_another_worker(core):
    core.submit(C, [1])
    assert core.take() == []
    core.worker(W2, 23, agent=33)
    assert core.take_dispatched(W2) == [(11, 1, 2)]


def test_the_worker_gets_it_when_it_is_back(core):
    core.submit(C, [1])
    core.worker(b"worker again", 22, agent=33)
    assert core.take_dispatched(b"worker again") == [(11, 1, 2)]


def test_an_unreachable_worker_gets_no_tasks(core):
    core.submit(C, [1])
    core.submit(C, [2])
    assert core.take() == []
    (worker,) = core.scheduler.tables.workers
    assert worker.is_unreachable and not worker.task_count


def test_an_unreachable_worker_keeps_its_tasks_for_its_own_lease(core):
    core.gone.clear()
    core.submit(C, [1])
    core.started(W, *core.take_dispatched(W))
    core.take()
    core.gone.add(W)
    let_live(core, LEASE)
    assert [worker.is_unreachable for worker in core.scheduler.tables.workers] == [True], "its silence was checked"
    let_live(core, LEASE)
    assert len(core.scheduler.tables.workers) == 0
    core.take()
    core.worker(W2, 23, agent=33)
    assert rows_of(core) == [(11, 1, 2)]


def test_a_quiet_worker_with_a_connection_stays(core):
    core.gone.clear()
    core.submit(C, [1])
    core.started(W, *core.take_dispatched(W))
    core.take()
    let_live(core, 3 * LEASE)
    assert core.probes == [W] * (int(3 * LEASE) // QUIET_CHECKS)
    assert len(core.scheduler.tables.workers) == 1


def test_its_running_task_goes_on_when_it_is_back(core):
    core.gone.clear()
    core.submit(C, [1])
    rows = core.take_dispatched(W)
    core.started(W, *rows)
    core.take()
    core.gone.add(W)
    core.submit(C, [2])
    core.worker(b"worker again", 22, agent=33, running=rows)
    core.take()
    core.results(b"worker again", rows, SECOND)
    assert resolved(1) in core.take()


def test_the_log_reports_an_unreachable_worker_at_a_limited_rate(core):
    core.scheduler.operator_log.drain()
    core.submit(C, [1])
    core.worker(W2, 22, agent=33)
    core.gone.add(W2)
    core.submit(C, [2])
    ((is_warning, text),) = core.scheduler.operator_log.drain()
    assert text == "worker name on host (process 4711) is unreachable: it gets no tasks until it reconnects"
    assert not is_warning


def test_tasks_cancelled_meanwhile_are_over(core):
    core.submit(C, [1])
    core.cancel(C, 1)
    assert core.take() == [resolved(1, outcome=CANCELLED)]


@pytest.mark.parametrize("route", [C, A, b"nobody"])
def test_other_workers_stay_reachable(core, route):
    core.gone.clear()
    core.scheduler.undelivered(effects.HeartbeatEcho(route, 1))
    core.submit(C, [1])
    assert core.take_dispatched(W) == [(11, 1, 1)]
