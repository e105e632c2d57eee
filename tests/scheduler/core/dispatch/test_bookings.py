"""Counted resources of hosts: bookings, ids, cpus, reservations, restarts, lost workers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.core.harness import EPOCH, SECOND, A, C, Core, Row, warnings_of

from scaler_scheduler.core import events, submissions
from scaler_scheduler.core.limits import LimitSettings
from scaler_scheduler.core.placement.host_choice import PATIENCE_SECONDS
from scaler_scheduler.core.placement.placement import Placement
from scaler_scheduler.core.placement.task_limits import HOLD_SECONDS
from scaler_scheduler.core.placement.wait import Wait
from scaler_scheduler.core.report.unschedulable import MAX_REPORTS
from scaler_scheduler.core.state.functions import Function
from scaler_scheduler.core.state.records import Lane, Worker
from scaler_scheduler.core.state.resource_pools import ResourcePool

GPUS = (("gpu", 2000, True), ("memory", 64_000, False))


def cluster(workers: int = 4, resources: events.HostResources = GPUS, **limits: LimitSettings) -> Core:
    """A client with function 1, and workers 100, 101, ... of one agent."""
    core = Core()
    core.scheduler.task_limits.define(limits)
    core.client(C, 11)
    core.function(C, 1, b"f")
    host(core, 0, workers, resources)
    return core


def host(core: Core, number: int, workers: int, resources: events.HostResources = GPUS, slots: int = 0) -> None:
    """A host with its workers."""
    slots = slots or workers
    core.agent(b"agent %d" % number, 50 + number, resources=resources, slots=slots, host=f"node-{number}")
    for each in range(workers):
        core.worker(route(each, number), 100 * (number + 1) + each, agent=50 + number)
    core.take()


def route(worker: int, number: int = 0) -> bytes:
    return b"worker %d of %d" % (worker, number)


def given(core: Core) -> dict[bytes, list[Row]]:
    """The tasks that were dispatched since the last call, by worker."""
    rows: dict[bytes, list[Row]] = {}
    for sent in core.take():
        if sent[0] == "dispatch":
            rows.setdefault(sent[1], []).extend(row[:3] for row in sent[2])
    return rows


def ids_of(rows: dict[bytes, list[Row]]) -> list[int]:
    return sorted(row[1] for each in rows.values() for row in each)


def units(core: Core, name: str = "gpu", number: int = 0) -> dict[int, int]:
    return core.scheduler.bookings.hosts[50 + number].pools[name].units


def used(core: Core, name: str = "gpu", number: int = 0) -> int:
    return core.scheduler.bookings.hosts[50 + number].pools[name].used


def test_so_many_tasks_run_at_once_and_others_pass() -> None:
    core = cluster()
    core.submit(C, range(5), resources=(("gpu", 1000),))
    core.submit(C, [10], body=b"x")
    running = given(core)
    assert ids_of(running) == [0, 1, 10]
    assert units(core) == {0: 1000, 1: 1000}
    worker = next(worker for worker, rows in running.items() if rows[0][1] == 0)
    core.results(worker, running[worker], SECOND)
    assert ids_of(given(core)) == [2]
    assert used(core) == 2000


def test_fractions_share_an_id_only_within_it() -> None:
    core = cluster(8)
    core.submit(C, [1, 2, 3], resources=(("gpu", 600),))
    assert ids_of(given(core)) == [1, 2]
    assert units(core) == {0: 600, 1: 600}  # 800 thousandths are free, and no unit has 600
    core.wait(2 * PATIENCE_SECONDS)
    core.submit(C, [4, 5], resources=(("gpu", 400),))
    assert ids_of(given(core)) == []  # the free parts are kept for task 3, which waits longer
    core.cancel(C, 3)
    assert ids_of(given(core)) == [4, 5]
    assert units(core) == {0: 1000, 1: 1000}


def test_ids_of_units() -> None:
    pool = ResourcePool(4000, has_ids=True)
    assert pool.choose(1500) == [(0, 1000), (1, 500)]
    pool.take(500, [(3, 500)])
    assert pool.choose(500) == [(3, 500)]
    assert pool.choose(2600) == [(0, 1000), (1, 1000), (2, 600)]
    assert pool.choose(3600) is None
    assert pool.choose(1000, kept=2000) == [(0, 1000)] and pool.choose(1001, kept=2000) == [(0, 1000), (3, 1)]
    assert pool.choose(1501, kept=2000) is None


def test_what_ends_frees() -> None:
    """Every end of an attempt gives back what it has."""
    core = cluster()
    gpu = {"resources": (("gpu", 2000), ("memory", 1000))}
    core.submit(C, [1], **gpu)
    ((worker, rows),) = given(core).items()
    core.results(worker, rows, SECOND, outcome=4)  # it asks for another attempt
    ((worker, rows),) = given(core).items()
    assert (rows[0][2], used(core)) == (2, 2000)
    core.died(b"agent 0", 100 + int(worker.split()[1]), rows[0])
    core.take_one("error", C, core.errors[0].text) if core.errors else None
    ((worker, rows),) = given(core).items()
    assert (rows[0][2], used(core)) == (3, 2000)
    core.submit(C, [2], **gpu)
    core.started(worker, rows[0])
    core.cancel(C, 1, force=True)
    assert ids_of(given(core)) == []  # it may still run
    core.results(worker, rows, SECOND)
    ((worker, rows),) = given(core).items()
    assert (rows[0][1], used(core)) == (2, 2000)
    core.goodbye(worker)
    ((worker, rows),) = given(core).items()
    core.results(worker, rows, SECOND)
    assert (used(core), used(core, "memory"), units(core)) == (0, 0, {})
    assert not core.scheduler.holdings.held and not core.scheduler.bookings.open


def test_short_tasks_with_equal_resources_share_a_booking() -> None:
    core = cluster(1)
    gpu = {"resources": (("gpu", 1000),)}
    core.submit(C, [1], **gpu)
    core.results(route(0), given(core)[route(0)], 1000)
    core.submit(C, range(10, 60), **gpu)
    rows = given(core)[route(0)]
    assert len(rows) == 50 and used(core) == 1000
    core.submit(C, [70], resources=(("gpu", 500),))
    assert not given(core)  # it needs an idle worker
    core.results(route(0), rows[:49], 1000)
    assert used(core) == 1000
    core.results(route(0), rows[49:], 1000)
    assert ids_of(given(core)) == [70] and used(core) == 500


def test_a_task_with_several_cpus_sets_workers_aside() -> None:
    core = cluster(4)
    core.submit(C, [1], resources=(("cpus", 3000),))
    ((worker, rows),) = given(core).items()
    core.submit(C, [2, 3])
    others = given(core)
    assert ids_of(others) == [2]
    core.results(next(iter(others)), next(iter(others.values())), SECOND)
    assert ids_of(given(core)) == [3]
    core.submit(C, [4, 5], body=b"x")
    assert not given(core)
    core.results(worker, rows, SECOND)
    assert ids_of(given(core)) == [4, 5]


def test_a_host_says_that_a_worker_is_several_cpus() -> None:
    core = cluster(4, (("cpus", 8000, False),))
    core.submit(C, [1], resources=(("cpus", 2000),))
    core.submit(C, [2], resources=(("cpus", 5000),))
    assert ids_of(given(core)) == [1, 2]
    core.submit(C, [3])
    assert not given(core)  # 1 worker, and 3 for 5 cpus


def test_a_large_task_is_not_starved_by_small_ones() -> None:
    """It waits for the tasks that run when it comes, and for one task of each lane that waits already. Small ones fill
    what it leaves."""
    core = cluster(8, (("gpu", 4000, True), ("license", 2000, False)))
    small = {"resources": (("gpu", 1000),)}
    core.submit(C, range(100), **small)
    running = given(core)
    assert len(running) == 4
    core.submit(C, [500], priority=0, resources=(("gpu", 4000),))
    core.wait(2 * PATIENCE_SECONDS)
    core.submit(C, [600, 601, 602], resources=(("license", 1000),))
    licensed = given(core)
    assert ids_of(licensed) == [600, 601]
    core.results(*running.popitem(), SECOND)
    ((worker, rows),) = given(core).items()
    assert ids_of({worker: rows}) == [4]
    running[worker] = rows
    for count, (worker, rows) in enumerate(running.items(), 1):
        core.results(worker, rows, SECOND)
        assert ids_of(given(core)) == ([] if count < 4 else [500])
    assert used(core) == 4000
    worker, rows = next(iter(licensed.items()))
    core.results(worker, rows, SECOND)
    assert ids_of(given(core)) == [602]


def test_plain_tasks_do_not_starve_one_with_several_cpus() -> None:
    core = cluster(4, ())
    core.submit(C, [1])
    core.results(*next(iter(given(core).items())), SECOND // 100)
    core.submit(C, range(10, 400))
    running = given(core)
    core.submit(C, [500], resources=(("cpus", 4000),))
    assert not given(core)
    core.results(*running.popitem(), SECOND // 100)
    running |= given(core)  # its lane has its turn next
    core.wait(2 * PATIENCE_SECONDS)
    core.results(*running.popitem(), SECOND // 100)
    running |= given(core)
    core.wait(2 * PATIENCE_SECONDS)
    for worker, rows in running.items():
        assert not given(core)
        core.results(worker, rows, SECOND // 100)
    assert 500 in ids_of(given(core))


def test_best_fit_keeps_room_for_large_tasks() -> None:
    core = cluster(4, (("memory", 10_000, False),))
    host(core, 1, 4, (("memory", 4000, False),))
    host(core, 2, 4, (("memory", 4000, False), ("gpu", 1000, True)))
    core.submit(C, [1], resources=(("memory", 4000),))
    core.submit(C, [2], resources=(("memory", 10_000),))
    core.submit(C, [3], resources=(("memory", 4000), ("gpu", 1000)))
    assert ids_of(given(core)) == [1, 2, 3]
    assert [used(core, "memory", number) for number in range(3)] == [10_000, 4000, 4000]


def test_a_parent_that_waits_gives_its_cpus_back_and_keeps_the_rest() -> None:
    core = cluster(2)
    core.submit(C, [1], resources=(("cpus", 2000), ("gpu", 2000)))
    ((worker, rows),) = given(core).items()
    core.started(worker, rows[0])
    nested = b"nested"
    core.client(nested, 12, worker=100 + int(worker.split()[1]))
    core.function(nested, 1, b"f")
    core.submit(nested, [1, 2], depth=1)
    assert not given(core)
    core.suspended(nested, rows[0])
    children = given(core)
    assert len(children) == 2 and used(core) == 2000
    core.submit(C, [2], resources=(("gpu", 1000),))
    assert not given(core)
    core.resumed(nested, rows[0])
    for each in children:
        core.results(each, children[each], SECOND)
    assert not given(core)  # one worker is aside again, and the other runs the parent
    core.results(worker, rows, SECOND)
    assert ids_of(given(core)) == [2]


def test_a_parent_may_release_all_when_it_waits() -> None:
    core = cluster(2)
    core.submit(C, [1], resources=(("cpus", 2000), ("gpu", 2000)), release_resources=True)
    ((worker, rows),) = given(core).items()
    core.started(worker, rows[0])
    core.client(b"nested", 12, worker=100 + int(worker.split()[1]))
    core.suspended(b"nested", rows[0])
    assert not core.scheduler.holdings.held
    core.submit(C, [2], resources=(("gpu", 2000),))
    ((other, others),) = given(core).items()
    core.resumed(b"nested", rows[0])
    core.results(worker, rows, SECOND)
    assert used(core) == 2000
    core.results(other, others, SECOND)
    assert used(core) == 0


def test_a_worker_gives_rows_back_that_share_the_booking_of_a_suspended_task() -> None:
    core = cluster(1)
    gpu = {"resources": (("gpu", 1000),)}
    core.submit(C, [1], **gpu)
    core.results(route(0), given(core)[route(0)], 1000)
    core.submit(C, [2, 3], **gpu)
    rows = given(core)[route(0)]
    core.client(b"nested", 12, worker=100)
    core.suspended(b"nested", rows[0])
    core.retracted(route(0), rows[1:], 1)
    assert [row[1] for row in given(core)[route(0)]] == [3]
    assert units(core) == {0: 1000, 1: 1000}


def restarted(running: bool, **more: Any) -> Core:
    """A new scheduler, whose agent and worker come from an earlier one."""
    core = Core()
    core.hello(C, events.CLIENT, 11, scheduler=EPOCH + 1)
    core.function(C, 1, b"f")
    core.hello(A, events.AGENT, 50, scheduler=EPOCH + 1, resources=GPUS, slots=3)
    for number in range(3):
        core.hello(route(number), events.WORKER, 100 + number, 50, scheduler=EPOCH + 1)
    claim = (77, (("gpu", 1000, (1,)),))
    core.hello(
        route(9), events.WORKER, 109, 50, running=[(11, 1, 4)], bookings={(11, 1, 4): claim}, scheduler=EPOCH + 1
    )
    core.take()
    return core


def test_bookings_are_exact_after_a_restart() -> None:
    core = restarted(running=True)
    core.submit(C, [1, 2, 3], resources=(("gpu", 1000),))
    core.wait(HOLD_SECONDS + 1)
    assert ids_of(given(core)) == [2]
    assert units(core) == {0: 1000, 1: 1000}
    core.results(route(9), [(11, 1, 4)], SECOND)
    assert ids_of(given(core)) == [3]
    assert units(core) == {0: 1000, 1: 1000}


def test_a_running_task_without_its_client_keeps_its_resources() -> None:
    core = restarted(running=True)
    core.wait(HOLD_SECONDS + 1)
    assert units(core) == {1: 1000}
    core.goodbye(route(9))
    assert units(core) == {}


def test_amounts_of_memory_are_shown_as_sizes() -> None:
    core = cluster(2)
    host(core, 1, 2, (("memory", (2 << 30) * 1000, False),))
    core.submit(C, [1], resources=(("memory", (3 << 30) * 1000),))
    core.wait_for_hosts()
    option = "scaler_cluster --resources memory=3G"
    assert warnings_of(core) == [
        f"1 task(s) wait: no host has memory=3G ({option}); the nearest, node-1, has memory=2G"
    ]


def test_resources_that_no_host_has() -> None:
    core = cluster(2)
    host(core, 1, 2, (("gpu", 1000, True), ("license", 1000, False)))
    core.submit(C, [1], resources=(("gpu", 8000), ("license", 1000)))
    core.submit(C, [2], resources=(("cpus", 3000),))
    core.wait_for_hosts()
    texts = [
        "1 task(s) wait: no host has gpu=8, license=1 (scaler_cluster --resources gpu=8,license=1); "
        "the nearest, node-1, has gpu=1",
        "1 task(s) wait: no host has cpus=3 (scaler_cluster --resources cpus=3); the nearest, node-0, has cpus=2",
    ]
    assert sorted(warnings_of(core)) == sorted(texts)
    assert sorted(core.notices) == sorted((C, text) for text in texts)
    assert core.scheduler.unschedulable.task_count == 2
    host(core, 2, 3, (("gpu", 8000, True), ("license", 1000, False)))
    core.wait(2)
    assert core.scheduler.unschedulable.task_count == 0


def test_a_host_that_changes_its_resources_at_its_return() -> None:
    core = cluster()
    core.submit(C, [1, 2, 3], resources=(("gpu", 1000),))
    running = given(core)
    core.agent(b"agent again", 50, resources=(("gpu", 1000, True),), slots=4, host="node-0")
    assert warnings_of(core) == ["host node-0 has other resources than before: gpu=1; what is booked stays booked"]
    for worker, rows in running.items():
        core.results(worker, rows, SECOND)
    assert ids_of(given(core)) == [3]
    assert units(core) == {0: 1000}


def test_a_host_without_agent_gets_no_new_tasks_with_resources() -> None:
    core = cluster()
    core.submit(C, [1], resources=(("gpu", 1000),))
    assert ids_of(given(core)) == [1]
    core.goodbye(b"agent 0")
    core.take()
    core.submit(C, [2], resources=(("gpu", 1000),))
    assert not given(core)


def test_a_task_that_waits_for_its_limit_reserves_nothing() -> None:
    core = cluster(4, db=LimitSettings(most=1))
    core.submit(C, [1], limits=("db",))
    ((worker, rows),) = given(core).items()
    core.submit(C, [2], limits=("db",), resources=(("gpu", 2000),))
    core.submit(C, [3], resources=(("gpu", 1000),))
    others = given(core)
    assert ids_of(others) == [3] and not core.scheduler.bookings.reservations
    core.results(worker, rows, SECOND)
    core.wait(2 * PATIENCE_SECONDS)
    assert not given(core) and len(core.scheduler.bookings.reservations) == 1
    core.results(*next(iter(others.items())), SECOND)
    assert ids_of(given(core)) == [2]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[events.Resources]:
    """The resources for which the dispatcher has looked for a worker."""
    found: list[events.Resources] = []
    look = Placement._worker_with_resources

    def noted(placement: Placement, lane: Lane, function: Function, cost: int) -> Worker | Wait:
        found.append(lane.resources)
        return look(placement, lane, function, cost)

    monkeypatch.setattr(Placement, "_worker_with_resources", noted)
    return found


def looks_of(core: Core, looks: list[events.Resources]) -> int:
    """How often the dispatcher looks for a worker in a step in which nothing has changed."""
    looks.clear()
    core.scheduler.dispatcher.run()
    return len(looks)


def test_tasks_that_no_host_could_run_cost_nothing(looks: list[events.Resources]) -> None:
    core = cluster()
    for number in range(30):
        core.submit(C, [number], resources=(("gpu", 3000 + number),))
    core.submit(C, [100], resources=(("gpu", 2000),))
    ((worker, rows),) = given(core).items()
    assert looks_of(core, looks) == 0
    core.submit(C, [101, 102], resources=(("gpu", 1000),))
    core.submit(C, [103], body=b"plain")
    assert ids_of(given(core)) == [103]
    assert looks_of(core, looks) == 1, "the lane of 101 alone: a host may have room for it soon"
    looks.clear()
    core.results(worker, rows, SECOND)
    assert ids_of(given(core)) == [101, 102] and not any(dict(each)["gpu"] >= 3000 for each in looks)
    host(core, 1, 2, (("gpu", 4000, True),))
    assert used(core, number=1) == 3029, "the largest task that it has room for runs there"
    core.feed(events.Goodbye(b"agent 1", "SIGTERM"))
    core.take()
    core.cancel(C, *range(30))
    assert not core.scheduler.core_state.queues.parked and looks_of(core, looks) == 0


def test_tasks_that_no_host_could_run_begin_when_a_host_has_more(looks: list[events.Resources]) -> None:
    core = cluster()
    core.submit(C, [1, 2], resources=(("gpu", 3000),))
    core.submit(C, [3], resources=(("license", 1000),))
    core.submit(C, [4], resources=(("none", 1000),))
    assert not given(core) and looks_of(core, looks) == 0
    core.agent(A, 50, resources=(("gpu", 3000, True), ("license", 1000, False)), slots=4, host="node-0")
    assert ids_of(given(core)) == [1, 3]
    assert looks_of(core, looks) == 1, "the lane of 2"
    assert [lane.resources for lane in core.scheduler.core_state.queues.parked] == [(("none", 1000),)]


def test_tasks_that_ask_for_cpus_begin_on_the_first_host() -> None:
    core = Core()
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.worker(b"without a host", 99)
    core.submit(C, [1], resources=(("cpus", 1000),))
    assert not given(core)
    core.agent(b"agent", 50)  # it does not say how many workers it has
    core.worker(route(0), 100, agent=50)
    assert ids_of(given(core)) == [1]


def test_many_kinds_of_resources_of_one_client_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "MAX_RESOURCE_KINDS", 20)
    core = cluster()
    for number in range(20):
        core.submit(C, [number], resources=((f"r{number}", 1000),))
    core.take()
    core.submit(C, [5000], resources=(("more", 1000),))
    assert core.errors[-1].tasks == [5000]
    assert core.errors[-1].text.startswith("the client's open tasks ask for 20 different sets")
    core.cancel(C, 0)
    core.submit(C, [5001], resources=(("more", 1000),))
    assert len(core.errors) == 1
    core.take()


def test_why_a_task_waits() -> None:
    core = cluster(2)
    host(core, 1, 2, (("gpu", 2000, True),))
    host(core, 2, 2, (("license", 1000, False),))
    core.submit(C, [1, 2, 3], resources=(("gpu", 1500),))
    core.submit(C, [4], resources=(("cpus", 2000), ("gpu", 1000)))
    assert ids_of(given(core)) == [1, 2]
    core.wait(2 * PATIENCE_SECONDS)
    lanes = {lane.resources: lane for lane in core.scheduler.core_state.queues.lanes()}
    hosts = core.scheduler.core_state.hosts
    lines = sorted(hosts.explain(lanes[("gpu", 1500),], "it"))
    lacks = "could serve it: gpu: 0.5 of 2 free, 1.5 asked"
    kept = "reserved for it", "reserved for others"
    assert lines in ([f"host: node-{at} {lacks}, {kept[at != own]}" for at in (0, 1)] for own in (0, 1))
    first, _ = hosts.explain(lanes[("cpus", 2000), ("gpu", 1000)], "it")
    assert ": gpu: 0.5 of 2 free, 1 asked, workers: 1 of 2 idle, 2 asked, reserved" in first


@pytest.mark.parametrize("lost", ["client", "worker"])
def test_reservations_end_with_their_tasks(lost: str) -> None:
    core = cluster(2)
    core.submit(C, [1], resources=(("gpu", 1000),))
    core.submit(C, [2], resources=(("gpu", 2000), ("cpus", 2000)))
    core.wait(2 * PATIENCE_SECONDS)
    given(core)
    assert len(core.scheduler.bookings.reservations) == 1
    if lost == "client":
        core.goodbye(C)
    else:
        core.goodbye(route(0))
        core.goodbye(route(1))
        core.goodbye(b"agent 0")
    core.take()
    assert not core.scheduler.bookings.reservations


def test_a_report_of_a_name_that_no_host_has_lists_those_that_there_are() -> None:
    core = cluster(2)
    host(core, 1, 2, tuple((f"r{number}", 1000, False) for number in range(10)))
    core.submit(C, [1], resources=(("r11", 1000),))
    core.submit(C, [2], resources=(("cpu", 1000), ("cpus", 3000)))
    core.wait_for_hosts()
    there = "hosts offer gpu, memory, r0, r1, r2, r3, r4, r5 and 4 more"
    assert warnings_of(core) == [
        "1 task(s) wait: no host has r11=1 (scaler_cluster --resources r11=1); the nearest, node-0, has no r11; "
        f"{there}",
        "1 task(s) wait: no host has cpu=1, cpus=3 (scaler_cluster --resources cpu=1,cpus=3); the nearest, node-0, has "
        f"no cpu, cpus=2; {there}",
    ]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"GPU": 1}, "gpu"),
        ({"gpus": 1}, "gpu"),
        ({"licence": 1}, "License"),
        ({"cpu": 1}, "cpus"),
        ({"Gpu": 1, "memroy": 1}, "gpu, memory"),
        ({"A100": 1}, "a100"),
    ],
)
def test_a_misspelt_resource_is_not_recommended_to_the_operator(asked: dict[str, int], meant: str) -> None:
    core = cluster(2)
    host(core, 1, 2, tuple((name, 1000, False) for name in ("License", "a100", "gpu", "memory")))
    core.submit(C, [1], resources=tuple((name, 1000 * amount) for name, amount in asked.items()))
    core.wait_for_hosts()
    (text,) = warnings_of(core)
    assert f" (did you mean {meant}?); the nearest, " in text and "--resources" not in text


@pytest.mark.parametrize("asked", ["ram", "h100", "xpu"])
def test_a_resource_of_another_name_is_recommended_to_the_operator(asked: str) -> None:
    core = cluster(2)
    host(core, 1, 2, tuple((name, 500, False) for name in ("License", "a100", "gpu", "memory")))
    core.submit(C, [1], resources=((asked, 1000),))
    core.wait_for_hosts()
    (text,) = warnings_of(core)
    assert f" (scaler_cluster --resources {asked}=1); the nearest, " in text


def test_a_client_that_asks_for_many_things_that_are_not_there_gets_few_reports() -> None:
    core = cluster(2)
    for number in range(500):
        core.submit(C, [number + 1], resources=((f"n{number}", 1000),))
    core.wait_for_hosts()
    texts = warnings_of(core)
    assert len(texts) == MAX_REPORTS + 1
    assert texts[-1] == (
        f"{500 - MAX_REPORTS} more task(s) with {500 - MAX_REPORTS} other needs wait that no connected worker can run: "
        "`scaler_client why TASK` says what each lacks"
    )
    core.wait_for_hosts()
    assert warnings_of(core) == []
