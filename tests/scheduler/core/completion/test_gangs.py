"""Gangs: members begin together, end together, are tried again together, and exchange values."""

from __future__ import annotations

from array import array
from struct import pack

from tests.scheduler.core.harness import (
    C2,
    CANCELLED,
    EPOCH,
    EXCEPTION,
    RETRYABLE,
    SECOND,
    TIMED_OUT,
    WORKER_DIED,
    A,
    C,
    Core,
    Row,
    Sent,
    resolved,
    results_event,
    warnings_of,
)

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import Limits, LimitSettings
from scaler_scheduler.core.report.story import story
from scaler_scheduler.core.report.unschedulable import JOINING_SECONDS
from scaler_scheduler.core.state.history import RETURNED
from scaler_scheduler.core.state.shares import ShareLimits

TIME = 60 * SECOND
"""So long that no worker gets a task behind another one."""


def cluster(workers: int = 4, limits: Limits | None = None) -> Core:
    """A client with function 1, and workers 22, 23, ... of one agent."""
    core = Core(limits)
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.agent(A, 33)
    for number in range(workers):
        core.worker(route(number), 22 + number, agent=33)
    return core


def route(worker: int) -> bytes:
    return b"worker %d" % worker


def incarnation(worker: bytes) -> int:
    return 22 + int(worker[-1:])


def dispatched(core: Core) -> dict[bytes, Row]:
    """The task that each worker got since the last call; it got one. Leaves what else was sent."""
    rows: dict[bytes, Row] = {}
    rest: list[Sent] = []
    for sent in core.take():
        if sent[0] == "dispatch":
            assert sent[1] not in rows and len(sent[2]) == 1
            rows[sent[1]] = sent[2][0][:3]
        elif sent[0] not in ("gang member", "function"):
            rest.append(sent)
    core._sent = rest
    return rows


def begun(core: Core, size: int = 4, first: int = 10, **options: object) -> list[tuple[bytes, Row]]:
    """Submit a gang, which begins at once. Returns route and name of each member by rank."""
    core.submit(C, [first], gang_size=size, **options)
    rows = dispatched(core)
    assert sorted(row[1] for row in rows.values()) == list(range(first, first + size))
    members = sorted(rows.items(), key=lambda each: each[1][1])
    for worker, row in members:
        core.started(worker, row)
    assert core.take() == [("started", C, [first])]
    return members


def packed(*results: bytes) -> bytes:
    return pack(f"<{len(results)}I", *map(len, results)) + b"".join(results)


def stopped(core: Core) -> dict[bytes, Row]:
    """The task that each worker must stop. There is nothing else."""
    stops: dict[bytes, Row] = {}
    for name, worker, rows in core.take():
        assert name == "stop" and len(rows) == 1
        stops[worker] = rows[0]
    return stops


def test_all_members_begin_in_one_step_and_know_one_another() -> None:
    core = cluster()
    core.submit(C, [10], body=b"args", gang_size=3)
    sent = core.take()
    members = [each for each in sent if each[0] == "gang member"]
    assert [(each[2], each[3], each[4]) for each in members] == [
        ((11, 10 + rank, 1), rank, ["host"] * 3) for rank in range(3)
    ]
    rows = [each for each in sent if each[0] == "dispatch"]
    assert [each[2] for each in rows] == [[(11, 10 + rank, 1, 1, b"args")] for rank in range(3)]
    assert [each[1] for each in members] == [each[1] for each in rows]
    for each in members:  # a worker knows that the task is a member before it gets the task
        assert sent.index(each) < min(sent.index(row) for row in rows if row[1] == each[1])
    assert all(row[3][0][0] == 64 for row in rows)


def test_nobody_begins_while_there_are_too_few_workers() -> None:
    core = cluster(3)
    core.submit(C, [10], gang_size=4)
    assert core.take() == []
    core.worker(route(3), 25, agent=33)
    assert len(dispatched(core)) == 4


def test_the_result_is_that_of_all_by_rank() -> None:
    core = cluster()
    members = begun(core)
    for rank in (2, 0, 3):
        core.results(*members[rank][:1], [members[rank][1]], TIME, body=b"%d" % rank * (rank + 1))
        assert core.take() == []
    core.results(members[1][0], [members[1][1]], TIME)
    assert core.take() == [resolved(10, body=packed(b"0", b"", b"222", b"3333"))]
    assert core.scheduler.counts.payload_bytes == 0 and len(core.scheduler.tables.clients.find(11).tasks) == 0  # type: ignore[union-attr]


def test_the_worker_of_an_ended_member_is_free() -> None:
    core = cluster()
    members = begun(core)
    core.results(members[0][0], [members[0][1]], TIME, body=b"x")
    core.submit(C, [100])
    assert dispatched(core) == {members[0][0]: (11, 100, 1)}


def test_one_dies_and_all_begin_again() -> None:
    core = cluster(5)
    members = begun(core, retries=1)
    core.results(members[0][0], [members[0][1]], TIME, body=b"lost")
    core.died(A, incarnation(members[1][0]), members[1][1])
    assert stopped(core) == dict(members[2:])
    warnings_of(core)
    core.results(members[2][0], [members[2][1]], TIME, EXCEPTION, b"stopped")
    assert core.take() == []
    core.results(members[3][0], [members[3][1]], TIME, body=b"ended before the stop came")
    again = dispatched(core)
    assert sorted(again.values()) == [(11, 10 + rank, 2) for rank in range(4)]
    for worker, row in again.items():
        core.results(worker, [row], TIME, body=b"%d" % row[1])
    assert core.take() == [resolved(10, body=packed(b"10", b"11", b"12", b"13"))]


def test_why_a_gang_waits_that_was_tried_before() -> None:
    core = cluster(2)
    members = begun(core, 2, retries=1)
    core.died(A, incarnation(members[1][0]), members[1][1])
    reasons = core.scheduler.wait_reasons.lines
    assert reasons(11, 11)[0] == "gang: it is member 1 of gang 10"
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    assert reasons(11, 10)[1:3] == [
        "gang: it needs 2 idle workers at once; 1 can run its members, 1 of them are idle",
        "gang: the connected hosts can never run its 2 members at once: at most 1",
    ]
    assert reasons(11, 11) == ["gang: it is member 1 of gang 10", *reasons(11, 10)]
    assert story(core.scheduler.tables, 11, 11)[-1].kinds[0] == RETURNED
    warnings_of(core)
    core.take()


def test_without_retries_left_the_history_of_deaths_is_the_answer() -> None:
    core = cluster(4)
    members = begun(core, 2, retries=0)
    core.died(A, incarnation(members[1][0]), members[1][1])
    assert stopped(core) == dict(members[:1])
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    warnings_of(core)
    ((name, _, rows),) = core.take()
    assert name == "resolved" and rows[0][:2] == (10, WORKER_DIED)
    assert b"function 1#10: the worker died in its only attempt" in rows[0][2]


def test_each_death_of_a_member_counts() -> None:
    core = cluster(4)
    core.submit(C, [10], gang_size=2, retries=2)
    for _ in range(3):
        members = sorted(dispatched(core).items(), key=lambda each: each[1][1])
        for worker, row in members:
            core.started(worker, row)
        core.died(A, incarnation(members[1][0]), members[1][1])
        core.take()
        core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    warnings_of(core)
    ((name, _, rows),) = [sent for sent in core.take() if sent[0] == "resolved"]
    assert rows[0][1] == WORKER_DIED and b"died in each of 3 attempts" in rows[0][2]


def test_one_fails_and_the_others_are_stopped() -> None:
    core = cluster()
    members = begun(core, 3)
    core.results(members[1][0], [members[1][1]], TIME, EXCEPTION, b"error of 1")
    assert stopped(core) == {members[0][0]: members[0][1], members[2][0]: members[2][1]}
    core.results(members[2][0], [members[2][1]], TIME, EXCEPTION, b"error of 2")
    assert core.take() == []
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    assert core.take() == [resolved(10, outcome=EXCEPTION, body=b"error of 1")]


def test_one_may_be_retried_and_all_are() -> None:
    core = cluster()
    members = begun(core, 2, retries=1)
    for attempt in (1, 2):
        core.results(members[0][0], [members[0][1]], TIME, RETRYABLE, b"error")
        assert list(stopped(core)) == [members[1][0]]
        core.results(members[1][0], [members[1][1]], TIME, EXCEPTION, b"stopped")
        if attempt == 1:
            members = sorted(dispatched(core).items(), key=lambda each: each[1][1])
            for worker, row in members:
                core.started(worker, row)
            core.take()
    assert core.take() == [resolved(10, outcome=EXCEPTION, body=b"error")]


def test_a_member_that_does_not_stop_is_killed() -> None:
    core = cluster()
    members = begun(core, 2)
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"error")
    core.take()
    for _ in range(3):
        core.heartbeat(A, 22, 23, 24, 25)
        core.wait(1)
    ends = [sent for sent in core.take() if sent[0] == "end worker"]
    assert ends == [("end worker", A, incarnation(members[1][0]), members[1][1], "its gang has ended")]
    core.died(A, incarnation(members[1][0]), members[1][1])
    warnings_of(core)
    assert core.take() == [resolved(10, outcome=EXCEPTION, body=b"error")]


def test_a_member_that_has_not_begun_is_taken_back() -> None:
    core = cluster()
    core.submit(C, [10], gang_size=2)
    first, second = sorted(dispatched(core).items(), key=lambda each: each[1][1])
    core.results(first[0], [first[1]], TIME, EXCEPTION, b"error")
    assert core.take() == [("retract", second[0], [second[1]])]
    core.retracted(second[0], [second[1]], 1)
    assert core.take() == [resolved(10, outcome=EXCEPTION, body=b"error")]


def test_cancel_by_force_stops_all() -> None:
    core = cluster()
    members = begun(core)
    core.cancel(C, 10)
    assert core.take() == [("cancel refused", C, [10])]
    core.cancel(C, 10, force=True)
    assert stopped(core) == dict(members)
    for worker, row in members:
        assert core.take() == []
        core.results(worker, [row], TIME, EXCEPTION, b"stopped")
    assert core.take() == [resolved(10, outcome=CANCELLED)]


def test_cancel_while_it_waits() -> None:
    core = cluster(1)
    core.submit(C, [10, 20], gang_size=4)
    core.cancel(C, 10)
    assert core.take() == [resolved(10, outcome=CANCELLED)]


def test_the_time_limit_is_that_of_all() -> None:
    core = cluster()
    members = begun(core, 2, timeout_seconds=5.0)
    core.wait(4)
    core.heartbeat(A, 22, 23, 24, 25)
    core.take()
    core.wait(2)
    stops = [sent for sent in core.take() if sent[0] == "stop"]
    assert sorted(sent[1] for sent in stops) == sorted(worker for worker, _ in members)
    for worker, row in members:
        core.results(worker, [row], TIME, EXCEPTION, b"stopped")
    ((name, _, rows),) = core.take()
    assert name == "resolved" and rows[0][:2] == (10, TIMED_OUT)


def test_a_client_that_leaves_and_comes_back() -> None:
    core = cluster()
    members = begun(core, 3)
    core.results(members[0][0], [members[0][1]], TIME, body=b"lost")
    core.goodbye(C)
    assert stopped(core) == dict(members[1:])
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [10], gang_size=3)
    assert core.take() == []
    for worker, row in members[1:]:
        core.results(worker, [row], TIME, EXCEPTION, b"stopped")
    assert sorted(row[1] for row in dispatched(core).values()) == [10, 11, 12]


def test_a_client_that_leaves_for_good() -> None:
    core = cluster()
    members = begun(core, 3)
    core.results(members[0][0], [members[0][1]], TIME, body=b"lost")
    core.goodbye(C)
    core.take()
    for worker, row in members[1:]:
        core.results(worker, [row], TIME, EXCEPTION, b"stopped")
    core.take()
    assert core.tables()["clients by incarnation"] == 0 == core.tables()["dispatched"]


def test_a_member_goes_on_when_its_worker_joins_again() -> None:
    core = cluster()
    members = begun(core, 2)
    worker, row = members[1]
    core.hello(b"new", events.WORKER, incarnation(worker), 33, running=[row])
    core.take_one("welcome", b"new")
    assert core.take() == []
    core.results(members[0][0], [members[0][1]], TIME, body=b"a")
    core.results(b"new", [row], TIME, body=b"b")
    assert core.take() == [resolved(10, body=packed(b"a", b"b"))]


def test_a_worker_that_joins_again_without_the_member_breaks_the_gang() -> None:
    core = cluster()
    members = begun(core, 2)
    worker, row = members[1]
    core.hello(b"new", events.WORKER, incarnation(worker), 33)
    core.take_one("welcome", b"new")
    assert stopped(core) == dict(members[:1])
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    assert len(dispatched(core)) == 2


def test_after_a_restart_of_the_scheduler_the_gang_begins_again() -> None:
    for workers_first in (False, True):
        core = Core()
        running: list[Row] = [(11, 10, 5), (11, 12, 5)]  # member 11 had ended

        def join_workers(core: Core = core, running: list[Row] = running) -> None:
            core.agent(A, 33)
            for number in range(3):
                core.worker(route(number), 22 + number, agent=33, running=running[number : number + 1])

        if workers_first:
            join_workers()
            assert core.take() == []
        core.client(C, 11, scheduler=EPOCH + 1)
        core.function(C, 1, b"f")
        core.submit(C, [10], gang_size=3)
        if not workers_first:
            join_workers()
        assert stopped(core) == {route(number): row for number, row in enumerate(running)}
        for number, row in enumerate(running):
            core.results(route(number), [row], TIME, EXCEPTION, b"stopped")
        core.wait(1)
        assert sorted(dispatched(core).values()) == [(11, 10 + rank, 6) for rank in range(3)]


def test_a_worker_that_returns_after_its_gang_has_begun_again() -> None:
    core = cluster(3)
    members = begun(core, 2)
    core.wait(61)  # the leases of all workers run out
    warnings_of(core)
    core.take()
    core.agent(A, 33)
    core.client(C, 11)
    worker, row = members[0]
    core.worker(worker, 22, agent=33, running=[row])
    assert [sent[0] for sent in core.take()] in (["stop"], [])


def test_values_go_to_all_members_when_all_are_there() -> None:
    core = cluster()
    members = begun(core, 3)
    core.exchange(*members[2], 0, b"two")
    core.exchange(*members[0], 0, b"zero")
    assert core.take() == []
    core.exchange(*members[1], 0, b"one")
    values = [b"zero", b"one", b"two"]
    assert core.take() == [("exchange", worker, row, 0, values) for worker, row in members]
    core.exchange(*members[1], 1, b"")
    core.exchange(*members[1], 0, b"one")  # its worker has joined again: the answer may be lost
    assert core.take() == [("exchange", *members[1], 0, values)]


def test_members_that_wait_for_an_ended_member_are_told() -> None:
    core = cluster()
    members = begun(core, 3)
    core.exchange(*members[0], 0, b"zero")
    core.exchange(*members[2], 0, b"")
    assert core.take() == []
    core.results(members[1][0], [members[1][1]], TIME, body=b"1")
    zero = ("ended member", *members[0], 0, 1, [])
    two = ("ended member", *members[2], 0, 1, [])
    assert core.take() == [zero, two]
    core.exchange(*members[2], 0, b"")  # its worker has joined again: the answer may be lost
    assert core.take() == [two]
    core.results(members[0][0], [members[0][1]], TIME, body=b"0")
    assert core.take() == []
    core.results(members[2][0], [members[2][1]], TIME, body=b"2")
    assert core.take() == [resolved(10, body=packed(b"0", b"1", b"2"))]


def test_a_member_that_comes_after_another_has_ended_is_told_at_once() -> None:
    core = cluster()
    members = begun(core, 3)
    for member in members:
        core.exchange(*member, 0, b"value")
    core.take()
    core.results(members[2][0], [members[2][1]], TIME)
    for rank in (1, 0):
        assert core.take() == []
        core.exchange(*members[rank], 1, b"")
        assert core.take() == [("ended member", *members[rank], 1, 2, [])]


def test_a_member_that_ends_after_it_has_given_its_value_ends_no_exchange() -> None:
    core = cluster()
    members = begun(core, 3)
    core.exchange(*members[0], 0, b"zero")
    core.results(members[0][0], [members[0][1]], TIME)  # it has not waited for the others
    core.exchange(*members[1], 0, b"one")
    assert core.take() == []
    core.exchange(*members[2], 0, b"two")
    assert core.take() == [("exchange", *member, 0, [b"zero", b"one", b"two"]) for member in members[1:]]
    core.exchange(*members[1], 1, b"")
    assert core.take() == [("ended member", *members[1], 1, 0, [])]


def test_members_that_are_stopped_are_told_of_no_ended_member() -> None:
    core = cluster()
    members = begun(core, 3)
    core.exchange(*members[0], 0, b"zero")
    core.results(members[1][0], [members[1][1]], TIME)
    core.take()
    core.results(members[2][0], [members[2][1]], TIME, EXCEPTION, b"error")
    assert stopped(core) == dict(members[:1])
    core.exchange(*members[0], 0, b"zero")
    assert core.take() == []


def test_a_new_attempt_begins_with_exchange_0() -> None:
    core = cluster()
    members = begun(core, 2)
    core.exchange(*members[0], 0, b"old")
    core.results(members[1][0], [members[1][1]], TIME, RETRYABLE, b"error")
    core.take()
    core.exchange(*members[0], 0, b"old")
    core.results(members[0][0], [members[0][1]], TIME, EXCEPTION, b"stopped")
    members = sorted(dispatched(core).items(), key=lambda each: each[1][1])
    for rank in (0, 1):
        core.exchange(*members[rank], 0, b"%d" % rank)
    assert [sent[4] for sent in core.take()] == [[b"0", b"1"]] * 2


def test_wrong_exchanges() -> None:
    core = cluster()
    members = begun(core, 2)
    core.submit(C, [100])
    ((worker, plain),) = dispatched(core).items()
    core.exchange(worker, plain, 0, b"of no gang")
    core.exchange(*members[0], 1, b"too early")
    assert core.take() == []
    core.exchange(worker, members[0][1], 0, b"of a task that its worker should not run")
    assert core.take() == [("stop", worker, [members[0][1]])]
    core.exchange(*members[0], 0, bytes(65537))
    assert core.take() == [("error", members[0][0], "a value of 65537 bytes: a member of this gang may give 65536")]


def test_a_gang_that_can_never_begin_is_an_error() -> None:
    core = cluster()
    core.scheduler.task_limits.define({"db": LimitSettings(most=2)})
    core.scheduler.set_share_limits({"": ShareLimits(max_running=1500)})
    client = core.scheduler.tables.clients.find(11)
    assert client is not None
    for ids, options, text in (
        ([1], {"gang_size": 1025}, "a gang of 1025 tasks exceeds the limit of 1024"),
        ([1, 2], {"gang_size": 2}, "the ids of gangs of 2 tasks must be 2 apart: a member has the id of another gang"),
        (
            [1],
            {"gang_size": 3, "limits": ("db",)},
            "a gang of 3 tasks can never begin: the limit 'db' lets 2 run at once",
        ),
    ):
        core.submit(C, ids, **options)
        core.take_one("error", C, text)
    client.share.set_limits(ShareLimits(max_running=2))
    core.submit(C, [1], gang_size=3)
    core.take_one("error", C, "a gang of 3 tasks can never begin: its key may run 2 tasks at once (--max-running)")
    core.take()


def test_a_gang_needs_all_its_tokens() -> None:
    core = cluster()
    core.scheduler.task_limits.define({"db": LimitSettings(most=3)})
    core.submit(C, [1], limits=("db",))
    core.submit(C, [2], limits=("db",))
    running = dispatched(core)
    core.submit(C, [10], gang_size=2, limits=("db",))
    assert core.take() == []
    worker, row = next(iter(running.items()))
    core.results(worker, [row], TIME)
    core.take_one(*resolved(row[1]))
    assert sorted(each[1] for each in dispatched(core).values()) == [10, 11]
    assert core.scheduler.task_limits.by_name["db"].used == 3


def test_all_members_read_the_inputs() -> None:
    core = cluster()
    core.feed(events.Object(C, 1, "", [b"value"]))
    event = events.Submit(
        C, array("q", [10]), array("I", [1]), array("I", [4]), b"args", {}, events.Options(gang_size=2),
        array("q", [1]), array("I", [1]), array("B", [0]),
    )  # fmt: skip
    core.feed(event)
    rows = dispatched(core)
    assert sorted(row[1] for row in rows.values()) == [10, 11]
    for worker, row in rows.items():
        core.results(worker, [row], TIME, body=b"x")
    assert resolved(10, body=packed(b"x", b"x")) in core.take()


def test_ids_of_members_that_other_tasks_have() -> None:
    core = cluster(2)
    core.submit(C, [1])
    core.submit(C, [2])
    running = dispatched(core)
    core.submit(C, [10], gang_size=2)
    core.submit(C, [11])  # no client of ours does so
    for worker, row in running.items():
        core.results(worker, [row], TIME)
    assert [row[1] for row in dispatched(core).values()] == [11]
    core.take()


def test_many_small_tasks_do_not_starve_a_gang() -> None:
    core = cluster(4)
    core.submit(C, range(100, 200))
    running = dispatched(core)
    core.client(C2, 12)
    core.function(C2, 1, b"f")
    core.submit(C2, [10], gang_size=3)
    begun_at = 0
    for turn in range(1, 40):
        worker, row = next(iter(running.items()))
        del running[worker]
        core.results(worker, [row], TIME)
        got = dispatched(core)
        core.take()
        if any(row[0] == 12 for row in got.values()):
            begun_at = turn
            break
        running.update(got)
    assert 3 <= begun_at <= 4
    assert sorted(row[1] for row in got.values() if row[0] == 12) == [10, 11, 12]


def test_what_the_reservation_leaves_is_used() -> None:
    core = cluster(4)
    core.submit(C, range(100, 104))
    running = dispatched(core)
    core.submit(C, [10], gang_size=4)
    core.submit(C, [200], capabilities=frozenset({("gpu", 1)}))
    for _ in range(2):
        worker, row = running.popitem()
        core.results(worker, [row], TIME)
    core.take()
    core.worker(b"gpu", 40, capabilities=[("gpu", 1)])
    assert core.scheduler.core_state.gangs.lane is not None
    got = dispatched(core)
    assert got == {} or [row[1] for row in got.values()] == [200]


def test_a_task_of_higher_priority_goes_before_the_reservation() -> None:
    core = cluster(2)
    core.submit(C, [1, 2])
    running = dispatched(core)
    core.submit(C, [10], gang_size=2)
    worker, row = running.popitem()
    core.results(worker, [row], TIME)
    core.take()
    core.submit(C, [3])
    assert core.take() == []
    core.submit(C, [4], priority=1)
    assert [each[1] for each in dispatched(core).values()] == [4]


def test_two_gangs_do_not_block_each_other() -> None:
    core = cluster(4)
    core.submit(C, [10, 20], gang_size=3)
    first = dispatched(core)
    assert len(first) == 3 and core.take() == []
    for worker, row in first.items():
        core.results(worker, [row], TIME, body=b"x")
    assert sorted(row[1] for row in dispatched(core).values()) == [20, 21, 22]


def test_a_gang_without_enough_workers_is_reported() -> None:
    core = cluster(2)
    core.submit(C, [10], gang_size=3)
    core.heartbeat(A, 22, 23)
    core.wait_for_hosts()
    text = "1 gang(s) of 3 tasks wait: the connected hosts can never run so many at once: at most 2"
    assert warnings_of(core) == [text] == [text for _, text in core.notices]
    assert core.scheduler.core_state.gangs.lane is None  # it keeps no worker from others
    core.submit(C, [1])
    assert len(dispatched(core)) == 1


def test_a_gang_is_not_reported_while_workers_join() -> None:
    core = cluster(1)
    core.submit(C, [10], gang_size=3)
    core.wait(JOINING_SECONDS - 1)
    assert warnings_of(core) == [], "other hosts may follow"
    core.worker(b"another", 90)
    core.worker(b"the third", 91)
    core.wait_for_hosts()
    assert warnings_of(core) == [] == core.notices


def test_workers_that_join_one_after_another_delay_no_report_for_long() -> None:
    core = cluster(1)
    core.submit(C, [10], gang_size=100)
    for number in range(int(JOINING_SECONDS) + 2):
        core.worker(b"worker %d" % number, 90 + number)
        core.wait(1)
    assert "can never run so many at once" in warnings_of(core)[0]


def test_a_gang_that_comes_to_a_complete_cluster_is_reported_at_once() -> None:
    core = cluster(2)
    core.wait_for_hosts()
    core.submit(C, [10], gang_size=3)
    core.heartbeat(A, 22, 23)
    core.wait(2)
    assert "can never run so many at once" in warnings_of(core)[0]


def test_results_that_are_too_large_together() -> None:
    core = cluster(2, Limits(message_size=100))
    members = begun(core, 2)
    core.feed(results_event(members[0][0], [members[0][1]], TIME, 0, bytes(60)))
    core.feed(results_event(members[1][0], [members[1][1]], TIME, 0, bytes(60)))
    ((_, _, rows),) = core.take()
    assert rows[0][1] == 3
    assert rows[0][2] == b"function 1: the results of the gang have 128 bytes (--message-size-limit: 100)"
