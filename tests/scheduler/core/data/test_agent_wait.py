"""Large kept results of workers that have joined before the agent of their host. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.data.test_graphs import KEEP, KEPT, NAME, NO, A, C, W, only, run, submit
from tests.scheduler.core.data.test_host_results import (
    AGENT,
    FLAGGED_SMALL,
    NO_FILE,
    ON_HOST,
    OTHER,
    SIZE,
    B,
    U,
    dispatch,
    store,
)
from tests.scheduler.core.harness import SECOND, resolved, results_event, rows_of, warnings_of

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.completion import agent_wait
from scaler_scheduler.core.peers.welcome import JOIN_SECONDS

STORED = effects.OUTCOME_STORED
FLAG = effects.FLAG_MAY_STORE


def submit_kept(core, *ids):
    """Submit tasks as `options(keep=True)` does: they are in no graph, so each answer says where the result is."""
    event = events.Submit(C, array("q", ids), array("I", [1]), array("I", [1] * len(ids)), b"x" * len(ids), {})
    event.keep = array("B", [KEEP] * len(ids))
    core.feed(event)


def worker_first(core, *ids):
    """A worker whose agent has not joined yet, with these kept tasks. Takes all effects."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.worker(W, 21, agent=AGENT)
    if ids:
        submit_kept(core, *ids)
        [sent] = only(core, "dispatch")
        assert sent == dispatch(W, ids[0], options=FLAGGED_SMALL)


def test_a_result_waits_for_the_agent_of_its_host(core):
    worker_first(core, 1)
    store(core, W, 1)
    core.wait(1)
    assert core.take() == []
    core.agent(A, AGENT)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)]
    assert len(core.scheduler.agent_wait) == 0
    submit(core, [(2, [1], NO)])
    assert only(core, "dispatch") == [dispatch(W, 2)]


def test_an_agent_that_is_there_first_is_not_waited_for(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.agent(A, AGENT)
    core.worker(W, 21, agent=AGENT)
    submit_kept(core, 1)
    assert only(core, "dispatch") == [dispatch(W, 1, options=FLAGGED_SMALL)]
    store(core, W, 1)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)]


def test_a_worker_without_an_agent_sends_its_results(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.worker(W, 21)
    submit_kept(core, 1)
    assert only(core, "dispatch") == [dispatch(W, 1, options=NO_FILE)]


def test_other_results_do_not_wait(core):
    worker_first(core)
    core.teach(C, W, 1, b"f", 1000, 1)
    submit(core, [(2, [], NO), (3, [], KEEP), (4, [], NO)])
    assert rows_of(core) == [(NAME, 2, 1), (NAME, 3, 1), (NAME, 4, 1)]
    event = results_event(W, [(NAME, 2, 1), (NAME, 3, 1), (NAME, 4, 1)])
    event.outcomes = array("B", [0, STORED, effects.OUTCOME_EXCEPTION])
    event.sizes = array("I", [3, 8, 0])
    event.payload = b"two" + SIZE.to_bytes(8, "little")
    event.large = {2: b"a large error"}
    event.errors = ["", "", "an error"]
    event.tracebacks = [b"", b"", b"where it was"]
    core.feed(event)
    ended = (2, 0, b"two"), (4, effects.OUTCOME_EXCEPTION, b"a large error")
    assert core.take() == [("resolved", C, list(ended))]
    core.agent(A, AGENT)
    assert core.take() == [resolved(3, outcome=KEPT)]


def test_measured_results_wait_with_their_measures(core):
    worker_first(core)
    event = events.Submit(C, array("q", [1]), array("I", [1]), array("I", [1]), b"x", {})
    event.keep, event.options = array("B", [KEEP]), events.Options(profiling=True)
    core.feed(event)
    core.take()
    event = results_event(W, [(NAME, 1, 1)], SECOND, STORED, SIZE.to_bytes(8, "little"))
    event.cpu_times, event.peaks, event.calls = [SECOND], [1 << 20], [1]
    core.feed(event)
    core.agent(A, AGENT)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)]


def test_an_agent_that_does_not_come_stops_nothing(core):
    worker_first(core, 1)
    core.heartbeat(W)
    store(core, W, 1)
    core.wait(JOIN_SECONDS)
    assert only(core, "dispatch") == [dispatch(W, 1, attempt=2, options=NO_FILE)], "and the result may not stay"
    run(core, W, 1, bytes(SIZE), attempt=2)
    assert core.take() == [resolved(1, outcome=KEPT, body=SIZE.to_bytes(8, "little"))]
    assert not warnings_of(core)


def test_a_result_of_a_late_agent_does_not_count_against_the_retries(core):
    worker_first(core)
    event = events.Submit(C, array("q", [1]), array("I", [1]), array("I", [1]), b"x", {})
    event.keep, event.options = array("B", [KEEP]), events.Options(retries=0)
    core.feed(event)
    core.take()
    core.wait(JOIN_SECONDS + 1)
    store(core, W, 1)
    assert only(core, "dispatch") == [dispatch(W, 1, attempt=2, options=NO_FILE)]
    store(core, W, 1, attempt=2)
    [(_, _, [(_, outcome, text)])] = only(core, "resolved")
    assert outcome == effects.OUTCOME_WORKER_DIED and b"out of reach" in text, "this time it was not asked to store it"


def test_the_results_of_a_lost_worker_are_removed_when_the_agent_joins(core):
    worker_first(core, 1)
    store(core, W, 1)
    core.goodbye(W)
    core.take()
    core.agent(B, OTHER)
    core.worker(U, 23, agent=OTHER)
    assert only(core, "dispatch") == [dispatch(U, 1, attempt=2, options=FLAGGED_SMALL)]
    store(core, U, 1, attempt=2)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)]
    core.feed(events.ForgetObjects(C, array("q", [1])))
    core.take()
    core.agent(A, AGENT)
    assert core.take() == [("forget objects", A, [(NAME, 1)])]


def test_a_task_may_be_cancelled_while_its_result_waits(core):
    worker_first(core, 1)
    core.started(W, (NAME, 1, 1))
    store(core, W, 1)
    core.take()
    core.cancel(C, 1, force=True)
    assert core.take() == [("stop", W, [(NAME, 1, 1)])]
    core.agent(A, AGENT)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)], "it had ended before"
    assert core.scheduler.counts.dispatched == len(core.scheduler.tables.timers) == 0


def test_a_worker_that_floods_takes_little_memory(core, monkeypatch):
    monkeypatch.setattr(agent_wait, "MAX_ROWS", 3)
    worker_first(core, 1)
    for attempt in range(50, 55):
        store(core, W, 1, attempt=attempt)
    assert len(core.scheduler.agent_wait) == 3
    core.wait(JOIN_SECONDS)
    assert len(core.scheduler.agent_wait) == 0 and core.take() == []


# ------------------------------------------------------------------------------------------------------ after a restart


def test_a_running_task_of_before_a_restart_keeps_its_result(core):
    """Its worker, its client and its agent come back in this order."""
    core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 1)])
    core.client(C, NAME, scheduler=9)
    core.function(C, 1, b"f")
    submit_kept(core, 1)
    store(core, W, 1)
    assert core.take() == []
    core.hello(A, events.AGENT, AGENT, scheduler=9, running=[(NAME, 1, 0), (NAME, 7, 0), (99, 1, 0)])
    assert core.take() == [("welcome", A), resolved(1, outcome=KEPT, body=ON_HOST)]
    core.feed(events.HeldResults(C, array("q"), []))
    assert core.take() == [], "the other files may be results of tasks whose workers still come"


def test_a_file_of_before_a_restart_is_removed_although_its_task_waits(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    submit_kept(core, 1)
    core.hello(A, events.AGENT, AGENT, scheduler=9, running=[(NAME, 1, 0)])
    assert core.take() == [("welcome", A), ("forget objects", A, [(NAME, 1)])]
    core.worker(W, 21, agent=AGENT)
    assert only(core, "dispatch") == [dispatch(W, 1, options=FLAGGED_SMALL)]
    store(core, W, 1)
    assert core.take() == [resolved(1, outcome=KEPT, body=ON_HOST)]


def test_results_of_a_chain_that_ended_during_a_restart(core):
    """The second task is blocked until the first result counts, which waits for the agent. The agent names both files
    before."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 6), (NAME, 2, 7)])
    submit(core, [(1, [], KEEP), (2, [1], KEEP)])
    store(core, W, 1, attempt=6)
    store(core, W, 2, attempt=7)
    assert core.take() == []
    core.agent(A, AGENT, running=[(NAME, 1, 0), (NAME, 2, 0)])
    assert core.take() == [("resolved", C, [(1, KEPT, b""), (2, KEPT, b"")])]


def test_the_file_of_a_result_that_was_out_of_reach_is_removed_when_the_agent_joins(core):
    """The agent's hello was on its way when the worker wrote the file: it does not name the file."""
    worker_first(core, 1)
    core.wait(JOIN_SECONDS + 1)
    core.take()
    store(core, W, 1)
    assert rows_of(core) == [(NAME, 1, 2)]
    run(core, W, 1, b"small", attempt=2)
    core.take()
    core.agent(A, AGENT)
    core.feed(events.ForgetObjects(C, array("q", [1])))
    assert ("forget objects", A, [(NAME, 1)]) in core.take()
