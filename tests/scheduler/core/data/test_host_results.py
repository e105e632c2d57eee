"""Large kept results that stay on their host: readers there, fetches from there, and losses with the host.

Runs under PyPy and CPython.
"""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_graphs import (
    BOTH,
    KEEP,
    KEPT,
    LOST,
    NAME,
    NO,
    A,
    C,
    V,
    W,
    forget,
    only,
    resolved,
    run,
    submit,
)
from tests.scheduler.core.harness import MILLISECOND, SECOND, results_event, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.dispatch.dispatch_writer import SCARCE_DIVISOR
from scaler_scheduler.core.ids import file_id
from scaler_scheduler.core.peers.welcome import JOIN_SECONDS
from scaler_scheduler.core.state import functions
from scaler_scheduler.core.state.functions import LARGE_BYTES

B, U = b"another agent", b"a worker of the other agent"
FLAGGED = {0: (effects.FLAG_MAY_STORE, 0, 0)}
FLAGGED_SMALL = {0: (effects.FLAG_MAY_STORE | effects.FLAG_STORE_SMALL, 0, 0)}
NO_FILE = {0: (effects.FLAG_STORE_SMALL, 0, 0)}
"""The options of a row whose result other tasks read, and which becomes no file."""
SIZE = LARGE_BYTES + 1
FRAMES = [b"pickle", b"b" * LARGE_BYTES]
AGENT, OTHER = 31, 32
ON_HOST = SIZE.to_bytes(8, "little") + b"host"
"""The answer for a result that only its host has."""


def joined(core, *workers):
    """Two host agents with these workers: W and V of the first, U of the second."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.agent(A, AGENT)
    core.agent(B, OTHER)
    for worker in workers:
        core.worker(worker, {W: 21, V: 22, U: 23}[worker], agent=OTHER if worker == U else AGENT)


def store(core, worker, task_id, size=SIZE, attempt=1):
    """Store a result after a run time that is so long that nothing is queued behind the next task."""
    body = size.to_bytes(8, "little")
    core.results(worker, [(NAME, task_id, attempt)], 20 * SECOND, effects.OUTCOME_STORED, body)


def dispatch(worker, task_id, attempt=1, flagged=False, options=None):
    options = FLAGGED if flagged else options
    return ("dispatch", worker, [(NAME, task_id, attempt, 1, b"x")], *([options] if options else []))


def fetched(core, task_id, frames=FRAMES, agent=A):
    core.feed(events.Object(agent, task_id, "", list(frames), NAME))


def missing(core, *ids, agent=A):
    core.feed(events.ForgetObjects(agent, array("q", ids), array("q", [NAME] * len(ids))))


def stored_one(core, readers=((2, [1], NO),)):
    """W has stored the result of task 1, which these tasks read."""
    submit(core, [(1, [], KEEP), *readers])
    forget(core, 1, *[row[0] for row in readers if row[2]])
    assert only(core, "dispatch") == [dispatch(W, 1, flagged=True)]
    store(core, W, 1)
    return [each for each in core.take() if each[0] != "function"]


def test_a_chain_stays_on_the_host_of_its_first_result(core):
    joined(core, U, W)
    sent = stored_one(core, [(2, [1], KEEP), (3, [2], NO)])
    assert sent == [dispatch(W, 2, flagged=True), resolved((1, KEPT, b""))]
    store(core, W, 2)
    forgotten = ("forget objects", W, [(NAME, 1)]), ("forget objects", A, [(NAME, 1)])
    assert core.take() == [dispatch(W, 3), resolved((2, KEPT, b"")), *forgotten]
    run(core, W, 3, b"end")
    forgotten = ("forget objects", W, [(NAME, 2)]), ("forget objects", A, [(NAME, 2)])
    assert core.take() == [resolved((3, 0, b"end")), *forgotten]
    assert core.tables()["objects"] == 0


def test_a_dispatch_says_which_peer_wrote_the_file(core):
    joined(core, W)
    big = bytes(LARGE_BYTES)
    core.feed(events.Object(C, 1, "", [big]), events.Object(C, 2, "", [big[1:]]))
    submit(core, [(3, [], KEEP), (4, [3, 1, 2], NO)])
    core.take()
    body = SIZE.to_bytes(8, "little")
    core.scheduler.handle(results_event(W, [(NAME, 3, 1)], 1000, effects.OUTCOME_STORED, body), core.now)
    [sent] = [effect for effect in core.scheduler.collect() if effect.kind == effects.DISPATCH]
    assert (sent.inputs, sent.inline_sizes) == ([file_id(3, 1), 1, 2], [0, 0, 0])
    assert sent.input_sources == [effects.INPUT_IN_WORKER_FILE, effects.INPUT_IN_AGENT_FILE, effects.INPUT_IN_MESSAGE]


def test_which_rows_may_store(core):
    joined(core, W)
    core.worker(b"alone", 29)
    submit(core, [(1, [], KEEP), (2, [], BOTH), (3, [], NO), (4, [], KEEP)])
    flags = {
        row[1]: (each[1], each[3].get(place, (0,))[0] if len(each) > 3 else 0)
        for each in only(core, "dispatch")
        for place, row in enumerate(each[2])
    }
    allowed = {(W, effects.FLAG_MAY_STORE), (b"alone", effects.FLAG_STORE_SMALL)}
    assert {flags[each] for each in (1, 4) if each in flags} <= allowed
    assert all(flags[each][1] == flag for each, flag in ((2, effects.FLAG_STORE_SMALL), (3, 0)) if each in flags)
    assert len(flags) >= 2


def test_rows_with_small_results_may_not_store(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], KEEP), (3, [2], KEEP), (4, [3], KEEP), (5, [4], NO)])
    assert only(core, "dispatch") == [dispatch(W, 1, flagged=True)]
    run(core, W, 1, b"small")
    assert core.take()[0] == ("dispatch", W, [(NAME, 2, 1, 1, b"xsmall")], NO_FILE)
    run(core, W, 2, bytes(LARGE_BYTES))
    assert only(core, "dispatch", "object", "resolved")[1] == dispatch(W, 3, flagged=True)
    run(core, W, 3, b"small")
    assert core.take()[0] == ("dispatch", W, [(NAME, 4, 1, 1, b"xsmall")], FLAGGED), "one was large"


def test_small_values_of_plain_tasks_say_nothing_of_kept_results(core):
    joined(core, W)
    submit(core, [(1, [], BOTH), (2, [1], NO)])
    core.take()
    run(core, W, 1, b"small")
    run(core, W, 2, b"read")
    core.take()
    submit(core, [(3, [], KEEP)])
    assert only(core, "dispatch") == [dispatch(W, 3, flagged=True)]


def test_small_results_may_store_while_memory_is_scarce(make_core):
    core = make_core(memory_limit_bytes=1000 * SCARCE_DIVISOR)
    joined(core, W)
    submit(core, [(1, [], KEEP)])
    core.take()
    run(core, W, 1, bytes(functions.SMALL_BYTES))
    core.take()
    assert core.scheduler.tables.objects.bytes > 1000
    submit(core, [(2, [], KEEP), (3, [], BOTH)])
    both = {0: (effects.FLAG_MAY_STORE | effects.FLAG_STORE_SMALL, 0, 0), 1: NO_FILE[0]}
    [sent] = only(core, "dispatch")
    assert [row[1] for row in sent[2]] == [2, 3] and sent[3] == both
    forget(core, 1)
    core.take()
    submit(core, [(4, [], KEEP)])
    assert only(core, "dispatch") == [dispatch(W, 4, flagged=True)], "workers may have files of this function"


def test_tiny_results_are_never_files(make_core):
    core = make_core(memory_limit_bytes=1000 * SCARCE_DIVISOR)
    joined(core, W)
    submit(core, [(1, [], KEEP)])
    core.take()
    run(core, W, 1, bytes(functions.SMALL_BYTES - 1))
    core.take()
    assert core.scheduler.tables.objects.bytes > 1000
    submit(core, [(2, [], KEEP)])
    assert only(core, "dispatch") == [dispatch(W, 2, options=NO_FILE)]


def test_a_reader_goes_to_an_idle_worker_of_the_host(core):
    joined(core, W, V, U)
    submit(core, [(1, [], KEEP), (2, [], NO), (3, [1], NO)])
    core.take()
    holder = next(row.worker.route for row in core.scheduler.tables.clients.find(NAME).tasks.values() if row.id == 1)
    assert holder == U
    store(core, U, 1)
    assert only(core, "dispatch", "resolved")[0] == dispatch(U, 3)


def test_a_reader_on_another_host_waits_for_the_bytes(core):
    joined(core, W)
    assert stored_one(core, [(2, [], NO), (3, [1], NO), (4, [1], NO)])[0] == dispatch(W, 2)
    core.worker(U, 23, agent=OTHER)
    assert core.take() == [("fetch objects", A, [(NAME, 1)])], "once for both"
    core.worker(b"alone", 29)
    assert core.take() == []
    fetched(core, 1)
    sent = only(core, "object", "dispatch")
    assert sorted(each for each in sent if each[0] == "object") == sorted([
        ("object", B, NAME, 1, FRAMES), ("object", b"alone", NAME, 1, FRAMES),
    ])  # fmt: skip
    rows = {each[1]: each[2][0][1] for each in sent if each[0] == "dispatch"}
    assert sorted(rows.values()) == [3, 4] and set(rows) == {U, b"alone"}
    for worker, task_id in rows.items():
        run(core, worker, task_id)
    told = {each[1] for each in core.take() if each[0] == "forget objects"}
    assert told == {A, B, U, b"alone"}
    assert core.tables()["objects"] == 0


def test_capabilities_take_a_reader_elsewhere(core):
    joined(core, W)
    core.worker(U, 23, agent=OTHER, capabilities=[("gpu", 1)])
    submit(core, [(1, [], KEEP)])
    [(_, holder, *_)] = only(core, "dispatch")
    core.results(holder, [(NAME, 1, 1)], body=SIZE.to_bytes(8, "little"), outcome=effects.OUTCOME_STORED)
    core.take()
    event = submit_event(C, [2], [1], [b"x"], ())
    event.inputs, event.input_counts = array("q", [1]), array("I", [1])
    needs = ("gpu", 1) if holder == W else ("disk", 1)
    event.options = events.Options(capabilities=frozenset([needs]))
    if holder == U:
        core.worker(V, 22, agent=AGENT, capabilities=[("disk", 1)])
    core.feed(event)
    assert core.take() == [("fetch objects", A if holder == W else B, [(NAME, 1)])]


def test_a_reader_is_queued_on_a_busy_host_instead_of_fetching(core):
    """This holds as long as no worker is idle elsewhere."""
    joined(core, W, U)
    submit(core, [(1, [], KEEP)])
    [(_, holder, *_)] = only(core, "dispatch")
    core.results(holder, [(NAME, 1, 1)], MILLISECOND, effects.OUTCOME_STORED, SIZE.to_bytes(8, "little"))
    core.take()
    core.submit(C, [10, 11])
    assert {each[1] for each in core.take()} == {W, U}
    submit(core, [(12, [1], NO)])
    assert core.take() == [dispatch(holder, 12)]


def fetching(core):
    """Task 3 and its readers wait for the bytes of task 1, which W has stored. W runs task 2."""
    joined(core, W)
    stored_one(core, [(2, [], NO), (3, [1], KEEP), (4, [3], NO)])
    core.worker(U, 23, agent=OTHER)
    assert core.take() == [("fetch objects", A, [(NAME, 1)])]


def test_why_its_reader_waits(core):
    fetching(core)
    [since, way] = core.scheduler.wait_reasons.lines(NAME, 3)
    assert since.startswith("since: ") and way == "input: function 1#1 is on its way from host"
    core.wait(20)
    [_, silent] = core.scheduler.wait_reasons.lines(NAME, 3)
    assert silent == "input: function 1#1 is on host, whose host agent has been silent for 20 s"
    core.take()


def test_cancelled_during_the_fetch(core):
    fetching(core)
    core.cancel(C, 4)
    assert core.take() == [
        resolved((4, effects.OUTCOME_CANCELLED, b""), (3, effects.OUTCOME_CANCELLED, b"")),
        ("forget objects", A, [(NAME, 1)]),
    ]
    fetched(core, 1)
    missing(core, 1)
    assert core.take() == [] and core.tables()["objects"] == 0


def test_its_client_leaves_during_the_fetch(core):
    fetching(core)
    core.goodbye(C)
    core.take_one("forget objects", A, [(NAME, 1)])
    fetched(core, 1)
    core.take()
    assert core.tables()["objects"] == 0


def test_the_worker_of_the_reader_leaves_during_the_fetch(core):
    fetching(core)
    core.goodbye(U)
    fetched(core, 1)
    assert core.take() == []
    run(core, W, 2)
    assert only(core, "dispatch", "resolved")[0] == dispatch(W, 3, flagged=True), "its file is still there"


@pytest.mark.parametrize("how", ["goodbye", "lease", "not there", "replaced"])
def test_lost_during_the_fetch(core, how):
    fetching(core)
    if how == "goodbye":
        core.goodbye(A)
    elif how == "lease":
        for _ in range(61):
            core.heartbeat(C)
            core.heartbeat(B, 23)
            core.heartbeat(W)
            core.wait(1)
    elif how == "not there":
        missing(core, 1)
    else:
        core.hello(A, events.AGENT, 39)
    text = b"function 1: object 1, which it reads, is lost with the host that had it"
    rows = [row for each in core.take() if each[0] == "resolved" for row in each[2]]
    assert rows == [(3, LOST, text), (4, LOST, text)]
    tables = core.tables()
    assert tables["objects"] == 0
    assert set(core.scheduler.tables.clients.find(NAME).tasks) == {2}


def test_lost_before_its_client_is_told_that_it_is_kept(core):
    """The client must hear of the loss last, or it believes that the result is still there."""
    core.scheduler.outbox.kept_seconds = 1.0
    joined(core, W)
    submit(core, [(1, [], KEEP)])
    store(core, W, 1)
    core.take()
    core.hello(A, events.AGENT, 39)
    assert only(core, "resolved", "forget objects", "welcome")[:2] == [
        resolved((1, effects.OUTCOME_KEPT, b"")),
        ("forget objects", C, [(NAME, 1)]),
    ]


def test_lost_with_its_host(core):
    """Its readers that wait, or that workers of the host hold, end at once. Other tasks go on."""
    joined(core, V, W)
    submit(core, [(1, [], KEEP), (2, [1], NO), (3, [1], KEEP), (4, [3], NO), (5, [], NO), (6, [], NO)])
    forget(core, 1, 3)
    core.take()
    store(core, W, 1)
    core.worker(U, 23, agent=OTHER)
    core.take()
    states = {task.id: task.worker for task in core.scheduler.tables.clients.find(NAME).tasks.values()}
    for _ in range(61):
        for route in (C, W, V):
            core.heartbeat(route)
        core.heartbeat(B, 23)
        core.wait(1)
    rows = {row[0]: row[1] for each in core.take() if each[0] == "resolved" for row in each[2]}
    assert rows == {2: LOST, 3: LOST, 4: LOST}, states
    # The client submits the inputs of its targets again.
    submit(core, [(1, [], KEEP), (2, [1], NO), (3, [1], KEEP), (4, [3], NO)])
    forget(core, 1, 3)
    core.take()
    assert core.tables()["objects"] == 2


def test_fetched_results_are_not_lost(core):
    fetching(core)
    fetched(core, 1)
    core.take()
    core.goodbye(A)
    assert [each for each in core.take() if each[0] == "resolved"] == []
    run(core, U, 3, b"three")
    core.take()


def test_an_agent_that_joins_again_still_has_its_results(core):
    fetching(core)
    again = b"agent again"
    core.agent(again, AGENT)
    assert core.take() == [("fetch objects", again, [(NAME, 1)])]
    fetched(core, 1, agent=again)
    assert only(core, "object", "dispatch")[-1] == dispatch(U, 3, flagged=True)


def test_only_the_agent_that_has_it_is_believed(core):
    fetching(core)
    fetched(core, 1, agent=B)
    missing(core, 1, agent=B)
    missing(core, 3)
    core.feed(events.Object(A, 1, "", [b"x"], 99))
    assert core.take() == []


def test_a_result_stored_without_an_agent_is_made_again(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    core.take()
    core.goodbye(A)
    core.wait(1)
    core.worker(W, 21, agent=AGENT, running=[(NAME, 1, 1)])
    core.wait(JOIN_SECONDS)
    store(core, W, 1)
    assert only(core, "dispatch") == [dispatch(W, 1, attempt=2, options=NO_FILE)], "it is not asked to store it"
    store(core, W, 1, attempt=2)
    assert core.take() == [dispatch(W, 1, attempt=3)]


@pytest.mark.parametrize("keep", [NO, BOTH])
def test_a_result_stored_although_the_row_does_not_allow_it(core, keep):
    joined(core, W)
    submit(core, [(1, [], keep)])
    core.take()
    for attempt in range(1, 20):
        store(core, W, 1, attempt=attempt)
        sent, removed = core.take()
        assert removed == ("forget objects", A, [(NAME, 1)])
        if sent[0] == "resolved":
            break
    [(_, outcome, text)] = sent[2]
    assert outcome == effects.OUTCOME_WORKER_DIED and b"is out of reach on its host" in text


def test_a_plain_task_that_stores(core):
    joined(core, W)
    core.submit(C, [1])
    core.take()
    store(core, W, 1)
    assert core.take() == [("dispatch", W, [(NAME, 1, 2, 1, b"")]), ("forget objects", A, [(NAME, 1)])]


def test_files_of_attempts_that_do_not_count_are_removed(core):
    joined(core, W, U)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    [(_, holder, *_)] = only(core, "dispatch")
    core.goodbye(holder)
    assert [each[0] for each in core.take() if each[0] != "function"] == ["dispatch", "forget objects"]
    other = U if holder == W else W
    core.results(other, [(NAME, 77, 1)], body=bytes(8), outcome=effects.OUTCOME_STORED)
    assert core.take() == [("forget objects", A if other == W else B, [(NAME, 77)])]
    core.results(other, [(NAME, 1, 7)], body=bytes(8), outcome=effects.OUTCOME_STORED)
    assert core.take() == [("forget objects", A if other == W else B, [(NAME, 1)])], "a file of another attempt"
    store(core, other, 1, attempt=2)
    core.take()
    core.results(other, [(NAME, 1, 2)], body=bytes(8), outcome=effects.OUTCOME_STORED)
    assert core.take() == [], "this file counts"
    run(core, other, 2)
    forget(core, 1)
    told = {each[1] for each in core.take() if each[0] == "forget objects"}
    assert told == {A if other == W else B, other}


def test_a_file_of_an_attempt_that_does_not_count_is_no_copy(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO), (3, [1], NO)])
    core.take()
    core.goodbye(W)
    core.worker(b"alone", 29)
    core.take()
    core.results(b"alone", [(NAME, 1, 2)], 20 * SECOND, body=bytes(LARGE_BYTES))
    core.worker(W, 21, agent=AGENT)
    sent = [each for each in core.take() if each[0] in ("object", "dispatch")]
    assert ("object", A, NAME, 1, [bytes(LARGE_BYTES)]) in sent


def test_a_stored_result_that_is_not_needed(core):
    joined(core, W)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    forget(core, 1)
    core.take()
    core.started(W, (NAME, 1, 1))
    core.cancel(C, 2)
    core.take()
    store(core, W, 1)
    assert core.take() == [resolved((1, KEPT, b"")), ("forget objects", A, [(NAME, 1)])]


def test_a_worker_that_cannot_read_the_file_gets_the_bytes(core):
    joined(core, W)
    assert stored_one(core)[0] == dispatch(W, 2)
    run(core, W, 2, b"can't map it", LOST)
    assert core.take() == [("fetch objects", A, [(NAME, 1)])]
    fetched(core, 1)
    assert core.take() == [dispatch(W, 2, 2)]
    run(core, W, 2, b"can't map it", LOST, attempt=2)
    assert core.take() == [("object", W, NAME, 1, FRAMES), dispatch(W, 2, 3)]


# ------------------------------------------------------------------------------------------------------ submitted again


def test_an_abandoned_running_task_is_wanted_again(core):
    """A target reads a lost result and the result of a running task. When the target fails, it releases the second."""
    joined(core, W)
    stored_one(core, [(2, [], KEEP), (3, [1, 2], NO)])
    core.started(W, (NAME, 2, 1))
    core.take()
    missing(core, 1)
    sent = only(core, "resolved", "forget objects")
    assert [row[:2] for row in sent[0][2]] == [(3, LOST)]
    core.worker(U, 23, agent=OTHER)
    core.take()
    submit(core, [(1, [], KEEP), (2, [], KEEP), (3, [1, 2], NO)])
    forget(core, 1, 2)
    [(_, to, [row], _)] = only(core, "dispatch")
    assert (to, row[1:3]) == (U, (1, 2)), "the other task is not run twice"
    run(core, U, 1, b"one", attempt=2)
    run(core, W, 2, b"two")
    sent = core.take()
    [three] = [each for each in sent if each[0] == "dispatch"]
    assert three[2][0][1] == 3 and three[2][0][4] == b"xonetwo"


def test_a_task_that_is_being_retracted_is_wanted_again(core):
    joined(core, W)
    stored_one(core, [(2, [], KEEP), (3, [1, 2], NO)])
    missing(core, 1)
    assert ("retract", W, [(NAME, 2, 1)]) in core.take()
    submit(core, [(1, [], KEEP), (2, [], KEEP), (3, [1, 2], NO)])
    forget(core, 1, 2)
    core.retracted(W, [(NAME, 2, 1)], 1)
    rows = [row[1:3] for each in core.take() if each[0] == "dispatch" for row in each[2]]
    assert rows == [(1, 2)], "its attempts have other numbers than those of the lost result"
    run(core, W, 1, b"one", attempt=2)
    run(core, W, 2, b"two", attempt=2)
    assert [row[1] for each in core.take() if each[0] == "dispatch" for row in each[2]][-1] == 3


def test_a_kept_result_is_referenced_again(core):
    joined(core, W)
    stored_one(core)
    submit(core, [(1, [], KEEP), (2, [1], NO)])
    assert core.take() == [resolved((1, KEPT, ON_HOST))]
    run(core, W, 2)
    assert core.take() == [resolved((2, 0, b""))]
    forget(core, 1)
    assert ("forget objects", A, [(NAME, 1)]) in core.take()


def test_a_resubmitted_target_whose_result_is_stored(core):
    joined(core, W)
    stored_one(core)
    submit(core, [(1, [], BOTH)])
    assert core.take() == [resolved((1, KEPT, ON_HOST))]


def test_results_of_several_rows_with_stored_ones_between(core):
    joined(core, W)
    core.teach(C, W, 1, b"f", 1000, 0)
    submit(core, [(1, [], KEEP), (2, [], NO), (3, [], KEEP), (4, [1, 3], NO)])
    core.take()
    event = results_event(W, [(NAME, 1, 1), (NAME, 2, 1), (NAME, 3, 1)])
    event.outcomes = array("B", [effects.OUTCOME_STORED, 0, effects.OUTCOME_STORED])
    event.sizes = array("I", [8, 3, 8])
    event.payload = SIZE.to_bytes(8, "little") + b"two" + SIZE.to_bytes(8, "little")
    core.feed(event)
    assert core.take() == [dispatch(W, 4), resolved((1, KEPT, b""), (2, 0, b"two"), (3, KEPT, b""))]


def test_files_that_an_agent_names_when_it_joins_again(core):
    joined(core, U, W)
    stored_one(core)
    core.submit(C, [5])
    core.take()
    # Object 1 is kept on this host, task 2 runs on it, task 5 runs elsewhere, object 8 and client 99 are unknown. The
    # scheduler has just started: this client may still come.
    core.hello(A, events.AGENT, AGENT, running=[(NAME, 1, 0), (NAME, 2, 0), (NAME, 8, 0), (99, 1, 0)])
    assert core.take()[1:] == [("forget objects", A, [(NAME, 8)])]
    run(core, W, 2, b"end")
    assert ("forget objects", A, [(NAME, 1)]) in core.take()


def test_files_that_an_agent_names_after_it_was_lost(core):
    joined(core, U, W)
    stored_one(core)
    core.feed(events.Goodbye(A, "given up"))
    core.take()
    core.hello(A, events.AGENT, AGENT, running=[(NAME, 1, 0)])
    assert core.take()[1:] == [("forget objects", A, [(NAME, 1)])]


def credit_after(core):
    """The bytes of its window that the client can't use now. Takes all messages."""
    core.take()
    client = core.scheduler.tables.clients.find(NAME)
    return client.submitted_bytes - client.returned_bytes


def test_resubmitted_rows_return_their_credit(core):
    joined(core, U, W)
    rows = [(1, [], KEEP), (2, [1], KEEP), (3, [2], NO)]
    submit(core, rows)
    submit(core, rows)  # as after a loss
    assert credit_after(core) > 0
    store(core, W, 1)
    submit(core, rows)
    store(core, W, 2)
    run(core, W, 3, b"end")
    assert credit_after(core) == 0


def test_after_a_new_welcome_a_resubmitted_row_counts_once(core):
    joined(core, U, W)
    rows = [(1, [], KEEP), (2, [1], KEEP), (3, [2], NO)]
    submit(core, rows)
    store(core, W, 1)
    core.client(C, NAME)
    core.function(C, 1, b"f")
    submit(core, rows)
    store(core, W, 2)
    run(core, W, 3, b"end")
    assert credit_after(core) == 0


TOO_LARGE = "the result has 9 bytes in one frame, and the scheduler takes 8"


def refused(core, task_id, agent=A):
    core.feed(events.Transferred(agent, [NAME], [task_id], 0, TOO_LARGE))


def test_a_value_that_is_too_large_for_a_message(core):
    joined(core, W)
    submit(core, [(1, [], KEEP)])
    store(core, W, 1)
    core.take()
    for _ in range(2):
        core.feed(events.FetchObjects(C, array("q", [1])))
        assert core.take() == [("fetch objects", A, [(NAME, 1)])]
        refused(core, 1)
        assert core.take() == [resolved((1, effects.OUTCOME_RESULT_FAILED, TOO_LARGE.encode()))]
    submit(core, [(2, [1], NO)])
    assert core.take() == [dispatch(W, 2)], "tasks can still read it on its host"


def test_readers_elsewhere_of_a_value_that_is_too_large(core):
    fetching(core)
    refused(core, 1, agent=B)
    assert core.take() == [], "it was not asked"
    refused(core, 1)
    text = f"function 1 can't read object 1 on another host: {TOO_LARGE}".encode()
    failed = [(task_id, effects.OUTCOME_RESULT_FAILED, text) for task_id in (3, 4)]
    assert core.take() == [resolved(*failed), ("forget objects", A, [(NAME, 1)])]
