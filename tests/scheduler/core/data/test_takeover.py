"""Kept results of before a restart: hosts and clients name them to the new scheduler. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_graphs import KEEP, LOST, NAME, NO, A, C, W, forget, only, run, submit
from tests.scheduler.core.data.test_host_results import AGENT, OTHER, SIZE, B, U, store
from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion.takeover import HOST_SECONDS
from scaler_scheduler.core.ids import file_id
from scaler_scheduler.core.peers.restart_hold import HOLD_SECONDS

FILE = file_id(1, 3)
"""The third attempt of task 1 has made it."""

BEFORE = 9
"""The scheduler of before the restart."""

ONE = [(NAME, 1)]


def agent_comes(core, *files, route=A, incarnation=AGENT):
    core.hello(
        route, events.AGENT, incarnation, scheduler=BEFORE, running=[(NAME, file, 0) for file in files or (FILE,)]
    )


def client_comes(core, *files):
    core.client(C, NAME, scheduler=BEFORE)
    core.feed(events.HeldResults(C, array("q", files), [SIZE] * len(files)))
    core.function(C, 1, b"f")


def wait_for_client_timeout(core):
    """The peers send heartbeats meanwhile."""
    for _ in range(int(core.scheduler.limits.client_timeout_seconds) + 2):
        core.wait(1)
        tables = core.scheduler.tables
        for route in (A, C, W):
            if any(route in table.by_route for table in (tables.agents, tables.clients, tables.workers)):
                core.feed(events.Heartbeat(route, 1, [21] if route == A else []))


def reader_comes(core):
    """A task that reads the result, which a worker of the host runs as soon as it can."""
    submit(core, [(2, [1], NO)])
    core.wait(HOLD_SECONDS + 0.1)


def test_a_host_comes_before_its_client(core):
    agent_comes(core)
    core.worker(W, 21, agent=AGENT)
    assert core.take() == [("welcome", A)]
    client_comes(core, FILE)
    reader_comes(core)
    [(_, route, rows, *_)] = only(core, "dispatch")
    assert route == W and [row[1] for row in rows] == [2], "only the reader runs"
    run(core, W, 2, attempt=4)
    core.take()
    forget(core, 1)
    assert {each[1] for each in core.take()} == {W, A}


def test_a_client_comes_before_the_host(core):
    client_comes(core, FILE)
    core.worker(W, 21, agent=AGENT)
    reader_comes(core)
    assert core.take() == []
    agent_comes(core)
    assert [each[:2] for each in core.take()] == [("welcome", A), ("function", W), ("dispatch", W)]


def test_the_value_goes_to_the_client_when_its_host_comes(core):
    client_comes(core, FILE)
    core.feed(events.FetchObjects(C, array("q", [1])))
    agent_comes(core)
    assert core.take() == [("welcome", A), ("fetch objects", A, ONE)]


def test_a_result_is_lost_if_its_host_does_not_come(core):
    client_comes(core, FILE)
    reader_comes(core)
    core.take()
    core.wait(HOST_SECONDS + 1)
    lost, answer = core.take()
    assert lost == ("forget objects", C, ONE)
    assert answer[:2] == ("resolved", C) and [row[:2] for row in answer[2]] == [(2, LOST)]
    agent_comes(core)
    assert core.take() == [("welcome", A)]
    wait_for_client_timeout(core)
    assert [each for each in core.take() if each[0] != "echo"] == [("forget objects", A, ONE)]


def test_several_hosts_have_it(core):
    agent_comes(core)
    agent_comes(core, route=B, incarnation=OTHER)
    client_comes(core, FILE)
    core.take()
    core.feed(events.Goodbye(A, "ends"))
    assert core.take() == [], "the other host has it"
    forget(core, 1)
    assert core.take() == [("forget objects", B, ONE)]


def test_files_that_the_client_does_not_need_are_removed(core):
    agent_comes(core, FILE, file_id(1, 2), file_id(7, 1))
    core.take()
    client_comes(core, FILE)
    assert core.take() == []
    wait_for_client_timeout(core)
    assert [each for each in core.take() if each[0] != "echo"] == [("forget objects", A, [(NAME, 1), (NAME, 7)])]
    assert list(core.scheduler.tables.clients.find(NAME).objects) == [1]
    assert core.scheduler.tables.clients.find(NAME).objects[1].file_id == FILE


@pytest.mark.parametrize("order", ["agent first", "client first", "worker first"])
def test_the_file_of_a_result_that_ended_without_an_answer_stays(core, order):
    """Its client does not name it, because it does not know that the task has ended."""
    for peer in {"agent first": "acw", "client first": "caw", "worker first": "wca"}[order]:
        if peer == "a":
            agent_comes(core)
        elif peer == "c":
            client_comes(core)
            submit(core, [(1, [], KEEP)])
        else:
            core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 3)], finished=1)
    core.results(W, [(NAME, 1, 3)], outcome=effects.OUTCOME_STORED, body=SIZE.to_bytes(8, "little"))
    wait_for_client_timeout(core)
    sent = [each for each in core.take() if each[0] not in ("echo", "welcome")]
    assert [(kind, rows[0][:2]) for kind, _, rows in sent] == [("resolved", (1, effects.OUTCOME_KEPT))]


def test_the_files_of_a_client_that_does_not_come_are_removed(core):
    agent_comes(core)
    core.take()
    wait_for_client_timeout(core)
    assert [each for each in core.take() if each[0] != "echo"] == [("forget objects", A, ONE)]
    core.worker(U, 23, agent=OTHER)
    agent_comes(core, route=B, incarnation=OTHER)
    assert ("forget objects", B, ONE) in core.take(), "no client of before is expected any more"


def test_a_result_that_is_made_again_has_a_later_attempt(core):
    """A host may have the file of the claimed attempt, and come late."""
    client_comes(core, FILE)
    core.wait(HOST_SECONDS + 1)
    core.worker(W, 21, agent=AGENT)
    core.take()
    submit(core, [(1, [], events.KEEP_YES)])
    assert only(core, "dispatch")[0][2] == [(NAME, 1, 4, 1, b"x")]


def test_a_claim_for_a_result_that_is_there(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.worker(W, 21)
    submit(core, [(1, [], events.KEEP_YES)])
    run(core, W, 1, b"value")
    core.take()
    core.feed(events.HeldResults(C, array("q", [FILE]), [SIZE]))
    assert core.take() == [] and core.scheduler.tables.clients.find(NAME).objects[1].size == len(b"value")


def test_a_claimed_result_that_nobody_needs(core):
    client_comes(core, FILE)
    forget(core, 1)
    core.wait(HOST_SECONDS + 1)
    assert not core.scheduler.tables.objects


def test_a_file_that_its_host_names_in_a_second_hello(core):
    """A task has ended after the first one, before its worker could join. It does not run again."""
    core.hello(A, events.AGENT, AGENT, scheduler=BEFORE)
    agent_comes(core)
    assert core.take() == [("welcome", A)] * 2, "the file stays"
    client_comes(core)
    core.take()
    core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 3)], finished=1)
    submit(core, [(1, [], KEEP)])
    run(core, W, 1, attempt=3, outcome=effects.OUTCOME_STORED, body=SIZE.to_bytes(8, "little"))
    assert [each[0] for each in core.take()] == ["resolved"]
    wait_for_client_timeout(core)
    assert {each[0] for each in core.take()} == {"echo"}
    forget(core, 1)
    assert core.take() == [("forget objects", A, ONE)]


def test_a_worker_that_says_hello_again_before_its_client_comes(core):
    """Its result has come, and comes once more. The file stays all the time."""
    agent_comes(core)
    for _ in range(2):
        core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 3)], finished=1)
        store(core, W, 1, attempt=3)
    assert "forget objects" not in {each[0] for each in core.take()}
    core.client(C, NAME, scheduler=BEFORE)
    core.function(C, 1, b"f")
    submit(core, [(1, [], KEEP)])
    core.wait(HOLD_SECONDS + 0.1)
    assert not {"dispatch", "forget objects"} & {each[0] for each in core.take()}, "it does not run again"
    assert core.scheduler.tables.clients.find(NAME).objects[1].file_id == FILE


def test_a_file_that_came_for_the_scheduler_of_before(core):
    """The answer to its order comes first. The agent names the file in its next hello."""
    core.hello(A, events.AGENT, AGENT, scheduler=BEFORE)
    core.feed(events.Transferred(A, [NAME], array("q", [FILE]), 77))
    agent_comes(core)
    assert core.take() == [("welcome", A)] * 2, "the file stays"
    client_comes(core, FILE)
    core.worker(W, 21, agent=AGENT)
    reader_comes(core)
    assert [each[0] for each in core.take()] == ["function", "dispatch"]


def test_a_task_that_runs_already_when_its_input_comes(core):
    """Its worker has named it, and waits no more. The client sends the input last."""
    core.client(C, NAME, scheduler=BEFORE)
    core.function(C, 1, b"f")
    event = submit_event(C, [2], [1], [b"x"], ())
    event.inputs, event.input_counts = array("q", [1]), array("I", [1])
    event.keep, event.keep_earlier = array("B", [NO]), array("q", [1])
    core.feed(event)
    core.worker(W, 21, running=[(NAME, 2, 1)])
    core.worker(U, 22)
    core.take()
    core.feed(events.Object(C, 1, "", [b"one"]))
    core.wait(HOLD_SECONDS + 0.1)
    assert "dispatch" not in {each[0] for each in core.take()}, "it is not started anew"
    run(core, W, 2, b"two", attempt=1)
    assert ("resolved", C, [(2, 0, b"two")]) in core.take()
