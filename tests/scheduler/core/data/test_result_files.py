"""Results that a worker has written into the directory of its client. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_results_of_earlier_tasks import NAME, C, W, forget, joined, read, run, sent

from scaler_scheduler.core import effects, events

FILE = effects.OUTCOME_FILE
SIZE = 1 << 20
BODY = (1 << 48 | 1).to_bytes(8, "little") + SIZE.to_bytes(8, "little")
KEEP = effects.FLAG_STORE_SMALL
"""The flag of a kept result that must be no file of the client."""


def test_the_client_is_told_and_has_to_acknowledge_the_file(core):
    joined(core)
    core.submit(C, [1], 1)
    core.take()
    run(core, 1, BODY, FILE)
    assert sent(core) == [("resolved", C, [(1, FILE, BODY)])]
    client = core.scheduler.tables.clients.find(NAME)
    assert client.sent_bytes == len(BODY) + SIZE and not client.tasks
    counts = core.scheduler.tables.counts
    assert counts.resolved == counts.by_outcome()[effects.OUTCOME_VALUE] == 1
    assert not counts.by_outcome()[FILE]


def test_a_result_whose_reader_comes_while_its_task_runs_is_asked_of_the_client(core):
    joined(core)
    core.submit(C, [1], 1)
    core.take()
    read(core, 2, 1)
    run(core, 1, BODY, FILE)
    assert sent(core) == [("resolved", C, [(1, FILE, BODY)]), ("fetch objects", C, [(NAME, 1)])]
    core.feed(events.Object(C, 1, "", [b"one"], 0))
    assert sent(core) == [("dispatch", W, [(NAME, 2, 1, 1, b"xone")])]
    run(core, 2, b"two")
    assert sent(core) == [("resolved", C, [(2, 0, b"two")])]
    forget(core, 1)
    assert core.tables()["objects"] == 0


def test_nobody_asks_for_a_result_that_nobody_reads_any_more(core):
    joined(core)
    core.submit(C, [1], 1)
    read(core, 2, 1)
    core.feed(events.Cancel(C, array("q", [2]), False))
    forget(core, 1)
    sent(core)
    run(core, 1, BODY, FILE)
    assert sent(core) == [("resolved", C, [(1, FILE, BODY)])]
    assert core.tables()["objects"] == 0


@pytest.mark.parametrize("keep", [1, 2])
def test_workers_write_no_such_file_of_a_result_that_other_tasks_read(core, keep):
    joined(core)
    read(core, 1, keep=[keep])
    (dispatch,) = (each for each in sent(core) if each[0] == "dispatch")
    ((_, flags),) = dispatch[3].items() if isinstance(dispatch[3], dict) else [(0, dispatch[3][0][0])]
    assert (flags[0] if isinstance(flags, tuple) else flags) & KEEP


def test_a_kept_result_that_is_such_a_file_is_made_again(core):
    """It was dispatched by an earlier scheduler, for which it was no kept result."""
    joined(core)
    read(core, 1, keep=[1])
    sent(core)
    run(core, 1, BODY, FILE)
    assert [each[0] for each in sent(core)] == ["dispatch"]
    run(core, 1, b"one", attempt=2)
    assert [each[0] for each in sent(core)] == ["resolved"]


def test_a_task_that_has_ignored_its_stop_has_failed(core):
    joined(core)
    core.submit(C, [1], 1, timeout_seconds=1.0)
    core.take()
    core.started(W, (NAME, 1, 1))
    core.wait(1.5)
    core.take()
    core.results(W, [(NAME, 1, 1)], 2_000_000_000, FILE, BODY)
    ((_, _, rows),) = (each for each in core.take() if each[0] == "resolved")
    assert rows[0][1] != FILE
