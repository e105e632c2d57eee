"""Quotas of one peer. A peer that exceeds a quota gets one error that names the limit. This has no effect on other
peers."""

from __future__ import annotations

from array import array
from typing import Any

from tests.scheduler.core.harness import C2, A, C, Core, Sent, W, joined, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.limits import Limits
from scaler_scheduler.core.peers import quotas

MEGABYTE = 1 << 20


def core_with(**limits: Any) -> Core:
    return Core(Limits(**limits))


def the_error(core: Core, route: bytes) -> str:
    """The text of the one error that was sent to this connection. No other message may have been sent."""
    [(kind, to, text)] = core.take()
    assert (kind, to) == ("error", route)
    return str(text)


def credits_of(sent: list[Sent]) -> list[int]:
    return [each[2] for each in sent if each[0] == "credit"]


def test_too_many_rows_in_a_submit():
    core = core_with(batch_rows=10)
    joined(core)
    core.submit(C, range(10))
    core.take()
    core.submit(C, range(20, 31))
    assert the_error(core, C) == "a batch of 11 rows exceeds the limit of 10 (--batch-limit)"
    assert core.scheduler.counts.rejected_messages == 1
    assert core.scheduler.tables.clients.by_route[C].highest_id == 9


def test_too_many_rows_of_results_and_cancels():
    core = core_with(batch_rows=2)
    joined(core)
    core.submit(C, [1, 2])
    core.results(W, core.take_dispatched(W) * 3)
    assert the_error(core, W) == "a batch of 3 rows exceeds the limit of 2 (--batch-limit)"
    core.cancel(C, 5, 6, 7)
    assert the_error(core, C) == "a batch of 3 rows exceeds the limit of 2 (--batch-limit)"


def test_a_submit_far_beyond_the_credit_is_rejected():
    core = core_with(memory_limit_bytes=MEGABYTE)
    core.client(C, 11)
    core.function(C, 1, b"f")
    taken = task_id = 0
    while not core.take():
        core.submit(C, [task_id], body=bytes(4 * MEGABYTE))
        task_id += 1
        taken += 4 * MEGABYTE + 128
    most = core.welcomes[C].credit + quotas.SUBMIT_EXCESS_BYTES
    assert most < taken < most + 16 * MEGABYTE
    core.submit(C, [task_id])
    expected = f"tasks {task_id} to {task_id} are rejected: they are beyond the client's credit of "
    assert the_error(core, C).startswith(expected)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    waiting = core.scheduler.counts.waiting
    core.submit(C2, [1])
    assert core.scheduler.counts.waiting == waiting + 1, "another client is not touched"


def test_resubmitted_tasks_are_accepted_with_any_credit():
    core = core_with(memory_limit_bytes=MEGABYTE)
    joined(core)
    core.submit(C, [1])
    core.results(W, core.take_dispatched(W))
    client = core.scheduler.tables.clients.by_route[C]
    client.submitted_bytes = client.granted_bytes + 100 * quotas.SUBMIT_EXCESS_BYTES
    core.take()
    core.received(C, 0)
    core.submit(C, [1])
    assert [sent[0] for sent in core.take()] == ["dispatch"]


def test_a_nested_client_has_a_limit_too():
    core = core_with(memory_limit_bytes=MEGABYTE)
    joined(core)
    core.client(C2, 12, worker=22)
    core.function(C2, 1, b"f")
    client = core.scheduler.tables.clients.by_route[C2]
    client.submitted_bytes = quotas.NESTED_FACTOR * quotas.SUBMIT_EXCESS_BYTES
    core.submit(C2, [1])
    core.take()
    client.submitted_bytes += 1 << 30
    core.submit(C2, [2])
    assert the_error(core, C2).startswith("tasks 2 to 2 are rejected: they are beyond")


def test_at_the_task_limit_credit_is_granted_as_tasks_end():
    core = core_with(client_tasks=1000, memory_limit_bytes=1 << 30)
    core.client(C, 11)
    core.function(C, 1, b"f")
    credit = core.welcomes[C].credit
    assert credit == 1000 * 128
    core.submit(C, range(1000))
    core.cancel(C, *range(100))
    assert credits_of(core.take()) == []
    core.cancel(C, *range(100, 400))
    assert credits_of(core.take()) == [credit + 400 * 128]
    core.submit(C, range(1000, 1400))
    core.take()
    core.cancel(C, *range(400, 600))
    assert credits_of(core.take()) == []
    core.cancel(C, *range(600, 800))
    assert credits_of(core.take()) == [credit + 800 * 128]


def test_tasks_far_beyond_the_task_limit_are_rejected():
    core = core_with(client_tasks=10, batch_rows=10)
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, range(10))
    core.submit(C, range(10, 20))
    assert core.take() == []
    core.submit(C, range(20, 30))
    assert the_error(core, C) == "tasks 20 to 29 are rejected: a client may have 10 open tasks (--client-task-limit)"
    assert list(core.errors[-1].tasks) == list(range(20, 30))
    assert core.scheduler.counts.waiting == 20


def test_too_many_objects():
    core = core_with(client_objects=2)
    joined(core)
    for object_id in (1, 2):
        core.feed(events.Object(C, object_id, "", [b"abc"]))
    core.take()
    core.feed(events.Object(C, 2, "", [b"abc"]))  # it exists already
    assert core.take() == []
    core.feed(events.Object(C, 3, "", [b"abc"]))
    assert the_error(core, C) == "object 3 is rejected: a client may have 2 objects (--client-object-limit)"
    core.feed(events.Object(C, 5, "prices", [b"abc"]))
    assert the_error(core, C).startswith("object prices (5) is rejected: ")
    core.feed(events.ForgetObjects(C, array("q", [1])), events.Object(C, 4, "", [b"abc"]))
    assert core.take() == []


def test_of_several_objects_in_one_message_some_may_be_too_many():
    core = core_with(client_objects=2)
    joined(core)
    core.feed(events.Objects(C, array("q", [1, 2, 3, 4]), [b"abc"] * 4))
    assert the_error(core, C) == "object 3 is rejected: a client may have 2 objects (--client-object-limit)"
    assert core.tables()["objects"] == 2


def test_objects_of_one_client_that_are_too_large():
    core = core_with(client_object_bytes=1000)
    joined(core)
    core.feed(events.Object(C, 1, "", [bytes(500)]))
    core.take()
    core.feed(events.Object(C, 2, "", [bytes(501)]))
    assert the_error(core, C) == (
        "object 2 is rejected: its 501 bytes would take the client's objects over 1000 bytes "
        "(--client-object-size-limit)"
    )
    event = submit_event(C, [3], [1], [b""], ())
    event.inputs, event.input_counts = array("q", [2]), array("I", [1])
    core.feed(event)
    [(kind, _, [(task_id, outcome, _)])] = core.take()
    assert (kind, task_id, outcome) == ("resolved", 3, 9), "its readers fail because it does not exist"


def test_too_many_functions():
    core = core_with(client_functions=2)
    joined(core)
    core.function(C, 2, b"g")
    core.function(C, 1, b"f")  # it exists already
    assert core.take() == []
    core.function(C, 3, b"h")
    most = "a client may have 2 functions at one time (--client-function-limit); a new client begins with none"
    assert the_error(core, C) == f"function function 3 is rejected: {most}"
    core.submit(C, [1, 2], 3)
    assert the_error(core, C) == f"function function 3 is rejected: {most}", "the error has its name"
    assert core.errors[-1].tasks == [1, 2]
    core.submit(C, [3], 4)
    assert the_error(core, C) == f"function 4 is rejected: {most}"
    core.forget(C, 2)
    core.function(C, 3, b"h")
    assert core.take() == []


def test_some_names_of_rejected_functions_are_kept():
    core = core_with(client_functions=1)
    joined(core)
    for number in range(2, 3 * quotas.REMEMBERED_FUNCTIONS):
        core.function(C, number, b"%d" % number)
    assert len(core.scheduler.tables.clients.by_route[C].rejected_functions) <= quotas.REMEMBERED_FUNCTIONS
    core.take()


def test_too_many_peers():
    core = core_with(peers=3)
    joined(core)
    core.hello(b"fourth", events.CLIENT, 13)
    assert the_error(core, b"fourth") == "there are 3 peers already, the most that this scheduler serves (--peer-limit)"
    core.worker(b"worker, again", 22, agent=33)
    core.client(b"client, again", 11)
    core.goodbye(b"client, again")
    core.client(b"fourth", 13)
    assert core.agent(A, 33) == 33


def test_too_many_hellos_in_a_second():
    core = core_with(hellos_a_second=3)
    joined(core)
    core.hello(C, events.CLIENT, 11)
    assert the_error(core, C) == "more than 3 hellos in a second (--hello-rate-limit): send the hello again"
    core.wait(1)
    core.client(C, 11)


def test_texts_for_a_limit_of_one():
    core = core_with(peers=1)
    core.client(C, 11)
    core.hello(C2, events.CLIENT, 12)
    assert the_error(core, C2) == "there is 1 peer already, the most that this scheduler serves (--peer-limit)"
    core = core_with(hellos_a_second=1)
    core.client(C, 11)
    core.hello(C2, events.CLIENT, 12)
    assert the_error(core, C2) == "more than 1 hello in a second (--hello-rate-limit): send the hello again"


def test_a_million_tasks_of_one_client_and_a_thousand_workers_at_once_are_within_the_limits():
    core = core_with()
    joined(core)
    # Without the harness, because it recounts all tables after each event.
    for number in range(1000):
        who = (100 + number, 33, "", "", "host", 1, "")
        core.scheduler.handle(events.Hello(b"w%d" % number, 1, events.WORKER, *who), core.now)
    for first in range(0, 1_000_000, 4096):
        core.scheduler.handle(submit_event(C, range(first, first + 4096), [1], [b"x" * 10] * 4096, ()), core.now)
    kinds = [effect.kind for effect in core.scheduler.collect()]
    assert core.scheduler.counts.rejected_messages == 0
    assert kinds.count(effects.WELCOME) == 1000 and effects.ERROR not in kinds
    assert core.scheduler.counts.waiting + core.scheduler.counts.dispatched == 245 * 4096
