"""Rows that wait in a worker for their inputs, without sockets or clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.worker.worker.test_worker_session import HELLO, WELCOME, dispatch

from scaler_client.protocol import messages
from scaler_client.protocol.messages import HANDED_BYTES, INPUT_AWAITED, INPUT_OF_HELD_TASK, Outcome, TaskAttempt
from scaler_worker.objects.rows_ahead import is_handed
from scaler_worker.task_rows import attempt_of
from scaler_worker.worker.session import WorkerSession

CLIENT = 2
HERE, COMES = INPUT_OF_HELD_TASK, INPUT_AWAITED


@pytest.fixture
def session() -> WorkerSession:
    """A session that has joined."""
    session = WorkerSession(HELLO, 2.0, 0.0)
    session.pop_outgoing()
    session.handle(WELCOME)
    return session


def name(task_id: int, attempt: int = 1) -> TaskAttempt:
    return CLIENT, task_id, attempt


def ahead(*ids: int, counts: Sequence[int], inputs: Sequence[int], sources: Sequence[int]) -> messages.Dispatch:
    return replace(dispatch(*ids), inputs=list(inputs), input_counts=list(counts), input_sources=list(sources))


def queued(session: WorkerSession) -> list[int]:
    return [row[1] for row in session.queue]


def end(session: WorkerSession, body: bytes, outcome: int = 0) -> None:
    """Run the next task, as the run loop does."""
    row = session.take()
    assert row is not None
    session.finish(outcome, body, 5)
    if attempt_of(row) in session.ahead.awaited and is_handed(outcome, body):
        session.hand_over(attempt_of(row), body)


def inputs_of(session: WorkerSession) -> list[object]:
    row = session.queue[0]
    assert len(row) != 5
    return list(row[8])


def test_a_row_begins_when_the_task_before_it_has_ended(session: WorkerSession) -> None:
    session.handle(ahead(10, 11, counts=[0, 1], inputs=[10], sources=[HERE]))
    assert queued(session) == [10]
    end(session, b"ten")
    assert queued(session) == [11]
    assert inputs_of(session) == [b"ten"]
    assert not session.ahead.awaited


def test_a_row_waits_for_all_of_its_inputs(session: WorkerSession) -> None:
    session.handle(ahead(10, 11, counts=[0, 3], inputs=[10, 9, 10], sources=[HERE, COMES, HERE]))
    end(session, b"ten")
    assert queued(session) == []
    session.handle(messages.Inputs([CLIENT, CLIENT], [9, 8], [b"nine", b"eight"]))
    assert inputs_of(session) == [b"ten", b"nine", b"ten"]


def test_a_row_gets_an_answer_that_was_not_sent_yet(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    end(session, b"ten")
    session.handle(ahead(11, counts=[1], inputs=[10], sources=[HERE]))
    assert inputs_of(session) == [b"ten"]


def test_a_row_whose_input_has_left_goes_back_with_the_rows_behind_it(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    end(session, b"ten")
    session.pop_outgoing()
    session.handle(ahead(11, 12, counts=[1, 1], inputs=[10, 11], sources=[HERE, HERE]))
    assert session.pop_outgoing() == [messages.Retracted([name(11), name(12)], [1, 1])]
    assert not session.ahead.awaited
    assert queued(session) == []


@pytest.mark.parametrize(("outcome", "body"), [(Outcome.EXCEPTION, b"error"), (Outcome.VALUE, b"x" * HANDED_BYTES)])
def test_a_failure_or_a_large_result_is_not_handed_over(session: WorkerSession, outcome: int, body: bytes) -> None:
    session.handle(ahead(10, 11, counts=[0, 1], inputs=[10], sources=[HERE]))
    end(session, body, outcome)
    assert queued(session) == []
    session.pop_outgoing()
    session.handle(messages.Retract([name(11)]))
    assert session.pop_outgoing() == [messages.Retracted([name(11)], [1])]
    assert not session.ahead.awaited


def test_the_result_of_an_old_attempt_does_not_count(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.take()  # its scheduler has given it up
    session.handle(replace(ahead(10, 11, counts=[0, 1], inputs=[10], sources=[HERE]), attempts=[2, 1]))
    session.finish(0, b"old", 5)
    assert name(10) not in session.ahead.awaited
    end(session, b"new")
    assert inputs_of(session) == [b"new"]


def test_an_input_of_another_worker_is_not_taken_from_this_one(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.handle(ahead(11, counts=[1], inputs=[10], sources=[COMES]))
    end(session, b"old")
    assert queued(session) == []
    session.handle(messages.Inputs([CLIENT], [10], [b"new"]))
    assert inputs_of(session) == [b"new"]


def test_a_new_hello_drops_the_rows(session: WorkerSession) -> None:
    session.handle(ahead(10, 11, counts=[0, 1], inputs=[10], sources=[HERE]))
    awaited = session.ahead.awaited
    session.handle(messages.HelloWanted())
    assert not awaited
    assert awaited is session.ahead.awaited
    assert queued(session) == []
