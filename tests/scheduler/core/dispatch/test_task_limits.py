"""Named limits across the cluster: tokens, rates, restarts, lost workers, changes of the configuration."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import C2, EPOCH, SECOND, W2, A, C, Core, Row, W

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import LimitSettings
from scaler_scheduler.core.placement.task_limits import HOLD_SECONDS, MAX_NAMES

DB = {"db": LimitSettings(most=2)}


def cluster(workers: int = 4, **settings: LimitSettings) -> Core:
    """A client with function 1, and workers 22, 23, ... of one agent."""
    core = Core()
    core.scheduler.task_limits.define(settings)
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.agent(A, 33)
    for number in range(workers):
        core.worker(route(number), 22 + number, agent=33)
    return core


def route(worker: int) -> bytes:
    return b"worker %d" % worker


def given(core: Core) -> dict[bytes, list[Row]]:
    """The tasks that were dispatched since the last call, by worker."""
    rows: dict[bytes, list[Row]] = {}
    for sent in core.take():
        if sent[0] == "dispatch":
            rows.setdefault(sent[1], []).extend(row[:3] for row in sent[2])
    return rows


def used(core: Core, name: str = "db") -> int:
    return core.scheduler.task_limits.by_name[name].used


def test_so_many_tasks_run_at_once_and_others_pass() -> None:
    core = cluster(**DB)
    core.submit(C, range(5), limits=("db",))
    core.submit(C, [10], body=b"x")
    running = given(core)
    assert sorted(row[1] for rows in running.values() for row in rows) == [0, 1, 10]
    worker = next(worker for worker, rows in running.items() if rows[0][1] == 0)
    core.results(worker, running[worker], SECOND)
    assert [row[1] for rows in given(core).values() for row in rows] == [2]
    assert used(core) == 2


def test_a_limited_task_does_not_wait_at_a_worker() -> None:
    core = cluster(1, db=LimitSettings(most=5))
    core.submit(C, [1])
    core.results(route(0), given(core)[route(0)], 1000)
    core.submit(C, [2, 3], limits=("db",))
    assert [row[1] for row in given(core)[route(0)]] == [2] and used(core) == 1
    core.results(route(0), [(11, 2, 1)], 1000)
    assert [row[1] for row in given(core)[route(0)]] == [3] and used(core) == 1


def test_limited_tasks_are_not_starved_by_many_short_ones() -> None:
    core = cluster(1, **DB)
    core.submit(C, [1])
    core.results(route(0), given(core)[route(0)], 1000)
    core.submit(C, range(100, 1100))
    rows = given(core)[route(0)]
    core.submit(C, [5], limits=("db",))
    core.results(route(0), rows[: len(rows) // 2 + 1], 1000)
    assert not given(core)  # the worker becomes idle for the limited task
    core.results(route(0), rows[len(rows) // 2 + 1 :], 1000)
    assert 5 in [row[1] for row in given(core)[route(0)]]


def test_several_limits_are_all_needed() -> None:
    core = cluster(db=LimitSettings(most=2), license=LimitSettings(most=1))
    core.submit(C, [1, 2], limits=("db", "license"))
    core.submit(C, [3, 4], limits=("db",))
    running = given(core)
    assert sorted(row[1] for rows in running.values() for row in rows) == [1, 3]
    assert (used(core), used(core, "license")) == (2, 1)


def test_an_undefined_limit_is_an_error_that_lists_the_others() -> None:
    core = cluster(api=LimitSettings(per_second=1.0), **DB)
    core.submit(C, [1], limits=("dbx",))
    core.take_one("error", C, core.errors[0].text)
    assert core.errors[0].tasks == [1]
    assert core.errors[0].text == (
        "the limit 'dbx' is not defined in the scheduler's configuration, [limits]; defined: api, db"
    )
    core.scheduler.task_limits.define({})
    core.submit(C, [2], limits=("db",))
    assert core.errors[1].text.endswith("defined: none")
    core.scheduler.task_limits.define({f"l{number:03}": LimitSettings(1) for number in range(500)})
    core.submit(C, [3], limits=("db",))
    assert core.errors[2].text.endswith(f", l{MAX_NAMES - 1:03} and {500 - MAX_NAMES} more")
    core.take()


def test_locks_need_no_definition_and_do_not_stay() -> None:
    core = cluster()
    limits = core.scheduler.task_limits
    core.submit(C, [1, 2], limits=("lock:a",))
    core.submit(C, [3], limits=("lock:b",))
    core.submit(C, [4], limits=("lock:a", "lock:b"))
    running = {row[1]: (worker, row) for worker, rows in given(core).items() for row in rows}
    assert sorted(running) == [1, 3] and sorted(limits.by_name) == ["lock:a", "lock:b"]
    core.results(running[3][0], [running[3][1]], SECOND)
    assert not given(core) and sorted(limits.by_name) == ["lock:a"]
    core.results(running[1][0], [running[1][1]], SECOND)
    assert [row[1] for rows in given(core).values() for row in rows] == [2]
    core.goodbye(C)
    for worker in range(4):
        core.goodbye(route(worker))
    assert not limits.by_name and not limits.is_defined("lock:a")
    core.take()


def test_a_rate() -> None:
    core = cluster(api=LimitSettings(per_second=2.0))
    core.wait(1)
    core.submit(C, [1, 2, 3], limits=("api",))
    assert [row[1] for rows in given(core).values() for row in rows] == [1]
    assert core.scheduler.next_deadline == pytest.approx(core.now + 0.5)
    core.wait(0.5)
    assert [row[1] for rows in given(core).values() for row in rows] == [2]
    core.wait(0.4)
    assert not given(core)
    core.wait(0.1)
    assert [row[1] for rows in given(core).values() for row in rows] == [3]


def test_a_high_rate_in_bursts() -> None:
    core = cluster(1, api=LimitSettings(per_second=100.0))
    core.submit(C, range(500), limits=("api",))
    count = 0
    for _ in range(200):
        core.now += 0.01
        core.scheduler.tick(core.now)
        core.feed()
        for worker, rows in given(core).items():
            count += len(rows)
            core.results(worker, rows, 1000)
    assert count == pytest.approx(200, abs=12)


def test_a_lost_worker_gives_its_tokens_back() -> None:
    core = cluster(**DB)
    core.submit(C, [1, 2, 3], limits=("db",))
    running = given(core)
    worker = next(iter(running))
    core.died(A, 22 + int(worker[-1:]), running[worker][0])
    assert used(core) == 2
    assert len([row for rows in given(core).values() for row in rows]) == 1


def test_an_attempt_that_does_not_count_keeps_its_token_while_it_may_run() -> None:
    core = cluster(2, db=LimitSettings(most=1))
    core.submit(C, [1, 2], limits=("db",))
    running = given(core)
    ((worker, rows),) = running.items()
    core.started(worker, *rows)
    core.goodbye(C)  # the task is stopped, and runs until its worker says so
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C2, [1], limits=("db",))
    assert not given(core) and used(core) == 1
    core.results(worker, rows, SECOND, outcome=1)
    assert [row[:2] for rows in given(core).values() for row in rows] == [(12, 1)]


def test_a_worker_that_joins_again_names_what_it_runs() -> None:
    core = cluster(2, db=LimitSettings(most=1))
    core.submit(C, [1, 2], limits=("db",))
    ((worker, rows),) = given(core).items()
    core.started(worker, *rows)
    core.worker(W2, 22 + int(worker[-1:]), agent=33, running=rows)
    assert used(core) == 1 and not given(core)
    core.results(W2, rows, SECOND)
    assert len([row for rows in given(core).values() for row in rows]) == 1 and used(core) == 1


def test_limits_hold_across_a_restart() -> None:
    core = Core()
    core.scheduler.task_limits.define(DB)
    core.client(C2, 12)  # a new client
    core.function(C2, 1, b"f")
    core.submit(C2, [1, 2, 3], limits=("db",))
    core.hello(W, events.WORKER, 22, scheduler=EPOCH - 1)
    assert not given(core)  # other workers may run such tasks
    core.hello(W2, events.WORKER, 23, running=[(11, 7, 4)], scheduler=EPOCH - 1)
    core.wait(HOLD_SECONDS)
    assert not given(core)  # the limits of task 7 are not known yet
    core.client(C, 11, scheduler=EPOCH - 1)
    core.function(C, 1, b"f")
    core.submit(C, [7], limits=("db",))
    core.wait(1)
    assert [row[:2] for rows in given(core).values() for row in rows] == [(12, 1)]
    assert used(core) == 2
    core.results(W2, [(11, 7, 4)], SECOND)
    assert [row[:2] for rows in given(core).values() for row in rows] == [(12, 2)]


def test_changes_by_reload() -> None:
    core = cluster(**DB)
    core.submit(C, range(8), limits=("db",))
    running = given(core)
    core.scheduler.task_limits.define({"db": LimitSettings(most=1)})
    first, second = running
    core.results(first, running[first], SECOND)
    assert not given(core) and used(core) == 1
    core.scheduler.task_limits.define({})  # it holds on for the tasks that wait
    core.results(second, running[second], SECOND)
    assert len(given(core)) == 1 and used(core) == 1
    core.scheduler.task_limits.define({"db": LimitSettings(most=3)})
    core.feed()
    assert len(given(core)) == 2 and used(core) == 3


def test_a_suspended_task_keeps_its_token() -> None:
    core = cluster(2, db=LimitSettings(most=1))
    core.submit(C, [1, 2], limits=("db",))
    ((worker, (row,)),) = given(core).items()
    nested = b"nested"
    core.client(nested, 13, worker=22 + int(worker[-1:]))
    core.suspended(nested, row)
    assert not given(core) and used(core) == 1
    core.resumed(nested, row)
    core.results(worker, [row], SECOND)
    assert [row[1] for rows in given(core).values() for row in rows] == [2] and used(core) == 1


def test_a_task_that_is_given_back_returns_its_token() -> None:
    core = cluster(1, db=LimitSettings(most=1))
    core.submit(C, [1, 2], limits=("db",))
    ((worker, (row,)),) = given(core).items()
    core.cancel(C, 1)
    core.take()
    core.retracted(worker, [row], given=1)
    assert [row[1] for rows in given(core).values() for row in rows] == [2] and used(core) == 1


def test_an_undelivered_dispatch_takes_no_token() -> None:
    core = cluster(1, **DB)
    core.gone.add(route(0))
    core.submit(C, [1], limits=("db",))
    assert used(core) == 0
    core.gone.clear()
    core.worker(W2, 90)
    assert [row[1] for rows in given(core).values() for row in rows] == [1] and used(core) == 1


def test_results_of_unknown_attempts_change_nothing() -> None:
    core = cluster(1, **DB)
    core.submit(C, [1], limits=("db",))
    ((worker, (row,)),) = given(core).items()
    core.results(worker, [(11, 1, row[2] + 1), (99, 1, 1)], SECOND)
    assert used(core) == 1
    core.feed(events.Retracted(worker, array("q", [11]), array("q", [1]), array("I", [9]), array("B", [1])))
    assert used(core) == 1
    core.take()
