"""Workers that join with running tasks: the tasks are attached and not run again. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    CANCELLED,
    EXCEPTION,
    MILLISECOND,
    RETRYABLE,
    SECOND,
    VALUE,
    W2,
    WORKER_DIED,
    A,
    C,
    W,
    joined,
    resolved,
    rows_of,
    running,
    submit_event,
)

from scaler_scheduler.core import events
from scaler_scheduler.core.completion.cancellation import GRACE_SECONDS

ROW = (11, 1, 1)
LATER = (11, 1, 3)
"""The attempts of a task that had run twice before the scheduler was restarted."""


def client(core):
    core.client(C, 11)
    core.function(C, 1, b"f")


def held(core, incarnation=22):
    return core.scheduler.tables.workers.find(incarnation).task_count


@pytest.mark.parametrize("name", [ROW, LATER])
def test_the_worker_comes_first(core, name):
    core.worker(W, 22, running=[name])
    assert core.tables()["unclaimed"] == held(core) == 1
    client(core)
    core.submit(C, [1], body=b"x")
    assert core.tables() == dict(core.tables(), unclaimed=0, waiting=0, dispatched=1, ranks=0)
    core.results(W, [name], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]
    assert held(core) == 0
    assert core.scheduler.counts.late_results == 0


@pytest.mark.parametrize("is_client_first", [False, True])
def test_a_finished_task_does_not_run_again(core, is_client_first):
    """Its worker names it, and sends its result after the welcome: before or behind its client."""
    if is_client_first:
        client(core)
        core.submit(C, [1, 2], body=b"x")
    core.worker(W, 22, running=[(11, 2, 1), ROW], finished=1)
    if not is_client_first:
        assert core.tables()["unclaimed"] == held(core) == 1, "it does not occupy a slot"
        core.results(W, [ROW], body=b"v")
        assert core.take() == []
        client(core)
        core.submit(C, [1, 2], body=b"x")
    else:
        core.results(W, [ROW], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]
    assert core.tables() == dict(core.tables(), unclaimed=0, waiting=0, dispatched=1)
    assert not core.scheduler.tables.early and not core.scheduler.tables.early_bytes


def test_a_task_that_ends_before_its_client_comes_does_not_run_again(core):
    core.worker(W, 22, running=[ROW])
    core.results(W, [ROW], body=b"v")
    assert core.tables()["unclaimed"] == held(core) == 0
    client(core)
    core.submit(C, [1], body=b"x")
    assert core.take() == [resolved(1, body=b"v")]


def test_a_finished_task_that_its_client_does_not_need_is_ignored(core):
    client(core)
    core.worker(W2, 23)
    core.submit(C, [1], body=b"x")
    core.results(W2, [ROW], body=b"v")
    core.take()
    core.worker(W, 22, running=[ROW], finished=1)
    core.results(W, [ROW], body=b"v")
    assert core.take() == [], "neither an answer nor a stop"
    assert not core.scheduler.tables.early


def test_finished_tasks_of_a_lost_client_are_forgotten(core):
    core.worker(W, 22, running=[ROW], finished=1)
    core.results(W, [ROW], body=b"v")
    core.take()
    assert core.scheduler.tables.early_bytes == 1
    core.wait(1000)
    assert not core.scheduler.tables.early and not core.scheduler.tables.early_bytes


@pytest.mark.parametrize("has_limits", [False, True])
def test_an_early_result_outlives_its_worker(core, has_limits):
    core.agent(A, 33)
    core.worker(W, 22, agent=33, running=[ROW], finished=1)
    core.results(W, [ROW], body=b"v")
    core.died(A, 22)
    core.worker(W2, 23)
    client(core)
    core.submit(C, [1], body=b"x", limits=("lock:a",) if has_limits else ())
    assert core.take() == [resolved(1, body=b"v")]
    assert core.tables()["dispatched"] == core.tables()["waiting"] == 0
    assert not core.scheduler.holdings.held


def test_a_finished_task_whose_result_has_not_come_runs_again_if_its_worker_is_lost(core):
    core.worker(W, 22, running=[ROW], finished=1)
    core.goodbye(W)
    client(core)
    core.submit(C, [1], body=b"x")
    assert core.take() == []
    assert core.tables()["waiting"] == 1


# ------------------------------------------------------------------------------- ended tasks whose inputs are lost


def submit_reader(core):
    """Task 2 reads the kept result of task 1, which nobody else needs."""
    event = submit_event(C, [1, 2], [1], [b"x", b"y"], ())
    event.keep = array("B", [events.KEEP_YES, events.KEEP_NO])
    event.inputs, event.input_counts = array("q", [1]), array("I", [0, 1])
    core.feed(event, events.ForgetObjects(C, array("q", [1])))


def answers(core):
    return [row[:2] for sent in core.take() if sent[0] == "resolved" for row in sent[2]]


def test_an_ended_reader_needs_no_inputs(core):
    """Its result counts at once, and the task that made its input does not run again."""
    core.worker(W, 22, running=[(11, 2, 1)], finished=1)
    core.results(W, [(11, 2, 1)], body=b"v")
    client(core)
    submit_reader(core)
    assert answers(core) == [(2, VALUE), (1, CANCELLED)]
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0


def test_a_reader_whose_result_comes_last_needs_no_inputs(core):
    """The task that makes its input has been dispatched meanwhile, and is not needed."""
    core.worker(W, 22, running=[(11, 2, 1)], finished=1)
    client(core)
    submit_reader(core)
    core.results(W, [(11, 2, 1)], body=b"v")
    assert answers(core) == [(2, VALUE)]
    core.take()
    core.retracted(W, [(11, 1, 1)], 1)
    assert answers(core) == [(1, CANCELLED)]


def test_an_ended_reader_that_has_to_run_again_waits_for_its_inputs(core):
    core.worker(W, 22, running=[(11, 2, 1)], finished=1)
    core.results(W, [(11, 2, 1)], outcome=RETRYABLE)
    client(core)
    submit_reader(core)
    [made] = rows_of(core)
    assert made[1] == 1
    core.results(W, [made], body=b"input")
    [read] = rows_of(core)
    core.results(W, [read], body=b"v")
    assert resolved(2, body=b"v") in core.take()


# ------------------------------------------------------------------------------------ deaths without a scheduler


def died_text(core, task_id=1):
    (sent,) = [sent for sent in core.take() if sent[0] == "resolved"]
    assert sent[2][0][:2] == (task_id, WORKER_DIED)
    return sent[2][0][2]


@pytest.mark.parametrize("order", ["client, agent", "agent, client"])
def test_a_death_that_the_former_scheduler_has_not_answered_counts(make_core, order):
    """The agent repeats its report to the next scheduler."""
    core = make_core(task_retries=0)
    for peer in order.split(", "):
        if peer == "client":
            client(core)
            core.submit(C, [1], body=b"x")
        else:
            core.agent(A, 33)
            core.died(A, 22, ROW)
    core.worker(W2, 23, agent=33)
    assert b"attempt 1 on host" in died_text(core)
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0
    assert core.scheduler.tables.clients.find(11).functions[1].ends_workers, "it runs beside no suspended task"


@pytest.mark.parametrize("ends", ["died", "lease"])
def test_a_worker_dies_before_its_client_has_submitted_the_task(make_core, ends):
    core = make_core(task_retries=0)
    core.agent(A, 33)
    core.worker(W, 22, agent=33, running=[ROW])
    if ends == "died":
        core.died(A, 22, ROW)
    else:
        core.wait(30)
        core.heartbeat(A)
        core.wait(31)
    core.take()
    client(core)
    core.submit(C, [1], body=b"x")
    assert b"attempt 1 on host" in died_text(core)


def test_a_task_with_retries_left_runs_again_with_the_next_number(core):
    core.agent(A, 33)
    core.died(A, 22, ROW)
    core.worker(W2, 23, agent=33)
    client(core)
    core.submit(C, [1], body=b"x")
    assert rows_of(core) == [(11, 1, 2)]


def test_each_of_several_deaths_counts(make_core):
    core = make_core(task_retries=2)
    core.agent(A, 33)
    client(core)
    core.submit(C, [1], body=b"x")
    for attempt in (1, 2, 2, 4):
        core.died(A, 20 + attempt, (11, 1, attempt))
    assert b"attempt 3 on host" in died_text(core)


@pytest.mark.parametrize("order", ["death, worker", "worker, death"])
def test_the_death_of_an_attempt_before_the_one_that_runs_does_not_count(make_core, order):
    core = make_core(task_retries=0)
    core.agent(A, 33)
    for peer in order.split(", "):
        if peer == "death":
            core.died(A, 22, ROW)
        else:
            core.worker(W2, 23, agent=33, running=[(11, 1, 2)])
    client(core)
    core.submit(C, [1], body=b"x")
    assert core.take() == []
    core.results(W2, [(11, 1, 2)], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


def test_a_repeated_report_to_the_same_scheduler_counts_once(core):
    joined(core)
    running(core)
    core.died(A, 22, ROW)
    core.died(A, 22, ROW)
    core.worker(W2, 23, agent=33)
    assert rows_of(core) == [(11, 1, 2)]
    core.died(A, 22, ROW)
    core.results(W2, [(11, 1, 2)], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]
    core.died(A, 22, ROW)
    assert not core.scheduler.tables.early


def test_deaths_of_a_client_that_does_not_come_back_are_forgotten(core):
    core.agent(A, 33)
    core.died(A, 22, ROW)
    assert core.scheduler.tables.early
    core.wait(1000)
    assert not core.scheduler.tables.early


def test_a_second_hello_from_before_the_welcome_changes_nothing(core):
    """The worker may have begun tasks since, which this hello does not name."""
    client(core)
    core.worker(W, 22, scheduler=5)
    core.submit(C, [1], body=b"x")
    core.take()
    core.hello(W, events.WORKER, 22, scheduler=5)
    core.results(W, [ROW], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


@pytest.mark.parametrize("name", [ROW, LATER])
def test_the_client_comes_first(core, name):
    client(core)
    core.submit(C, [1], body=b"x")
    core.worker(W, 22, running=[name])
    assert core.tables() == dict(core.tables(), unclaimed=0, waiting=0, dispatched=1, ranks=0)
    core.results(W, [name], body=b"v")
    assert core.take() == [resolved(1, body=b"v")]


@pytest.mark.parametrize("is_worker_first", [False, True])
def test_single_rows_out_of_the_middle_of_a_batch(core, is_worker_first):
    """Their bytes are found again when they are dispatched again, with or without a frame of their own."""
    names = [(11, 2, 1), (11, 3, 1), (11, 5, 1), (11, 6, 1)]
    bodies = [b"a", b"bb", b"LARGE", b"dddd", b"e", b""]
    if is_worker_first:
        core.worker(W, 22, running=names)
        client(core)
        core.feed(submit_event(C, [1, 2, 3, 4, 5, 6], [1], bodies, [2]))
    else:
        client(core)
        core.feed(submit_event(C, [1, 2, 3, 4, 5, 6], [1], bodies, [2]))
        core.worker(W, 22, running=names)
    assert core.take() == []
    assert core.tables()["waiting"] == 2
    core.goodbye(W)
    order = []
    core.worker(W2, 23)
    for _ in range(6):
        sent = core.take()
        rows = [row for one in sent if one[0] == "dispatch" for row in one[2]]
        order += rows
        core.results(W2, [row[:3] for row in rows], 100 * MILLISECOND)
    core.take()
    # The tasks that ran before go first, as attempt 2.
    assert order == [
        (11, 2, 2, 1, b"bb"),
        (11, 3, 2, 1, b"LARGE"),
        (11, 5, 2, 1, b"e"),
        (11, 6, 2, 1, b""),
        (11, 1, 1, 1, b"a"),
        (11, 4, 1, 1, b"dddd"),
    ]


def test_a_requeued_task_is_attached(core):
    """Its worker was lost, and comes back before the task is dispatched again."""
    joined(core)
    running(core)
    core.goodbye(W)
    assert core.tables()["waiting"] == core.tables()["ranks"] == 1
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == []
    assert core.tables()["waiting"] == core.tables()["ranks"] == 0
    core.results(W2, [ROW])
    assert core.take() == [resolved(1)]


def test_a_broken_connection(core):
    """Running tasks go on under their names, and queued tasks are dispatched again."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2, 3], 2)
    core.take()
    core.worker(W2, 22, agent=33, running=[ROW])
    assert core.take() == []  # nothing is queued behind a running task
    core.results(W2, [ROW])
    sent = core.take()
    assert sent[1:] == [("dispatch", W2, [(11, 2, 2, 2, b""), (11, 3, 2, 2, b"")]), resolved(1)]


def test_the_worker_comes_back_before_its_client_while_another_holds_a_task_of_it(core):
    client(core)
    core.worker(W, 22)
    core.worker(W2, 23)
    core.submit(C, [1, 2])
    names = {sent[1]: [sent[2][0][:3]] for sent in core.take() if sent[0] == "dispatch"}
    assert sorted(names) == sorted([W, W2])
    core.goodbye(C)
    core.goodbye(W)
    core.take()
    core.worker(b"again", 22, running=names[W])
    assert core.take() == [], "it runs on: its client may come back"
    client(core)
    core.submit(C, [names[W][0][1]])
    assert core.take() == []
    core.results(b"again", names[W], body=b"v")
    assert core.take() == [resolved(names[W][0][1], body=b"v")]


def test_the_same_task_through_several_connections(core):
    joined(core)
    running(core)
    for number in range(5):
        core.worker(b"worker %d" % number, 22, agent=33, running=[ROW])
        assert core.take() == []
        assert core.tables()["dispatched"] == held(core) == 1
    core.results(b"worker 4", [ROW])
    assert core.take() == [resolved(1)]


def test_lanes_of_attached_tasks_are_removed_without_free_workers(core):
    joined(core)
    core.teach(C, W, 2, b"g", 10 * MILLISECOND, 0)
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", (11, 50, 1))
    core.worker(W, 22, agent=33, running=[(11, 50, 1)])
    core.submit(C, [1, 2], 2)
    assert len(core.take_dispatched(W)) == 2
    core.submit(C, [50], 2)
    assert core.tables()["ranks"] == core.tables()["unclaimed"] == 0
    assert not core.scheduler.tables.clients.find(11).lanes


def test_the_worker_is_lost_after_its_task_was_attached(make_core):
    core = make_core(task_retries=0)
    core.agent(A, 33)
    core.worker(W, 22, agent=33, running=[LATER])
    client(core)
    core.submit(C, [1])
    core.died(A, 22, LATER)
    (sent,) = core.take()
    assert sent[2][0][:2] == (1, WORKER_DIED)
    assert b"attempt 1 on host" in sent[2][0][2]


def test_the_next_attempt_has_the_next_number(core):
    core.worker(W, 22, running=[LATER])
    client(core)
    core.submit(C, [1])
    core.results(W, [LATER], outcome=RETRYABLE)
    assert rows_of(core) == [(11, 1, 4)]


def test_the_time_limit_counts_from_the_attachment(core):
    """The scheduler does not know how long the task ran before."""
    core.agent(A, 33)
    core.worker(W, 22, agent=33, running=[ROW])
    core.wait(20)
    client(core)
    core.submit(C, [1], timeout_seconds=5.0)
    core.wait(4.9)
    assert core.take() == []
    core.wait(0.2)
    assert core.take() == [("stop", W, [ROW])]
    core.wait(GRACE_SECONDS)
    assert core.take() == [("end worker", A, 22, ROW, "time limit of 5 s")]


@pytest.mark.parametrize("is_suspended", [False, True])
def test_the_time_limit_of_an_attached_task_that_waited(core, is_suspended):
    client(core)
    core.submit(C, [1], timeout_seconds=5.0)
    if is_suspended:
        core.client(b"nested", 99, worker=22)
        core.suspended(b"nested", ROW)
    core.worker(W, 22, running=[ROW])
    core.wait(5)
    assert core.take() == [("stop", W, [ROW])]


def test_an_attached_task_is_cancelled(core):
    core.agent(A, 33)
    core.worker(W, 22, agent=33, running=[ROW])
    client(core)
    core.submit(C, [1])
    core.cancel(C, 1)
    core.cancel(C, 1, force=True)
    assert core.take() == [("cancel refused", C, [1]), ("stop", W, [ROW])]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.take() == [resolved(1, outcome=6)]


def test_a_repeated_submit_does_not_attach_twice(core):
    core.worker(W, 22, running=[ROW])
    client(core)
    core.submit(C, [1])
    core.submit(C, [1])
    core.client(b"client again", 11)
    core.function(b"client again", 1, b"f")
    core.submit(b"client again", [1])
    core.results(W, [ROW])
    assert core.take() == [resolved(1, route=b"client again")]
    assert core.tables()["dispatched"] == core.tables()["waiting"] == 0


def test_the_client_leaves_after_its_task_was_attached(core):
    core.worker(W, 22, running=[ROW])
    client(core)
    core.submit(C, [1])
    core.goodbye(C)
    assert core.take() == [("stop", W, [ROW])]
    core.results(W, [ROW], outcome=EXCEPTION)
    assert core.tables()["functions"] == core.tables()["clients by incarnation"] == 0


def test_several_running_parents_and_their_children(core):
    """A worker with a chain of suspended tasks and a running one."""
    client(core)
    core.submit(C, [1, 2])
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW, (11, 2, 1))
    core.worker(W, 22, running=[ROW, (11, 2, 1), (99, 5, 1)])
    assert held(core) == 1
    assert core.tables()["unclaimed"] == 1
    core.function(b"nested", 1, b"f")
    core.submit(b"nested", [5], depth=1)
    assert core.take() == []
    assert core.tables()["unclaimed"] == 0
    core.results(W, [(99, 5, 1)])
    core.resumed(b"nested", ROW, (11, 2, 1))
    assert held(core) == 2
    core.results(W, [ROW, (11, 2, 1)])
    assert core.take() == [resolved(5, route=b"nested"), resolved(1, 2)]


def test_a_whole_restart(core):
    """A hundred tasks are in flight on ten workers. Workers and the client join in turn. Each task runs once."""
    routes = [b"worker %d" % number for number in range(10)]
    for number, route in enumerate(routes[:5]):
        core.worker(route, 100 + number, running=[(11, number, 1)])
    client(core)
    core.submit(C, range(50))
    core.submit(C, range(50, 100))
    for number, route in enumerate(routes[5:], 5):
        core.worker(route, 100 + number, running=[(11, number, 1)])
    assert core.take() == []
    assert core.tables()["dispatched"] == 10
    done = [(11, number, 1) for number in range(10)]
    for number, route in enumerate(routes):
        core.results(route, [done[number]], SECOND)
    while core.scheduler.counts.dispatched:
        for sent in core.take():
            if sent[0] == "dispatch":
                rows = [row[:3] for row in sent[2]]
                core.results(sent[1], rows, SECOND)
                done += rows
    core.take()
    assert sorted(done) == [(11, task_id, 1) for task_id in range(100)]
    assert core.scheduler.counts.late_results == 0


def test_tasks_queued_behind_an_attached_task_are_balanced(core):
    """The connection was lost just after tasks had been queued. The running task turns out to be long."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.client(b"nested", 99, worker=22)
    core.submit(C, [1], 2)
    core.take()
    core.suspended(b"nested", ROW)
    assert core.take() == [("started", C, [1])]
    core.submit(C, [2, 3], 2)
    assert core.take_dispatched(W) == [(11, 2, 1), (11, 3, 1)]
    core.worker(W, 22, agent=33, running=[ROW, (11, 2, 1)])  # 1 is suspended, 2 runs
    assert core.take() == []
    core.results(W, [(11, 2, 1)])
    assert core.take()[1:] == [("dispatch", W, [(11, 3, 2, 2, b"")]), resolved(2)]
    core.resumed(b"nested", ROW)
    core.worker(W2, 23)
    assert core.take() == [("retract", W, [(11, 3, 2)])]
