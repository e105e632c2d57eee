"""Results with their measurements. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    C2,
    EXCEPTION,
    RETRYABLE,
    TIMED_OUT,
    A,
    C,
    W,
    joined,
    resolved,
    results_event,
    rows_of,
)

from scaler_scheduler.core.effects import FLAG_PROFILE


def profiled_event(rows, durations, cpu_times, peaks, body=b""):
    event = results_event(W, rows, body=body)
    event.durations = array("q", durations)
    event.cpu_times = array("q", cpu_times)
    event.peaks = array("q", peaks)
    return event


def test_the_worker_is_asked_to_measure(core):
    joined(core)
    core.submit(C, [1], profiling=True)
    assert core.take()[-1] == ("dispatch", W, [(11, 1, 1, 1, b"")], {0: (FLAG_PROFILE, 0, 0)})


def test_measurements_go_to_the_client(core):
    joined(core)
    core.submit(C, [1], profiling=True)
    core.feed(profiled_event(core.take_dispatched(W), [5000], [4000], [1 << 40], b"v"))
    assert core.take() == [("resolved", C, [(1, 0, b"v")], {0: (5000, 4000, 1 << 40)})]


def test_a_failed_task_is_measured_too(core):
    joined(core)
    core.submit(C, [1], profiling=True)
    event = profiled_event(core.take_dispatched(W), [5000], [4000], [3])
    event.outcomes[0] = EXCEPTION
    core.feed(event)
    assert core.take() == [("resolved", C, [(1, EXCEPTION, b"")], {0: (5000, 4000, 3)})]


def test_only_profiled_rows_have_measurements(core):
    """One message has results for two clients. The rows of each client are numbered from 0."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C, [1, 2], 2)
    core.submit(C, [3], 2, profiling=True)
    core.submit(C2, [4], 2, profiling=True)
    core.submit(C2, [5], 2)
    rows = core.take_dispatched(W)
    assert len(rows) == 5
    rows.sort()
    event = profiled_event(rows, [10, 20, 30, 40, 50], [1, 2, 3, 4, 5], [100, 200, 300, 400, 500])
    core.feed(event)
    assert core.take() == [
        ("resolved", C, [(1, 0, b""), (2, 0, b""), (3, 0, b"")], {2: (30, 3, 300)}),
        ("resolved", C2, [(4, 0, b""), (5, 0, b"")], {0: (40, 4, 400)}),
    ]


def test_a_worker_that_measured_nothing(core):
    joined(core)
    core.submit(C, [1], profiling=True)
    core.results(W, core.take_dispatched(W))
    assert core.take() == [resolved(1)]


def test_a_worker_that_measured_without_being_asked(core):
    joined(core)
    core.submit(C, [1])
    core.feed(profiled_event(core.take_dispatched(W), [5], [4], [3]))
    assert core.take() == [resolved(1)]


def test_answers_of_the_scheduler_have_no_measurements(core):
    joined(core)
    core.submit(C, [1, 2], profiling=True)
    core.take()
    core.cancel(C, 2)
    core.cancel(C, 1, force=True)
    core.feed(profiled_event([(11, 1, 1)], [5], [4], [3]))
    assert core.take() == [resolved(2, outcome=6), ("retract", W, [(11, 1, 1)]), (*resolved(1), {0: (5, 4, 3)})]


def test_the_measurements_of_the_last_attempt_count(core):
    joined(core)
    core.submit(C, [1], profiling=True, retries=1)
    event = profiled_event(core.take_dispatched(W), [5], [4], [3])
    event.outcomes[0] = RETRYABLE
    core.feed(event)
    assert core.take() == [("dispatch", W, [(11, 1, 2, 1, b"")], {0: (FLAG_PROFILE, 0, 0)})]
    event = profiled_event([(11, 1, 2)], [50], [40], [30])
    event.outcomes[0] = RETRYABLE
    core.feed(event)
    assert core.take() == [("resolved", C, [(1, EXCEPTION, b"")], {0: (50, 40, 30)})]


@pytest.mark.parametrize("special", [0, 1, 2, 3])
def test_bytes_of_rows_without_an_answer_are_left_out(core, special):
    """The row may be late, stopped, retried or abandoned, among rows that are answered."""
    joined(core)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.teach(C, W, 2, b"g", 1000, 0)
    core.function(C2, 2, b"g")
    core.submit(C, range(1, 9), 2)
    core.submit(C2, [20], 2)
    rows = sorted(core.take_dispatched(W))
    assert len(rows) == 9
    core.goodbye(C2)
    core.cancel(C, 2, force=True)
    assert core.take() == [("retract", W, [(12, 20, 1)]), ("retract", W, [(11, 2, 1)])]
    # Late, stopped, retried and abandoned rows among good ones, each time in another order.
    kinds = [(11, 99, 1), (11, 2, 1), (11, 3, 1), (12, 20, 1)]
    good = [(11, 1, 1), (11, 4, 1), (11, 5, 1), (11, 6, 1)]
    order = [name for pair in zip(kinds[special:] + kinds[:special], good) for name in pair]
    event = results_event(W, order)
    bodies = {name: b"<%d>" % name[1] * (position + 1) for position, name in enumerate(order)}
    event.sizes = array("I", [len(bodies[name]) for name in order])
    event.payload = b"".join(bodies[name] for name in order)
    event.outcomes[order.index((11, 2, 1))] = EXCEPTION
    event.outcomes[order.index((11, 3, 1))] = RETRYABLE
    core.feed(event)
    sent = core.take()
    answers = [row for one in sent if one[0] == "resolved" for row in one[2]]
    expected = [(2, 6, b"") if name == (11, 2, 1) else (name[1], 0, bodies[name]) for name in order]
    left_out = {(11, 99, 1), (11, 3, 1), (12, 20, 1)}
    assert answers == [answer for answer, name in zip(expected, order) if name not in left_out]
    assert core.scheduler.counts.late_results == 1
    core.retracted(W, [(11, 2, 1), (12, 20, 1)], 0)
    core.died(A, 22)
    assert rows_of(core) == []


def test_answers_of_the_scheduler_between_results(core):
    """Their bytes come in the order of their rows."""
    joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 3], 2)
    core.submit(C, [2], 2, timeout_seconds=1.0, priority=-1)
    rows = sorted(core.take_dispatched(W))
    core.started(W, rows[1])
    core.wait(1)
    assert core.take() == [("started", C, [2]), ("stop", W, [rows[1]])]
    event = results_event(W, rows)
    event.sizes = array("I", [3, 7, 5])
    event.payload = b"onestoppedthree"
    event.outcomes[1] = EXCEPTION
    core.feed(event)
    text = b"function 2#2: stopped after its time limit of 1 s"
    assert core.take() == [("resolved", C, [(1, 0, b"one"), (2, TIMED_OUT, text), (3, 0, b"three")])]


def test_run_times_of_all_outcomes_steer_the_prefetch(core):
    joined(core)
    core.submit(C, range(100))
    core.results(W, core.take_dispatched(W), 1000, outcome=EXCEPTION)
    assert len(rows_of(core)) == 99
