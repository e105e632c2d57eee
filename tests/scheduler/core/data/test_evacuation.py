"""Host agents that end: the scheduler first fetches the kept results that only their hosts have.

Runs under PyPy and CPython.
"""

from __future__ import annotations

from tests.scheduler.core.data.test_graphs import KEEP, LOST, NAME, NO, A, W, only, resolved, run
from tests.scheduler.core.data.test_host_results import (
    AGENT,
    OTHER,
    SIZE,
    U,
    dispatch,
    fetched,
    joined,
    store,
    stored_one,
)

from scaler_scheduler.core import events


def retire(core, agent=A):
    core.feed(events.Heartbeat(agent, 5, [], is_retiring=True))
    return [each for each in core.take() if each[0] != "echo"]


def leave(core, *workers, agent=A):
    for route in (*workers, agent):
        core.goodbye(route)


def test_results_that_only_a_retiring_host_has_are_fetched_at_once(core):
    joined(core, W)
    assert stored_one(core, [(2, [], KEEP), (3, [1, 2], NO)])[0] == dispatch(W, 2, flagged=True)
    assert [each for each in retire(core) if each[0] != "retract"] == [("fetch objects", A, [(NAME, 1)])]
    store(core, W, 2)
    sent = only(core, "resolved", "fetch objects")
    assert sent[1:] == [("fetch objects", A, [(NAME, 2)])], "the result that its worker has made since"
    assert retire(core) == [], "once"
    fetched(core, 1)
    fetched(core, 2)
    leave(core, W)
    core.take()
    core.worker(U, 23, agent=OTHER)
    assert only(core, "object", "dispatch")[-1] == dispatch(U, 3)
    run(core, U, 3, b"three")
    assert resolved((3, 0, b"three")) in core.take()
    assert core.tables()["objects"] == 0


def test_the_agent_is_asked_before_its_heartbeat_is_echoed(core):
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], NO)])
    core.feed(events.Heartbeat(A, 5, [], is_retiring=True))
    kinds = [each[0] for each in core.take()]
    assert kinds.index("fetch objects") < kinds.index("echo")


def test_a_result_of_a_retiring_host_is_requested_once(core):
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], NO)])
    retire(core)
    core.worker(U, 23, agent=OTHER)
    assert only(core, "fetch objects") == [], "a task that waits for it does not ask again"
    fetched(core, 1)
    assert only(core, "object", "dispatch")[-1] == dispatch(U, 3)


def test_a_result_that_is_being_fetched_is_not_requested_again(core):
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], NO)])
    core.worker(U, 23, agent=OTHER)
    assert only(core, "fetch objects") == [("fetch objects", A, [(NAME, 1)])]
    assert [each[0] for each in retire(core)] == ["retract"]


def test_a_retiring_host_whose_connection_broke_is_asked_again(core):
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], NO)])
    retire(core)
    core.agent(b"again", AGENT)
    assert only(core, "fetch objects") == [("fetch objects", b"again", [(NAME, 1)])]


def test_results_that_are_not_sent_in_time_are_lost(core):
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], NO)])
    retire(core)
    leave(core, W)
    assert [row[:2] for each in only(core, "resolved") for row in each[2]] == [(3, LOST)]


def test_no_more_is_fetched_than_the_memory_limit_allows(make_core):
    core = make_core(memory_limit_bytes=SIZE)
    joined(core, W)
    assert stored_one(core, [(2, [], KEEP), (3, [1, 2], NO)])[0] == dispatch(W, 2, flagged=True)
    store(core, W, 2)
    core.take()
    assert ("fetch objects", A, [(NAME, 1)]) in retire(core), "both would exceed the limit"
