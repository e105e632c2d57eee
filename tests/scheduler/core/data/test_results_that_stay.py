"""Kept results whose values their client wants later: answers, fetches and losses.

Runs under PyPy and CPython.
"""

from __future__ import annotations

from array import array

from tests.scheduler.core.data.test_graphs import KEPT, LOST, NAME, A, C, V, W, only, resolved, run
from tests.scheduler.core.data.test_host_results import (
    AGENT,
    FLAGGED_SMALL,
    FRAMES,
    SIZE,
    B,
    U,
    dispatch,
    fetched,
    joined,
    missing,
    store,
)
from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import events
from scaler_scheduler.core.outbox import KEPT_SECONDS
from scaler_scheduler.core.state.functions import LARGE_BYTES

HOST = SIZE.to_bytes(8, "little") + b"host"


def submit(core, task_id, *inputs, keep=events.KEEP_YES):
    event = submit_event(C, [task_id], [1], [b"x"], ())
    event.inputs = array("q", inputs)
    event.input_counts = array("I", [len(inputs)])
    event.keep = array("B", [keep])
    core.feed(event)


def fetch(core, *ids):
    core.feed(events.FetchObjects(C, array("q", ids)))


def forget(core, *ids):
    core.feed(events.ForgetObjects(C, array("q", ids)))


def lost(*ids):
    return ("forget objects", C, [(NAME, each) for each in ids])


def asked(*ids, agent=A):
    return ("fetch objects", agent, [(NAME, each) for each in ids])


def sent(task_id, *frames):
    return ("object", C, NAME, task_id, list(frames))


def stored_one(core, *workers):
    """W has stored the result of task 1 on its host."""
    joined(core, *(workers or (W,)))
    submit(core, 1)
    assert only(core, "dispatch") == [dispatch(W, 1, options=FLAGGED_SMALL)]
    store(core, W, 1)
    assert core.take() == [resolved((1, KEPT, HOST))]


def test_the_answer_has_the_size_and_does_not_wait(core):
    core.scheduler.outbox.kept_seconds = KEPT_SECONDS
    joined(core, W)
    submit(core, 1)
    core.take()
    large = b"1" * LARGE_BYTES
    run(core, W, 1, large)
    assert core.take() == [resolved((1, KEPT, len(large).to_bytes(8, "little")))]


def test_a_small_value_goes_to_its_client_too(core):
    joined(core, W)
    submit(core, 1)
    submit(core, 2, 1, keep=events.KEEP_NO)
    core.take()
    run(core, W, 1, b"one")
    reader, answer = only(core, "resolved", "dispatch")
    assert answer == resolved((1, 0, b"one")) and reader[2][0][1] == 2
    submit(core, 1)
    assert core.take() == [resolved((1, 0, b"one"))], "its answer was lost with a connection"


def test_a_small_value_comes_from_the_scheduler(core):
    joined(core, W)
    submit(core, 1)
    core.take()
    run(core, W, 1, b"one")
    core.take()
    fetch(core, 1)
    fetch(core, 1)
    assert core.take() == [sent(1, b"one"), sent(1, b"one")]
    forget(core, 1)
    assert core.tables()["objects"] == 0
    fetch(core, 1)
    assert core.take() == [lost(1)]


def test_a_large_value_is_fetched_from_its_host_and_stays_there_only(core):
    stored_one(core)
    fetch(core, 1)
    assert core.take() == [asked(1)]
    fetch(core, 1)
    assert core.take() == [], "it is on its way"
    fetched(core, 1)
    assert core.take() == [sent(1, *FRAMES)]
    assert core.scheduler.tables.objects.bytes == 0
    fetch(core, 1)
    assert core.take() == [asked(1)]
    fetched(core, 1)
    forget(core, 1)
    assert core.take() == [sent(1, *FRAMES), ("forget objects", A, [(NAME, 1)])]
    assert core.scheduler.tables.objects.bytes == 0


def test_a_reader_and_the_client_share_one_fetch(core):
    stored_one(core, U, W)
    core.feed(events.Goodbye(W, "a test"))
    core.take()
    submit(core, 2, 1, keep=events.KEEP_NO)
    assert core.take() == [asked(1)]
    fetch(core, 1)
    assert core.take() == []
    fetched(core, 1)
    kinds = {(each[0], each[1]) for each in core.take() if each[0] != "function"}
    assert kinds == {("dispatch", U), ("object", C), ("object", B)}
    assert core.scheduler.tables.objects.bytes == SIZE + len(FRAMES[0]) - 1, "a task reads the bytes here"


def test_a_reader_comes_while_the_client_waits_for_the_value(core):
    stored_one(core, U, W)
    core.feed(events.Goodbye(W, "a test"))
    core.take()
    fetch(core, 1)
    assert core.take() == [asked(1)]
    submit(core, 2, 1, keep=events.KEEP_NO)
    assert core.take() == []
    fetched(core, 1)
    assert {"dispatch", "object"} <= {each[0] for each in core.take()}


def test_the_client_learns_of_a_loss_before_its_readers_fail(core):
    stored_one(core, V, W)
    submit(core, 2, 1)
    submit(core, 3, 2, keep=events.KEEP_NO)
    core.take()
    core.feed(events.Goodbye(A, "a test"))
    messages = [each for each in core.take() if each[1] == C]
    assert messages[0] == lost(1)
    assert [(row[0], row[1]) for each in messages[1:] for row in each[2]] == [(2, LOST), (3, LOST)]


def test_a_value_that_is_lost_while_it_is_fetched(core):
    stored_one(core)
    fetch(core, 1)
    core.take()
    missing(core, 1)
    assert core.take() == [lost(1)]
    submit(core, 1)
    assert only(core, "dispatch")[0][2][0][:2] == (NAME, 1), "the client makes it again"


def test_a_host_agent_that_joins_again_is_asked_again(core):
    stored_one(core)
    fetch(core, 1)
    assert core.take() == [asked(1)]
    core.agent(b"agent again", AGENT)
    assert asked(1, agent=b"agent again") in core.take()


def test_a_retiring_host_is_not_asked_twice(core):
    stored_one(core)
    fetch(core, 1)
    core.take()
    core.feed(events.Heartbeat(A, 7, [], is_retiring=True))
    assert asked(1) not in core.take()
    fetched(core, 1)
    assert sent(1, *FRAMES) in core.take()
    assert core.scheduler.tables.objects.bytes > 0, "the scheduler keeps it: its host ends"


def test_a_client_that_leaves_frees_its_results(core):
    stored_one(core)
    fetch(core, 1)
    core.take()
    core.feed(events.Goodbye(C, "a test"))
    assert ("forget objects", A, [(NAME, 1)]) in core.take()
    fetched(core, 1)
    assert core.take() == []
