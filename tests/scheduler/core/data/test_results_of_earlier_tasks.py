"""Tasks that read the results of tasks that were submitted before. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import effects, events

C, W = b"client", b"worker 1"
NAME = 11
LOST, CANCELLED, EXCEPTION = effects.OUTCOME_INPUT_LOST, effects.OUTCOME_CANCELLED, 1


def joined(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.worker(W, 21)


def read(core, task_id, *inputs, keep_earlier=None, keep=()):
    """Submit a task that reads results of earlier tasks."""
    event = submit_event(C, [task_id], [1], [b"x"], ())
    event.inputs = array("q", inputs)
    event.input_counts = array("I", [len(inputs)])
    event.keep = array("B", keep)
    event.keep_earlier = array("q", inputs if keep_earlier is None else keep_earlier)
    core.feed(event)


def forget(core, *ids):
    core.feed(events.ForgetObjects(C, array("q", ids)))


def run(core, task_id, body=b"", outcome=0, attempt=1):
    core.results(W, [(NAME, task_id, attempt)], body=body, outcome=outcome)


def sent(core):
    return [each for each in core.take() if each[0] != "function"]


def resolved(*rows):
    return ("resolved", C, [(task_id, outcome, body) for task_id, outcome, body in rows])


def test_a_running_task_gets_a_reader(core):
    joined(core)
    core.submit(C, [1], 1)
    core.take()
    read(core, 2, 1)
    assert not sent(core)
    run(core, 1, b"one")
    assert sent(core) == [("dispatch", W, [(NAME, 2, 1, 1, b"xone")]), resolved((1, 0, b"one"))]
    run(core, 2, b"two")
    assert sent(core) == [resolved((2, 0, b"two"))]
    assert core.tables()["objects"] == 1
    forget(core, 1)
    assert core.tables()["objects"] == 0 and not sent(core)


def test_several_results_of_tasks_that_have_ended_come_in_one_message(core):
    joined(core)
    core.submit(C, [1, 2], 1)
    run(core, 1, b"one")
    run(core, 2, b"two")
    core.take()
    read(core, 3, 1, 2)
    assert sent(core) == [("fetch objects", C, [(NAME, 1), (NAME, 2)])]
    core.feed(events.Objects(C, array("q", [1, 2]), [b"one", b"two"]))
    assert sent(core) == [("dispatch", W, [(NAME, 3, 1, 1, b"xonetwo")])]
    forget(core, 1, 2)
    run(core, 3)
    assert sent(core) == [resolved((3, 0, b""))]
    assert core.tables()["objects"] == 0


def test_a_task_that_waits_in_a_batch_gets_a_reader(core):
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2, 3], 1)
    read(core, 4, 2)
    assert core.tables()["objects"] == 1
    core.worker(W, 21)
    for task_id in (2, 1, 3):
        run(core, task_id, b"%d" % task_id)
    run(core, 4, b"four")
    answers = [row[0] for each in sent(core) if each[0] == "resolved" for row in each[2]]
    assert sorted(answers) == [1, 2, 3, 4]
    forget(core, 2)
    assert core.tables()["objects"] == 0


def test_the_client_is_asked_for_a_result_that_it_has(core):
    joined(core)
    core.submit(C, [1], 1)
    run(core, 1, b"one")
    core.take()
    read(core, 2, 1)
    read(core, 3, 1)
    assert sent(core) == [("fetch objects", C, [(NAME, 1)])]
    core.feed(events.Object(C, 1, "f", [b"one"]))
    assert sent(core) == [("dispatch", W, [(NAME, 2, 1, 1, b"xone"), (NAME, 3, 1, 1, b"xone")])]
    forget(core, 1)
    run(core, 2)
    run(core, 3)
    core.take()
    assert core.tables()["objects"] == 0


def test_a_result_that_the_client_does_not_have(core):
    joined(core)
    read(core, 2, 1)
    read(core, 3, 2)
    core.take()
    forget(core, 1)
    text = b"function 1: result 1, which it reads, does not exist"
    assert sent(core) == [resolved((2, LOST, text), (3, LOST, text))]
    assert core.tables()["objects"] == 0


def test_a_result_is_awaited_and_its_task_is_submitted_again(core):
    """The client has lost its connection, and the answer with it."""
    joined(core)
    read(core, 2, 1)
    core.take()
    event = submit_event(C, [1], [1], [b"x"], ())
    event.keep = array("B", [events.KEEP_BOTH])
    core.feed(event)
    run(core, 1, b"one")
    assert [each[0] for each in sent(core)] == ["dispatch", "dispatch", "resolved"]
    run(core, 2)
    forget(core, 1)
    core.take()
    assert core.tables()["objects"] == 0


def test_readers_fail_with_the_task_and_leave_it_alone_when_cancelled(core):
    joined(core)
    core.submit(C, [1], 1)
    core.take()
    read(core, 3, 1)
    read(core, 4, 1)
    core.cancel(C, 4)
    assert sent(core) == [resolved((4, CANCELLED, b""))]
    run(core, 1, b"oh", outcome=EXCEPTION)
    assert sent(core) == [resolved((3, EXCEPTION, b"oh"), (1, EXCEPTION, b"oh"))]
    assert core.tables()["objects"] == 0


def test_the_client_leaves_while_a_result_is_awaited(core):
    joined(core)
    read(core, 2, 1)
    core.take()
    core.goodbye(C)
    assert core.tables()["objects"] == 0


def test_a_client_that_joins_again_is_asked_again_for_awaited_results(core):
    """Its answer, that there is no such result, was lost with the connection."""
    joined(core)
    read(core, 2, 1)
    assert sent(core) == [("fetch objects", C, [(NAME, 1)])]
    again = b"client again"
    core.client(again, NAME)
    assert sent(core) == [("fetch objects", again, [(NAME, 1)])]
    core.feed(events.ForgetObjects(again, array("q", [1])))
    (answer,) = sent(core)
    assert answer[:2] == ("resolved", again) and answer[2][0][:2] == (2, LOST)
    assert core.tables()["objects"] == 0
