"""The worker's session: messages in, messages out, without sockets or clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaler_client.protocol import messages
from scaler_client.protocol.messages import FLAG_PROFILE, FLAG_REPORT_START, Outcome, TaskAttempt
from scaler_worker import sent_answers
from scaler_worker.task_rows import attempt_of
from scaler_worker.worker.session import IDLE_INTERVALS, WorkerSession

HELLO = messages.Hello(messages.Role.WORKER, 77, "3.11.7", "0.1.0", "host", 1, agent=5)
AGAIN = replace(HELLO, scheduler=9)
"""The hello to a scheduler that follows the one of WELCOME."""
WELCOME = messages.Welcome(1, "0.1.0", 9, 60.0)
FUNCTION = messages.Function(4, "f", "cloudpickle", b"code")


def dispatch(*ids: int, client: int = 2) -> messages.Dispatch:
    rows = len(ids)
    return messages.Dispatch([client] * rows, list(ids), [1] * rows, [4] * rows, [b"payload"] * rows)


def task(number: int, client: int = 2) -> TaskAttempt:
    return client, number, 1


def queued(session: WorkerSession) -> list[int]:
    return [row[1] for row in session.queue]


@pytest.fixture
def session() -> WorkerSession:
    """A session that has joined."""
    session = WorkerSession(HELLO, 2.0, 0.0)
    assert session.pop_outgoing() == [HELLO]
    session.handle(WELCOME)
    return session


def sent_by(session: WorkerSession) -> messages.Message:
    """The only outgoing message."""
    (message,) = session.pop_outgoing()
    return message


# ------------------------------------------------------------------------------------------------------- tasks, answers


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


def test_only_rows_with_special_fields_are_longer(session: WorkerSession) -> None:
    session.handle(replace(dispatch(10, 11, 12), flags=[0, FLAG_PROFILE, 0]))
    session.handle(replace(dispatch(13, 14, 15), depths=[0, 3, 0], priorities=[0, 0, -2]))
    session.handle(replace(dispatch(16, 17), names=["", "fit"]))
    session.handle(replace(dispatch(18, 19), bookings=["", "7 gpu=1:0"]))
    assert [row[5:] for row in session.queue] == [
        (), (FLAG_PROFILE, 0, 0, (), "", ""), (), (), (0, 3, 0, (), "", ""), (0, 0, -2, (), "", ""), (),
        (0, 0, 0, (), "fit", ""), (), (0, 0, 0, (), "", "7 gpu=1:0"),
    ]  # fmt: skip
    assert [attempt_of(row) for row in session.queue] == [task(number) for number in range(10, 20)]


def test_rows_of_a_suspended_tasks_booking_go_back(session: WorkerSession) -> None:
    """They would have the resources that the suspended task keeps."""
    session.handle(replace(dispatch(10, 11, 12, 13), bookings=["7 gpu=1:0", "7 gpu=1:0", "", "8 gpu=1:1"]))
    session.take()
    session.suspend()
    session.handle(replace(dispatch(14, 15), bookings=["7 gpu=1:0", ""]))
    assert [row[1] for row in session.queue] == [12, 13, 15]
    assert session.pop_outgoing()[-2:] == [messages.Retracted([task(11)], [1]), messages.Retracted([task(14)], [1])]
    session.handle(messages.HelloWanted())
    (hello,) = session.pop_outgoing()
    assert isinstance(hello, messages.Hello)
    assert (hello.running, hello.bookings) == ([task(10)], ["7 gpu=1:0"])


def test_a_task_from_queue_to_answer(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    row = session.take()
    assert row is not None and row is session.running and queued(session) == [11]
    session.finish(0, b"a", 500)
    assert session.running is None
    session.take()
    assert session.take() is None
    assert sent_by(session) == messages.Results([2], [10], [1], [0], [500], [b"a"])


def test_answers_go_out_as_one_batch(session: WorkerSession) -> None:
    session.answers.append((2, 10, 1, 0, 500, b"a"))
    session.answers.append((3, 5, 2, 1, 700, b"bb"))
    assert sent_by(session) == messages.Results([2, 3], [10, 5], [1, 2], [0, 1], [500, 700], [b"a", b"bb"])
    assert session.pop_outgoing() == []


def test_costs_are_columns_of_batches_with_profiled_tasks(session: WorkerSession) -> None:
    session.handle(replace(dispatch(10, 11, 12, 13), flags=[0, FLAG_PROFILE, 0, 0]))
    session.take()
    session.finish(0, b"", 500)
    session.take()
    session.finish(0, b"", 600, cost=(400, 1 << 20))
    results = sent_by(session)
    assert isinstance(results, messages.Results)
    assert (results.ids, results.cpu_times, results.peaks) == ([10, 11], [0, 400], [0, 1 << 20])
    session.take()
    session.finish(0, b"", 500)
    results = sent_by(session)
    assert isinstance(results, messages.Results)
    assert (results.ids, results.cpu_times, results.peaks) == ([12], [], [])


def test_started_is_sent_once_and_before_later_answers(session: WorkerSession) -> None:
    session.handle(replace(dispatch(10), flags=[FLAG_REPORT_START]))
    row = session.take()
    assert row is not None
    session.started(row)
    session.started(row)
    session.finish(0, b"a", 500)
    started, results = session.pop_outgoing()
    assert started == messages.Started([10], [2], [1]) and isinstance(results, messages.Results)


def test_heartbeats(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.tick(1.9)
    assert session.pop_outgoing() == []
    session.tick(2.0)
    session.tick(2.1)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]
    assert session.next_deadline == 4.0
    assert session.take() is not None
    assert session.next_deadline == 4.0
    name = session.suspend()
    assert session.next_deadline == 4.0
    session.resume(name)
    assert session.next_deadline == 4.0


def test_an_idle_worker_sends_few_heartbeats(session: WorkerSession) -> None:
    assert session.next_deadline == 2.0 * IDLE_INTERVALS
    session.tick(9.9)
    assert session.pop_outgoing() == []
    session.handle(dispatch(10))
    session.tick(9.9)
    assert session.pop_outgoing() == [messages.Heartbeat(1)]


def test_an_idle_worker_answers_a_probe(session: WorkerSession) -> None:
    """Otherwise another peer could take over its incarnation between two heartbeats."""
    for number in (1, 2):
        session.handle(messages.HeartbeatEcho(0))
        session.tick(0.1)
        session.tick(0.1)
        assert session.pop_outgoing() == [messages.Heartbeat(number)]
        session.handle(messages.HeartbeatEcho(number))
        session.tick(0.1)
        assert session.pop_outgoing() == []


def test_a_worker_that_waits_for_its_welcome_sends_heartbeats_often(session: WorkerSession) -> None:
    """Its hello may be lost with the connection."""
    session.handle(messages.HelloWanted())
    assert session.next_deadline == 2.0


def test_forgotten_functions(session: WorkerSession) -> None:
    session.handle(FUNCTION)
    session.handle(messages.ForgetFunctions([4, 99]))
    assert session.functions == {} and list(session.forgotten) == [4, 99]


# -------------------------------------------------------------------------------------------------------- retract, stop


def test_retracted_tasks_leave_the_queue_and_the_others_stay_in_order(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11, 12, 13, 14))
    session.handle(messages.Retract([task(13), task(11)]))
    assert sent_by(session) == messages.Retracted([task(13), task(11)], [1, 1])
    assert queued(session) == [10, 12, 14]


def test_tasks_that_have_begun_are_not_retracted(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11, 12, 13))
    session.take()
    session.finish(0, b"", 500)
    session.take()
    session.suspend()
    session.take()
    done, suspended, running, waiting, unknown = (task(number) for number in (10, 11, 12, 13, 99))
    session.pop_outgoing()
    session.handle(messages.Retract([done, suspended, running, waiting, unknown]))
    assert sent_by(session) == messages.Retracted([done, suspended, running, waiting, unknown], [0, 0, 0, 1, 0])
    assert session.running is not None and not session.queue


def test_a_task_is_retracted_once(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.handle(messages.Retract([task(10)]))
    session.handle(messages.Retract([task(10)]))
    assert session.pop_outgoing() == [messages.Retracted([task(10)], [1]), messages.Retracted([task(10)], [0])]


def test_a_retract_of_another_attempt_or_client_does_not_count(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.handle(messages.Retract([(2, 10, 2), (3, 10, 1)]))
    assert sent_by(session) == messages.Retracted([(2, 10, 2), (3, 10, 1)], [0, 0])
    assert queued(session) == [10]


def test_a_retract_changes_the_queue_that_the_running_thread_holds(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    held = session.queue
    session.handle(messages.Retract([task(11)]))
    assert held is session.queue and queued(session) == [10]


def test_only_running_and_suspended_tasks_are_stopped(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11, 12))
    session.take()
    session.suspend()
    session.take()
    session.handle(messages.Stop([task(10), task(11), task(12), task(99)]))
    assert session.pop_stops() == [task(10), task(11)]
    assert session.pop_stops() == []
    assert queued(session) == [12]


# ------------------------------------------------------------------------------------------------------ waiting parents


def test_a_suspended_task_makes_room_and_is_resumed(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    parent = session.take()
    assert session.suspend() == task(10) and session.running is None
    session.take()
    session.finish(0, b"child", 500)
    session.resume(task(10))
    assert session.running is parent and not session.suspended
    session.finish(0, b"parent", 900)
    results = sent_by(session)
    assert isinstance(results, messages.Results) and results.ids == [11, 10]


def test_a_resumed_task_is_not_reported_as_started_again(session: WorkerSession) -> None:
    """The scheduler counts a time limit from the first report."""
    session.handle(dispatch(10))
    parent = session.take()
    assert parent is not None
    session.suspend()
    session.resume(task(10))
    session.started(parent)
    assert session.pop_outgoing() == []


# ---------------------------------------------------------------------------------------------------- joining once more


def test_one_hello_answers_many_requests(session: WorkerSession) -> None:
    session.handle(messages.HelloWanted())
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [AGAIN]
    session.handle(WELCOME)
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [AGAIN]


def test_a_lost_hello_is_repeated(session: WorkerSession) -> None:
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [AGAIN]
    session.tick(2.0)
    assert sent_by(session) == messages.Heartbeat(1)
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [AGAIN]


def test_a_new_connection_gets_a_heartbeat_at_once(session: WorkerSession) -> None:
    session.reconnected(0.3)
    assert sent_by(session) == messages.Heartbeat(1)
    assert session.next_deadline == 0.3 + 2.0 * IDLE_INTERVALS


def test_a_new_scheduler_gets_only_the_answers_that_the_hello_names(session: WorkerSession) -> None:
    """A new scheduler numbers functions and attempts from the start: the same names are other tasks."""
    session.handle(FUNCTION)
    session.handle(dispatch(10, 11))
    queue, answers = session.queue, session.answers  # as the running thread holds them
    answers.append((2, 10, 1, Outcome.RETRYABLE, 500, b"old"))
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [AGAIN]
    answers.append((2, 11, 1, 0, 500, b"old, begun just before the hello and not named there"))
    session.handle(WELCOME)
    session.handle(messages.Function(4, "g", "cloudpickle", b"other code"))
    session.handle(dispatch(20))
    session.keep_answers(answers)
    assert not queue, "the running thread would run the new task in the old one's name"
    assert list(session.forgotten) == [4], "the executor must drop what it loaded before it runs the new task"
    assert session.functions[4].name == "g"
    assert queued(session) == [20]
    session.take()
    session.finish(0, b"new", 500)
    results = sent_by(session)
    assert isinstance(results, messages.Results) and results.payloads == [b"new"]


def test_the_hello_names_running_and_suspended_tasks(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11, 12))
    session.take()
    session.suspend()
    session.take()
    session.handle(messages.HelloWanted())
    assert sent_by(session) == replace(AGAIN, running=[task(10), task(11)])
    assert not session.queue


def test_tasks_named_in_a_hello_are_answered_after_the_welcome(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    session.take()
    session.suspend()
    session.take()
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    session.finish(0, b"ended before the welcome", 500)
    assert session.pop_outgoing() == [], "that scheduler does not know this worker yet"
    session.handle(WELCOME)
    session.resume(task(10))
    session.finish(0, b"ended after it", 700)
    assert sent_by(session) == messages.Results(
        [2, 2], [11, 10], [1, 1], [0, 0], [500, 700], [b"ended before the welcome", b"ended after it"]
    )


def test_an_answer_in_an_old_deque_is_kept_if_its_task_was_named(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    answers = session.answers  # as the running thread holds it
    session.take()
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    session.handle(WELCOME)
    session.running = None
    session.costs[task(10)] = (1, 2)
    answers.append((2, 10, 1, 0, 500, b"named"))
    session.keep_answers(answers)
    assert sent_by(session) == messages.Results([2], [10], [1], [0], [500], [b"named"], [1], [2])


def test_answers_that_are_not_sent_are_named_and_sent_after_the_welcome(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.take()
    session.finish(0, b"a", 500, cost=(1, 2))
    session.handle(messages.HelloWanted())
    assert session.pop_outgoing() == [replace(AGAIN, running=[task(10)], finished=1)]
    session.handle(WELCOME)
    assert session.pop_outgoing() == [messages.Results([2], [10], [1], [0], [500], [b"a"], [1], [2])]


def test_answers_that_were_sent_are_named_and_sent_once_more(session: WorkerSession) -> None:
    """The scheduler that got them may have been killed before its clients got them."""
    session.handle(dispatch(10, 11, 12))
    session.take()
    session.finish(0, b"a", 500)
    session.pop_outgoing()
    session.take()
    session.finish(1, b"b", 600)
    sent = session.pop_outgoing()
    session.take()
    for _ in range(2):
        session.handle(messages.HelloWanted())
        assert session.pop_outgoing() == [replace(AGAIN, running=[task(12), task(10), task(11)], finished=2)]
        session.handle(WELCOME)
        assert session.pop_outgoing() == [messages.Results([2], [10], [1], [0], [500], [b"a"]), *sent]


def test_answers_that_are_not_final_are_not_sent_again(session: WorkerSession) -> None:
    """The scheduler may have dispatched the next attempt. The failure of a stopped task means nothing to another
    scheduler."""
    session.handle(dispatch(10, 11, 12))
    session.take()
    session.finish(Outcome.RETRYABLE, b"a", 500)
    session.take()
    session.handle(messages.Stop([task(11)]))
    session.finish(Outcome.EXCEPTION, b"stopped", 500)
    session.pop_outgoing()
    session.take()
    session.handle(messages.Stop([task(12)]))
    session.finish(Outcome.EXCEPTION, b"stopped, not sent", 500)
    session.handle(messages.HelloWanted())
    session.handle(WELCOME)
    assert session.pop_outgoing() == [AGAIN]


def test_answers_are_kept_until_two_later_heartbeats_are_echoed(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.take()
    session.finish(0, b"a", 500)
    session.pop_outgoing()
    for sequence, finished in ((1, [task(10)]), (2, [])):
        session.tick(100.0 * sequence)
        session.handle(messages.HeartbeatEcho(sequence))
        session.pop_outgoing()
        assert list(session._sent.names()) == finished


def test_the_kept_answers_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_answers, "MOST_ROWS", 3)
    monkeypatch.setattr(sent_answers, "MOST_BYTES", 100)
    kept = sent_answers.SentAnswers()
    for number, size in enumerate((1, 1, 1, 1, 90, 20, 101)):
        kept.add(messages.Results([2], [number], [1], [0], [5], [bytes(size)]), 0, ())
        names = [name[1] for name in kept.names()]
        expected = ([0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [5], [])[number]
        assert names == expected


def test_the_second_of_two_hellos_counts(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.take()
    session.handle(messages.HelloWanted())
    session.tick(2.0)
    session.finish(0, b"ended before the second hello", 500)
    session.handle(messages.HelloWanted())
    session.handle(WELCOME)
    session.handle(dispatch(11))
    session.handle(WELCOME)
    hello, *results = session.pop_outgoing()
    assert hello == replace(AGAIN, running=[task(10)], finished=1)
    assert results == [messages.Results([2], [10], [1], [0], [500], [b"ended before the second hello"])]
    assert not session.queue, "the second hello has taken it back"


def test_a_task_stopped_for_an_earlier_scheduler_is_not_answered(session: WorkerSession) -> None:
    session.handle(dispatch(10, 11))
    session.take()
    session.handle(messages.Stop([task(10)]))
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    session.handle(WELCOME)
    session.finish(1, b"stopped", 500)
    session.handle(dispatch(12))
    session.take()
    assert session.pop_outgoing() == [replace(AGAIN, running=[task(12)])]
    session.handle(WELCOME)
    session.finish(1, b"raised", 500)
    results = sent_by(session)
    assert isinstance(results, messages.Results) and results.payloads == [b"raised"]


@pytest.mark.parametrize("stopped_again", [False, True])
def test_a_task_stopped_for_an_earlier_scheduler_is_answered(session: WorkerSession, stopped_again: bool) -> None:
    """It is answered if it ends with a value in spite of the stop, or if the new scheduler stops it as well."""
    session.handle(dispatch(10))
    session.take()
    session.handle(messages.Stop([task(10)]))
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    session.handle(WELCOME)
    if stopped_again:
        session.handle(messages.Stop([task(10)]))
    session.finish(int(stopped_again), b"answer", 500)
    results = sent_by(session)
    assert isinstance(results, messages.Results) and results.payloads == [b"answer"]


def test_messages_before_the_welcome_are_ignored(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    session.take()
    session.handle(messages.HelloWanted())
    session.pop_outgoing()
    for message in (FUNCTION, dispatch(11), messages.Retract([task(10)]), messages.Stop([task(10)])):
        session.handle(message)
    assert session.pop_outgoing() == []
    assert not session.queue and not session.functions and not session.pop_stops()


def test_no_start_is_reported_before_the_welcome(session: WorkerSession) -> None:
    session.handle(dispatch(10))
    row = session.take()
    assert row is not None
    session.handle(messages.HelloWanted())
    session.started(row)
    assert sent_by(session) == replace(AGAIN, running=[task(10)])


# ------------------------------------------------------------------------------------------------------------- the end


def test_a_refusal_is_kept(session: WorkerSession) -> None:
    refused = messages.Refused("protocolVersion", "too old", 9, "4.2")
    session.handle(refused)
    assert session.refused is refused


def test_an_error_is_logged(session: WorkerSession, caplog: pytest.LogCaptureFixture) -> None:
    session.handle(messages.Error("you again"))
    assert "the scheduler refused a message: you again" in caplog.text
    assert session.pop_outgoing() == []


def test_a_rejected_worker_logs_it_once_and_logs_its_acceptance(caplog: pytest.LogCaptureFixture) -> None:
    session = WorkerSession(replace(HELLO, name="host-1-0"), 2.0, 0.0)
    for _ in range(3):
        session.handle(messages.Error("there are 2 peers already"))
    session.handle(WELCOME)
    session.handle(WELCOME)
    assert caplog.messages == [
        "the scheduler does not accept worker host-1-0 yet; the worker keeps trying: there are 2 peers already",
        "the scheduler accepts worker host-1-0 now",
    ]


def test_close_sends_the_answers_and_then_the_goodbye(session: WorkerSession) -> None:
    session.answers.append((2, 10, 1, 0, 500, b"a"))
    session.close()
    assert [type(message) for message in session.pop_outgoing()] == [messages.Results, messages.Goodbye]


# ---------------------------------------------------------------------------------------------------------------- gangs


def member(session: WorkerSession, number: int = 10) -> TaskAttempt:
    """A member of a gang that runs."""
    session.handle(messages.GangMember(2, number, 1, 1, ["a", "b"]))
    session.handle(dispatch(number))
    session.take()
    assert session.gangs[task(number)].rank == 1
    return task(number)


def test_a_value_for_the_other_members_and_its_answer(session: WorkerSession) -> None:
    name = member(session)
    session.give(name, 0, b"value")
    assert sent_by(session) == messages.Exchange(*name, 0, [b"value"])
    session.handle(messages.Exchange(*name, 1, [b"of another round"]))
    assert name not in session.exchanged
    answer = messages.Exchange(*name, 0, [b"a", b"value"])
    session.handle(answer)
    session.handle(answer)
    assert session.exchanged[name] is answer and not session.exchanges
    session.end_member(name)
    assert not (session.exchanged or session.gangs)


def test_a_value_is_repeated_after_a_new_welcome(session: WorkerSession) -> None:
    name = member(session)
    session.give(name, 0, b"value")
    session.pop_outgoing()
    session.handle(messages.HelloWanted())
    assert sent_by(session) == replace(AGAIN, running=[name])
    session.give(name, 1, b"given before the welcome")
    assert session.pop_outgoing() == []
    session.handle(WELCOME)
    assert sent_by(session) == messages.Exchange(*name, 1, [b"given before the welcome"])
    assert name in session.gangs


def test_places_of_members_that_go_back_are_forgotten(session: WorkerSession) -> None:
    session.handle(messages.GangMember(2, 10, 1, 0, ["a", "b"]))
    session.handle(dispatch(10))
    session.handle(messages.Retract([task(10)]))
    assert not session.gangs
    session.handle(messages.GangMember(2, 11, 1, 0, ["a", "b"]))
    session.handle(dispatch(11))
    session.handle(messages.HelloWanted())
    session.handle(WELCOME)
    assert not session.gangs
