"""How much clients may submit, and how many results may be unread. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import (
    C2,
    CANCELLED,
    W2,
    A,
    C,
    W,
    joined,
    resolved,
    results_event,
    rows_of,
    warnings_of,
)

from scaler_scheduler.core import events
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD, UNLIMITED

WINDOW = 1 << 20
LIMIT = 8 * WINDOW
"""Of memory: an eighth of it is for windows of tasks and of results each."""

BODY = bytes(WINDOW // 16 - TASK_OVERHEAD)
"""Sixteen tasks of it fill a window."""

STEP = WINDOW // 4


@pytest.fixture
def core(make_core):
    core = make_core(memory_limit_bytes=LIMIT)
    joined(core)
    return core


def told(core, route=C):
    """The credit and result window of the last welcome."""
    return core.welcomes[route].credit, core.welcomes[route].result_window


def outstanding(core, incarnation=11):
    client = core.scheduler.tables.clients.find(incarnation)
    return client.sent_bytes - client.received_bytes


def stalled(core, count=1):
    """A client has more unacknowledged bytes than its window, so none of its tasks is dispatched. `count` tasks
    wait."""
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1], 2)
    core.results(W, core.take_dispatched(W), body=bytes(WINDOW + 1))
    assert core.take() == [resolved(1, body=bytes(WINDOW + 1))]
    core.submit(C, range(2, 2 + count), 2)
    assert core.take() == []


# --------------------------------------------------------------------------------------------------------------- credit


def test_the_welcome_has_the_window(core):
    assert told(core) == (WINDOW, WINDOW)
    core.client(C2, 12)
    assert told(core, C2) == (WINDOW // 2, WINDOW // 2)
    assert told(core, W) == told(core, A) == (0, 0)


@pytest.mark.parametrize("limit, window", [(0, 64 << 10), (1 << 20, 128 << 10), (1 << 40, 1 << 37)])
def test_windows_by_memory_limit(make_core, limit, window):
    core = make_core(memory_limit_bytes=limit)
    core.client(C, 11)
    assert told(core) == (window, window)


def test_windows_by_number_of_clients(make_core):
    core = make_core(memory_limit_bytes=LIMIT)
    for number in range(1, 33):
        route = b"client %d" % number
        core.client(route, number)
        assert told(core, route)[0] == max(64 << 10, WINDOW // number)


def test_nested_clients_may_submit_without_limit(core):
    core.client(b"nested", 99, worker=22)
    assert told(core, b"nested") == (UNLIMITED, WINDOW // 2)
    core.function(b"nested", 1, b"f")
    core.submit(b"nested", range(100), body=BODY)
    while core.scheduler.counts.dispatched:
        core.results(W, rows_of(core))
    core.wait(2)
    assert all(sent[0] == "resolved" for sent in core.take())


def test_credit_is_granted_in_steps_as_tasks_end(core):
    core.submit(C, range(16), body=BODY)
    granted = []
    for ended in range(1, 17):
        (row,) = rows_of(core)
        core.results(W, [row], 10**9)
        sent = core.take()
        for one in list(sent):
            if one[0] == "credit":
                granted.append((ended, one[2]))
                sent.remove(one)
        assert [one[0] for one in sent][-1] == "resolved"
        core.feed(events.Heartbeat(C, 1, []))
        core._sent[:0] = [one for one in sent if one[0] == "dispatch"]
    core.take()
    # After every 128 KiB, as far as tasks have ended: a quarter of this window is more.
    assert granted == [(ended, WINDOW + ended * WINDOW // 16) for ended in range(2, 17, 2)]


def test_every_end_of_a_task_returns_its_credit(core):
    core.submit(C, range(1, 9), body=BODY)
    core.submit(C, range(9, 17), body=BODY, large=range(8))
    client = core.scheduler.tables.clients.find(11)
    (row,) = core.take_dispatched(W)
    core.cancel(C, *range(5, 17))  # waiting
    assert [sent[0] for sent in core.take()] == ["credit", "resolved"]
    assert client.returned_bytes == 12 * WINDOW // 16
    core.died(A, 22)
    core.cancel(C, 1)  # waiting again
    assert core.take() == [resolved(1, outcome=CANCELLED)]
    core.worker(W, 23)
    assert core.take_dispatched(W) == [(11, 2, 1)]
    core.cancel(C, 2)  # held
    core.retracted(W, [(11, 2, 1)], 1)
    core.take()
    core.cancel(C, 3, force=True)
    core.results(W, [(11, 3, 1)], outcome=1)
    core.take()
    core.results(W, [(11, 4, 1)])
    core.take()
    assert client.returned_bytes == WINDOW
    assert core.tables()["waiting"] == core.tables()["dispatched"] == 0


def test_every_welcome_resets_the_count(core):
    core.submit(C, [1, 2, 3], body=BODY)
    core.take()
    core.client(C, 11)
    assert told(core) == (WINDOW, WINDOW)
    core.function(C, 1, b"f")
    # the first three are known; they count when the client submits them and when they end
    core.submit(C, range(1, 17), body=BODY)
    client = core.scheduler.tables.clients.find(11)
    total = 0
    while core.scheduler.counts.dispatched or core.tables()["waiting"]:
        rows = rows_of(core) or [(11, 1, 1)]
        core.results(W, rows)
        total += len(rows)
    assert total == 16
    core.take()
    assert client.returned_bytes == WINDOW


def test_clients_that_leave_free_credit(core):
    core.client(C2, 12)
    core.client(b"client 3", 13)
    core.goodbye(C)
    core.goodbye(C2)
    core.wait(2)
    assert core.take() == [("credit", b"client 3", WINDOW)]


def test_credit_is_never_withdrawn(core):
    for number in range(5):
        core.client(b"another %d" % number, 50 + number)
    core.submit(C, [1], body=BODY)
    core.results(W, core.take_dispatched(W))
    core.wait(2)
    assert core.take() == [resolved(1)]
    assert core.scheduler.tables.clients.find(11).granted_bytes == WINDOW


def test_a_task_larger_than_the_window(core):
    core.submit(C, [1], body=bytes(3 * WINDOW), large=[0])
    core.results(W, core.take_dispatched(W))
    assert core.take() == [("credit", C, WINDOW + 3 * WINDOW + TASK_OVERHEAD), resolved(1)]


# ------------------------------------------------------------------------------------------------------ results unread


def test_tasks_of_a_client_that_acknowledges_nothing_are_not_dispatched(core):
    stalled(core, 3)
    core.worker(W2, 23)
    core.wait(2)
    assert core.take() == []
    assert core.tables()["waiting"] == 3
    assert core.tables()["ranks"] == 0


def test_waiting_tasks_of_a_paused_client_stay(core):
    core.submit(C, [1, 2, 3])
    core.results(W, core.take_dispatched(W), 10**9, body=bytes(WINDOW + 1))
    # One more task was dispatched before the answer was handled.
    assert core.take() == [("dispatch", W, [(11, 2, 1, 1, b"")]), resolved(1, body=bytes(WINDOW + 1))]
    assert core.tables()["ranks"] == 0
    core.results(W, [(11, 2, 1)], 10**9)
    assert core.take() == [resolved(2)]
    core.received(C, WINDOW + 1)
    assert core.take_dispatched(W) == [(11, 3, 1)]


def test_tasks_are_dispatched_again_after_enough_acknowledgements(core):
    stalled(core, 3)
    core.received(C, WINDOW // 2)
    assert core.take() == []
    core.received(C, WINDOW // 2 + 1)
    assert core.take_dispatched(W) == [(11, task_id, 1) for task_id in (2, 3, 4)]


def test_a_client_is_not_paused_within_its_window(core):
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1], 2)
    core.results(W, core.take_dispatched(W), body=bytes(WINDOW))
    core.submit(C, [2], 2)
    assert core.take()[1:] == [("dispatch", W, [(11, 2, 1, 2, b"")])]


@pytest.mark.parametrize("is_large", [False, True])
def test_results_of_both_kinds_count(core, is_large):
    core.submit(C, [1])
    row = core.take_dispatched(W)
    event = results_event(W, row, body=b"" if is_large else bytes(100))
    if is_large:
        event.large = {0: bytes(100)}
    core.feed(event)
    assert core.take() == [resolved(1, body=bytes(100))]
    assert outstanding(core) == 100
    core.received(C, 60)
    core.received(C, 40)  # late, or repeated by a lost connection
    assert outstanding(core) == 40
    core.received(C, 10**18)  # an impossible number
    assert outstanding(core) == 0


def test_other_clients_are_served_meanwhile(core):
    stalled(core, 3)
    core.client(C2, 12)
    core.function(C2, 2, b"g")
    core.submit(C2, [1], 2)
    assert core.take_dispatched(W) == [(12, 1, 1)]


def test_results_of_held_tasks_are_still_sent(core):
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, range(1, 101), 2)
    rows = core.take_dispatched(W)
    core.results(W, rows[:50], body=bytes(WINDOW // 50 + 1))
    core.results(W, rows[50:])
    assert [sent[0] for sent in core.take()] == ["resolved", "resolved"]


@pytest.mark.parametrize("is_queued", [False, True])
def test_requeued_tasks_wait_as_well(core, is_queued):
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.take()
    core.results(W, [(11, 1, 1)], body=bytes(WINDOW + 1))
    core.died(A, 22, None if is_queued else (11, 2, 1))
    core.worker(W2, 23)
    assert core.take() == [resolved(1, body=bytes(WINDOW + 1))]
    core.received(C, WINDOW + 1)
    assert core.take_dispatched(W2) == [(11, 2, 2)]


def test_a_client_that_never_acknowledges_gets_one_notice(core):
    stalled(core, 3)
    core.wait(9)
    assert core.notices == []
    core.wait(20)
    text = (
        "client name has acknowledged (`received`) 0 of 1048577 bytes of results: its 3 waiting task(s) are dispatched "
        "when it acknowledges more"
    )
    assert core.notices == [(C, text)]
    assert warnings_of(core) == [text]
    core.received(C, 1)
    core.wait(20)
    assert len(core.notices) == 1


def test_a_slow_reader_gets_no_notice(core):
    stalled(core, 3)
    for taken in (1, 2, 3):
        core.wait(8)
        core.received(C, taken)
    core.received(C, WINDOW + 1)
    core.take()
    core.wait(20)
    assert core.notices == []


def test_cancelled_while_it_is_stalled(core):
    stalled(core, 3)
    core.cancel(C, 3, 4)
    assert core.take() == [resolved(3, 4, outcome=CANCELLED)]
    core.received(C, WINDOW + 1)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_all_cancelled_while_it_is_stalled(core):
    stalled(core, 3)
    core.cancel(C, 2, 3, 4)
    assert core.take() == [resolved(2, 3, 4, outcome=CANCELLED)]
    (client,) = core.scheduler.tables.clients
    assert not client.lanes
    core.received(C, WINDOW + 1)
    core.submit(C, [5], 2)
    assert core.take_dispatched(W) == [(11, 5, 1)]


def test_attached_while_it_is_stalled(core):
    stalled(core, 2)
    core.worker(W2, 23, running=[(11, 2, 1)])
    assert core.take() == []
    core.results(W2, [(11, 2, 1)])
    assert core.take() == [resolved(2)]
    core.received(C, WINDOW + 1)
    assert rows_of(core) == [(11, 3, 1)]


def test_a_new_connection_does_not_end_the_stall(core):
    """The messages on their way are lost with the old connection, and are sent again."""
    stalled(core, 3)
    sent = outstanding(core)
    core.client(C2, 11)
    assert {each[:2] for each in core.take()} == {("resolved", C2)}
    assert outstanding(core) == sent
    core.received(C2, sent)
    assert core.take_dispatched(W) == [(11, task_id, 1) for task_id in (2, 3, 4)]


def test_a_stalled_client_leaves(core):
    stalled(core, 3)
    core.goodbye(C)
    assert core.tables()["waiting"] == core.tables()["clients by incarnation"] == 0
    core.take()


def test_a_stalled_client_leaves_and_comes_back(core):
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.take()
    core.results(W, [(11, 1, 1)], body=bytes(WINDOW + 1))
    core.goodbye(C)
    core.client(C2, 11)
    core.function(C2, 2, b"g")
    core.submit(C2, [3], 2)
    answer = bytes(WINDOW + 1)
    assert core.take() == [
        resolved(1, body=answer),
        ("retract", W, [(11, 2, 1)]),
        resolved(0, route=C2),
        resolved(1, body=answer, route=C2),
    ]
    core.received(C2, len(answer))
    assert core.take() == [("dispatch", W, [(11, 3, 1, 2, b"")])]


def test_nested_clients_are_stalled_like_others(core):
    core.client(b"nested", 99, worker=22)
    core.function(b"nested", 1, b"f")
    core.submit(b"nested", [1, 2])
    core.results(W, core.take_dispatched(W), 10**9, body=bytes(WINDOW))
    assert core.take() == [("dispatch", W, [(99, 2, 1, 1, b"")]), resolved(1, body=bytes(WINDOW), route=b"nested")]
    core.submit(b"nested", [3])
    core.results(W, [(99, 2, 1)])
    assert core.take() == [resolved(2, route=b"nested")]
    core.received(b"nested", WINDOW)
    assert core.take_dispatched(W) == [(99, 3, 1)]


def test_only_a_client_may_acknowledge(core):
    core.received(W, 1)
    core.received(b"stranger", 1)
    assert core.take() == [("error", W, "only a client may send this message"), ("hello wanted", b"stranger")]
