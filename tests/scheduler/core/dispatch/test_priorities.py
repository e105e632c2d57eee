"""The order of tasks: ranks first, then clients in turn. Runs under PyPy and CPython."""

from __future__ import annotations

from tests.scheduler.core.harness import C2, MILLISECOND, W2, A, C, W, joined, rows_of

MIN_PRIORITY, MAX_PRIORITY = -(1 << 31), (1 << 31) - 1


def order_of(core, count):
    """The next tasks that the worker gets, one at a time, as (client, id)."""
    order = []
    while len(order) < count:
        rows = core.take_dispatched(W)
        assert len(rows) == 1
        order.append(rows[0][:2])
        core.results(W, rows, 100 * MILLISECOND)
        for client, route in ((11, C), (12, C2)):
            if rows[0][0] == client:
                core.take_one("resolved", route, [(rows[0][1], 0, b"")])
    return order


def lanes(core):
    return sum(len(client.lanes) for client in core.scheduler.tables.clients)


def test_higher_priorities_start_first(core):
    joined(core)
    core.submit(C, [0])  # keeps the worker busy
    priorities = [0, 5, -5, 5, MIN_PRIORITY, MAX_PRIORITY, 0, -5]
    for task_id, priority in enumerate(priorities, 1):
        core.submit(C, [task_id], priority=priority)
    # Tasks of equal rank run in the order of submission.
    assert [task_id for _, task_id in order_of(core, 9)] == [0, 6, 2, 4, 1, 7, 3, 8, 5]


def test_within_a_priority_deeper_tasks_first(core):
    joined(core)
    core.submit(C, [0])
    for task_id, (priority, depth) in enumerate([(0, 0), (0, 3), (1, 0), (0, 1), (-1, (1 << 32) - 1), (1, 1)], 1):
        core.submit(C, [task_id], priority=priority, depth=depth)
    assert [task_id for _, task_id in order_of(core, 7)] == [0, 6, 3, 2, 4, 1, 5]


def test_the_dispatch_has_depth_and_priority(core):
    joined(core)
    core.submit(C, [1], priority=-7, depth=2)
    assert core.take()[-1] == ("dispatch", W, [(11, 1, 1, 1, b"")], {0: (0, 2, -7)})
    core.died(A, 22)
    core.worker(W2, 23)
    assert core.take()[-1] == ("dispatch", W2, [(11, 1, 2, 1, b"")], {0: (0, 2, -7)})


def test_row_options_stay_with_their_rows(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.goodbye(W)
    core.goodbye(W2)
    core.submit(C, [1, 2], 2)
    core.submit(C, [3, 4], 2, priority=-1, profiling=True)
    core.submit(C, [5], 2, priority=-2, timeout_seconds=1.0)
    core.submit(C, [6], 2, priority=-3, retries=7, name="six")  # only the priority matters to the worker
    core.worker(W, 24)
    sent = core.take()[-1]
    assert [row[1] for row in sent[2]] == [1, 2, 3, 4, 5, 6]
    assert sent[3] == {2: (1, 0, -1), 3: (1, 0, -1), 4: (2, 0, -2), 5: (0, 0, -3)}


def test_a_requeued_task_goes_first_in_its_rank_only(core):
    joined(core)
    core.submit(C, [1, 2])
    core.submit(C, [3], priority=1)
    assert core.take_dispatched(W) == [(11, 1, 1)]
    core.died(A, 22)
    core.worker(W, 23)
    assert [task_id for _, task_id in order_of(core, 3)] == [3, 1, 2]


def test_two_clients_take_turns(core):
    first = joined(core)
    core.teach(C, W, 2, b"g", 10 * MILLISECOND, 0)
    second = core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C, range(1, 10_001), 2)
    core.submit(C2, range(10), 2)
    rows = core.take_dispatched(W)
    order = [row[0] for row in rows]
    while second in order[-3:] or len(order) < 20:
        core.results(W, rows[:1], 10 * MILLISECOND)
        rows = rows[1:] + rows_of(core)
        order.append(rows[-1][0])
    assert order[:24].count(second) >= 8  # its ten tasks have ended while thousands of the other client wait
    assert first in order


def test_thousands_of_tasks_do_not_delay_ten_of_another_client(core):
    """The tasks are long. The ten start one after another, each after at most one task of the other client."""
    joined(core)
    core.submit(C, range(5000))
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C2, range(10))
    order = [client for client, _ in order_of(core, 21)]
    assert order.count(12) == 10
    assert core.tables()["waiting"] > 4900
    core.take_dispatched(W)


def test_no_ops_of_two_clients_share_a_worker(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.goodbye(W)
    core.submit(C, range(1, 20_000), 2)
    core.submit(C2, range(10), 2)
    core.worker(W, 24)
    rows = core.take_dispatched(W)
    while not any(row[0] == 12 for row in rows):
        core.results(W, rows)
        rows = rows_of(core)
        assert core.tables()["waiting"] > 15_000


def test_priorities_come_before_turns(core):
    joined(core)
    core.submit(C, [0])
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C, [1, 2, 3])
    core.submit(C2, [1, 2, 3], priority=1)
    core.submit(C, [4], priority=1)
    order = order_of(core, 8)
    assert sorted(order[1:5]) == [(11, 4), (12, 1), (12, 2), (12, 3)]
    assert order[1:5] != sorted(order[1:5], reverse=True) and order[4] != (11, 4)  # in turns within the rank
    assert order[5:] == [(11, 1), (11, 2), (11, 3)]


def test_empty_lanes_are_removed(core):
    joined(core)
    core.submit(C, [0])
    for task_id in range(1, 51):
        core.submit(C, [task_id], priority=task_id, capabilities=frozenset() if task_id % 2 else frozenset([("x", 1)]))
    assert lanes(core) == core.tables()["ranks"] == 50
    core.goodbye(W)
    assert core.take()[-1][0] == "dispatch"
    core.worker(W, 50, capabilities=[("x", 1)])
    order_of(core, 51)
    assert lanes(core) == core.tables()["ranks"] == 0


def test_lanes_are_removed_with_their_client(core):
    joined(core)
    core.submit(C, [0])
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    for priority in range(5):
        core.submit(C, [priority + 1], priority=priority)
        core.submit(C2, [priority + 1], priority=priority)
    core.goodbye(C2)
    assert lanes(core) == core.tables()["ranks"] == 5
    assert [task_id for _, task_id in order_of(core, 6)] == [0, 5, 4, 3, 2, 1]


def test_tasks_of_a_client_run_in_the_order_of_submission(core):
    """In any batches, with dispatches in between."""
    joined(core)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    for first in range(0, 30, 3):
        core.submit(C, range(first, first + 3))
        core.submit(C2, range(first, first + 3))
    order = order_of(core, 60)
    for client in (11, 12):
        assert [task_id for name, task_id in order if name == client] == list(range(30))
