"""Waiting tasks that go first are not held up by tasks that are queued behind a long one. Runs under PyPy and
CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import C2, MILLISECOND, SECOND, C, W, joined, rows_of, submit_event

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import LimitSettings


def queued(core, count, **options):
    """One worker holds this number of tasks of a function that was quick, and has reported that the first of them takes
    long."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, count + 1), 2, **options)
    assert len(core.take_dispatched(W)) == count
    core.started(W, (11, 1, 1))
    assert core.take() == [("started", C, [1])]


def another_user(core):
    hello = events.Hello(C2, 1, events.CLIENT, 12, 0, "python 3", "1", "host", 1, "name", account="bob")
    core.feed(hello, events.Function(C2, 1, "f", "", b"digest of bob", b"f"))
    core.take()


def retracts(core):
    """The ids that workers must give back. Takes all effects."""
    return sorted(name[1] for sent in core.take() if sent[0] == "retract" for name in sent[2])


def test_another_users_task_waits_for_the_running_task_alone(core):
    queued(core, 72)
    another_user(core)
    core.submit(C2, [1])
    assert retracts(core) == [*range(2, 73)]
    core.retracted(W, [(11, task_id, 1) for task_id in range(2, 73)], 1)
    assert core.take() == []  # its worker runs a long task
    core.results(W, [(11, 1, 1)], SECOND)
    (row,) = rows_of(core)
    assert row == (12, 1, 1)


def test_an_urgent_task_of_the_same_program_goes_first(core):
    queued(core, 72)
    core.submit(C, [100], 2, priority=1)
    assert retracts(core) == [*range(2, 73)]
    core.retracted(W, [(11, task_id, 1) for task_id in range(2, 73)], 1)
    core.results(W, [(11, 1, 1)], SECOND)
    assert rows_of(core)[0] == (11, 100, 1)


def test_a_task_with_a_limit_takes_its_turn(core):
    core.scheduler.task_limits.define({"db": LimitSettings(most=1)})
    queued(core, 72)
    core.submit(C, [100], 2, limits=("db",))
    assert retracts(core) == [*range(2, 73)]


def test_a_task_whose_limit_is_used_up_takes_nothing_back(core):
    core.scheduler.task_limits.define({"db": LimitSettings(most=1)})
    joined(core)
    core.worker(b"worker 3", 23)
    core.function(C, 2, b"g")
    core.submit(C, [1], 2, limits=("db",))
    core.take()
    core.submit(C, [100], 2, limits=("db",))
    core.submit(C, [2], 2)
    assert retracts(core) == []


def test_more_of_the_same_takes_nothing_back(core):
    queued(core, 72)
    core.submit(C, range(100, 200), 2)
    core.wait(1)
    assert retracts(core) == []


def test_less_urgent_tasks_take_nothing_back(core):
    queued(core, 72, priority=1)
    core.submit(C, range(100, 200), 2)
    core.wait(1)
    assert retracts(core) == []


def test_tasks_that_this_worker_cannot_run_take_nothing_back(core):
    queued(core, 72)
    another_user(core)
    core.submit(C2, [1], capabilities=frozenset([("gpu", 1)]))
    core.wait(1)
    assert retracts(core) == []


def test_tasks_that_a_free_worker_takes_take_nothing_back(core):
    queued(core, 3)
    another_user(core)
    core.worker(b"worker 3", 23)
    assert retracts(core) == [3]  # stolen
    core.retracted(W, [(11, 3, 1)], 0)
    core.results(W, [(11, 1, 1)], 5 * MILLISECOND)
    core.take()
    core.submit(C2, [1])
    assert rows_of(core) == [(12, 1, 1)]


def test_what_is_taken_back_does_not_return_to_the_queue(core):
    """Each row is retracted once, whatever waits meanwhile."""
    queued(core, 72)
    another_user(core)
    core.submit(C2, range(1, 20))
    core.retracted(W, [(11, task_id, 1) for task_id in range(2, 73)], 1)
    assert retracts(core) == [*range(2, 73)]
    for second in range(5):
        core.submit(C, [200 + second], 2, priority=second)
        core.heartbeat(W)
        core.wait(1)
    assert retracts(core) == []


def test_an_input_of_an_urgent_task_goes_before_others(core):
    joined(core)
    core.teach(C, W, 2, b"g", 20 * MILLISECOND, 0)
    core.submit(C, [1], 2)
    assert rows_of(core) == [(11, 1, 1)]
    core.submit(C, range(2, 30), 2)
    assert core.take() == []
    submit_reader(core, 30, 29)
    core.take()
    core.results(W, [(11, 1, 1)], 20 * MILLISECOND)
    assert (11, 29, 1) in rows_of(core)


def test_the_inputs_of_its_inputs_go_before_others_too(core):
    joined(core)
    core.teach(C, W, 2, b"g", 20 * MILLISECOND, 0)
    core.submit(C, [1], 2)
    core.submit(C, range(2, 30), 2)
    core.take()
    submit_reader(core, 30, 29, priority=0)
    submit_reader(core, 31, 30)
    core.results(W, [(11, 1, 1)], 20 * MILLISECOND)
    assert (11, 29, 1) in rows_of(core)
    task = core.scheduler.tables.clients.find(11).tasks[30]
    assert task.options.priority == 5


def test_an_input_that_is_queued_behind_a_long_task_is_taken_back(core):
    queued(core, 5)
    submit_reader(core, 30, 4)
    assert retracts(core) == [4]
    core.retracted(W, [(11, 4, 1)], 1)
    core.worker(b"worker 3", 23)
    assert rows_of(core)[0] == (11, 4, 2)


def submit_reader(core, task_id, *inputs, priority=5):
    """A task that reads the results of earlier tasks."""
    event = submit_event(C, [task_id], [2], [b"x"], ())
    event.inputs = event.keep_earlier = array("q", inputs)
    event.input_counts = array("I", [len(inputs)])
    event.options = events.Options(priority=priority)
    core.feed(event)
