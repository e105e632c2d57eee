"""Over how many workers little work is spread. Runs under PyPy and CPython."""

from __future__ import annotations

from math import sqrt

import pytest
from tests.scheduler.core.harness import C2, MILLISECOND, C, W, dispatched, joined, running

from scaler_scheduler.core.placement.free_workers import FreeWorkers
from scaler_scheduler.core.placement.prefetch import (
    LEAST_PORTION_NS,
    MESSAGE_NS,
    MOST_PORTION_NS,
    SILENT_SECONDS,
    portion_ns,
)
from scaler_scheduler.core.state.records import Worker

MICROSECOND = 1000


def many(core, workers, nanoseconds):
    """Let so many workers join, and teach them function 2 with this run time."""
    joined(core)
    core.teach(C, W, 2, b"g", nanoseconds, 0)
    for number in range(1, workers):
        core.worker(b"worker %d" % number, 100 + number)


def rows_by_worker(core):
    return {sent[1]: [row[:3] for row in sent[2]] for sent in core.take() if sent[0] == "dispatch"}


@pytest.mark.parametrize("work", [10 * MILLISECOND, 30 * MILLISECOND, 90 * MILLISECOND])
def test_a_portion_makes_messages_and_work_take_the_least_time(work):
    portion = portion_ns(work)
    least = work / portion * MESSAGE_NS + portion
    for other in (0.5, 0.8, 1.25, 2):
        assert least < work / (other * portion) * MESSAGE_NS + other * portion
    assert portion == pytest.approx(sqrt(work * MESSAGE_NS), rel=0.01)


def test_portions_are_bounded():
    assert portion_ns(0) == portion_ns(MICROSECOND) == LEAST_PORTION_NS
    assert portion_ns(1 << 63) == portion_ns(1 << 80) == MOST_PORTION_NS


@pytest.mark.parametrize("tasks, most", [(200, 1), (1000, 5), (10_000, 32)])
def test_no_ops_are_spread_over_no_more_workers_than_they_fill(core, tasks, most):
    many(core, 100, 1 * MICROSECOND)
    core.submit(C, range(1, tasks + 1), 2)
    counts = dispatched(core)
    assert sum(counts.values()) == tasks
    assert max(1, most // 2) <= len(counts) <= most


def test_small_submissions_fill_one_worker_after_the_other(core):
    many(core, 100, 10 * MICROSECOND)
    held = {}
    for first in range(1, 41, 2):
        core.submit(C, range(first, first + 2), 2)
        for worker, count in dispatched(core).items():
            held[worker] = held.get(worker, 0) + count
    assert list(held.values()) == [20, 20]  # 0.2 ms each


def test_a_worker_that_has_answered_is_filled_again(core):
    many(core, 3, 10 * MICROSECOND)
    core.submit(C, range(1, 21), 2)
    [(worker, rows)] = rows_by_worker(core).items()
    core.results(worker, rows[:10], 10 * MICROSECOND)
    core.take()
    core.submit(C, range(21, 31), 2)
    assert dispatched(core) == {worker: 10}


def test_two_tasks_that_are_worth_a_message_go_to_two_workers(core):
    many(core, 2, MILLISECOND // 2)
    core.submit(C, [1, 2], 2)
    assert list(dispatched(core).values()) == [1, 1]


def test_two_tasks_go_to_two_workers_one_by_one_too(core):
    many(core, 2, MILLISECOND // 2)
    core.submit(C, [1], 2)
    core.submit(C, [2], 2)
    assert list(dispatched(core).values()) == [1, 1]


def test_nothing_goes_behind_a_task_that_is_known_to_run(core):
    many(core, 2, MICROSECOND)
    core.submit(C, [1], 2)
    [(first, rows)] = rows_by_worker(core).items()
    core.started(first, rows[0])
    core.submit(C, [2], 2)
    [(second, _)] = rows_by_worker(core).items()
    assert second != first


def test_nothing_goes_behind_a_task_of_unknown_length(core):
    many(core, 2, MICROSECOND)
    core.submit(C, [1])
    [first] = dispatched(core)
    core.submit(C, [2], 2)
    [second] = dispatched(core)
    assert second != first


def test_a_task_of_unknown_length_goes_behind_nothing(core):
    many(core, 2, MICROSECOND)
    core.submit(C, [1], 2)
    [first] = dispatched(core)
    core.submit(C, [2])
    [second] = dispatched(core)
    assert second != first


@pytest.mark.parametrize("priority", [0, -1])
def test_a_worker_is_reserved_for_a_task_of_unknown_length(core, priority):
    """Otherwise the other client's tasks would keep the worker busy for ever."""
    many(core, 1, MILLISECOND)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C, range(1, 17), 2)
    [(_, rows)] = rows_by_worker(core).items()
    assert len(rows) == 16
    core.submit(C, [200])
    core.submit(C2, range(100), 2, priority=priority)
    core.results(W, rows[:-1], MILLISECOND)
    assert not rows_by_worker(core)
    core.results(W, rows[-1:], MILLISECOND)
    assert [row[1] for row in rows_by_worker(core)[W]] == [200]


def test_nothing_goes_to_a_worker_that_does_not_answer_while_others_are_idle(core):
    many(core, 2, MICROSECOND)
    core.submit(C, [1], 2)
    [first] = dispatched(core)
    core.wait(SILENT_SECONDS / 2)
    core.submit(C, [2], 2)
    assert dispatched(core) == {first: 1}
    core.wait(SILENT_SECONDS)
    core.submit(C, [3], 2)
    [second] = dispatched(core)
    assert second != first


def test_workers_that_are_filled_can_serve(core):
    """Each profile has a worker that is being filled."""
    joined(core)
    core.teach(C, W, 2, b"g", MICROSECOND, 0)
    for number in range(4):
        core.worker(b"big %d" % number, 50 + number, capabilities=[("memory", 8)])
    workers = set()
    for task_id in range(1, 21):
        needs = frozenset([("memory", 4)]) if task_id % 2 else frozenset()
        core.submit(C, [task_id], 2, capabilities=needs)
        workers.update(dispatched(core))
    assert len(workers) <= 2


def test_a_worker_that_has_left_is_filled_no_more(core):
    many(core, 2, MICROSECOND)
    core.submit(C, [1], 2)
    [first] = dispatched(core)
    core.goodbye(first)
    [second] = dispatched(core)
    assert second != first
    core.submit(C, [2], 2)
    assert dispatched(core) == {second: 1}


def test_long_tasks_ask_no_busy_worker_again(core):
    """The lists of free workers have no worker that would decline."""
    many(core, 50, 1000 * MILLISECOND)
    core.submit(C, range(1, 201), 2)
    assert set(dispatched(core).values()) == {1}
    assert core.tables()["ready"] == 0


def test_running_workers_leave_the_list(core):
    joined(core)
    running(core)
    core.submit(C, [2, 3])
    core.take()
    assert core.tables()["ready"] == 0


# ------------------------------------------------------------------------------------------------------- free workers


def worker(number, agent=1, capabilities=(), kinds=(), kind_of_worker=Worker):
    name = f"worker {number}"
    return kind_of_worker(
        number,
        agent,
        name.encode(),
        name=name,
        host="host",
        pid=number,
        capabilities=frozenset(capabilities),
        kinds=frozenset(kinds),
        deadline=0.0,
    )


NOTHING: frozenset[tuple[str, int]] = frozenset()
GPU = frozenset([("gpu", 1)])


def test_free_workers_are_found_by_age_and_by_what_they_can_run():
    free = FreeWorkers()
    plain = [worker(number) for number in range(3)]
    able = [worker(number, capabilities=[("gpu", 2)]) for number in range(3, 6)]
    for pair in zip(plain, able):
        for each in pair:
            free.add(each)
    assert len(free) == 6 and set(free) == {*plain, *able}
    assert free.newest(NOTHING, "") is able[2] and free.oldest(NOTHING, "") is plain[0]
    assert free.newest(GPU, "") is able[2] and free.oldest(GPU, "") is able[0]
    free.remove(able[2])
    free.remove(plain[0])
    assert able[2] not in free and able[1] in free
    assert free.newest(NOTHING, "") is plain[2] and free.oldest(NOTHING, "") is able[0]
    for each in able[:2]:
        free.remove(each)
    assert free.newest(GPU, "") is free.oldest(GPU, "") is None
    assert not free.can_serve(GPU, "") and free.can_serve(NOTHING, "")


def test_free_workers_are_found_by_their_host():
    free = FreeWorkers()
    first, second, other = worker(1, agent=7), worker(2, agent=7, kinds=["c"]), worker(3, agent=8)
    for each in (first, second, other):
        free.add(each)
    assert free.newest_of_agent(7, NOTHING, "python") is first
    assert free.newest_of_agent(7, NOTHING, "c") is second
    assert free.newest_of_agent(9, NOTHING, "c") is None
    free.remove(first)
    assert free.newest_of_agent(7, NOTHING, "python") is None


def test_a_search_looks_at_one_worker_of_each_profile():
    free = FreeWorkers()
    asked = []

    class Asked(Worker):
        def can_serve(self, capabilities, kind):
            asked.append(self)
            return super().can_serve(capabilities, kind)

    for number in range(1000):
        free.add(worker(number, capabilities=[("gpu", 1)] if number % 2 else (), kind_of_worker=Asked))
    for capabilities in (NOTHING, GPU, frozenset([("tpu", 1)])):
        free.newest(capabilities, "")
        free.oldest(capabilities, "")
        free.can_serve(capabilities, "")
    assert len(asked) <= 3 * 6
