"""The history of tasks, as monitors read it. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from tests.scheduler.core.harness import W2, A, C, Core, W, joined, results_event, running, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.lines import TRACEBACK_BYTES
from scaler_scheduler.core.report.story import story, story_tracebacks
from scaler_scheduler.core.state import history, history_rows
from scaler_scheduler.core.state.history import DISPATCHED, ENDED, REATTACHED, RETURNED, STARTED, SUBMITTED
from scaler_scheduler.core.state.timers import Clock
from scaler_scheduler.core.state.tracebacks import Tracebacks

Row = tuple[int, int, int, int, str, int, int]
"""Kind, client, id, attempt, name, worker, outcome."""


def rows_of(runs: list[history_rows.Rows]) -> list[Row]:
    rows: list[Row] = []
    for run in runs:
        count = len(run.ids)
        for row, task_id in enumerate(run.ids):

            def of(column: Any, row: int = row, count: int = count) -> Any:
                assert len(column) in (1, count)
                return column[0] if len(column) == 1 else column[row]

            columns = run.kinds, run.clients, [task_id], run.attempts, run.names, run.workers, run.outcomes
            rows.append(tuple(map(of, columns)))  # type: ignore[arg-type]
    return rows


class Reading:
    """A core with client 11, an agent and its worker 22, and a reader of its history."""

    def __init__(self, core: Core) -> None:
        joined(core)
        self.core = core
        self.kept = core.scheduler.tables.history
        self.next = 0

    def __call__(self) -> list[Row]:
        """What has happened since the last call."""
        self.core.take()
        begin, runs = self.kept.rows(self.next, 1 << 30)
        assert begin == self.next
        self.next = self.kept.next_row
        rows = rows_of(runs)
        assert len(rows) == self.next - begin
        return rows


@pytest.fixture
def happened(core: Core) -> Reading:
    return Reading(core)


@pytest.fixture
def watched(happened: Reading) -> Core:
    return happened.core


def test_a_task_from_beginning_to_end(watched):
    row = running(watched, 5, name="fit")
    watched.now += 2
    watched.results(W, [row], 1500, effects.OUTCOME_EXCEPTION, b"error")
    kept = watched.scheduler.tables.history
    first, runs = kept.rows(0, 100)
    assert (first, kept.next_row) == (0, 4)
    assert rows_of(runs) == [
        (SUBMITTED, 11, 5, 0, "fit", 0, 0),
        (DISPATCHED, 11, 5, 1, "fit", 22, 0),
        (STARTED, 11, 5, 1, "fit", 22, 0),
        (ENDED, 11, 5, 1, "fit", 22, effects.OUTCOME_EXCEPTION),
    ]
    assert [*runs[0].functions] == ["function 1"] * 4
    assert list(runs[0].seconds) == [100, 100, 100, 102] and list(runs[0].durations) == [0, 0, 0, 1500]
    watched.submit(C, [6])
    assert [row[2] for row in rows_of(kept.rows(4, 100)[1])] == [6, 6]
    watched.take()


def test_results_of_several_functions_and_late_ones(watched, happened):
    watched.function(C, 2, b"g")
    watched.submit(C, [1], 1)
    watched.submit(C, [2], 2)
    watched.submit(C, [3], 1)
    for _ in range(3):  # each worker gets one task of an unknown function
        dispatched = [tuple(row[:3]) for sent in watched.take() if sent[0] == "dispatch" for row in sent[2]]
        if len(dispatched) != 1:
            break
        happened()
        watched.feed(results_event(W, [(11, 99, 1), *dispatched, (11, 98, 1)], 1000))
        ended = [row for row in happened() if row[0] == ENDED]
        name = "function 2" if dispatched[0][1] == 2 else "function 1"
        assert ended == [(ENDED, *dispatched[0], name, 22, 0)]
    watched.take()


def test_runs_of_results_are_cut_where_functions_change(watched, happened):
    watched.function(C, 2, b"g")
    for number in (1, 2):
        watched.submit(C, [number * 100], number)
        watched.results(W, [(11, number * 100, 1)])
    watched.take()
    watched.submit(C, [1, 2], 1)
    watched.submit(C, [3], 2)
    watched.submit(C, [4], 1)
    rows = [row[:3] for sent in watched.take() if sent[0] == "dispatch" for row in sent[2]]
    assert len(rows) == 4
    happened()
    watched.feed(results_event(W, [rows[0], (11, 77, 1), *rows[1:]]))
    names = ["function 2" if row[1] == 3 else "function 1" for row in rows]
    assert happened() == [(ENDED, *row, name, 22, 0) for row, name in zip(rows, names)]


def test_a_retracted_task_is_dispatched_again(watched, happened):
    row = running(watched, 5)
    happened()
    watched.died(A, 22, row)
    assert happened() == [(RETURNED, 11, 5, 1, "function 1", 22, effects.OUTCOME_WORKER_DIED)]
    assert happened.kept.rows_of_task(11, 5)[-1].errors == ["signal 9 (SIGKILL)"]
    watched.worker(W, 23, agent=33)
    assert happened() == [(DISPATCHED, 11, 5, 2, "function 1", 23, 0)]


def test_an_attempt_that_is_retried(watched, happened):
    row = running(watched, 5, retries=1, name="fit")
    happened()
    event = results_event(W, [row], 1500, effects.OUTCOME_RETRYABLE, b"pickled")
    event.errors = ["OSError: not yet"]
    watched.feed(event)
    assert happened()[:2] == [
        (RETURNED, 11, 5, 1, "fit", 22, effects.OUTCOME_RETRYABLE),
        (DISPATCHED, 11, 5, 2, "fit", 22, 0),
    ]
    returned = [row for row in happened.kept.rows_of_task(11, 5) if row.kinds[0] == RETURNED]
    assert [(row.errors, [*row.durations]) for row in returned] == [(["OSError: not yet"], [1500])]


def test_results_of_tasks_with_user_given_names(watched, happened):
    watched.submit(C, [100])
    watched.results(W, [(11, 100, 1)])
    watched.take()
    for task_id, name in ((1, "a"), (2, "b"), (3, "b"), (4, "")):
        watched.submit(C, [task_id], name=name)
    rows = [row[:3] for sent in watched.take() if sent[0] == "dispatch" for row in sent[2]]
    happened()
    watched.feed(results_event(W, rows))
    names = {1: "a", 2: "b", 3: "b", 4: "function 1"}
    assert happened() == [(ENDED, *row, names[row[1]], 22, 0) for row in rows] and len(rows) == 4
    [function] = watched.scheduler.tables.functions
    assert function.task_names == ("b", "a")
    for task_id in range(5, 10):
        watched.submit(C, [task_id], name=f"task {task_id}")
    watched.take()
    assert function.task_names == ("task 9", "task 8", "task 7", "task 6")


def test_running_tasks_of_a_worker_that_joins_again(watched, happened):
    """As after a restart of the scheduler: the client has submitted the task again, and the worker names it."""
    watched.hello(W2, events.WORKER, 23, agent=33, running=[(11, 5, 3)])
    watched.submit(C, [5], name="fit")
    happened()
    rows = story(watched.scheduler.tables, 11, 5)
    assert rows_of(rows) == [(SUBMITTED, 11, 5, 0, "fit", 0, 0), (REATTACHED, 11, 5, 3, "fit", 23, 0)]


def test_tasks_that_the_scheduler_ends(watched, happened):
    row = running(watched, 5)
    watched.submit(C, [6], capabilities=frozenset({("gpu", 1)}), name="never")
    watched.now += 1
    happened()
    watched.cancel(C, 6)
    assert happened() == [(ENDED, 11, 6, 0, "never", 0, effects.OUTCOME_CANCELLED)]
    watched.cancel(C, 5, force=True)
    watched.results(W, [row], 10, effects.OUTCOME_EXCEPTION, b"stopped")
    assert happened() == [(ENDED, 11, 5, 1, "function 1", 0, effects.OUTCOME_CANCELLED)]


def test_nodes_of_a_graph_have_their_worker(watched, happened):
    event = submit_event(C, [30, 31], [1], [b"", b""], ())
    event.keep = array("B", [events.KEEP_YES] * 2)
    watched.feed(event)
    for _ in range(2):
        [rows] = [sent[2] for sent in watched.take() if sent[0] == "dispatch"]
        watched.results(W, [row[:3] for row in rows], 1000, body=b"value")
    ended = [row for row in happened() if row[0] == ENDED]
    assert ended == [(ENDED, 11, task_id, 1, "function 1", 22, effects.OUTCOME_VALUE) for task_id in (30, 31)]


def noted(limit: int) -> Any:
    """A history, and a function that records dispatches in it."""
    core = Core()
    joined(core)
    kept = history.History(Clock(0.0), limit)
    worker, client = next(iter(core.scheduler.tables.workers)), next(iter(core.scheduler.tables.clients))
    function = next(iter(core.scheduler.tables.functions))
    return kept, lambda ids: kept.record_dispatched(worker, client, function, "", ids, 1)


@pytest.mark.parametrize("size", [1, 7, history.SHORT_RUN - 1, history.SHORT_RUN, 100])
def test_the_newest_rows_are_kept_and_the_others_counted(size):
    kept, dispatched = noted(3000)
    for first in range(0, 10_000 - 10_000 % size, size):
        dispatched(array("q", range(first, first + size)))
        assert kept.next_row == first + size
        assert min(kept.next_row, 3000) <= kept.next_row - kept.first_row < 3000 + size + history_rows.PACKED_ROWS
        assert len(kept._runs) <= 3000 // size + 2
    begin, runs = kept.rows(0, 1 << 30)
    assert begin == kept.first_row and [row[2] for row in rows_of(runs)] == list(range(kept.first_row, kept.next_row))


def test_any_part_of_the_kept_rows_can_be_read():
    kept, dispatched = noted(1000)
    first = 0
    for size in (1, 20, 3, 1, 50, 100, 1, 1):
        dispatched(array("q", range(first, first + size)))
        first += size
    for begin in range(kept.next_row + 2):
        for limit in (1, 2, 25, 1000):
            found, runs = kept.rows(begin, limit)
            assert (found, [row[2] for row in rows_of(runs)]) == (begin, list(range(begin, min(begin + limit, 177))))


def test_one_run_larger_than_the_limit():
    kept, dispatched = noted(50)
    dispatched(range(500))
    assert (kept.first_row, kept.next_row) == (450, 500)
    assert [row[2] for row in rows_of(kept.rows(0, 99)[1])] == [*range(450, 500)]
    dispatched([7])
    assert (kept.first_row, kept.next_row) == (450, 501)


def test_rows_of_one_task():
    kept, dispatched = noted(1000)
    for ids in ([5], range(40), [5, 6], range(3)):
        dispatched(ids)
    assert [row[2] for row in rows_of(kept.rows_of_task(11, 5))] == [5, 5, 5] and kept.rows_of_task(12, 5) == []


def test_a_submit_of_many_functions(watched, happened):
    client = next(iter(watched.scheduler.tables.clients))
    functions = list(watched.scheduler.tables.functions) * 2
    watched.function(C, 2, b"g")
    functions.append(list(watched.scheduler.tables.functions)[1])
    watched.scheduler.tables.history.record_submitted(client, [7, 8, 9], functions, "")
    assert [(row[2], row[4]) for row in happened()] == [
        (7, "function 1"), (8, "function 1"), (9, "function 2"),
    ]  # fmt: skip


def test_the_error_lines_of_failed_tasks(watched, happened):
    row = running(watched, 5)
    event = results_event(W, [row, (11, 77, 1)], 1500, effects.OUTCOME_EXCEPTION, b"pickled")
    event.errors = ["ValueError: no such curve", "nobody waits for this"]
    watched.feed(event)
    watched.take()
    row = running(watched, 6)
    watched.cancel(C, 6, force=True)
    watched.results(W, [row], 10, effects.OUTCOME_EXCEPTION, b"stopped")
    watched.submit(C, [7], retries=0)
    [row] = [sent[2][0][:3] for sent in watched.take() if sent[0] == "dispatch"]
    watched.died(A, 22, row)
    watched.take()
    runs = happened.kept.rows(0, 1000)[1]
    errors = [error for run in runs for kind, error in zip(run.kinds, run.errors) if kind == ENDED]
    assert errors == [
        "ValueError: no such curve", "cancelled",
        "function 1#7: the worker died in its only attempt: attempt 1 on host (pid 4711): signal 9 (SIGKILL)",
    ]  # fmt: skip


def test_the_traceback_of_each_attempt_that_failed(watched, happened):
    row = running(watched, 5)
    event = results_event(W, [row, (11, 77, 1)], 1500, effects.OUTCOME_RETRYABLE, b"pickled")
    event.tracebacks = [b"Traceback:\n  \x1b[2J\nOSError: not yet", b"nobody waits for this"]
    watched.feed(event)
    [again] = [sent[2][0][:3] for sent in watched.take() if sent[0] == "dispatch"]
    event = results_event(W, [again], 1500, effects.OUTCOME_EXCEPTION, b"pickled")
    event.tracebacks = [b"OSError: never"]
    watched.feed(event)
    watched.take()
    tables = watched.scheduler.tables
    rows = story(tables, 11, 5)
    told = dict(zip([(row.kinds[0], row.attempts[0]) for row in rows], story_tracebacks(tables, 5, rows)))
    assert {name: text for name, text in told.items() if text} == {
        (RETURNED, 1): "Traceback:\n   [2J\nOSError: not yet", (ENDED, 2): "OSError: never",
    }  # fmt: skip
    assert tables.history.tracebacks.find(11, 77, 1) == ""


def test_tracebacks_are_bounded():
    kept = Tracebacks(kept_bytes=10_000)
    kept.add(1, 1, 1, b"x" * 5_000 + b"end")
    assert len(kept.find(1, 1, 1)) == TRACEBACK_BYTES and kept.find(1, 1, 1).endswith("end")
    for task in range(2, 200):
        kept.add(1, task, 1, b"short")
        kept.add(1, task, 1, b"another")
    assert kept.find(1, 1, 1) == "" and kept.find(1, 199, 1) == "another"
    assert kept.bytes <= 10_000 and 30 < len(kept) < 60


def test_nodes_whose_inputs_have_failed(watched, happened):
    event = submit_event(C, [30, 31], [1], [b"", b""], ())
    event.keep, event.inputs = array("B", [events.KEEP_YES] * 2), array("q", [30])
    event.input_counts = array("I", [0, 1])
    watched.feed(event)
    [row] = [sent[2][0][:3] for sent in watched.take() if sent[0] == "dispatch"]
    failing = results_event(W, [row], 10, effects.OUTCOME_EXCEPTION, b"pickled")
    failing.errors = ["KeyError: 1"]
    watched.feed(failing)
    watched.take()
    runs = happened.kept.rows(0, 1000)[1]
    ended = {task: error for run in runs for kind, task, error in zip(run.kinds, run.ids, run.errors) if kind == ENDED}
    assert ended == {30: "KeyError: 1", 31: "an input has failed"}
