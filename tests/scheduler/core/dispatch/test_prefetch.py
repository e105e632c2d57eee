"""How much work a worker holds. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    MILLISECOND,
    SECOND,
    W2,
    C,
    W,
    dispatched,
    joined,
    results_event,
    running,
    submit_event,
)

from scaler_scheduler.core.events import Results
from scaler_scheduler.core.placement.prefetch import TARGET_BYTES


def test_an_unknown_function_gets_one_task_a_worker(core):
    joined(core)
    core.worker(W2, 23)
    core.submit(C, range(100))
    assert dispatched(core) == {W: 1, W2: 1}


@pytest.mark.parametrize(
    "nanoseconds, expected", [(0, 1000), (1000, 1000), (10 * MILLISECOND, 2), (10 * SECOND, 1), ((1 << 63) - 1, 1)]
)
def test_a_worker_holds_about_one_round_trip_of_work(core, nanoseconds, expected):
    joined(core)
    core.teach(C, W, 2, b"g", nanoseconds, 0)
    core.submit(C, range(1, 5001), 2)
    assert dispatched(core) == {W: expected}


def test_the_queue_size_bounds_the_prefetch(make_core):
    core = make_core(queue_size=7)
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 5001), 2)
    assert dispatched(core) == {W: 7}


def test_a_worker_of_queue_size_one(make_core):
    core = make_core(queue_size=1)
    number = joined(core)
    core.submit(C, range(5))
    for task_id in range(5):
        assert core.take_dispatched(W) == [(number, task_id, 1)]
        core.results(W, [(number, task_id, 1)])
        core.take_one("resolved", C, [(task_id, 0, b"")])


def test_a_busy_worker_gets_more_before_its_queue_is_empty(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 3001), 2)
    rows = core.take_dispatched(W)
    assert len(rows) == 1000
    core.results(W, rows[:100], 1000)
    assert [sent[0] for sent in core.take()] == ["resolved"]  # it still holds enough work
    core.results(W, rows[100:600], 1000)
    assert dispatched(core) == {W: 600}


def test_few_tasks_are_spread_over_idle_workers(core):
    joined(core)
    core.teach(C, W, 2, b"g", MILLISECOND, 0)
    for number in range(1, 8):
        core.worker(b"worker %d" % number, 100 + number)
    core.submit(C, range(1, 9), 2)
    counts = dispatched(core)
    assert len(counts) == 8
    assert set(counts.values()) == {1}


def test_single_tasks_go_to_the_worker_that_was_busy_last(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, [1], 2)
    ((kind, first, rows),) = [sent for sent in core.take() if sent[0] == "dispatch"]
    for task_id in range(2, 6):
        core.results(first, [row[:3] for row in rows])
        core.take()
        core.submit(C, [task_id], 2)
        ((kind, route, rows),) = core.take()
        assert (kind, route) == ("dispatch", first)


def test_no_ops_that_fit_one_message_go_to_one_worker(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.worker(W2, 23)
    core.submit(C, range(1, 9), 2)
    assert list(dispatched(core).values()) == [8]


@pytest.mark.parametrize("large", [[], [0]])
def test_large_payloads_do_not_pile_up_at_a_worker(core, large):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    body = bytes(TARGET_BYTES // 4 + 1)
    core.feed(*[submit_event(C, [row + 1], [2], [body], large) for row in range(12)])
    held = core.take_dispatched(W)
    assert len(held) == 4
    core.results(W, held)
    sizes = {sent[0]: len(sent[2]) for sent in core.take() if sent[0] != "credit"}
    assert sizes == {"dispatch": 4, "resolved": 4}


@pytest.mark.parametrize("is_large", [False, True])
def test_large_results_do_not_pile_up_at_a_worker(core, is_large):
    """A client that has stopped reading must find few results under way."""
    joined(core)
    body = bytes(1 << 20)
    core.submit(C, [0])
    event = results_event(W, core.take_dispatched(W), 1000, body=body)
    if is_large:
        event = with_a_frame(event)
    core.feed(event)
    core.take()
    core.submit(C, range(1, 401))
    assert dispatched(core) == {W: 15}


def with_a_frame(event: Results) -> Results:
    """The bytes of its only row in a frame of its own."""
    event.large = {0: event.payload}
    event.payload, event.sizes[0] = b"", 0
    return event


def test_a_worker_without_room_for_one_function_serves_others(core):
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1], 2)
    assert core.take_dispatched(W) == [(11, 1, 1)]
    core.submit(C, [2])  # its run time is unknown, so nothing is queued behind it
    assert core.take() == []
    core.submit(C, [3], 2, priority=1)
    assert core.take_dispatched(W) == [(11, 3, 1)]


def test_nothing_is_queued_behind_a_long_task(core):
    joined(core)
    core.teach(C, W, 1, b"f", 1000, 0)
    running(core)
    core.submit(C, [2, 3])
    assert core.take() == []
    core.worker(W2, 23)
    assert {sent[1]: len(sent[2]) for sent in core.take() if sent[0] == "dispatch"} == {W2: 2}
