"""Kinds of functions: a function only goes to a worker that can run it. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import C2, MILLISECOND, W2, C, W, resolved, rows_of, submit_event, warnings_of

PICKLE, PRICE, SIZE = "cloudpickle 3.11", "named json price", "named raw size"


def client_with_both(core):
    """Function 1 is a pickle, function 2 is by name."""
    core.client(C, 11)
    core.function(C, 1, b"code", PICKLE)
    core.function(C, 2, b"", PRICE)


def test_each_function_goes_to_a_worker_that_can_run_it(core):
    client_with_both(core)
    core.worker(W, 22, kinds=[PRICE, SIZE])
    core.worker(W2, 23, kinds=[PICKLE])
    core.submit(C, [1], function=1)
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    core.submit(C, [2], function=2)
    assert core.take_dispatched(W) == [(11, 2, 1)]


def test_a_function_that_no_worker_can_run_does_not_block_others(core):
    client_with_both(core)
    core.worker(W, 22, kinds=[PICKLE])
    core.submit(C, [1, 2], function=2)
    core.submit(C, [3], function=1)
    assert core.take_dispatched(W) == [(11, 3, 1)]
    core.wait_for_hosts()
    assert warnings_of(core) == ["2 task(s) wait: no connected worker can run functions of kind named json price"]
    assert [route for route, _ in core.notices] == [C]  # its client is told as well
    core.wait(2)
    assert warnings_of(core) == []
    assert len(core.notices) == 1
    core.worker(W2, 23, kinds=[PRICE])
    assert core.take_dispatched(W2) == [(11, 1, 1)]
    core.results(W2, [(11, 1, 1)])
    assert core.take() == [("dispatch", W2, [(11, 2, 1, 2, b"")]), resolved(1)]


def test_the_notice_names_the_version_of_python(core):
    client_with_both(core)
    core.worker(W, 22, kinds=["cloudpickle 3.12"])
    core.submit(C, [1], function=1)
    core.wait_for_hosts()
    assert warnings_of(core) == [
        "1 task(s) wait: no connected worker has Python 3.11, as the program has; the workers have 3.12"
    ]


def test_the_notice_names_capabilities_and_kind(core):
    client_with_both(core)
    core.worker(W, 22, kinds=[PICKLE])
    core.worker(W2, 23, kinds=[PRICE])
    core.submit(C, [1], function=2, capabilities=frozenset([("gpu", 1)]))
    core.wait_for_hosts()
    has_gpu = "1 task(s) wait: no connected worker has gpu=1 (scaler_cluster --capabilities gpu=1)"
    assert warnings_of(core) == [has_gpu]
    core.function(C, 3, b"size", SIZE)
    core.submit(C, [2], function=3, capabilities=frozenset([("gpu", 1)]))
    core.wait(2)
    assert warnings_of(core) == [f"{has_gpu} and can run functions of kind named raw size"]


def test_one_submit_may_mix_kinds(core):
    """Some rows have payloads with a frame of their own. Each row goes once to a worker that can run it."""
    client_with_both(core)
    core.feed(submit_event(C, [1, 2, 3, 4], [1, 2, 1, 2], [b"a", b"bb", b"ccc", b"dddd"], [1, 2]))
    core.worker(W, 22, kinds=[PRICE])
    assert core.take()[-1] == ("dispatch", W, [(11, 2, 1, 2, b"bb")])
    core.worker(W2, 23, kinds=[PICKLE])
    assert core.take()[-1] == ("dispatch", W2, [(11, 1, 1, 1, b"a")])
    core.results(W, [(11, 2, 1)])
    core.results(W2, [(11, 1, 1)])
    sent = core.take()
    assert ("dispatch", W, [(11, 4, 1, 2, b"dddd")]) in sent
    assert ("dispatch", W2, [(11, 3, 1, 1, b"ccc")]) in sent
    core.results(W, [(11, 4, 1)])
    core.results(W2, [(11, 3, 1)])
    assert core.take() == [resolved(4), resolved(3)]
    assert core.tables()["waiting"] == 0


def test_rows_of_mixed_kinds_are_cancelled_and_come_again_like_others(core):
    client_with_both(core)
    again = submit_event(C, [1, 2, 3], [1, 2, 1], [b"", b"", b""], [])
    core.feed(again)
    core.cancel(C, 2)
    assert core.take() == [resolved(2, outcome=6)]
    core.feed(submit_event(C, [1, 2, 3], [1, 2, 1], [b"", b"", b""], []))
    assert core.tables()["waiting"] == 2  # the answer of the second task is on its way
    core.received(C, 0)
    core.feed(submit_event(C, [1, 2, 3], [1, 2, 1], [b"", b"", b""], []))
    assert core.tables()["waiting"] == 3
    core.goodbye(C)
    assert core.tables()["waiting"] == core.tables()["ranks"] == 0


def test_a_worker_without_kinds_is_sent_all_functions(core):
    client_with_both(core)
    core.worker(W, 22)
    core.feed(submit_event(C, [1, 2], [1, 2], [b"", b""], []))
    assert len(core.take_dispatched(W)) == 1
    core.results(W, [(11, 1, 1)])
    assert rows_of(core) == [(11, 2, 1)]


def test_kinds_may_change_with_the_next_hello(core):
    client_with_both(core)
    core.worker(W, 22, kinds=[PICKLE])
    core.submit(C, [1], function=2)
    assert core.take() == []
    core.worker(W, 22, kinds=[PICKLE, PRICE])
    assert core.take_dispatched(W) == [(11, 1, 1)]


def test_tasks_are_not_retracted_for_idle_workers_that_cannot_run_them(core):
    """The tasks behind a long one are of a kind that the idle worker can't run."""
    client_with_both(core)
    core.worker(W, 22, kinds=[PRICE])
    core.submit(C, [1], function=2)
    core.take()
    core.results(W, [(11, 1, 1)])
    core.submit(C, [2, 3, 4], function=2)
    rows = rows_of(core)
    assert [row[1] for row in rows] == [2, 3, 4]
    core.worker(W2, 23, kinds=[PICKLE])
    core.started(W, rows[0])
    assert core.take() == [("started", C, [2])]
    core.worker(b"worker 3", 24, kinds=[PRICE])
    retracts = [sent for sent in core.take() if sent[0] == "retract"]
    assert retracts == [("retract", W, [rows[2], rows[1]])]


def test_the_only_idle_worker_that_can_run_the_task_is_chosen(core):
    core.client(C2, 12)
    core.function(C2, 1, b"", PRICE)
    for number in range(20):
        core.worker(b"worker %d" % number, 100 + number, kinds=[PRICE if number == 7 else PICKLE])
    core.submit(C2, [1])
    assert core.take_dispatched(b"worker 7") == [(12, 1, 1)]
    core.results(b"worker 7", [(12, 1, 1)], 50 * MILLISECOND)
    assert core.take() == [resolved(1, route=C2)]


def test_two_functions_with_one_name_and_two_codecs(core):
    """The decoder's digest distinguishes them; in this test their bytes do."""
    core.client(C, 11)
    core.worker(W, 22, kinds=[PRICE])
    core.function(C, 1, b"by json", PRICE)
    core.function(C, 2, b"by msgpack", "named msgpack price")
    core.feed(submit_event(C, [1, 2], [2, 1], [b"", b""], []))
    assert core.take_dispatched(W) == [(11, 2, 1)]
    core.forget(C, *array("I", [1, 2]))
    core.cancel(C, 1)
    assert core.take() == [resolved(1, outcome=6)]
