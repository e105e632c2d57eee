"""Tasks that are submitted again after their end, because their answers were lost. Late messages about the first
submission do not count for the second. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    EXCEPTION,
    SECOND,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    rows_of,
    running,
    submit_event,
)

from scaler_scheduler.core import events, unread_answers

ROW = (11, 1, 1)
AGAIN = (11, 1, 2)


@pytest.fixture(autouse=True)
def loses_answers(monkeypatch):
    """The scheduler keeps no sent answers, as it does with large ones."""
    monkeypatch.setattr(unread_answers, "MOST_ROWS", 0)


def rejoin(core):
    """The client has a new connection and submits its open tasks again."""
    core.client(C, 11)
    core.submit(C, [1])


def test_a_retract_that_was_not_answered_yet(core):
    """If its answer counted for the second submission, the task would stay for ever on a worker that has given it
    back."""
    joined(core)
    core.submit(C, [1])
    assert rows_of(core) == [ROW]
    core.cancel(C, 1)
    core.results(W, [ROW])
    assert core.take() == [("retract", W, [ROW]), resolved(1)]
    rejoin(core)
    (again,) = rows_of(core)
    core.cancel(C, 1)
    assert core.take() == [("retract", W, [again])]
    core.retracted(W, [ROW], 0)
    assert core.take() == []
    core.retracted(W, [again], 1)
    assert core.take() == [resolved(1, outcome=6)]


@pytest.mark.parametrize("outcome", [EXCEPTION, 0])
def test_a_copy_that_is_being_stopped(core, outcome):
    """A parent waits for its children on a worker that comes back after the task has ended elsewhere."""
    joined(core)
    core.teach(C, W, 2, b"g", SECOND, 0)
    running(core)
    core.goodbye(W)
    core.worker(W2, 23)
    assert rows_of(core) == [AGAIN]
    core.results(W2, [AGAIN])
    core.goodbye(W2)
    core.take()
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", ROW)
    core.worker(W, 22, agent=33, running=[ROW])
    assert core.take() == [("stop", W, [ROW])]
    rejoin(core)
    (again,) = rows_of(core)
    assert again[2] > AGAIN[2]
    core.results(W, [ROW], outcome=outcome, body=b"stopped")
    assert core.take() == []
    core.results(W, [again])
    assert core.take() == [resolved(1)]


def test_a_copy_that_an_earlier_scheduler_dispatched(core):
    """Only its worker knows it, and its attempt may have any number."""
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", (11, 1, 2))
    joined_client = core.client(C, 11)
    core.function(C, 1, b"f")
    core.agent(A, 33)
    core.worker(W2, 23, agent=33)
    core.submit(C, [1])
    assert rows_of(core) == [(joined_client, 1, 1)]
    core.worker(W, 22, agent=33, running=[(11, 1, 2)])
    assert core.take() == [("stop", W, [(11, 1, 2)])]
    core.died(A, 23, ROW)
    (again,) = rows_of(core)
    core.results(W, [(11, 1, 2)], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == []
    core.results(W, [again])
    assert core.take() == [resolved(1)]


def test_a_copy_that_was_given_up_before_its_client_came(make_core):
    core = make_core(client_timeout_seconds=3)
    core.client(b"nested", 99, worker=22)
    core.suspended(b"nested", (11, 1, 1))
    core.worker(W, 22, running=[ROW])
    for _ in range(4):
        core.wait(1)
        core.heartbeat(b"nested")
    assert core.take() == [("stop", W, [ROW])]
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (again,) = rows_of(core)
    core.results(W, [ROW], outcome=EXCEPTION, body=b"stopped")
    assert core.take() == []
    core.results(W, [again])
    assert core.take() == [resolved(1)]


def test_a_row_whose_result_is_kept(core):
    """Its first submission had several attempts."""
    joined(core)
    submit_kept(core)
    for incarnation in (22, 23):
        (row,) = rows_of(core)
        core.died(A, incarnation, row)
        core.worker(W, incarnation + 1, agent=33)
    (row,) = rows_of(core)
    core.results(W, [row], outcome=EXCEPTION)
    core.take_one(*resolved(1, outcome=EXCEPTION))
    core.take()
    core.client(C, 11)
    submit_kept(core)
    (again,) = rows_of(core)
    assert again[2] > row[2]


def submit_kept(core):
    event = submit_event(C, [1], [1], [b""], [])
    event.keep = array("B", [events.KEEP_YES])
    event.input_counts = array("I", [0])
    core.feed(event)
