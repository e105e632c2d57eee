"""Functions are sent once and forgotten when no client holds them. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import C2, W2, C, W, joined, submit_event

from scaler_scheduler.core import events
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD


def test_a_function_goes_once_to_each_worker_for_all_clients(core):
    first = joined(core)
    core.worker(W2, 23)
    second = core.client(C2, 12)
    core.function(C2, 40, b"f")
    core.submit(C, [1, 2])
    functions = [sent for sent in core.take() if sent[0] == "function"]
    assert sorted(functions) == [("function", W, 1, b"f"), ("function", W2, 1, b"f")]
    for route in (W, W2):
        for client in (first, second):
            core.results(route, [(client, 1, 1), (client, 2, 1)])
    core.take()
    core.submit(C2, [1, 2], 40)
    assert {sent[0] for sent in core.take()} == {"dispatch"}
    assert core.tables()["functions"] == 1


def test_an_unused_function_is_forgotten(core):
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    core.take()
    core.client(C2, 12)
    core.function(C2, 5, b"f")
    core.forget(C, 1)
    assert core.take() == []
    core.forget(C2, 5, 5, 6)
    assert core.take() == [("forget", W, [1])]
    assert core.tables()["functions"] == 0
    core.submit(C, [2])
    assert core.take() == [("error", C, "submit names function 1, which this client has not sent")]
    core.function(C, 1, b"f")
    core.submit(C, [2])
    assert core.take()[0] == ("function", W, 2, b"f")


def test_a_function_forgotten_while_tasks_wait_stays_for_them(core):
    number = joined(core)
    core.submit(C, [1, 2], body=b"x")
    core.take()
    core.forget(C, 1)
    core.function(C, 1, b"another")  # the number is free for another one
    assert core.take() == []
    core.results(W, [(number, 1, 1)])
    assert core.take() == [("dispatch", W, [(number, 2, 1, 1, b"x")]), ("resolved", C, [(1, 0, b"")])]
    core.results(W, [(number, 2, 1)])
    assert core.take() == [("forget", W, [1]), ("resolved", C, [(2, 0, b"")])]


def test_a_function_with_two_numbers_is_forgotten_once(core):
    joined(core)
    core.function(C, 2, b"f")
    core.submit(C, [1], 2)
    core.results(W, core.take_dispatched(W))
    core.take()
    core.goodbye(C)
    assert core.take() == [("forget", W, [1])]


def test_a_function_dropped_and_used_again_in_one_turn(core):
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    core.take()
    again = events.Function(C, 1, "f", "cloudpickle", b"digest of f", b"f")
    core.feed(events.ForgetFunctions(C, array("I", [1])), again)
    assert core.take() == []
    core.feed(events.ForgetFunctions(C, array("I", [1])), again, events.ForgetFunctions(C, array("I", [1])))
    assert core.take() == [("forget", W, [1])]


def test_a_function_number_that_names_another_function(core):
    joined(core)
    core.function(C, 1, b"f")  # the same function again is accepted
    core.function(C, 1, b"another")
    assert core.take() == [("error", C, "function number 1 already names another function")]


def test_a_submit_with_an_unknown_function_is_accepted_in_part(core):
    number = joined(core)
    core.feed(submit_event(C, [1, 2, 4, 5], [7, 1, 7, 1], [b"a", b"bc", b"d" * 9, b"e"], [2]))
    sent = core.take()
    assert sent[0] == ("error", C, "submit names function 7, which this client has not sent")
    assert core.errors[-1].tasks == [1, 4]
    assert sent[2:] == [("dispatch", W, [(number, 2, 1, 1, b"bc")])]
    core.results(W, [(number, 2, 1)])
    assert core.take()[0] == ("dispatch", W, [(number, 5, 1, 1, b"e")])
    client = core.scheduler.tables.clients.by_route[C]
    assert client.returned_bytes == 1 + 2 + 9 + 3 * TASK_OVERHEAD, "rejected rows do not count"


def test_a_graph_with_an_unknown_function_is_rejected(core):
    joined(core)
    event = submit_event(C, [1, 2], [1, 7], [b"", b""], [])
    event.inputs, event.input_counts = array("q", [1]), array("I", [0, 1])
    core.feed(event)
    assert core.take() == [("error", C, "submit names function 7, which this client has not sent")]
    assert core.errors[-1].tasks == [1, 2]
    assert core.tables()["waiting"] == 0


def test_mixed_functions_in_one_batch(core):
    number = joined(core)
    core.teach(C, W, 2, b"g", 1000, 0)
    core.teach(C, W, 3, b"h", 1000, 1)
    core.feed(submit_event(C, [10, 11, 12, 13], [2, 2, 3, 2], [b"a", b"", b"cc", b"d"], [3]))
    (sent,) = core.take()
    expected = [(10, 2, b"a"), (11, 2, b""), (12, 3, b"cc"), (13, 2, b"d")]
    functions = {2: 2, 3: 3}
    assert sent[:2] == ("dispatch", W)
    assert [(row[1], functions[row[3]], row[4]) for row in sent[2]] == expected
    core.forget(C, 2, 3)
    core.results(W, [(number, 10, 1), (number, 11, 1), (number, 13, 1)])
    assert core.take() == [("forget", W, [2]), ("resolved", C, [(task_id, 0, b"") for task_id in (10, 11, 13)])]
    core.results(W, [(number, 12, 1)])
    assert core.take() == [("forget", W, [3]), ("resolved", C, [(12, 0, b"")])]
