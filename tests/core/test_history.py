"""What happens to tasks, as it is noted for whoever watches. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array
from typing import Any, List, Tuple

import pytest
from tests.core.harness import A, C, Core, W, joined, results_event, running, submit_event

from scaler_scheduler.core import effects, events, history
from scaler_scheduler.core.history import DISPATCHED, ENDED, RETURNED, STARTED, SUBMITTED

Row = Tuple[int, int, int, int, str, int, int]
"""Kind, client, id, attempt, name, worker, outcome."""


def rows_of(runs: List[history.Run]) -> List[Row]:
    rows: List[Row] = []
    for run in runs:
        count = len(run.ids)
        for row, task_id in enumerate(run.ids):

            def of(column: Any, row: int = row, count: int = count) -> int:
                assert len(column) in (1, count)
                return int(column[0] if len(column) == 1 else column[row])

            rows.append((run.kind, of(run.clients), task_id, of(run.attempts), run.name, run.worker, of(run.outcomes)))
    return rows


@pytest.fixture
def watched(core: Core) -> Core:
    """A core with a client, 11, an agent and its worker, 22, whose history is kept."""
    joined(core)
    core.scheduler.tables.history.watch(True)
    return core


def happened(core: Core) -> List[Row]:
    core.take()
    return rows_of(core.scheduler.tables.history.take()[1])


def test_nothing_is_noted_while_nobody_watches(core):
    joined(core)
    row = running(core)
    core.results(W, [row])
    core.take()
    kept = core.scheduler.tables.history
    assert kept.take() == (0, [])
    kept.watch(True)
    core.submit(C, [2])
    core.take()
    kept.watch(False)
    assert kept.take() == (2, []), "what was noted is dropped, and counted"


def test_a_task_from_beginning_to_end(watched):
    row = running(watched, 5, name="fit")
    watched.now += 2
    watched.results(W, [row], 1500, effects.OUTCOME_EXCEPTION, b"error")
    first, runs = watched.scheduler.tables.history.take()
    assert first == 0
    assert rows_of(runs) == [
        (SUBMITTED, 11, 5, 0, "function 1", 0, 0),
        (DISPATCHED, 11, 5, 1, "fit", 22, 0),
        (STARTED, 11, 5, 1, "fit", 22, 0),
        (ENDED, 11, 5, 1, "function 1", 22, effects.OUTCOME_EXCEPTION),
    ]
    assert [run.seconds for run in runs] == [100, 100, 100, 102] and list(runs[-1].durations) == [1500]
    watched.submit(C, [6])
    assert watched.scheduler.tables.history.take()[0] == 4
    watched.take()


def test_results_of_several_functions_and_late_ones(watched):
    watched.function(C, 2, b"g")
    watched.submit(C, [1], 1)
    watched.submit(C, [2], 2)
    watched.submit(C, [3], 1)
    for _ in range(3):  # a function that is unknown goes one task a worker
        dispatched = [tuple(row[:3]) for sent in watched.take() if sent[0] == "dispatch" for row in sent[2]]
        if len(dispatched) != 1:
            break
        watched.scheduler.tables.history.take()
        watched.feed(results_event(W, [(11, 99, 1), *dispatched, (11, 98, 1)], 1000))
        ended = [row for row in rows_of(watched.scheduler.tables.history.take()[1]) if row[0] == ENDED]
        name = "function 2" if dispatched[0][1] == 2 else "function 1"
        assert ended == [(ENDED, *dispatched[0], name, 22, 0)]
    watched.take()


def test_runs_of_results_are_cut_where_functions_change(watched):
    tables = watched.scheduler.tables
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
    tables.history.take()
    watched.feed(results_event(W, [rows[0], (11, 77, 1), *rows[1:]]))
    names = ["function 2" if row[1] == 3 else "function 1" for row in rows]
    assert happened(watched) == [(ENDED, *row, name, 22, 0) for row, name in zip(rows, names)]


def test_what_comes_back_and_is_dispatched_again(watched):
    row = running(watched, 5)
    happened(watched)
    watched.died(A, 22, row)
    assert happened(watched) == [(RETURNED, 11, 5, 1, "function 1", 0, 0)]
    watched.worker(W, 23, agent=33)
    assert happened(watched) == [(DISPATCHED, 11, 5, 2, "function 1", 23, 0)]


def test_what_the_scheduler_itself_ends(watched):
    row = running(watched, 5)
    watched.submit(C, [6], capabilities=frozenset({("gpu", 1)}), name="never")
    watched.now += 1
    happened(watched)
    watched.cancel(C, 6)
    assert happened(watched) == [(ENDED, 11, 6, 0, "never", 0, effects.OUTCOME_CANCELLED)]
    watched.cancel(C, 5, force=True)
    watched.results(W, [row], 10, effects.OUTCOME_EXCEPTION, b"stopped")
    assert happened(watched) == [(ENDED, 11, 5, 1, "function 1", 0, effects.OUTCOME_CANCELLED)]


def test_a_graphs_nodes_have_their_worker(watched):
    event = submit_event(C, [30, 31], [1], [b"", b""], ())
    event.keep = array("B", [events.KEEP_YES] * 2)
    watched.feed(event)
    for _ in range(2):
        [rows] = [sent[2] for sent in watched.take() if sent[0] == "dispatch"]
        watched.results(W, [row[:3] for row in rows], 1000, body=b"value")
    ended = [row for row in happened(watched) if row[0] == ENDED]
    assert ended == [(ENDED, 11, task_id, 1, "function 1", 22, effects.OUTCOME_VALUE) for task_id in (30, 31)]


def test_the_newest_rows_are_kept_and_the_others_counted():
    core = Core()
    joined(core)
    kept = history.History(5)
    kept.watch(True)
    worker = next(iter(core.scheduler.tables.workers))
    client = next(iter(core.scheduler.tables.clients))
    for first in range(0, 30, 3):
        kept.dispatched(worker, client, "f", range(first, first + 3), 1)
        assert sum(len(run.ids) for run in kept._runs) < 5 + 3
    number, runs = kept.take()
    assert (number, [row[2] for row in rows_of(runs)]) == (25, [25, 26, 27, 28, 29])
    kept.dispatched(worker, client, "f", range(100), 1)
    number, runs = kept.take()
    assert (number, [row[2] for row in rows_of(runs)]) == (125, [95, 96, 97, 98, 99])
    assert kept.take() == (130, [])


def test_a_submit_of_many_functions(watched):
    client = next(iter(watched.scheduler.tables.clients))
    functions = list(watched.scheduler.tables.functions) * 2
    watched.function(C, 2, b"g")
    functions.append(list(watched.scheduler.tables.functions)[1])
    watched.scheduler.tables.history.submitted(client, [7, 8, 9], functions)
    assert [(row[2], row[4]) for row in happened(watched)] == [
        (7, "function 1"), (8, "function 1"), (9, "function 2"),
    ]  # fmt: skip
