"""A task's way through the core: submit, dispatch, results. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import C2, VALUE, W2, A, C, W, joined, submit_event

from scaler_scheduler.core import effects, events


def test_one_task(core):
    number = joined(core)
    core.submit(C, [5], body=b"argument")
    assert core.take() == [("function", W, 1, b"f"), ("dispatch", W, [(number, 5, 1, 1, b"argument")])]
    core.started(W, (number, 5, 1))
    assert core.take() == [("started", C, [5])]
    core.results(W, [(number, 5, 1)], body=b"value")
    assert core.take() == [("resolved", C, [(5, VALUE, b"value")])]
    assert core.scheduler.counts.resolved == 1
    assert core.tables()["dispatched"] == core.tables()["waiting"] == 0


def test_every_outcome_of_a_worker_goes_to_the_client_unchanged(core):
    number = joined(core)
    for outcome in range(effects.WORKER_OUTCOMES - 1):  # the last outcome, retryable, is not for clients
        core.submit(C, [outcome])
        core.take()
        core.results(W, [(number, outcome, 1)], outcome=outcome, body=b"%d" % outcome)
        assert core.take() == [("resolved", C, [(outcome, outcome, b"%d" % outcome)])]


def test_tasks_wait_for_the_first_worker(core):
    number = core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2], body=b"x")
    assert core.tables()["waiting"] == 2
    assert core.take() == []
    core.worker(W, 22)
    assert core.take_dispatched(W) == [(number, 1, 1)]


def test_payloads_of_all_kinds_stay_with_their_tasks(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    bodies = [b"a", b"L" * 100, b"", b"M", b"cc", b"dddd"]
    core.feed(submit_event(C, [1, 2, 3, 4, 5, 6], [2], bodies, [1, 3]))
    (sent,) = core.take()
    assert sent == ("dispatch", W, [(number, task_id, 1, 2, body) for task_id, body in enumerate(bodies, 1)])
    # Answers for other tasks too, out of order, with late ones in between.
    ids, answers = [6, 2, 99, 1, 4], [b"six", b"", b"late", b"one", b""]
    large = {1: b"TWO" * 50, 4: b"FOUR"}
    count = len(ids)
    core.feed(
        events.Results(
            W, array("q", [number] * count), array("q", ids), array("I", [1] * count), array("B", [0] * count),
            array("q", [1000] * count), array("I", [len(answer) for answer in answers]), b"".join(answers), large,
        )
    )  # fmt: skip
    assert core.take() == [("resolved", C, [(6, 0, b"six"), (2, 0, b"TWO" * 50), (1, 0, b"one"), (4, 0, b"FOUR")])]
    assert core.scheduler.counts.late_results == 1
    core.died(A, 22)  # the other tasks are sent again, with their payloads
    core.worker(W2, 23)
    assert [sent for sent in core.take() if sent[0] == "dispatch"] == [
        ("dispatch", W2, [(number, 3, 2, 2, b""), (number, 5, 2, 2, b"cc")])
    ]


def test_requeued_large_payloads(core):
    number = joined(core)
    core.submit(C, [1], body=b"L" * 1000, large=[0])
    core.take()
    core.died(A, 22)
    core.worker(W2, 23)
    assert core.take()[-1] == ("dispatch", W2, [(number, 1, 2, 1, b"L" * 1000)])


def test_answers_for_several_clients_in_one_message(core):
    first = joined(core)
    second = core.client(C2, 12)
    core.function(C2, 9, b"f")
    core.teach(C, W, 2, b"g", 1000, 0)
    core.submit(C, [1, 2], 2)
    core.function(C2, 8, b"g")
    core.submit(C2, [1, 2], 8)
    rows = [(first, 1, 1), (second, 1, 1), (first, 2, 1), (second, 2, 1)]
    assert sorted(core.take_dispatched(W)) == sorted(rows)
    sizes = [1, 2, 3, 4]
    core.feed(
        events.Results(
            W, array("q", [row[0] for row in rows]), array("q", [row[1] for row in rows]), array("I", [1] * 4),
            array("B", [0, 1, 2, 3]), array("q", [1] * 4), array("I", sizes), b"abbcccdddd", {},
        )
    )  # fmt: skip
    assert core.take() == [
        ("resolved", C, [(1, 0, b"a"), (2, 2, b"ccc")]),
        ("resolved", C2, [(1, 1, b"bb"), (2, 3, b"dddd")]),
    ]


def test_late_results(core):
    number = joined(core)
    core.worker(W2, 23)
    core.submit(C, [1])
    (row,) = core.take_dispatched(W2)
    core.results(W, [row])  # of a worker that does not hold the task
    core.results(W2, [(number, 1, 2)])  # of an attempt that does not exist
    core.results(W2, [(number, 2, 1)])  # of an unknown task
    core.results(W2, [(99, 1, 1)])  # of an unknown client
    assert core.take() == []
    assert core.scheduler.counts.late_results == 4
    core.results(W2, [row, row])
    assert core.take() == [("resolved", C, [(1, 0, b"")])]
    assert core.scheduler.counts.late_results == 5


def test_started_messages_for_unknown_tasks(core):
    number = joined(core)
    core.worker(W2, 23)
    core.submit(C, [1])
    core.take_dispatched(W2)
    core.started(W, (number, 1, 1))
    core.started(W2, (number, 1, 2), (number, 2, 1), (99, 1, 1))
    assert core.take() == []
    core.started(W2, (number, 1, 1))
    core.started(W2, (number, 1, 1))
    assert core.take() == [("started", C, [1])] * 2


def test_known_rows_of_a_repeated_submit_are_dropped(core):
    number = joined(core)
    core.feed(submit_event(C, [1, 2, 3], [1], [b"a", b"bb", b"L"], [2]))
    core.take()
    core.feed(submit_event(C, [2, 3, 4], [1], [b"bb", b"L", b"d"], [1]))
    assert core.tables()["waiting"] == 3
    core.results(W, [(number, 1, 1)], 1000)
    rows = [row for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]
    assert [(row[1], row[4]) for row in rows] == [(2, b"bb"), (3, b"L"), (4, b"d")]
