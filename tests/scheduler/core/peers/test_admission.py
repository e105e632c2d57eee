"""Keys: their roles, the incarnations that they own, and peers whose key was revoked. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import C2, CANCELLED, W2, A, C, Core, W, dispatched, resolved, warnings_of

from scaler_scheduler.core import effects, events

ALICE, BOB = "client:" + "a" * 64, "client:" + "b" * 64
HOST, HOST2 = "worker:" + "1" * 64, "worker:" + "2" * 64
MONITOR = "monitor:" + "3" * 64
ANOTHERS = "a {} with another key has this incarnation"


def refused(route: bytes, text: str):
    return ("refused", route, effects.REFUSED_NOT_AUTHORIZED, text)


def join(core: Core, route: bytes, role: int, incarnation: int, user: str, **more) -> None:
    core.hello(route, role, incarnation, user=user, **more)
    core.take_one("welcome", route)


def cut_off(core: Core, *users: str) -> int:
    peers = core.scheduler.revoke(set(users), core.now)
    core._collect()
    return peers


@pytest.mark.parametrize(
    "user, role, worker, text",
    [
        (ALICE, events.WORKER, 0, "this is a client's key: workers need a worker's key (authorize --as worker)"),
        (ALICE, events.AGENT, 0, "this is a client's key: agents need a worker's key (authorize --as worker)"),
        (ALICE, events.CLIENT, 22, "this is a client's key: a client inside a worker has the worker's key"),
        (HOST, events.CLIENT, 0, "this is a worker's key: clients outside of tasks need a client's key "
                                 "(authorize --as client)"),
        (MONITOR, events.CLIENT, 0, "this key is neither a client's nor a worker's"),
        (MONITOR, events.AGENT, 0, "this key is neither a client's nor a worker's"),
    ],
)  # fmt: skip
def test_hellos_that_a_key_does_not_allow(core, user, role, worker, text):
    core.hello(C, role, 11, user=user, worker=worker)
    assert core.take() == [refused(C, text)]
    assert not any(core.tables().values())
    core.submit(C, [1])
    assert core.take() == [("hello wanted", C)]


def test_hellos_that_a_key_allows(core):
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, A, events.AGENT, 33, HOST)
    join(core, W, events.WORKER, 22, HOST, agent=33)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)
    join(core, b"nested 2", events.CLIENT, 98, HOST, worker=21)  # its worker has not joined yet


@pytest.mark.parametrize("role, name", [(events.CLIENT, "client"), (events.WORKER, "worker"), (events.AGENT, "agent")])
def test_an_incarnation_belongs_to_its_first_key(core, role, name):
    """A replayed hello takes nothing over. The owner continues, and may join again by another connection."""
    first, second = (ALICE, BOB) if role == events.CLIENT else (HOST, HOST2)
    join(core, b"first", role, 11, first)
    core.hello(b"second", role, 11, user=second)
    assert core.take() == [refused(b"second", ANOTHERS.format(name))]
    core.heartbeat(b"first")
    join(core, b"third", role, 11, first)


def test_a_client_that_has_left_still_belongs_to_its_key(core):
    """Its running tasks are its own. No other key resumes it."""
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, W, events.WORKER, 22, HOST)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (row,) = core.take_dispatched(W)
    core.goodbye(C)
    core.take()
    core.hello(C2, events.CLIENT, 11, user=BOB)
    assert core.take() == [refused(C2, ANOTHERS.format("client"))]
    core.results(W, [row])
    assert core.take() == [("forget", W, [1])]


def test_ids_of_another_client_have_no_effect(core):
    """Ids belong to a client. A cancel of Bob with Alice's ids cancels nothing."""
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, C2, events.CLIENT, 12, BOB)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    core.cancel(C2, 1, force=True)
    assert core.take() == []
    core.cancel(C, 1)
    assert core.take() == [resolved(1, outcome=CANCELLED)]


def test_a_hello_may_not_name_workers_and_agents_of_another_key(core):
    join(core, A, events.AGENT, 33, HOST)
    join(core, W, events.WORKER, 22, HOST, agent=33)
    core.hello(W2, events.WORKER, 23, agent=33, user=HOST2)
    assert core.take() == [refused(W2, ANOTHERS.format("agent"))]
    core.hello(C, events.CLIENT, 99, worker=22, user=HOST2)
    assert core.take() == [refused(C, ANOTHERS.format("worker"))]


def test_a_false_nested_client_is_removed_when_the_worker_joins(core):
    join(core, C, events.CLIENT, 99, HOST2, worker=22)
    join(core, C2, events.CLIENT, 98, HOST, worker=22)
    core.hello(W, events.WORKER, 22, user=HOST)
    assert core.take() == [
        refused(C, "it is not a client of the worker that it named"),
        ("welcome", W),
    ]
    assert warnings_of(core) == ["client name is removed: it is not a client of the worker that it named"]
    core.heartbeat(C2)


def test_a_revoked_clients_tasks_are_cancelled(core):
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, C2, events.CLIENT, 12, BOB)
    for route in (C, C2):
        core.function(route, 1, b"f")
        core.submit(route, [1, 2])
    assert cut_off(core, ALICE) == 1
    assert core.take() == [refused(C, "its key was revoked")]
    assert (len(core.scheduler.tables.clients), core.scheduler.counts.waiting) == (1, 2)
    core.submit(C, [3])
    assert core.take() == [("hello wanted", C)]


def test_a_revoked_hosts_tasks_run_elsewhere(core):
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, A, events.AGENT, 33, HOST)
    join(core, W, events.WORKER, 22, HOST, agent=33)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (row,) = core.take_dispatched(W)
    join(core, W2, events.WORKER, 23, HOST2)
    assert cut_off(core, HOST) == 3
    sent = core.take()
    assert [each for each in sent if each[0] == "refused"] == [
        refused(route, "its key was revoked") for route in (A, W, b"nested")
    ]
    assert [each[2][0][:3] for each in sent if each[0] == "dispatch" and each[1] == W2] == [(11, 1, row[2] + 1)]
    core.results(W, [row])
    assert core.take() == [("hello wanted", W)]
    assert dispatched(core) == {}


def test_without_keys_no_peer_is_refused(core):
    core.client(C, 11, worker=22)
    core.worker(W, 22)
    core.client(C2, 11)
    core.worker(W2, 22)


def test_what_a_revoked_key_had_booked_is_free_again(core):
    gpu = (("gpu", 1000),)
    join(core, C, events.CLIENT, 11, ALICE)
    join(core, C2, events.CLIENT, 12, BOB)
    core.agent(A, 33, user=HOST, resources=(("gpu", 1000, True),), slots=1)
    join(core, W, events.WORKER, 22, HOST, agent=33)
    for route in (C, C2):
        core.function(route, 1, b"f")
    core.submit(C, [1], resources=gpu)
    (row,) = core.take_dispatched(W)
    core.submit(C2, [2], resources=gpu)
    pool = core.scheduler.bookings.hosts[33].pools["gpu"]
    assert cut_off(core, ALICE) == 1
    assert dispatched(core) == {} and pool.used == 1000, "the task of the revoked client may still run"
    core.results(W, [row])
    (row,) = core.take_dispatched(W)
    assert row[1] == 2 and pool.used == 1000
    assert cut_off(core, HOST) == 2
    core.take()
    assert not core.scheduler.bookings.hosts and not core.scheduler.holdings.held
    core.cancel(C2, 2)
    core.take()
