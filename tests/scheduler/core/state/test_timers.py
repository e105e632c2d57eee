"""Timers of tasks, and the check of leases. Runs under PyPy and CPython."""

from __future__ import annotations

import random

from scaler_scheduler.core.state.timers import LEASE_CHECK_SECONDS, STALL_SECONDS, LeaseTimer, TimerQueue


class Due:
    """The attributes of a task that the queue uses."""

    def __init__(self, name):
        self.name = name
        self.timer = None


def names(tasks):
    return [task.name for task in tasks]


def test_timers_are_due_in_the_order_of_their_deadlines():
    queue = TimerQueue()
    assert queue.next_deadline == float("inf")
    for name, deadline in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 2.0)):
        queue.set(Due(name), deadline)
    assert queue.next_deadline == 1.0
    assert names(queue.pop_due(0.5)) == []
    assert names(queue.pop_due(2.0)) == ["a", "b", "d"]  # equal deadlines keep their order
    assert len(queue) == 1
    assert names(queue.pop_due(10.0)) == ["c"]
    assert queue.next_deadline == float("inf")


def test_a_cancelled_timer_is_never_due():
    queue = TimerQueue()
    first, second = Due("first"), Due("second")
    queue.set(first, 1.0)
    queue.set(second, 2.0)
    queue.cancel(first)
    queue.cancel(first)
    assert first.timer is None
    assert len(queue) == 1
    assert names(queue.pop_due(5.0)) == ["second"]
    queue.cancel(second)  # it was due
    assert len(queue) == 0


def test_one_task_has_one_timer():
    queue = TimerQueue()
    task = Due("task")
    for deadline in (5.0, 1.0, 9.0):
        queue.set(task, deadline)
    assert len(queue) == 1
    assert names(queue.pop_due(8.0)) == []
    assert names(queue.pop_due(9.0)) == ["task"]
    queue.set(task, 10.0)
    assert names(queue.pop_due(10.0)) == ["task"]
    assert len(queue) == 0


def test_a_cancelled_timer_drops_its_task_at_once():
    queue = TimerQueue()
    task = Due("task")
    queue.set(task, 1.0)
    timer = task.timer
    queue.cancel(task)
    assert timer.task is None


def test_cancelled_timers_do_not_pile_up():
    """Tasks with a limit of an hour that end early: a million in a day."""
    queue = TimerQueue()
    kept = Due("kept")
    queue.set(kept, 1e6)
    for number in range(20_000):
        task = Due(number)
        queue.set(task, 1000.0 + number)
        queue.cancel(task)
        assert len(queue) == 1
        assert len(queue._heap) < 3000
    assert names(queue.pop_due(2e6)) == ["kept"]
    assert not queue._heap and not queue._stale


def test_the_heap_is_valid_after_it_was_rebuilt():
    chance = random.Random(7)
    queue = TimerQueue()
    tasks = [Due(chance.random() * 1000) for _ in range(6000)]
    for task in tasks:
        queue.set(task, task.name)
    for task in tasks[:4000]:
        queue.cancel(task)
    assert len(queue._heap) < 6000
    assert len(queue) == 2000
    assert names(queue.pop_due(2000.0)) == sorted(names(tasks[4000:]))


def test_a_storm_of_timers():
    """Compared with a plain list."""
    chance = random.Random(8)
    queue = TimerQueue()
    tasks = [Due(number) for number in range(50)]
    deadlines = {}
    now = 0.0
    for _ in range(20_000):
        task = chance.choice(tasks)
        roll = chance.random()
        if roll < 0.6:
            deadlines[task] = now + chance.random() * 10
            queue.set(task, deadlines[task])
        elif roll < 0.9:
            deadlines.pop(task, None)
            queue.cancel(task)
        else:
            now += chance.random()
            due = sorted((task for task in deadlines if deadlines[task] <= now), key=deadlines.__getitem__)
            assert queue.pop_due(now) == due
            for gone in due:
                del deadlines[gone]
        assert len(queue) == len(deadlines)
        if deadlines:
            assert queue.next_deadline <= min(deadlines.values())


def test_leases_are_checked_once_a_second():
    timer = LeaseTimer(100.0)
    assert not timer.is_due(100.9)
    assert timer.is_due(100.0 + LEASE_CHECK_SECONDS)
    assert not timer.is_due(101.5)
    assert timer.stall_seconds() == 0.0
    assert timer.is_due(110.0)
    assert timer.stall_seconds() == 8.0
    assert timer.is_due(111.0 + STALL_SECONDS)
    assert timer.stall_seconds() == 0.0
