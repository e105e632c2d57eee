"""After a restart, clients come back first, then an idle worker, and then the busy worker. Runs under PyPy and
CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import (
    C2,
    CANCELLED,
    EPOCH,
    SECOND,
    VALUE,
    W2,
    A,
    C,
    W,
    resolved,
    rows_of,
    submit_event,
)
from tests.scheduler.core.parents import PARENT, N, child

from scaler_scheduler.core import events
from scaler_scheduler.core.peers.restart_hold import HOLD_SECONDS, LOOK_SECONDS, MOST_HOLD_SECONDS

BEFORE = EPOCH + 1
"""The scheduler that was there before."""
ROW = (11, 1, 1)


def back(core, route=C, incarnation=11, scheduler=BEFORE, worker=0):
    """A client comes back with its function."""
    core.client(route, incarnation, worker, scheduler)
    core.function(route, 1, b"f")


def settle(core):
    """Let the hold end."""
    core.wait(HOLD_SECONDS)


def graph(core, rows):
    """Rows of (id, ids of inputs)."""
    event = submit_event(C, [row[0] for row in rows], [1], [b"x"] * len(rows), ())
    event.inputs = array("q", [read for row in rows for read in row[1]])
    event.input_counts = array("I", [len(row[1]) for row in rows])
    event.keep = array("B", [events.KEEP_BOTH] * len(rows))
    core.feed(event)


def test_the_hold_lasts_until_no_message_waits(core):
    """The hellos of workers may be among them."""
    back(core)
    core.submit(C, [1])
    core.worker(W2, 23)
    for _ in range(70):
        core.wait(HOLD_SECONDS / 2)
        core.scheduler.restart_hold.extend(core.now)
    assert core.take_dispatched(W2) == [(11, 1, 1)], "it ends at last"


def named_by_its_agent(core):
    """The only worker that is there is idle. Another one can't join yet, because its task holds the GIL."""
    core.agent(A, 33)
    core.started(A, ROW)
    back(core)
    core.submit(C, [1])
    core.worker(W2, 23, agent=33)
    settle(core)
    core.wait(2.0)
    assert core.take_dispatched(W2) == []


def test_it_waits_for_a_worker_whose_task_its_agent_names(core):
    named_by_its_agent(core)
    core.submit(C, [2])
    core.worker(W, 22, agent=33, running=[ROW])
    core.wait(LOOK_SECONDS)
    assert core.take_dispatched(W2) == [(11, 2, 1)]
    core.results(W, [ROW])
    assert resolved(1) in core.take()


def test_it_does_not_wait_for_a_worker_that_has_died(core):
    named_by_its_agent(core)
    core.died(A, 22, ROW)
    core.wait(LOOK_SECONDS)
    assert core.take_dispatched(W2) == [(11, 1, 2)], "the next attempt"


def test_it_does_not_wait_for_ever(core):
    named_by_its_agent(core)
    for _ in range(int(MOST_HOLD_SECONDS)):
        core.wait(1.0)
        core.heartbeat(A, 22, 23)
        core.started(A, ROW)
    assert ("dispatch", W2, [(*ROW, 1, b"")]) in core.take()


def test_the_hold_is_longer_when_messages_wait(core):
    back(core)
    core.submit(C, [1])
    core.worker(W2, 23)
    core.wait(HOLD_SECONDS / 2)
    core.scheduler.restart_hold.extend(core.now)
    core.wait(HOLD_SECONDS - 0.001)
    assert core.take() == []
    core.wait(0.002)
    assert core.take_dispatched(W2) == [(11, 1, 1)]


def test_the_free_worker_comes_first(core):
    back(core)
    core.submit(C, [1, 2])
    core.worker(W2, 23)
    core.wait(HOLD_SECONDS - 0.001)
    assert core.take() == []
    core.worker(W, 22, running=[ROW])
    settle(core)
    assert core.take_dispatched(W2) == [(11, 2, 1)]
    core.results(W, [ROW])
    assert core.take() == [resolved(1)]


def test_held_tasks_are_dispatched_when_the_hold_ends(core):
    """By the timer alone, exactly at the deadline."""
    back(core)
    core.submit(C, [1])
    core.worker(W2, 23)
    assert core.scheduler.next_deadline == core.now + HOLD_SECONDS
    core.wait(HOLD_SECONDS - 0.001)
    assert core.take() == []
    core.wait(0.001)
    assert core.take_dispatched(W2) == [ROW]
    assert core.scheduler.restart_hold.deadline == float("inf")


@pytest.mark.parametrize("scheduler", [0, EPOCH])
def test_tasks_of_new_and_known_clients_are_not_held(core, scheduler):
    """A lost connection is not a restart, even if the client's lease has run out."""
    back(core, scheduler=scheduler)
    core.worker(W, 22)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [ROW]


def test_a_new_connection_of_a_client_that_is_known(core):
    """Running tasks go on, and the tasks behind them are dispatched at once."""
    back(core, scheduler=0)
    core.worker(W, 22)
    core.submit(C, [1])
    assert core.take_dispatched(W) == [ROW]
    back(core, C2, scheduler=EPOCH)
    core.submit(C2, [1, 2])
    core.worker(W2, 23)
    assert core.take_dispatched(W2) == [(11, 2, 1)]
    core.results(W, [ROW])
    assert core.take() == [resolved(1, route=C2)]


def test_a_second_hello_behind_a_lost_welcome(core):
    """It names the earlier scheduler again, also after the hold has ended."""
    back(core)
    core.submit(C, [1])
    core.worker(W, 22)
    core.wait(HOLD_SECONDS / 2)
    back(core, C2)
    core.submit(C2, [1])
    assert core.take() == []
    core.wait(HOLD_SECONDS / 2)
    assert core.take_dispatched(W) == [ROW]
    back(core)
    core.submit(C, [1, 2])
    core.results(W, [ROW])
    core.take_one(*resolved(1))
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_other_clients_are_not_held(core):
    """Neither new clients, nor clients that come back later."""
    back(core)
    core.submit(C, [1])
    back(core, C2, 12, scheduler=0)
    core.submit(C2, [1])
    core.worker(W, 22)
    assert core.take_dispatched(W) == [(12, 1, 1)]
    core.results(W, [(12, 1, 1)], SECOND)
    core.take_one(*resolved(1, route=C2))
    settle(core)
    assert core.take_dispatched(W) == [ROW]
    core.results(W, [ROW], SECOND)
    core.take_one(*resolved(1))
    back(core, b"client 3", 13)
    core.submit(b"client 3", [1])
    assert core.take_dispatched(W) == [(13, 1, 1)]


def test_the_hold_of_several_clients_begins_with_the_first(core):
    back(core)
    core.submit(C, [1])
    core.wait(HOLD_SECONDS / 2)
    back(core, C2, 12)
    core.submit(C2, [1])
    core.worker(W, 22)
    core.worker(W2, 23)
    core.wait(HOLD_SECONDS / 2)
    assert sorted(rows_of(core)) == [(11, 1, 1), (12, 1, 1)]


@pytest.mark.parametrize("before", [[1], [1, 2]], ids=["all", "some"])
def test_tasks_cancelled_during_the_hold(core, before):
    back(core)
    core.submit(C, before)
    core.worker(W, 22)
    core.cancel(C, 1)
    assert core.take() == [resolved(1, outcome=CANCELLED)]
    if 2 not in before:
        core.submit(C, [2])
    settle(core)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_a_client_that_leaves_during_the_hold(core):
    back(core)
    core.submit(C, [1])
    core.worker(W, 22)
    core.goodbye(C)
    settle(core)
    assert core.take() == []
    assert core.tables() == dict.fromkeys(core.tables(), 0) | {"workers": 1, "ready": 1}


def test_a_client_that_leaves_and_is_back_before_its_worker_is_done(core):
    """Its record still exists, with its waiting tasks."""
    core.worker(W, 22, running=[ROW])
    back(core)
    core.submit(C, [1])
    core.goodbye(C)
    assert core.take() == [("stop", W, [ROW])]
    back(core, scheduler=EPOCH)
    core.submit(C, [1, 2])
    core.worker(W2, 23)
    assert core.take() == []
    settle(core)
    assert core.take_dispatched(W2) == [(11, 2, 1)]


def test_retracted_tasks_are_held_as_well(core):
    back(core)
    core.submit(C, [1, 2])
    core.worker(W, 22, running=[ROW])
    core.goodbye(W)
    core.worker(W2, 23)
    assert core.take() == []
    settle(core)
    assert core.take_dispatched(W2) == [(11, 1, 2)]


def test_rows_of_a_graph_are_held_and_attached(core):
    back(core)
    core.worker(W2, 23)
    graph(core, [(1, []), (2, [1]), (3, [1])])
    assert core.take() == []
    core.worker(W, 22, running=[ROW])
    core.results(W, [ROW], body=b"1")
    assert core.take() == [resolved(1, body=b"1")]
    core.worker(b"worker 3", 24, running=[(11, 2, 1)])  # it became ready just now
    settle(core)
    assert [row[1] for row in rows_of(core)] == [3]
    core.results(b"worker 3", [(11, 2, 1)], body=b"2")
    core.take_one(*resolved(2, body=b"2"))


def test_tasks_of_a_nested_client_are_held(core):
    """A child runs elsewhere, and no task waits for ever."""
    back(core, N, 99, worker=22)
    core.submit(N, [1, 2], depth=1)
    core.suspended(N, PARENT)
    back(core)
    core.submit(C, [1])
    core.worker(W, 22, running=[PARENT])
    assert core.take() == []
    core.worker(W2, 23, running=[child(1)])
    settle(core)
    assert core.take_dispatched(W) == [child(2)]
    core.results(W2, [child(1)])
    core.results(W, [child(2)])
    core.resumed(N, PARENT)
    core.results(W, [PARENT])
    assert core.take() == [resolved(1, route=N), resolved(2, route=N), resolved(1)]


def test_the_pause_of_a_slow_consumer_outlasts_the_hold(make_core):
    """Only one of two reasons to wait has ended."""
    core = make_core(memory_limit_bytes=1)
    back(core)
    window = core.welcomes[C].result_window
    core.worker(W, 22, running=[ROW])
    core.submit(C, [1, 2])
    core.results(W, [ROW], body=bytes(window + 1))
    assert core.take() == [("resolved", C, [(1, VALUE, bytes(window + 1))])]
    settle(core)
    assert core.take() == []
    core.received(C, window + 1)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_the_hold_outlasts_the_pause_of_a_slow_consumer(make_core):
    core = make_core(memory_limit_bytes=1)
    back(core)
    window = core.welcomes[C].result_window
    core.worker(W, 22, running=[ROW])
    core.submit(C, [1, 2])
    core.results(W, [ROW], body=bytes(window + 1))
    core.received(C, window + 1)
    assert core.take() == [("resolved", C, [(1, VALUE, bytes(window + 1))])]
    settle(core)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_a_held_client_has_its_usual_credit(make_core):
    core, other = make_core(), make_core()
    back(core)
    other.client(C, 11)
    assert core.welcomes[C].credit == other.welcomes[C].credit > 0
