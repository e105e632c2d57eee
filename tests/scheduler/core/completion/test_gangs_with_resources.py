"""Gangs whose members ask for resources: all are booked in one step, or none is."""

from __future__ import annotations

from collections import deque

import pytest
from tests.scheduler.core.dispatch.test_bookings import cluster, given, host, ids_of, route, used
from tests.scheduler.core.harness import C2, EXCEPTION, SECOND, C, Core, warnings_of

from scaler_scheduler.core import events

GPU = (("gpu", 1000),)
TIME = 60 * SECOND


def lines(core: Core, task_id: int) -> list[str]:
    return core.scheduler.wait_reasons.lines(11, task_id)


def test_all_members_are_booked_at_once() -> None:
    core = cluster(4)
    host(core, 1, 4)
    core.submit(C, [10], gang_size=4, resources=GPU)
    sent = core.take()
    bookings = [each[3] for each in sent if each[0] == "gang member"]
    assert bookings == [0, 1, 2, 3]
    assert (used(core), used(core, number=1)) == (2000, 2000)
    for each in [each for each in sent if each[0] == "dispatch"]:
        core.results(each[1], [each[2][0][:3]], TIME, body=b"x")
    assert (used(core), used(core, number=1)) == (0, 0)
    core.take()


def test_nothing_is_booked_while_there_is_not_enough_for_all() -> None:
    core = cluster(4)
    core.submit(C, [1], resources=GPU)
    running = given(core)
    core.submit(C, [10], gang_size=2, resources=GPU)
    assert given(core) == {} and used(core) == 1000
    assert "resources: it needs gpu=1 of one host" in lines(core, 10)
    assert "host: node-0 could serve one of its members: it has room" in lines(core, 10)
    assert not any("never" in line for line in lines(core, 10))
    ((worker, rows),) = running.items()
    core.results(worker, rows, TIME)
    assert ids_of(given(core)) == [10, 11] and used(core) == 2000


def test_small_tasks_leave_the_resource_to_a_gang() -> None:
    core = cluster(4)
    core.submit(C, range(1, 3), resources=(("gpu", 500),))
    core.submit(C, range(3, 5), resources=(("gpu", 500),))
    running = given(core)
    core.submit(C, [10], gang_size=2, resources=GPU)
    core.submit(C, range(100, 150), resources=(("gpu", 500),))
    for _ in range(8):
        if not running:
            break
        worker, rows = running.popitem()
        core.results(worker, rows, TIME)
        got = given(core)
        if 10 in ids_of(got):
            assert not running and {10, 11} <= set(ids_of(got))
            return
        running.update(got)
    raise AssertionError("the gang was starved")


def test_a_broken_gang_gives_its_resources_back() -> None:
    core = cluster(4)
    core.submit(C, [10], gang_size=2, resources=GPU, retries=0)
    running = given(core)
    for worker, rows in running.items():
        core.results(worker, rows, TIME, EXCEPTION, b"error")
        core.take()
    assert used(core) == 0


def test_a_gang_that_no_hosts_could_ever_serve() -> None:
    core = cluster(4)
    core.submit(C, [10], gang_size=3, resources=GPU)
    core.heartbeat(b"agent 0", 100, 101, 102, 103)
    core.wait_for_hosts()
    never = "the connected hosts can never run so many at once: at most 2"
    assert warnings_of(core) == [f"1 gang(s) of 3 tasks with gpu=1 each wait: {never}"]
    assert lines(core, 10)[1:3] == [
        "gang: it needs 3 idle workers at once; 4 can run its members, 4 of them are idle",
        "gang: the connected hosts can never run its 3 members at once: at most 2, with gpu=1 each",
    ]
    assert core.scheduler.core_state.gangs.lane is None
    core.submit(C, [1], resources=GPU)
    assert ids_of(given(core)) == [1]


def test_members_with_several_cpus() -> None:
    core = cluster(6)
    core.submit(C, [10], gang_size=3, resources=(("cpus", 2000),))
    assert ids_of(given(core)) == [10, 11, 12]
    core.submit(C, [1])
    assert given(core) == {}, "all workers are lent to the gang"
    assert route(0)


@pytest.mark.parametrize("is_own", [True, False], ids=["of its client", "of another client"])
@pytest.mark.parametrize("small", [(), (("gpu", 250),)], ids=["plain", "with a part of a gpu"])
def test_a_gang_of_all_hosts_is_not_starved_by_small_tasks(small: events.Resources, is_own: bool) -> None:
    """Each host has one GPU, and several workers that are always busy. Idle workers of one host are no use."""
    core = Core()
    for client, incarnation in ((C, 11), (C2, 12)):
        core.client(client, incarnation)
        core.function(client, 1, b"f")
    for number in range(4):
        host(core, number, 4, (("gpu", 1000, True),))
    other = C if is_own else C2
    core.submit(other, range(100, 140), resources=small)
    running = deque(given(core).items())
    core.submit(C, [10], gang_size=4, resources=GPU)
    for number in range(200, 232):  # each worker's task ends twice
        worker, rows = running.popleft()
        core.results(worker, rows, SECOND)
        core.submit(other, [number], resources=small)
        got = given(core)
        if {10, 11, 12, 13} <= set(ids_of(got)):
            assert [used(core, number=each) for each in range(4)] == [1000] * 4
            return
        running.extend(got.items())
    raise AssertionError("the gang was starved")
