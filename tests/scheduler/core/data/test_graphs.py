"""Objects, kept results and the tasks that read them. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.data.input_delivery import INLINE_BYTES, SHARED_BYTES, SMALL_BYTES
from scaler_scheduler.core.outbox import KEPT_SECONDS

C, W, V, A = b"client", b"worker 1", b"worker 2", b"agent"
NAME = 11
NO, KEEP, BOTH = events.KEEP_NO, events.KEEP_YES, events.KEEP_BOTH
LONG = b"5" * (INLINE_BYTES + 1)
"""Nothing that goes along with what reads it."""
KEPT, CANCELLED, LOST = effects.OUTCOME_KEPT, effects.OUTCOME_CANCELLED, effects.OUTCOME_INPUT_LOST


def submit(core, rows):
    """Submit rows of (id, ids of inputs, keep)."""
    event = submit_event(C, [row[0] for row in rows], [1], [b"x"] * len(rows), ())
    event.inputs = array("q", [read for row in rows for read in row[1]])
    event.input_counts = array("I", [len(row[1]) for row in rows])
    event.keep = array("B", [row[2] for row in rows])
    event.options = events.Options(graph=1)
    core.feed(event)


def forget(core, *ids):
    core.feed(events.ForgetObjects(C, array("q", ids)))


def send(core, object_id, *frames):
    core.feed(events.Object(C, object_id, f"object {object_id}", list(frames)))


def joined(core, *workers):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    for number, worker in enumerate(workers):
        core.worker(worker, 21 + number)


def run(core, worker, task_id, body=b"", outcome=0, attempt=1):
    core.results(worker, [(NAME, task_id, attempt)], body=body, outcome=outcome)


def only(core, *kinds):
    """The messages of these kinds. There must be no others except functions."""
    sent = [each for each in core.take() if each[0] != "function"]
    assert {each[0] for each in sent} <= set(kinds), sent
    return sent


def dispatched(core):
    return [(each[1], row[1]) for each in only(core, "dispatch", "object", "resolved", "forget objects")
            if each[0] == "dispatch" for row in each[2]]  # fmt: skip


def resolved(*rows):
    return ("resolved", C, [(task_id, outcome, body) for task_id, outcome, body in rows])


def test_a_chain_runs_in_order_and_its_results_stay_in_the_scheduler(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], KEEP), (3, [2], NO)])
    forget(core, 1, 2)
    assert dispatched(core) == [(W, 1)]
    run(core, W, 1, b"one")
    assert core.take() == [("dispatch", W, [(NAME, 2, 1, 1, b"xone")]), resolved((1, KEPT, b""))]
    run(core, W, 2, b"two")
    assert core.take() == [("dispatch", W, [(NAME, 3, 1, 1, b"xtwo")]), resolved((2, KEPT, b""))]
    run(core, W, 3, b"three")
    assert core.take() == [resolved((3, 0, b"three"))]
    assert core.tables()["objects"] == 0


def test_the_answer_of_a_kept_result_waits_for_another_answer(core):
    core.scheduler.outbox.kept_seconds = KEPT_SECONDS
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], KEEP), (3, [2], NO)])
    run(core, W, 1, b"one")
    run(core, W, 2, b"two")
    assert dispatched(core) == [(W, 1), (W, 2), (W, 3)]
    run(core, W, 3, b"three")
    assert core.take() == [resolved((1, KEPT, b""), (2, KEPT, b""), (3, 0, b"three"))]


def test_the_answer_of_a_kept_result_waits_for_a_short_time_only(core):
    core.scheduler.outbox.kept_seconds = KEPT_SECONDS
    joined(core, W)
    submit(core, [(1, [], KEEP)])
    run(core, W, 1, b"one")
    assert dispatched(core) == [(W, 1)]
    assert core.scheduler.next_deadline == core.now + KEPT_SECONDS
    core.wait(KEPT_SECONDS)
    assert core.take() == [resolved((1, KEPT, b""))]
    assert core.scheduler.next_deadline > core.now + KEPT_SECONDS
    forget(core, 1)


def test_a_target_that_others_read_is_answered_and_kept(core):
    joined(core, W)
    submit(core, [(1, [], BOTH), (2, [1, 1], NO)])
    forget(core, 1)
    core.take()
    run(core, W, 1, b"one")
    assert core.take() == [("dispatch", W, [(NAME, 2, 1, 1, b"xoneone")]), resolved((1, 0, b"one"))]
    run(core, W, 2)
    assert core.take() == [resolved((2, 0, b""))]


def test_a_failure_fails_only_the_tasks_that_depend_on_it(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [], KEEP), (3, [1], KEEP), (4, [3, 2], NO), (5, [2], NO)])
    forget(core, 1, 2, 3)
    assert dispatched(core) == [(W, 1)]
    run(core, W, 1, b"broken", outcome=effects.OUTCOME_EXCEPTION)
    sent = only(core, "resolved", "dispatch")
    [rows] = [each[2] for each in sent if each[0] == "resolved"]
    assert sorted(rows) == [(1, 1, b"broken"), (3, 1, b"broken"), (4, 1, b"broken")]
    run(core, W, 2, b"two")
    core.take()
    run(core, W, 5, b"five")
    assert core.take() == [resolved((5, 0, b"five"))]
    assert core.tables()["objects"] == 0


def test_cancelling_a_target_cancels_the_tasks_that_only_it_needs(core):
    joined(core)
    submit(core, [(1, [], KEEP), (2, [], KEEP), (3, [1, 2], NO), (4, [2], NO)])
    forget(core, 1, 2)
    core.cancel(C, 3)
    assert core.take() == [resolved((3, CANCELLED, b""), (1, CANCELLED, b""))]
    core.worker(W, 21)
    assert dispatched(core) == [(W, 2)]
    run(core, W, 2, b"two")
    core.take()
    run(core, W, 4)
    core.take()
    assert core.tables()["objects"] == 0


def test_an_unneeded_task_in_a_queue_is_retracted_and_a_running_one_goes_on(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    forget(core, 1)
    core.take()
    core.cancel(C, 2)
    assert core.take() == [resolved((2, CANCELLED, b"")), ("retract", W, [(NAME, 1, 1)])]
    core.retracted(W, [(NAME, 1, 1)], 0)
    assert core.take() == [("cancel refused", C, [1])]
    run(core, W, 1, b"for nobody")
    assert core.take() == [resolved((1, KEPT, b""))]
    assert core.tables()["objects"] == 0


def test_sent_objects_go_once_to_each_worker(core):
    joined(core, W, V)
    send(core, 5, b"head", b"buffer")
    submit(core, [(6, [5], NO), (7, [5], NO), (8, [5], NO)])
    sent = only(core, "object", "dispatch")
    assert sorted(each for each in sent if each[0] == "object") == [
        ("object", W, NAME, 5, [b"head", b"buffer"]),
        ("object", V, NAME, 5, [b"head", b"buffer"]),
    ]
    rows = {each[1]: each[2][0][1] for each in sent if each[0] == "dispatch"}
    run(core, W, rows[W])
    [(worker, third)] = dispatched(core)
    run(core, worker, third)
    run(core, V, rows[V])
    core.take()
    assert core.tables()["objects"] == 1
    forget(core, 5)
    assert sorted(core.take()) == [("forget objects", W, [(NAME, 5)]), ("forget objects", V, [(NAME, 5)])]
    assert core.tables()["objects"] == 0


def test_large_objects_go_once_to_the_agent_of_a_host(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.agent(A, 31)
    core.worker(W, 21, agent=31)
    core.worker(V, 22, agent=31)
    core.take()
    big = b"b" * SHARED_BYTES
    send(core, 5, big)
    submit(core, [(6, [5], NO), (7, [5], NO)])
    sent = only(core, "object", "dispatch", "credit")
    assert [each[:2] for each in sent if each[0] == "object"] == [("object", A)]
    # Its connection was lost, so it is not known whether the object arrived.
    core.agent(b"agent again", 31)
    assert core.take() == [("object", b"agent again", NAME, 5, [big])]
    forget(core, 5)
    for worker in (W, V):
        [task] = core.scheduler.tables.workers.by_route[worker].tasks.values()
        run(core, worker, task.id)
    forgotten = [each[1] for each in core.take() if each[0] == "forget objects"]
    assert sorted(forgotten) == [b"agent again", W, V]


def test_a_returned_agent_gets_the_files_of_its_workers(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.agent(A, 31)
    core.worker(W, 21, agent=31)
    for number in (5, 6):
        send(core, number, bytes(SHARED_BYTES))
    submit(core, [(7, [5], NO)])
    for _ in range(13):
        core.wait(5)
        core.heartbeat(C)
        core.heartbeat(W)
    assert core.tables()["agents"] == 0
    core.take()
    core.agent(A, 31)
    assert core.take() == [("object", A, NAME, 5, [bytes(SHARED_BYTES)])]
    forget(core, 5, 6)
    run(core, W, 7)
    assert [each[1] for each in core.take() if each[0] == "forget objects"] in ([A, W], [W, A])


def test_missing_inputs(core):
    joined(core, W)
    submit(core, [(2, [1], KEEP), (3, [2], NO)])
    [(_, _, rows)] = core.take()
    assert [(row[0], row[1]) for row in rows] == [(2, LOST), (3, LOST)]
    assert core.tables()["objects"] == 0


def test_objects_of_a_lost_worker_are_sent_again(core):
    joined(core, W)
    send(core, 5, LONG)
    submit(core, [(6, [5], NO)])
    core.take()
    core.goodbye(W)
    core.worker(V, 22)
    assert only(core, "object", "dispatch") == [
        ("object", V, NAME, 5, [LONG]),
        ("dispatch", V, [(NAME, 6, 2, 1, b"x")]),
    ]
    run(core, V, 6, attempt=2)
    core.take()
    forget(core, 5)
    assert core.take() == [("forget objects", V, [(NAME, 5)])]


def test_a_client_that_leaves_takes_its_graph_along(core):
    joined(core, W)
    send(core, 5, LONG)
    submit(core, [(1, [5], KEEP), (2, [1], KEEP), (3, [2], NO)])
    core.take()
    core.goodbye(C)
    assert sorted(core.take()) == [("forget objects", W, [(NAME, 5)]), ("retract", W, [(NAME, 1, 1)])]
    core.retracted(W, [(NAME, 1, 1)], 1)
    assert core.take() == [("forget", W, [1])]
    tables = core.tables()
    assert tables["objects"] == tables["clients by incarnation"] == tables["functions"] == 0


def test_submitted_again_after_a_lost_connection(core):
    joined(core, W)
    rows = [(1, [], KEEP), (2, [1], NO)]
    submit(core, rows)
    core.take()
    run(core, W, 1, b"one")
    core.take()
    core.client(b"client again", NAME)
    event = submit_event(b"client again", [1, 2], [1], [b"x"] * 2, ())
    event.inputs, event.input_counts = array("q", [1]), array("I", [0, 1])
    event.keep = array("B", [KEEP, NO])
    core.function(b"client again", 1, b"f")
    core.feed(event)
    lost, kept = core.take()
    assert lost == ("resolved", b"client again", [(1, KEPT, b"")])
    assert kept == ("resolved", b"client again", [(1, 0, b"one")]), "it is in no graph now: its client gets it"
    run(core, W, 2, b"two")
    assert core.take() == [("resolved", b"client again", [(2, 0, b"two")])]
    core.feed(events.ForgetObjects(b"client again", array("q", [1])))
    assert core.take() == [] and core.tables()["objects"] == 0


@pytest.mark.parametrize("is_plain_first", [True, False])
def test_a_known_row_is_recognized_in_any_batch(core, is_plain_first):
    joined(core)
    submits = [lambda: core.submit(C, [2], 1), lambda: submit(core, [(1, [], KEEP), (2, [], NO)])]
    for each in submits if is_plain_first else submits[::-1]:
        each()
    core.worker(W, 21)
    run(core, W, 1)
    run(core, W, 2)
    assert core.tables() == dict(core.tables(), waiting=0, dispatched=0)
    assert core.scheduler.counts.resolved == 2
    core.take()


def test_an_input_that_a_worker_cannot_read_as_a_file_is_sent_to_it(core):
    core.agent(A, 31)
    core.client(C, NAME)
    core.worker(W, 21, agent=31)
    core.teach(C, W, 1, b"f", 1000, 0)  # so that it gets both
    send(core, 1, bytes(SHARED_BYTES))
    submit(core, [(2, [1, 1], NO), (3, [1], NO)])
    sent = only(core, "object", "dispatch", "credit")
    assert [each[1] for each in sent if each[0] == "object"] == [A]
    core.results(W, [(NAME, 2, 1), (NAME, 3, 1)], body=b"no space", outcome=LOST)
    assert only(core, "object", "dispatch") == [
        ("object", W, NAME, 1, [bytes(SHARED_BYTES)]),
        ("dispatch", W, [(NAME, 2, 2, 1, b"x"), (NAME, 3, 2, 1, b"x")]),
    ]
    core.results(W, [(NAME, 2, 2), (NAME, 3, 2)], body=b"not even so", outcome=LOST)
    assert core.take() == [resolved((2, LOST, b"not even so"), (3, LOST, b"not even so"))]
    forget(core, 1)
    assert sorted(each[:2] for each in core.take()) == [("forget objects", A), ("forget objects", W)]


def rejoined(core, *running):
    core.worker(W, 21, running=[(NAME, task_id, 1) for task_id in running])


@pytest.mark.parametrize("is_worker_first", [True, False])
def test_a_running_task_with_inputs_is_attached(core, is_worker_first):
    if is_worker_first:
        rejoined(core, 2)
    joined(core)
    send(core, 1, b"one")
    submit(core, [(2, [1], NO)])
    if not is_worker_first:
        rejoined(core, 2)
    assert core.take() == []
    run(core, W, 2, b"two")
    assert core.take() == [resolved((2, 0, b"two"))]
    forget(core, 1)


@pytest.mark.parametrize("is_worker_first", [True, False])
def test_a_running_task_is_attached_once_its_inputs_are_made_again(core, is_worker_first):
    if is_worker_first:
        rejoined(core, 2)
    joined(core)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    forget(core, 1)
    if not is_worker_first:
        rejoined(core, 2)
    core.worker(V, 22)
    assert dispatched(core) == [(V, 1)]
    run(core, V, 1, b"one")
    assert core.take() == [resolved((1, KEPT, b""))]
    assert core.tables() == dict(core.tables(), unclaimed=0, dispatched=1, objects=1)
    run(core, W, 2, b"two")
    assert core.take() == [resolved((2, 0, b"two"))]
    assert core.tables()["objects"] == 0


def given_up_and_back(core, task_ids):
    """The client's lease runs out, and it comes back before its tasks have ended. Returns its new connection."""
    for _ in range(12):
        core.wait(5)
        core.heartbeat(W)
    core.wait(1)
    assert core.scheduler.tables.clients.find(NAME).is_gone
    core.take()
    core.client(C, NAME)
    core.function(C, 1, b"f")


@pytest.mark.parametrize("keeps", [NO, KEEP])
def test_tasks_read_the_objects_that_a_returned_client_sends_again(core, keeps):
    joined(core, W)
    send(core, 1, b"one")
    submit(core, [(2, [1], keeps)])
    core.take()
    core.started(W, (NAME, 2, 1))
    given_up_and_back(core, [2])
    send(core, 1, b"one")
    submit(core, [(2, [1], keeps), (3, [2] if keeps else [], NO)])
    run(core, W, 2, outcome=effects.OUTCOME_EXCEPTION)  # it was stopped
    assert dispatched(core)[0] == (W, 2)
    run(core, W, 2, b"two", attempt=2)
    run(core, W, 3)
    outcomes = {row[0]: row[1] for each in core.take() if each[0] == "resolved" for row in each[2]}
    assert outcomes == {2: KEPT if keeps else 0, 3: 0}
    forget(core, 1, 2)
    core.take()
    assert core.tables() == dict(core.tables(), objects=0, waiting=0, dispatched=0)


def test_an_abandoned_task_waits_for_its_input_that_is_made_again(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    run(core, W, 1, b"one")
    core.started(W, (NAME, 2, 1))
    given_up_and_back(core, [2])
    core.worker(V, 22)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    run(core, W, 2, outcome=effects.OUTCOME_EXCEPTION)  # it was stopped
    assert dispatched(core) == [(V, 1)]
    run(core, V, 1, b"one", attempt=2)
    [(worker, _)] = dispatched(core)
    run(core, worker, 2, b"two", attempt=2)
    assert resolved((2, 0, b"two")) in core.take()
    forget(core, 1)


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "being made"])
def test_an_input_made_again_stays_until_its_held_reader_is_over(core, is_made):
    """Its client no longer needs the input, and then the worker is lost."""
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1, 1], NO)])
    run(core, W, 1, b"one")
    core.started(W, (NAME, 2, 1))
    given_up_and_back(core, [2])
    core.worker(V, 22)
    submit(core, [(1, [], KEEP), (2, [1, 1], NO)])
    forget(core, 1)
    assert dispatched(core) == [(V, 1)]
    if is_made:
        run(core, V, 1, b"one", attempt=2)
        assert core.take() == [resolved((1, KEPT, b""))]
    core.goodbye(W)
    if not is_made:
        assert core.take() == []
        run(core, V, 1, b"one", attempt=2)
        core.take_one(*resolved((1, KEPT, b"")))
    assert dispatched(core) == [(V, 2)]
    run(core, V, 2, b"two", attempt=2)
    assert resolved((2, 0, b"two")) in core.take()
    assert core.tables()["objects"] == 0


def test_an_input_is_not_made_again_if_its_reader_ends(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    run(core, W, 1, b"one")
    core.started(W, (NAME, 2, 1))
    given_up_and_back(core, [2])
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    forget(core, 1)
    core.take()
    run(core, W, 2, b"two")
    assert core.take() == [resolved((2, 0, b"two"), (1, effects.OUTCOME_CANCELLED, b""))]
    assert core.tables() == dict(core.tables(), objects=0, waiting=0, dispatched=0)


def test_a_result_is_needed_again_while_its_task_is_retracted(core):
    joined(core, W)
    rows = [(1, [], KEEP), (2, [], KEEP), (3, [1, 2], NO)]
    core.teach(C, W, 1, b"f", 1000, 0)
    submit(core, rows)
    forget(core, 1, 2)
    assert dispatched(core) == [(W, 1), (W, 2)]
    run(core, W, 1, b"broken", outcome=effects.OUTCOME_EXCEPTION)
    assert [each[0] for each in core.take()] == ["resolved", "retract"]
    core.client(C, NAME)  # the answers were lost
    core.function(C, 1, b"f")
    submit(core, [*rows, (4, [2], NO)])
    failed = effects.OUTCOME_EXCEPTION
    assert ("resolved", C, [(3, failed, b"broken"), (1, failed, b"broken")]) in core.take()
    core.retracted(W, [(NAME, 2, 1)], 1)
    core.take()
    run(core, W, 2, b"two", attempt=2)
    assert resolved((2, KEPT, b"")) in core.take()
    run(core, W, 1, b"one", attempt=2)
    run(core, W, 4, b"four", attempt=2)
    assert resolved((4, 0, b"four")) in core.take()
    forget(core, 1, 2)
    core.take()
    assert core.tables()["objects"] == 0


def test_a_task_prefers_the_idle_worker_that_has_its_inputs(core):
    joined(core, W, V)
    send(core, 5, LONG)
    submit(core, [(6, [5], NO)])
    [(first, _)] = dispatched(core)
    # The other worker runs a task. Afterwards it is the last one in the list of idle workers.
    core.submit(C, [7])
    [(second, _)] = dispatched(core)
    assert second != first
    run(core, first, 6)
    run(core, second, 7)
    core.take()
    submit(core, [(8, [5], NO)])
    assert core.take() == [("dispatch", first, [(NAME, 8, 1, 1, b"x")])]


def test_small_inputs_go_inside_the_rows_that_read_them(core):
    """Small inputs always; larger inputs if they have few more readers; no inputs with several frames."""
    joined(core, W)
    some = b"5" * (INLINE_BYTES // 2)
    sent = {5: [b"s" * SMALL_BYTES], 6: [some], 7: [b"a", b"b"], 8: [LONG]}
    for object_id, frames in sent.items():
        send(core, object_id, *frames)
    submit(core, [(1, [], NO), (2, [6, 5], NO), (3, [6], NO), (4, [6], NO), (9, [7, 8, 5], NO)])
    core.take()
    run(core, W, 1)
    assert core.take() == [
        ("object", W, NAME, 6, [some]),
        ("object", W, NAME, 7, [b"a", b"b"]),
        ("object", W, NAME, 8, [LONG]),
        ("dispatch", W, [
            (NAME, 2, 1, 1, b"x" + sent[5][0]), (NAME, 3, 1, 1, b"x"), (NAME, 4, 1, 1, b"x"),
            (NAME, 9, 1, 1, b"x" + sent[5][0]),
        ]),
        resolved((1, 0, b"")),
    ]  # fmt: skip


@pytest.mark.parametrize("is_protected", [True, False])
def test_shutdown(make_core, is_protected):
    core = make_core(is_protected=is_protected)
    core.client(C, NAME)
    core.agent(A, 31)
    core.feed(events.Shutdown(C))
    if is_protected:
        [(kind, route, text)] = core.take()
        assert (kind, route) == ("error", C) and text.startswith("protected:")
    else:
        assert core.take() == [("shutdown", A)]
    assert core.scheduler.is_shut_down is not is_protected
