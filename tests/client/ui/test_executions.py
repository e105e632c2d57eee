"""Rows of history joined to executions, for scaler_ui's timeline and task log."""

from __future__ import annotations

import json
import random
import statistics

import pytest
from tests.client.ui.stand_ins import (
    BEGAN,
    CLIENT,
    DISPATCHED,
    ENDED,
    OTHER_WORKER,
    REATTACHED,
    RETURNED,
    SECOND,
    STARTED,
    SUBMITTED,
    WORKER,
    executions_of,
    history,
    row,
)

from scaler_client.protocol.snapshots import History
from scaler_client.ui.contract import RETURNED as RETURNED_OUTCOME
from scaler_client.ui.durations import FunctionDurations
from scaler_client.ui.executions import ROWS_PER_CHUNK, Executions


def take(executions: Executions, *histories: History) -> None:
    for each in histories:
        executions.add_history(each, round(BEGAN * SECOND))


def test_rows_of_a_task_become_one_execution() -> None:
    executions = Executions()
    take(
        executions,
        history(row(SUBMITTED, 10.0, 7), row(DISPATCHED, 10.5, 7, worker=WORKER)),
        history(row(STARTED, 10.6, 7, worker=WORKER)),
        history(row(ENDED, 12.0, 7, worker=WORKER, name="my own name", outcome=1, took=1.25), function="square"),
    )
    [chunk] = executions.chunks
    [found] = executions_of(chunk)
    assert found == {
        "id": "7", "client": str(CLIENT), "attempt": 1, "worker": str(WORKER), "function": "square",
        "name": "my own name", "submitted": 10.0, "start": 10.75, "end": 12.0, "outcome": 1, "error": "",
    }  # fmt: skip
    durations = executions.durations["square"]
    assert (durations.count, durations.failed) == (1, 1)


def test_execution_has_its_error() -> None:
    executions = Executions()
    rows = [row(ENDED, 1.0, task, worker=WORKER, outcome=outcome) for task, outcome in ((1, 1), (2, 0), (3, 1))]
    take(executions, history(*rows, errors=["ValueError: no such curve", "", "ValueError: no such curve"]))
    errors = [one["error"] for one in executions_of(executions.chunks[0])]
    assert errors == ["ValueError: no such curve", "", "ValueError: no such curve"]


def test_task_with_unknown_submission() -> None:
    executions = Executions()
    take(executions, history(row(ENDED, 12.0, 7, worker=WORKER, took=1.0)))
    [found] = executions_of(executions.chunks[0])
    assert (found["submitted"], found["start"], found["end"], found["name"]) == (None, 11.0, 12.0, "square")


def test_task_ended_by_the_scheduler() -> None:
    executions = Executions()
    take(
        executions,
        history(
            row(SUBMITTED, 1.0, 1), row(SUBMITTED, 1.0, 2), row(DISPATCHED, 1.5, 2, worker=WORKER),
            row(STARTED, 2.0, 2, worker=WORKER), row(ENDED, 3.0, 1, outcome=6), row(ENDED, 4.0, 2, outcome=5),
        ),
    )  # fmt: skip
    cancelled, died = executions_of(executions.chunks[0])
    assert (cancelled["worker"], cancelled["start"], cancelled["outcome"]) == (None, None, 6)
    assert (died["worker"], died["start"], died["outcome"]) == (str(WORKER), 2.0, 5)
    assert executions.durations["square"].failed == 1, "a cancelled task has not failed"
    assert executions.durations["square"].percentile(50) is None, "their durations were not measured"


def test_retried_task_is_two_executions() -> None:
    executions = Executions()
    take(
        executions,
        history(
            row(SUBMITTED, 1.0, 1), row(DISPATCHED, 1.0, 1, worker=WORKER), row(STARTED, 1.1, 1, worker=WORKER),
            row(RETURNED, 5.0, 1), row(DISPATCHED, 5.0, 1, attempt=2, worker=OTHER_WORKER),
            row(ENDED, 6.0, 1, attempt=2, worker=OTHER_WORKER, took=0.5),
        ),
    )  # fmt: skip
    lost, done = executions_of(executions.chunks[0])
    assert (lost["attempt"], lost["worker"], lost["outcome"]) == (1, str(WORKER), RETURNED_OUTCOME)
    assert (lost["start"], lost["end"]) == (1.1, 5.0)
    assert (done["attempt"], done["worker"], done["submitted"], done["start"]) == (2, str(OTHER_WORKER), 1.0, 5.5)


def test_failed_attempt_is_an_execution_with_its_error() -> None:
    executions = Executions()
    rows = [
        row(DISPATCHED, 1.0, 1, worker=WORKER), row(RETURNED, 1.5, 1, worker=WORKER, outcome=4, took=0.25),
        row(DISPATCHED, 1.5, 1, attempt=2, worker=WORKER), row(ENDED, 2.0, 1, attempt=2, worker=WORKER, took=0.25),
    ]  # fmt: skip
    take(executions, history(*rows, errors=["", "OSError: not yet", "", ""]))
    failed, done = executions_of(executions.chunks[0])
    assert (failed["attempt"], failed["worker"], failed["outcome"]) == (1, str(WORKER), 4)
    assert (failed["start"], failed["end"], failed["error"]) == (1.25, 1.5, "OSError: not yet")
    assert (done["attempt"], done["start"], done["error"]) == (2, 1.75, "")
    assert (executions.durations["square"].count, executions.durations["square"].failed) == (2, 1)


def test_reattached_task_is_one_execution() -> None:
    executions = Executions()
    take(
        executions, history(row(REATTACHED, 1.0, 1, attempt=3, worker=WORKER), row(ENDED, 2.0, 1, attempt=3, outcome=5))
    )
    [died] = executions_of(executions.chunks[0])
    assert (died["attempt"], died["worker"], died["start"], died["outcome"]) == (3, str(WORKER), 1.0, 5)


def test_task_taken_back_before_it_ran_is_no_execution() -> None:
    executions = Executions()
    take(executions, history(row(DISPATCHED, 1.0, 1, worker=WORKER), row(RETURNED, 2.0, 1)))
    assert not executions.chunks and not executions.rows


def test_results_of_one_moment_do_not_overlap() -> None:
    """A worker sends many results at once. They arrive together, but ran one after the other."""
    executions = Executions()
    rows = [row(ENDED, 10.0, task, worker=WORKER, took=0.1) for task in range(3)]
    rows += [row(ENDED, 10.0, 9, worker=OTHER_WORKER, took=0.1), row(ENDED, 11.0, 10, worker=WORKER, took=0.5)]
    take(executions, history(*rows))
    found = [(one["start"], one["end"]) for one in executions_of(executions.chunks[0])]
    assert found == [(9.7, 9.8), (9.8, 9.9), (9.9, 10.0), (9.9, 10.0), (10.5, 11.0)]


def test_unknown_kinds_are_ignored() -> None:
    executions = Executions()
    newer = history(row(SUBMITTED, 1.0, 1), row(ENDED, 2.0, 1, worker=WORKER, outcome=77))
    newer.kinds[0] = 200
    take(executions, newer)
    [found] = executions_of(executions.chunks[0])
    assert (found["submitted"], found["outcome"]) == (None, 77)
    assert executions.durations["square"].failed == 0, "its meaning is unknown"


def batch(first: int, count: int, at: float) -> History:
    return history(*(row(ENDED, at, task, worker=WORKER, took=0.001) for task in range(first, first + count)))


def test_only_the_newest_executions_are_kept() -> None:
    executions = Executions(most_tasks=1000)
    for second in range(50):
        take(executions, batch(second * 100, 100, float(second)))
        executions.drop_before(0.0)
        assert executions.rows <= 1000 and executions.rows == sum(map(len, executions.chunks))
    assert [one["id"] for one in executions_of(executions.chunks[0])][0] == "4000"
    assert executions.durations["square"].count == 1000
    executions.drop_before(BEGAN + 48.5)
    assert executions.rows == 100 and executions.next_number == 50
    executions.drop_before(BEGAN + 1e6)
    assert (executions.rows, executions.durations) == (0, {})


def test_long_message_becomes_several_chunks() -> None:
    executions = Executions()
    take(executions, batch(0, 2 * ROWS_PER_CHUNK + 1, 1.0))
    assert [len(chunk) for chunk in executions.chunks] == [ROWS_PER_CHUNK, ROWS_PER_CHUNK, 1]
    assert [chunk.number for chunk in executions.chunks] == [0, 1, 2]


def test_small_limit_keeps_the_newest_executions() -> None:
    executions = Executions(most_tasks=1000)
    take(executions, batch(0, 5000, 1.0))
    executions.drop_before(0.0)
    assert executions.rows == 1000 and executions_of(executions.chunks[-1])[-1]["id"] == "4999"


def test_missed_rows_are_reported_once() -> None:
    executions = Executions()
    executions.add_missed(12)
    executions.add_missed(5)
    take(executions, history(row(SUBMITTED, 1.0, 1)), batch(0, 1, 1.0), batch(1, 1, 2.0))
    assert [json.loads(chunk.text({}, {}))["missed"] for chunk in executions.chunks] == [17, 0]


def test_tasks_without_an_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_client.ui.executions.OPEN_TASKS", 100)
    executions = Executions()
    for begin in range(0, 5000, 50):
        rows = [row(SUBMITTED, 1.0, task) for task in range(begin, begin + 50)]
        take(
            executions,
            history(*rows, *(row(DISPATCHED, 1.0, task, worker=WORKER) for task in range(begin, begin + 50))),
        )
    assert len(executions._submitted) <= 200 and len(executions._assignments) <= 200
    take(executions, history(row(ENDED, 2.0, 4999, worker=WORKER), row(ENDED, 2.0, 0, worker=WORKER)))
    newest, oldest = executions_of(executions.chunks[0])
    assert (newest["submitted"], oldest["submitted"]) == (1.0, None)


def test_percentiles_are_accurate_to_a_bucket() -> None:
    chance = random.Random(7)
    durations, given = FunctionDurations(), [chance.lognormvariate(-5, 2) for _ in range(5000)]
    for seconds in given:
        durations.add(round(seconds * 1e9), False)
    ordered = sorted(given)
    for percent, exact in ((50, ordered[2499]), (99, ordered[4949]), (100, ordered[-1])):
        found = durations.percentile(percent)
        assert found is not None and abs(found / exact - 1) < 0.046
    assert abs(durations.mean() / statistics.fmean(given) - 1) < 1e-6


def test_durations_are_merged_and_subtracted() -> None:
    chunk, whole = FunctionDurations(), FunctionDurations()
    chunk.add(1_000_000, True)
    chunk.add(0, False)
    whole.merge(chunk)
    whole.merge(chunk)
    whole.subtract(chunk)
    assert (whole.count, whole.failed, whole.buckets, whole.nanoseconds) == (2, 1, chunk.buckets, 1_000_000)
    whole.subtract(chunk)
    assert (whole.count, whole.failed, whole.buckets.total(), whole.mean(), whole.percentile(99)) == (
        0,
        0,
        0,
        0.0,
        None,
    )
