"""Tasks that run on a worker although no client has submitted them, or although other workers run them too. Runs under
PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import EXCEPTION, MILLISECOND, SECOND, W2, A, C, W, joined, resolved, rows_of, running

ROW = (11, 1, 1)
STOP = ("stop", W, [ROW])


def client(core):
    core.client(C, 11)
    core.function(C, 1, b"f")


def held(core, incarnation=22):
    return core.scheduler.tables.workers.find(incarnation).task_count


def given_up(core):
    """The worker's task was given to another worker, as attempt 2. Nothing is prefetched."""
    joined(core)
    core.teach(C, W, 1, b"f", SECOND, 0)
    running(core)
    core.goodbye(W)
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 1, 2)]


# ------------------------------------------------------------------------------------------------------------ unclaimed


def test_two_workers_that_run_the_same_task(core):
    core.worker(W, 22, running=[ROW])
    core.worker(W2, 23, running=[(11, 1, 2)])
    client(core)
    core.submit(C, [1])
    assert core.take() == []
    core.results(W2, [(11, 1, 2)])
    assert core.take() == []
    core.results(W, [ROW])
    assert core.take() == [resolved(1)]


def test_an_unclaimed_task_occupies_its_slot_until_it_ends(core):
    core.worker(W, 22, running=[(98, 7, 1)])
    client(core)
    core.submit(C, [1])
    assert core.take() == []
    core.results(W, [(98, 7, 1)], body=b"for nobody")
    assert core.take() == [("function", W, 1, b"f"), ("dispatch", W, [(11, 1, 1, 1, b"")])]
    assert core.scheduler.counts.late_results == 1
    assert core.tables()["unclaimed"] == 0


def test_nothing_is_queued_behind_an_unclaimed_task(core):
    """Its run time is unknown."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 22, agent=33, running=[(98, 7, 1)])
    core.submit(C, [1, 2], 2)
    assert core.take() == []


@pytest.mark.parametrize("is_suspended", [False, True])
def test_the_worker_is_lost_before_a_client_submits_the_task(core, is_suspended):
    if is_suspended:
        core.client(b"nested", 99, worker=22)
        core.suspended(b"nested", ROW)
    core.worker(W, 22, running=[ROW])
    core.goodbye(W)
    assert core.tables()["unclaimed"] == 0
    client(core)
    core.submit(C, [1])
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 1, 1)]


def test_a_cancelled_row_is_not_attached(core):
    client(core)
    core.submit(C, [1, 2])
    core.cancel(C, 1)
    core.worker(W, 22, running=[ROW])
    assert core.take() == [resolved(1, outcome=6), STOP]
    assert core.tables()["unclaimed"] == 1
    core.results(W, [ROW], 100 * MILLISECOND)
    assert rows_of(core) == [(11, 2, 2)]


def test_repeated_and_invalid_names_in_a_hello(core):
    """A peer's mistakes must not make the tables inconsistent."""
    client(core)
    core.submit(C, [1, 2])
    core.worker(W, 22, running=[ROW, ROW, (11, 1, 2), (11, 2, 0), (11, 2, (1 << 32) - 1), (98, 1, 1), (98, 1, 1)])
    assert core.take() == []
    assert core.tables()["unclaimed"] == core.tables()["waiting"] == 1
    assert held(core) == 2
    core.results(W, [ROW, (98, 1, 1)], 100 * MILLISECOND)
    assert rows_of(core) == [(11, 2, 1)]


def test_a_client_that_does_not_come(make_core):
    """The client died together with the scheduler. Its running tasks end when its lease would have run out."""
    core = make_core(client_timeout_seconds=10)
    core.worker(W, 22, running=[ROW])
    core.wait(9)
    assert core.take() == []
    core.wait(2)
    assert core.take() == [STOP]
    core.wait(20)
    assert core.take() == []  # it is told once
    assert held(core) == 1
    core.results(W, [ROW], outcome=EXCEPTION)
    assert held(core) == 0


def test_a_client_that_comes_too_late(make_core):
    """Its task is being stopped, so it runs again."""
    core = make_core(client_timeout_seconds=10)
    core.worker(W, 22, running=[ROW])
    core.wait(11)
    client(core)
    core.submit(C, [1])
    assert core.take() == [STOP]
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take_dispatched(W) == [(11, 1, 2)]
    core.results(W, [(11, 1, 2)], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


def test_a_stall_of_the_scheduler_gives_clients_more_time(make_core):
    core = make_core(client_timeout_seconds=10, worker_timeout_seconds=10)
    core.worker(W, 22, running=[ROW])
    core.now += 1000
    core.wait(1)
    assert core.take() == []
    client(core)
    core.submit(C, [1])
    assert core.tables()["unclaimed"] == 0


# ---------------------------------------------------------------------------------------------------------------- over


def test_a_returned_host_is_free_for_other_tasks(make_core):
    """Its task was given to another worker meanwhile."""
    core = make_core(worker_timeout_seconds=10, client_timeout_seconds=1000)
    joined(core)
    core.teach(C, W, 1, b"f", SECOND, 0)
    running(core)
    core.wait(11)
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 1, 2)]
    core.worker(W, 22, agent=33, running=[ROW])
    assert core.take() == [STOP]
    assert held(core) == 1
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    core.submit(C, [2])
    assert core.take_dispatched(W) == [(11, 2, 2)]
    assert core.scheduler.counts.late_results == 1
    core.results(W2, [(11, 1, 2)])
    assert core.take() == [resolved(1)]


def test_a_late_answer_of_a_lost_worker(core):
    given_up(core)
    core.worker(W, 22, agent=33, running=[ROW])
    core.results(W, [ROW], body=b"late")
    assert core.take() == [STOP]
    assert core.scheduler.counts.late_results == 1
    core.results(W2, [(11, 1, 2)], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


def test_the_task_has_ended_elsewhere(core):
    given_up(core)
    core.results(W2, [(11, 1, 2)])
    assert core.take() == [resolved(1)]
    core.worker(W, 22, agent=33, running=[ROW])
    assert core.take() == [STOP]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.tables()["unclaimed"] == held(core) == 0


def test_the_task_was_cancelled_while_its_worker_was_away(core):
    joined(core)
    running(core)
    core.cancel(C, 1, force=True)
    core.goodbye(W)
    assert core.take() == [STOP, resolved(1, outcome=6)]
    core.worker(W2, 22, agent=33, running=[ROW, ROW])
    assert core.take() == [("stop", W2, [ROW])]


def test_the_client_of_the_task_has_left(core):
    joined(core)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [ROW]
    core.worker(W2, 23, running=[(11, 0, 1)])
    assert core.take() == [("stop", W2, [(11, 0, 1)])]
    core.goodbye(C)
    core.worker(b"worker 3", 24, running=[ROW])
    assert core.take() == [("retract", W, [ROW]), ("stop", b"worker 3", [ROW])]


def test_the_client_has_not_submitted_this_id_yet(core):
    """The client is about to submit everything again, in the order of its ids."""
    core.worker(W, 22, running=[(11, 70, 1)])
    client(core)
    core.submit(C, range(50))
    core.worker(W2, 23, running=[(11, 60, 1), (11, 49, 1)])
    assert core.take() == []
    core.submit(C, range(50, 100))
    assert core.tables()["unclaimed"] == 0
    assert core.tables()["dispatched"] == 3


def test_submitted_again_by_a_client_with_a_new_connection(core):
    """The row is known. The copy that its first worker still runs does not count for it."""
    given_up(core)
    core.worker(W, 22, agent=33, running=[ROW])
    assert core.take() == [STOP]
    core.submit(C, [1, 2])
    assert core.tables()["unclaimed"] == core.tables()["waiting"] == 1
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take_dispatched(W) == [(11, 2, 2)]
    core.results(W2, [(11, 1, 2)])
    assert core.take() == [resolved(1)]


# ------------------------------------------------------------------------------------------------ held by another one


def restarted(core):
    """After a restart, the client and one worker joined before the worker that runs the task."""
    core.agent(A, 33)
    client(core)
    core.submit(C, [1])
    core.worker(W2, 23, agent=33)
    assert core.take_dispatched(W2) == [ROW]
    core.worker(W, 22, agent=33, running=[ROW])
    assert core.take() == [STOP]


def test_two_workers_run_copies_of_one_task(core):
    """The connection of a message tells the copies apart."""
    restarted(core)
    core.results(W, [ROW], body=b"late")
    core.started(W, ROW)
    core.retracted(W, [ROW], 1)
    assert core.take() == []
    assert held(core) == 0 and held(core, 23) == 1
    core.results(W2, [ROW], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


def test_the_worker_that_holds_it_is_lost(core):
    restarted(core)
    core.died(A, 23, ROW)
    core.results(W, [ROW], outcome=EXCEPTION)  # it was stopped
    assert core.take_dispatched(W) == [(11, 1, 2)]


def test_the_worker_of_the_copy_is_lost(core):
    restarted(core)
    core.died(A, 22, ROW)
    assert core.tables()["unclaimed"] == 0
    core.results(W2, [ROW])
    assert core.take() == [resolved(1)]


def test_the_copy_is_suspended(core):
    restarted(core)
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW)
    assert held(core) == 0
    core.resumed(b"nested", ROW)
    assert held(core) == 1
    core.results(W, [ROW], outcome=EXCEPTION)
    assert held(core) == core.tables()["unclaimed"] == 0


def test_the_worker_gets_one_stop_for_the_copy(make_core):
    core = make_core(client_timeout_seconds=10)
    restarted(core)
    for _ in range(3):
        core.wait(6)
        core.heartbeat(C)
    # The worker is not told again. Its host agent is asked to end it, every two seconds until it has ended.
    asked = core.take()
    assert asked == [("end worker", A, 22, ROW, "its result is not needed any more")] * 9


def test_the_worker_of_the_copy_joins_again(core):
    """The stop may have been lost."""
    restarted(core)
    core.worker(b"worker again", 22, agent=33, running=[ROW])
    assert core.take() == [("stop", b"worker again", [ROW])]
    assert held(core) == core.tables()["unclaimed"] == 1
