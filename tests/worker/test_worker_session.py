"""The worker's session: messages in, messages out, no socket and no clock."""

from __future__ import annotations

import pytest

from scaler_client import messages
from scaler_worker.session import WorkerSession

HELLO = messages.Hello(messages.Role.WORKER, 77, "3.11.7", "0.1.0", "host", 1, agent=5)
WELCOME = messages.Welcome(1, "0.1.0", 9, 3, 60.0)
FUNCTION = messages.Function(4, "f", "cloudpickle", b"code")


def dispatch(*ids: int, client: int = 2) -> messages.Dispatch:
    rows = len(ids)
    return messages.Dispatch([client] * rows, list(ids), [1] * rows, [4] * rows, [b"payload"] * rows)


@pytest.fixture
def session() -> WorkerSession:
    """One that has joined."""
    session = WorkerSession(HELLO, 2.0, 0.0)
    assert session.take_outgoing() == [HELLO]
    session.handle(WELCOME)
    return session


def test_tasks_are_queued_in_order(session: WorkerSession) -> None:
    session.handle(FUNCTION)
    session.handle(dispatch(10, 11))
    session.handle(dispatch(5, client=3))
    assert list(session.queue) == [
        (2, 10, 1, 4, b"payload"),
        (2, 11, 1, 4, b"payload"),
        (3, 5, 1, 4, b"payload"),
    ]
    assert session.functions == {4: FUNCTION}


def test_answers_go_out_as_one_batch(session: WorkerSession) -> None:
    session.answers.append((2, 10, 1, 0, 500, b"a"))
    session.answers.append((3, 5, 2, 1, 700, b"bb"))
    assert session.take_outgoing() == [
        messages.Results([2, 3], [10, 5], [1, 2], [0, 1], [500, 700], [b"a", b"bb"]),
    ]
    assert session.take_outgoing() == []


def test_started_comes_before_later_answers(session: WorkerSession) -> None:
    session.started(2, 10, 1)
    session.answers.append((2, 10, 1, 0, 500, b"a"))
    assert [type(message) for message in session.take_outgoing()] == [messages.Started, messages.Results]


def test_heartbeats(session: WorkerSession) -> None:
    session.tick(1.9)
    assert session.take_outgoing() == []
    session.tick(2.0)
    session.tick(2.1)
    assert session.take_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline == 4.0


def test_one_hello_for_many_that_are_wanted(session: WorkerSession) -> None:
    session.handle(messages.HelloWanted())
    session.handle(messages.HelloWanted())
    assert session.take_outgoing() == [HELLO]
    session.handle(WELCOME)
    session.handle(messages.HelloWanted())
    assert session.take_outgoing() == [HELLO]


def test_forgotten_functions(session: WorkerSession) -> None:
    session.handle(FUNCTION)
    session.handle(messages.ForgetFunctions([4, 99]))
    assert session.functions == {} and list(session.forgotten) == [4, 99]


def test_a_new_scheduler_gets_no_answers_to_the_old_ones_tasks(session: WorkerSession) -> None:
    """It numbers its clients, functions and attempts anew: the same names mean other things."""
    session.handle(FUNCTION)
    session.handle(dispatch(10, 11))
    queue, answers = session.queue, session.answers  # as the running thread holds them during a long task
    answers.append((2, 10, 1, 0, 500, b"old"))
    session.handle(messages.HelloWanted())
    session.take_outgoing()
    answers.append((2, 11, 1, 0, 500, b"old, and the hello is out"))
    session.handle(WELCOME)
    answers.append((2, 12, 1, 0, 500, b"old, and welcomed"))
    session.handle(messages.Function(4, "g", "cloudpickle", b"other code"))
    session.handle(dispatch(20))
    assert not queue, "the running thread would run the new task in the old one's name"
    assert list(session.forgotten) == [4], "the executor must drop what it loaded before it runs the new task"
    assert session.functions[4].name == "g"
    assert [row[1] for row in session.queue] == [20]
    session.answers.append((2, 20, 1, 0, 500, b"new"))
    (results,) = session.take_outgoing()
    assert isinstance(results, messages.Results) and results.payloads == [b"new"]


def test_refused(session: WorkerSession) -> None:
    refused = messages.Refused("protocolVersion", "too old", 9, "4.2")
    session.handle(refused)
    assert session.refused is refused


def test_close_says_goodbye_after_the_answers_of_before(session: WorkerSession) -> None:
    session.answers.append((2, 10, 1, 0, 500, b"a"))
    session.close()
    assert [type(message) for message in session.take_outgoing()] == [messages.Results, messages.Goodbye]
