"""Joining, leaving, leases and reconnects. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import C2, W2, A, C, W, joined, results_event, submit_event

from scaler_scheduler.core import effects, events, unread_answers
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD


def test_all_peers_join_and_leave(core):
    core.client(C, 11)
    core.worker(W, 11)  # incarnations belong to roles
    core.agent(A, 11)
    for route in (C, W, A):
        core.heartbeat(route)
    assert core.tables()["clients"] == core.tables()["workers"] == core.tables()["agents"] == 1
    for route in (C, W, A):
        core.goodbye(route)
    assert not any(core.tables().values())


@pytest.mark.parametrize("role, lease", [(events.CLIENT, 5500), (events.WORKER, 2000), (events.AGENT, 2000)])
def test_each_welcome_has_the_lease_of_its_role(make_core, role, lease):
    core = make_core(client_timeout_seconds=5.5, worker_timeout_seconds=2)
    core.scheduler.handle(events.Hello(C, 1, role, 11, 0, "", "", "", 1, ""), core.now)
    (welcome,) = core.scheduler.collect()
    assert isinstance(welcome, effects.Welcome)
    assert welcome.lease_milliseconds == lease


def test_another_protocol_version_is_refused_with_both_named(core):
    core.hello(C, events.CLIENT, 11, version=99)
    text = "protocol version 99 is not 1"
    assert core.take() == [("refused", C, effects.REFUSED_PROTOCOL_VERSION, text)]
    assert not any(core.tables().values())


@pytest.mark.parametrize("incarnation", [0, 1 << 63, (1 << 64) - 1])
def test_an_invalid_incarnation_is_refused(core, incarnation):
    core.hello(C, events.CLIENT, incarnation)
    text = f"incarnation {incarnation} is not between 1 and 2^63"
    assert core.take() == [("refused", C, effects.REFUSED_MALFORMED_HELLO, text)]


def test_an_unknown_peer_is_asked_for_a_hello(core):
    core.feed(events.Heartbeat(C, 1, []))
    core.function(C, 1, b"f")
    core.forget(C, 1)
    core.submit(C, [1])
    core.cancel(C, 1)
    core.results(C, [(1, 1, 1), (1, 2, 1)])
    core.started(C, (1, 1, 1))
    core.died(C, 22)
    assert core.take() == [("hello wanted", C)] * 8
    assert core.scheduler.counts.late_results == 2
    core.goodbye(C)  # there is no answer and nothing to do


def test_messages_of_another_role_are_errors(core):
    joined(core)
    for route, messages in ((C, "WA"), (W, "CA"), (A, "CW")):
        if "C" in messages:
            core.function(route, 1, b"f")
            core.forget(route, 1)
            core.submit(route, [1])
            core.cancel(route, 1)
            assert core.take() == [("error", route, "only a client may send this message")] * 4
        if "W" in messages:
            core.results(route, [(1, 1, 1)])
            core.retracted(route, [(1, 1, 1)], 1)
            assert core.take() == [("error", route, "only a worker may send this message")] * 2
        if "A" in messages:
            core.died(route, 22)
            assert core.take() == [("error", route, "only a host agent may send this message")]


def test_a_heartbeat_of_a_client_or_worker_renews_only_its_own_lease(make_core):
    core = make_core(client_timeout_seconds=10, worker_timeout_seconds=10)
    joined(core)
    core.wait(6)
    core.heartbeat(C, 22)
    core.heartbeat(A, 99)  # unknown
    core.wait(6)
    assert core.tables()["workers"] == 0
    assert core.tables()["clients"] == core.tables()["agents"] == 1


def test_an_agent_renews_its_own_workers_only(make_core):
    core = make_core(worker_timeout_seconds=10)
    core.agent(A, 33)
    core.worker(W, 22, agent=33)
    core.worker(W2, 23, agent=34)
    core.wait(6)
    core.heartbeat(A, 22, 23)
    core.wait(6)
    assert [worker.incarnation for worker in core.scheduler.tables.workers] == [22]


def test_leases_run_out(make_core):
    core = make_core(client_timeout_seconds=20, worker_timeout_seconds=10)
    number = joined(core)
    core.submit(C, [5])
    assert core.take_dispatched(W) == [(number, 5, 1)]
    assert core.scheduler.next_deadline <= core.now + 1
    core.wait(9.5)
    assert core.tables()["workers"] == 1
    core.wait(1)
    assert core.tables()["workers"] == core.tables()["agents"] == 0
    assert core.tables()["waiting"] == 1
    core.wait(10)
    assert not any(core.tables().values())
    core.results(W, [(number, 5, 1)])
    assert core.take() == [("hello wanted", W)]
    assert core.scheduler.counts.late_results == 1


def test_a_lease_that_runs_out_counts_an_attempt_of_what_has_begun(make_core):
    core = make_core(worker_timeout_seconds=10, client_timeout_seconds=1000, task_retries=0)
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 1)
    core.submit(C, [5, 6, 7], 2)
    assert len(core.take_dispatched(W)) == 3
    core.started(W, (number, 6, 1))
    assert core.take() == [("started", C, [6])]
    core.wait(11)
    (sent,) = core.take()
    assert sent[:2] == ("resolved", C)
    assert sorted(row[:2] for row in sent[2]) == [(5, effects.OUTCOME_WORKER_DIED), (6, effects.OUTCOME_WORKER_DIED)]
    assert all(b"lease ran out" in row[2] for row in sent[2])
    assert core.tables()["waiting"] == 1


def test_a_client_leaves_with_tasks_waiting_and_running(core):
    number = joined(core)
    core.submit(C, [1, 2, 3], large=[2], body=b"x")
    assert core.take_dispatched(W) == [(number, 1, 1)]
    core.goodbye(C)
    assert core.take() == [("retract", W, [(number, 1, 1)])]
    assert core.tables()["waiting"] == 0
    assert core.tables()["clients"] == 0
    assert core.tables()["functions"] == 1  # the worker still holds a task of it
    core.started(W, (number, 1, 1))  # no client is told
    core.results(W, [(number, 1, 1)], body=b"y")
    assert core.take() == [("forget", W, [1])]
    core.goodbye(A)
    assert not any(core.tables().values())


def test_a_client_leaves_and_then_the_worker_with_its_tasks(core):
    number = joined(core)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [(number, 1, 1)]
    core.goodbye(C)
    assert core.take() == [("retract", W, [(number, 1, 1)])]
    core.died(A, 22, (number, 1, 1))
    core.goodbye(A)
    assert not any(core.tables().values())


def test_a_client_leaves_with_requeued_tasks(core):
    joined(core)
    core.submit(C, [1, 2])
    core.take_dispatched(W)
    core.died(A, 22)
    assert core.tables()["waiting"] == 2
    core.goodbye(C)
    core.goodbye(A)
    assert not any(core.tables().values())


def test_results_in_the_turn_in_which_the_client_leaves_are_dropped(core):
    number = joined(core)
    core.submit(C, [1])
    core.take_dispatched(W)
    core.feed(results_event(W, [(number, 1, 1)], 5, 0, b"x"), events.Goodbye(C, ""))
    assert core.take() == [("forget", W, [1])]


def test_a_client_on_a_new_connection_keeps_its_tasks(core):
    number = joined(core)
    core.submit(C, [1, 2, 3], body=b"x")
    assert core.take_dispatched(W) == [(number, 1, 1)]
    assert core.client(C2, 11) == number
    core.function(C2, 1, b"f")
    # Task 1 is on a worker, 2 and 3 wait, and 4 was lost on its way.
    core.submit(C2, [1, 2, 3, 4], body=b"x")
    assert core.tables()["waiting"] == 3
    core.results(W, [(number, 1, 1)], 1000)
    assert core.take() == [
        ("dispatch", W, [(number, task_id, 1, 1, b"x") for task_id in (2, 3, 4)]),
        ("resolved", C2, [(1, 0, b"")]),
    ]
    core.submit(C, [9])
    assert core.take()[-1:] == [("hello wanted", C)]


def test_answers_of_the_turn_in_which_a_client_reconnects_go_to_its_new_connection(core):
    number = joined(core)
    core.submit(C, [1])
    core.take_dispatched(W)
    core.feed(
        results_event(W, [(number, 1, 1)], 5, 0, b"x"),
        events.Hello(C2, 1, events.CLIENT, 11, 0, "", "", "", 1, ""),
    )
    assert core.take() == [("welcome", C2), ("resolved", C2, [(1, 0, b"x")])]


def test_an_answer_that_was_lost_with_the_connection_comes_once_more(core):
    number = joined(core)
    core.submit(C, [1, 2])
    core.results(W, [(number, 1, 1)], body=b"one")
    core.results(W, [(number, 2, 1)], body=b"two")
    core.take()
    core.received(C, 3)  # only the second one was lost
    core.client(C2, 11)
    core.function(C2, 1, b"f")
    core.submit(C2, [2])
    assert core.take() == [("resolved", C2, [(2, 0, b"two")])]
    assert core.scheduler.tables.clients.by_incarnation[number].returned_bytes == TASK_OVERHEAD
    core.received(C2, 3)
    core.client(C, 11)
    assert core.take() == []


def test_output_is_not_repeated_and_not_counted(core):
    """Else the client could never acknowledge what counts as sent, and would be paused in the end."""
    number = joined(core)
    core.submit(C, [1, 2], stream_output=True)
    core.results(W, [(number, 1, 1)], body=b"one")
    row = array("q", [number]), array("q", [2]), array("B", [1]), array("I", [0]), array("I", [7])
    core.feed(events.Output(W, *row, b"printed"))
    core.results(W, [(number, 2, 1)], body=b"two")
    client = core.scheduler.tables.clients.by_incarnation[number]
    assert client.sent_bytes == len(b"oneprintedtwo")
    core.client(C2, 11)
    assert client.sent_bytes == len(b"onetwo")
    core.received(C2, len(b"onetwo"))
    assert client.sent_bytes == client.received_bytes and not client.unread.ids(client.outgoing)
    core.take()


def test_answers_that_go_out_with_the_welcome_are_counted(core):
    number = joined(core)
    core.submit(C, [1, 2])
    core.results(W, [(number, 1, 1)], body=b"one")
    client = core.scheduler.tables.clients.by_incarnation[number]
    event = results_event(W, [(number, 2, 1)], body=b"two")
    core.feed(event, events.Hello(C2, 1, events.CLIENT, 11, 0, "", "", "host", 1, ""))
    assert [sent for sent in core.take() if sent[:2] == ("resolved", C2)] == [
        ("resolved", C2, [(1, 0, b"one")]),
        ("resolved", C2, [(2, 0, b"two")]),
    ]
    assert client.sent_bytes == len(b"onetwo")


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_a_task_that_ends_between_welcome_and_resubmission_does_not_run_again(core, is_acknowledged):
    """A client that reads slowly submits what it had open at the welcome. The answer is on its way."""
    number = joined(core)
    core.submit(C, [1, 2])
    core.take()
    core.client(C2, 11)
    core.results(W, [(number, 1, 1)], body=b"one")
    assert core.take()[1:] == [("resolved", C2, [(1, 0, b"one")])]
    core.function(C2, 1, b"f")
    event = results_event(W, [(number, 2, 1)], body=b"two")
    core.feed(event, submit_event(C2, [1, 2], [1], [b"", b""], ()))
    assert core.take() == [("resolved", C2, [(2, 0, b"two")])]
    if is_acknowledged:
        core.received(C2, len(b"onetwo"))
        core.submit(C2, [3])
        assert core.take() == [("dispatch", W, [(number, 3, 1, 1, b"")])]


def test_an_answer_that_is_not_kept_any_more_is_made_again(core, monkeypatch):
    monkeypatch.setattr(unread_answers, "MOST_BYTES", 2)
    number = joined(core)
    core.submit(C, [1, 2])
    core.results(W, [(number, 1, 1)], body=b"one")
    core.results(W, [(number, 2, 1)], body=b"2")
    core.take()
    core.client(C2, 11)
    core.function(C2, 1, b"f")
    core.submit(C2, [1, 2])
    assert core.take() == [
        ("resolved", C2, [(2, 0, b"2")]),
        ("dispatch", W, [(number, 1, 2, 1, b"")]),
    ]


def test_a_resolved_task_that_is_submitted_again_runs_again(core, monkeypatch):
    """Its answer may have been lost with the connection."""
    monkeypatch.setattr(unread_answers, "MOST_ROWS", 0)
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    assert [sent[0] for sent in core.take()] == ["resolved"]
    core.client(C2, 11)
    core.function(C2, 1, b"f")
    core.submit(C2, [1])
    core.results(W, core.take_dispatched(W))
    assert core.take() == [("resolved", C2, [(1, 0, b"")])]


def test_hello_again_on_the_same_connection(core):
    number = joined(core)
    core.submit(C, [1])
    core.take_dispatched(W)
    core.client(C, 11)
    core.agent(A, 33)
    assert core.tables()["dispatched"] == 1
    # The tasks of a worker are sent again, as another attempt.
    core.worker(W, 22, agent=33)
    assert core.take() == [("function", W, 1, b"f"), ("dispatch", W, [(number, 1, 2, 1, b"")])]
    core.results(W, [(number, 1, 1)])
    assert core.scheduler.counts.late_results == 1
    core.results(W, [(number, 1, 2)])
    assert core.take() == [("resolved", C, [(1, 0, b"")])]


def test_a_worker_on_a_new_connection(core):
    number = joined(core)
    core.submit(C, [1])
    core.take_dispatched(W)
    core.worker(W2, 22, agent=33)
    assert core.take_dispatched(W2) == [(number, 1, 2)]
    core.results(W, [(number, 1, 1)])
    assert core.take() == [("hello wanted", W)]
    core.results(W2, [(number, 1, 2)])
    assert core.take() == [("resolved", C, [(1, 0, b"")])]


def test_another_incarnation_on_the_same_connection_replaces_the_first(core):
    number = joined(core)
    core.submit(C, [1, 2])
    core.take_dispatched(W)
    core.worker(W, 23, agent=33)
    assert core.take_dispatched(W) == [(number, 1, 2)]
    core.agent(A, 34)
    assert core.tables()["agents"] == 1
    core.client(C, 12)
    assert core.tables()["waiting"] == 0
    assert core.take() == [("retract", W, [(number, 1, 2)])]
    core.results(W, [(number, 1, 2)])
    assert core.take() == [("forget", W, [1])]


@pytest.mark.parametrize("first", [events.CLIENT, events.WORKER, events.AGENT])
@pytest.mark.parametrize("second", [events.CLIENT, events.WORKER, events.AGENT])
def test_a_connection_has_one_role(core, first, second):
    core.hello(C, first, 11)
    core.hello(C, second, 11)
    assert [sent[0] for sent in core.take()] == ["welcome", "welcome"]
    tables = core.tables()
    assert tables["clients"] + tables["workers"] + tables["agents"] == 1
    assert len(core.scheduler.goodbyes("")) == 1


def test_peers_that_left_are_not_kept_anywhere(core):
    """Without work the dispatcher does not run. A peer that stayed in its lists would share the next tasks."""
    for number in range(50):
        core.worker(b"idle", 100 + number)
        core.client(b"asking", 100 + number)
        core.function(b"asking", 1, b"f")
        core.submit(b"asking", [1, 2])
        core.take_dispatched(b"idle")
        core.goodbye(b"idle")
        core.goodbye(b"asking")
        assert not any(core.tables().values())


def test_workers_leave_with_their_agent(core):
    number = joined(core)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [(number, 1, 1)]
    core.worker(W2, 23, agent=99)
    core.goodbye(A)
    assert [worker.incarnation for worker in core.scheduler.tables.workers] == [23]
    assert core.take_dispatched(W2) == [(number, 1, 2)]


def test_goodbyes_when_the_scheduler_stops(core):
    joined(core)
    told = [(effect.kind, effect.route) for effect in core.scheduler.goodbyes("the end")]
    assert sorted(told) == sorted((effects.GOODBYE, route) for route in (C, W, A))


def test_submit_before_the_hello_changes_nothing(core):
    core.feed(submit_event(C, [1], [1], [b""], []))
    assert core.take() == [("hello wanted", C)]
    assert not any(core.tables().values())


def test_a_stall_of_the_scheduler_extends_leases(make_core):
    core = make_core(worker_timeout_seconds=10, client_timeout_seconds=10)
    joined(core)
    core.now += 1000
    core.scheduler.tick(core.now)
    assert core.tables()["clients"] == core.tables()["workers"] == core.tables()["agents"] == 1
    core.wait(11)
    assert not any(core.tables().values())


def test_a_death_that_overtakes_the_hello_of_the_worker(core):
    core.agent(A, 33)
    core.died(A, 22)
    core.hello(W, events.WORKER, 22, agent=33)
    assert core.take() == []
    assert core.tables()["workers"] == 0
    core.worker(W2, 23, agent=33)
    assert core.tables()["workers"] == 1


def test_clients_have_names_for_people(core):
    core.agent(A, 33)
    core.worker(W, 22, agent=33)
    worker = core.scheduler.tables.workers.find(22)
    core.hello(C, events.CLIENT, 11, name="report.py[77]@desk")
    core.hello(C2, events.CLIENT, 12, worker=22, name="")
    core.hello(b"other", events.CLIENT, 13, name="")
    names = [client.name for client in core.scheduler.tables.clients]
    core.take()
    assert names == ["report.py[77]@desk", f"tasks of {worker.name}", "client[4711]@host"]


def test_an_agent_that_joins_late_speaks_for_its_workers(core):
    """Its worker cannot send heartbeats while its task holds the GIL, and the lease would end before the agent's first
    heartbeat."""
    core.worker(W, 22, agent=33)
    core.wait(core.scheduler.limits.worker_timeout_seconds - 0.5)
    core.agent(A, 33)
    core.wait(1)
    core.take()
    assert core.scheduler.tables.workers.find(22) is not None
    core.heartbeat(A, 22)
    core.take()
