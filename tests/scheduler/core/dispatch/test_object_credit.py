"""Objects that a client holds for long must neither delay its tasks nor fill the scheduler's memory.

Runs under PyPy and CPython.
"""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import C2, C, W, joined

from scaler_scheduler.core import events
from scaler_scheduler.core.dispatch.credit import TASK_OVERHEAD

WINDOW = 1 << 20
LIMIT = 8 * WINDOW

QUARTER = bytes(WINDOW // 4 - TASK_OVERHEAD)


@pytest.fixture
def core(make_core):
    core = make_core(memory_limit_bytes=LIMIT)
    joined(core)
    core.take()
    return core


def send(core, object_id, data=QUARTER, route=C):
    core.feed(events.Object(route, object_id, "", [data]))


def forget(core, *ids):
    core.feed(events.ForgetObjects(C, array("q", ids)))


def granted(core):
    """The newest credit, in bytes beyond the window of the welcome. No other message may have been sent."""
    sent = core.take()
    assert {each[0] for each in sent} <= {"credit"}, sent
    return sent[-1][2] - WINDOW if sent else None


def test_held_objects_leave_credit_for_tasks(core):
    send(core, 101)
    assert granted(core) == WINDOW // 4
    for number in range(102, 112):
        send(core, number)
    assert granted(core) == 11 * WINDOW // 4, "no task could end and free memory"
    forget(core, *range(101, 112))
    assert granted(core) is None, "it was granted before"
    send(core, 112)
    assert granted(core) == 12 * WINDOW // 4


def test_with_open_tasks_a_window_of_objects_does_not_count(core):
    core.submit(C, [1])
    (row,) = core.take_dispatched(W)
    for number in range(101, 109):
        send(core, number)
    assert granted(core) == WINDOW, "the rest may be returned when the task ends"
    core.results(W, [row])
    credits = [each[2] for each in core.take() if each[0] == "credit"]
    assert credits == [WINDOW + 2 * WINDOW + TASK_OVERHEAD]


def test_a_client_that_joins_again_holds_its_objects(core):
    for number in range(101, 106):
        send(core, number)
    core.client(C, 11)
    core.take()
    send(core, 101)
    assert granted(core) == 5 * WINDOW // 4


def test_objects_are_bounded_by_the_memory_limit(core):
    core.client(C2, 12)
    for number in range(101, 119):
        send(core, number)
        send(core, number, route=C2)
    errors = [each for each in core.take() if each[0] == "error"]
    assert [each[1] for each in errors] == [C, C2, C, C2]
    size = len(QUARTER)
    text = f"its {size} bytes would take all objects over the scheduler's memory limit of {LIMIT} bytes"
    assert errors[0][2] == f"object 117 is rejected: {text} (--memory-limit)"
    client = core.scheduler.tables.clients.find(11)
    assert client.returned_bytes == 2 * (size + TASK_OVERHEAD), "rejected objects do not count"
    forget(core, 101)
    send(core, 119)
    send(core, 119)
    assert all(each[0] == "credit" for each in core.take())
