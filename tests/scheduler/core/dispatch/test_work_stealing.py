"""Queued tasks are retracted from workers that run a long task. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import (
    C2,
    EXCEPTION,
    MILLISECOND,
    SECOND,
    VALUE,
    W2,
    A,
    C,
    W,
    dispatched,
    joined,
    resolved,
    rows_of,
)

from scaler_scheduler.core import events

GPU = frozenset([("gpu", 1)])


def queued(core, count, **options):
    """One worker holds this number of tasks, and has reported that the first of them runs."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, count + 1), 2, **options)
    assert len(core.take_dispatched(W)) == count
    core.started(W, (11, 1, 1))
    assert core.take() == [("started", C, [1])]


def retract(*ids, attempt=1, route=W):
    return ("retract", route, [(11, task_id, attempt) for task_id in ids])


def test_eight_long_tasks_and_seven_more_workers(core):
    queued(core, 8)
    now = core.now
    moved = {W: 1}
    for number in range(7):
        core.worker(b"worker %d" % number, 100 + number)
        for sent in core.take():
            if sent[0] == "retract":
                core.retracted(W, sent[2], 1)
    core.take()
    for worker in core.scheduler.tables.workers:
        moved[worker.route] = len(worker.tasks)
    assert core.now == now  # within one round trip, without a timer
    # Tasks that went early to the first workers move as soon as they are known to take long.
    while max(moved.values()) > 1:
        for worker in core.scheduler.tables.workers:
            task = next(iter(worker.tasks.values()), None)
            if task is not None and not worker.running:
                core.started(worker.route, (11, task.id, task.attempt))
        for sent in core.take():
            if sent[0] == "retract":
                core.retracted(sent[1], sent[2], 1)
        core.take()
        moved = {worker.route: len(worker.tasks) for worker in core.scheduler.tables.workers}
    assert set(moved.values()) == {1} and len(moved) == 8


def test_they_all_join_at_once(core):
    queued(core, 8)
    hellos = [
        events.Hello(b"worker %d" % number, 1, events.WORKER, 100 + number, 0, "", "", "host", 1, "")
        for number in range(7)
    ]
    core.feed(*hellos)
    assert core.take()[7:] == [retract(8, 7, 6, 5, 4, 3, 2)]
    core.retracted(W, [(11, task_id, 1) for task_id in range(2, 9)], 1)
    counts = dispatched(core)
    assert len(counts) == 7 and set(counts.values()) == {1}
    assert core.scheduler.counts.retracted == 7


def test_a_fair_share_of_the_end_of_the_queue_is_retracted(core):
    queued(core, 8)
    core.worker(W2, 23)
    assert core.take() == [retract(8, 7, 6, 5)]


def test_a_worker_gets_one_retract_until_it_has_answered(core):
    queued(core, 8)
    core.worker(W2, 23)
    assert core.take() == [retract(8, 7, 6, 5)]
    for _ in range(3):
        core.heartbeat(W)
        core.wait(1)
    assert core.take() == []
    core.retracted(W, [(11, 8, 1), (11, 7, 1)], 1)
    assert rows_of(core) == [(11, 7, 2), (11, 8, 2)]
    core.retracted(W, [(11, 6, 1), (11, 5, 1)], 0)
    assert core.take() == []


def test_the_worker_keeps_a_task_that_it_has_begun(core):
    """It began the task before the retract arrived."""
    queued(core, 2)
    core.worker(W2, 23)
    assert core.take() == [retract(2)]
    core.results(W, [(11, 1, 1)])
    core.retracted(W, [(11, 2, 1)], 0)
    assert core.take() == [resolved(1)]
    core.results(W, [(11, 2, 1)])
    assert core.take() == [resolved(2)]


def test_the_result_crosses_the_retract(core):
    queued(core, 2)
    core.worker(W2, 23)
    core.results(W, [(11, 1, 1), (11, 2, 1)])
    core.retracted(W, [(11, 2, 1)], 0)
    assert core.take() == [retract(2), resolved(1, 2)]
    assert core.tables()["dispatched"] == core.tables()["waiting"] == 0


def test_nothing_is_retracted_without_a_reported_long_task(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 101), 2)
    assert len(core.take_dispatched(W)) == 100
    core.worker(W2, 23)
    core.wait(1)
    assert core.take() == []


def test_nothing_is_retracted_after_the_long_task_has_ended(core):
    queued(core, 8)
    core.results(W, [(11, 1, 1)])
    core.worker(W2, 23)
    assert core.take() == [resolved(1)]


def test_workers_without_a_queue_are_not_checked_again(core):
    queued(core, 1)
    core.worker(W2, 23)
    assert not core.scheduler.core_state.pool.long_running


def test_nothing_is_retracted_without_an_idle_worker(core):
    """There is no worker to give it to."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, range(1, 201), 2)
    core.submit(C, range(201, 401), 2)
    first, second = (sent for sent in core.take() if sent[0] == "dispatch")
    core.started(first[1], first[2][0][:3])
    assert core.take() == [("started", C, [first[2][0][1]])]
    # The other worker has no task left.
    core.results(second[1], [row[:3] for row in second[2]])
    last = [row[:3] for row in first[2]][100:]
    assert core.take()[1:] == [("retract", first[1], last[::-1])]


def test_workers_join_one_after_another(core):
    """Tasks are balanced repeatedly, some of them several times."""
    queued(core, 4)
    core.worker(W2, 23)
    assert core.take() == [retract(4, 3)]
    core.retracted(W, [(11, 4, 1), (11, 3, 1)], 1)
    assert core.take_dispatched(W2) == [(11, 3, 2), (11, 4, 2)]
    core.started(W2, (11, 3, 2))
    core.worker(b"worker 3", 24)
    assert core.take() == [("started", C, [3]), retract(2), retract(4, attempt=2, route=W2)]
    core.retracted(W2, [(11, 4, 2)], 1)
    assert rows_of(core) == [(11, 4, 3)]
    core.started(b"worker 3", (11, 4, 3))
    core.retracted(W, [(11, 2, 1)], 1)
    assert core.take() == [("started", C, [4])]
    core.results(W2, [(11, 3, 2)], SECOND)
    assert core.take() == [("dispatch", W2, [(11, 2, 2, 2, b"")]), resolved(3)]
    for attempt in range(3, 10):  # the task moves back and forth
        core.goodbye(W2) if attempt % 2 else core.goodbye(b"worker 4")
        core.worker(b"worker 4", 100 + attempt) if attempt % 2 else core.worker(W2, 100 + attempt)
        assert rows_of(core) == [(11, 2, attempt)]


def test_the_worker_dies_in_the_middle_of_it(core):
    queued(core, 3)
    core.worker(W2, 23)
    assert core.take() == [retract(3)]
    core.died(A, 22, (11, 1, 1))
    assert core.take_dispatched(W2) == [(11, 1, 2)], "its function has ended a worker: it runs alone"
    core.retracted(W, [(11, 3, 1)], 1)
    assert core.take() == [("hello wanted", W)]
    for task_id in (1, 2):
        core.results(W2, [(11, task_id, 2)])
        assert core.take() == [("dispatch", W2, [(11, task_id + 1, 2, 2, b"")], {0: (2, 0, 0)}), resolved(task_id)]
    core.results(W2, [(11, 3, 2)])
    assert core.take() == [resolved(3)]


def test_the_idle_worker_dies_in_the_middle_of_it(core):
    queued(core, 3)
    core.worker(W2, 23)
    assert core.take() == [retract(3)]
    core.goodbye(W2)
    core.retracted(W, [(11, 3, 1)], 1)
    assert core.take() == []  # the tasks do not go back behind the long one
    core.results(W, [(11, 1, 1)])
    assert core.take() == [("dispatch", W, [(11, 3, 2, 2, b"")]), resolved(1)]


def test_tasks_that_the_idle_worker_cannot_run_stay(core):
    core.client(C, 11)
    core.worker(W, 22, capabilities=GPU)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1], 2)
    core.submit(C, [2, 3], 2, capabilities=GPU)
    core.submit(C, [4, 5], 2)
    assert len(core.take_dispatched(W)) == 5
    core.started(W, (11, 1, 1))
    core.take()
    core.worker(W2, 23)
    assert core.take() == [retract(5, 4)]
    core.retracted(W, [(11, 5, 1), (11, 4, 1)], 1)
    assert sorted(core.take_dispatched(W2)) == [(11, 4, 2), (11, 5, 2)]
    core.results(W2, [(11, 4, 2), (11, 5, 2)])
    assert core.take() == [resolved(4, 5)]
    core.worker(b"able", 24, capabilities=GPU)
    assert core.take() == [retract(3, 2)]


def test_an_unschedulable_task_does_not_stop_balancing(core):
    queued(core, 3)
    core.submit(C, [4], 2, capabilities=GPU)
    core.worker(W2, 23)
    assert core.take() == [retract(3)]


def test_tasks_of_all_clients(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C, [1, 2], 2)
    core.submit(C2, [1, 2], 2)
    core.take()
    core.started(W, (11, 1, 1))
    core.take()
    for number in range(3):
        core.worker(b"worker %d" % number, 100 + number)
    (sent,) = core.take()
    core.retracted(W, sent[2], 1)
    assert {row[0] for row in rows_of(core)} <= {11, 12}
    assert core.tables()["waiting"] == 0


def test_a_timed_or_cancelled_task_is_not_taken_for_balance(core):
    queued(core, 3)
    core.cancel(C, 3)
    assert core.take() == [retract(3)]
    core.worker(W2, 23)
    assert core.take() == []  # one retract at a time
    core.retracted(W, [(11, 3, 1)], 1)
    assert core.take() == [resolved(3, outcome=6), retract(2)]


def test_several_busy_workers_and_one_idle(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, range(1, 401), 2)
    rows = {sent[1]: [row[:3] for row in sent[2]] for sent in core.take() if sent[0] == "dispatch"}
    assert set(rows) == {W, W2}
    for route in rows:
        core.started(route, rows[route][0])
    core.take()
    core.worker(b"idle", 24)
    sent = core.take()
    assert sorted((one[0], one[1]) for one in sent) == [("retract", W), ("retract", W2)]
    for one in sent:
        core.retracted(one[1], one[2], 1)
    core.take()
    assert core.scheduler.tables.workers.find(24).task_count
    assert core.scheduler.counts.dispatched + core.scheduler.counts.waiting == 400


def test_a_failed_task_does_not_list_its_worker(core):
    queued(core, 2)
    core.results(W, [(11, 1, 1)], outcome=EXCEPTION)
    core.worker(W2, 23)
    core.results(W, [(11, 2, 1)], outcome=VALUE)
    assert core.take() == [resolved(1, outcome=EXCEPTION), resolved(2)]


def test_tasks_are_not_moved_between_partly_busy_workers(core):
    """Only idle workers are a reason to move tasks."""
    queued(core, 5)
    core.submit(C, [6])
    core.worker(W2, 23)
    core.take()
    core.retracted(W, [(11, 5, 1), (11, 4, 1)], 1)
    core.take()
    names = array("q", [11]), array("q", [6]), array("I", [1])
    core.feed(events.Started(W2, *names))
    assert all(sent[0] != "retract" for sent in core.take())


def test_ten_tasks_of_very_different_lengths(core):
    """No worker is idle while another has a queue, at any time."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    for number in range(3):
        core.worker(b"worker %d" % number, 100 + number)
    core.submit(C, range(1, 41), 2)
    lengths = {task_id: 30 if task_id % 7 == 1 else 1 for task_id in range(1, 41)}  # in turns of the loop
    queues = {}
    clock = {}
    turns = 0
    while core.scheduler.counts.dispatched + core.scheduler.counts.waiting:
        turns += 1
        assert turns < 100  # six long tasks, and the rest on four workers; one worker alone needs 214
        for sent in core.take():
            if sent[0] == "dispatch":
                queues.setdefault(sent[1], []).extend(row[:3] for row in sent[2])
            elif sent[0] == "retract":
                given = [row for row in sent[2] if row in queues[sent[1]][1:]]
                kept = [row for row in sent[2] if row not in given]
                queues[sent[1]] = [row for row in queues[sent[1]] if row not in given]
                if given:
                    core.retracted(sent[1], given, 1)
                if kept:
                    core.retracted(sent[1], kept, 0)
        for route, queue in queues.items():
            if not queue:
                continue
            clock[route] = clock.get(route, 0) + 1
            if clock[route] >= lengths[queue[0][1]]:
                core.results(route, [queue.pop(0)], MILLISECOND)
                clock[route] = 0
            elif clock[route] == 2:
                core.started(route, queue[0])
    core.take()
