"""Keys: their roles, the incarnations that they own, and peers whose key was revoked. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.harness import C2, CANCELLED, W2, A, C, Core, W, dispatched, resolved, warnings_of

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.ids import DataAddress

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
    peers = core.scheduler.revoke(set(users), core.now, lambda: "new ticket")
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
    give_worker_a_task(core)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)


def give_worker_a_task(core: Core):
    """A host with a worker that runs a task of Alice's. Returns the row."""
    join(core, A, events.AGENT, 33, HOST)
    join(core, W, events.WORKER, 22, HOST, agent=33)
    return submit_as_alice(core)


def submit_as_alice(core: Core):
    join(core, C, events.CLIENT, 11, ALICE)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (row,) = core.take_dispatched(W)
    return row


def test_a_workers_key_with_an_invented_worker_is_no_client(core):
    """The hello waits for the worker, which may join later after a restart. Then it gets an error."""
    core.hello(C, events.CLIENT, 99, worker=21, user=HOST)
    assert core.take() == []
    core.submit(C, [1])
    assert core.take() == [("hello wanted", C)]
    core.wait(4.9)
    assert core.take() == []
    core.wait(0.5)
    text = (
        "no worker 21 of this key has joined: a client with a worker's key works only inside a task "
        "(clients outside of tasks need a client's key: authorize --as client)"
    )
    assert core.take() == [("error", C, text)]
    assert warnings_of(core) == [f"a hello is rejected: {text}"]
    assert not any(core.tables().values())


def test_a_nested_client_waits_for_a_task_of_its_worker(core):
    """After a restart the nested client may come first, then the worker with its task, then its client."""
    core.hello(b"nested", events.CLIENT, 99, worker=22, user=HOST, scheduler=5)
    core.wait(1.0)
    core.hello(W, events.WORKER, 22, user=HOST, running=[(11, 1, 1)])
    core.wait(8.0)
    assert core.take() == [("welcome", W)], "the worker holds no task of a client that is known"
    join(core, C, events.CLIENT, 11, ALICE, scheduler=5)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    core.wait(0.3)
    core.take_one("welcome", b"nested")
    shares = core.scheduler.tables.clients.shares
    assert [(share.user, share.client_count) for share in shares] == [(ALICE, 2)]


def test_what_a_nested_client_submits_counts_for_its_parents_client(core):
    row = give_worker_a_task(core)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)
    core.function(b"nested", 1, b"g")
    core.submit(b"nested", [1])
    assert [share.user for share in core.scheduler.tables.clients.shares] == [ALICE]
    core.suspended(b"nested", row)
    core.take()
    core.submit(b"nested", [2])
    assert not [each for each in core.take() if each[0] == "error"], "it is the client of a suspended task too"


def test_a_nested_client_submits_nothing_without_a_task_of_its_worker(core):
    """A task may end before the message with its last children comes, by another connection."""
    row = give_worker_a_task(core)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)
    core.function(b"nested", 1, b"g")
    core.wait(30.0)
    core.heartbeat(b"nested")
    core.heartbeat(C)
    core.heartbeat(A, 22)
    core.results(W, [row])
    core.goodbye(C)
    core.take()
    core.submit(b"nested", [1])
    core.take_dispatched(W)  # it runs on, but no client has asked for it
    core.wait(10.0)
    core.submit(b"nested", [2])
    text = (
        "tasks 2 to 2 are rejected: a client with a worker's key can submit only while its worker holds a task; "
        "this worker has held none for 10 s"
    )
    assert core.take() == [("error", b"nested", text)] and list(core.errors[-1].tasks) == [2]


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


def test_a_false_nested_client_is_rejected_when_the_worker_joins(core):
    core.hello(C, events.CLIENT, 99, user=HOST2, worker=22)
    core.hello(W, events.WORKER, 22, user=HOST)
    core.wait(0.3)
    (welcome, error) = core.take()
    assert welcome == ("welcome", W) and error[:2] == ("error", C) and "no worker 22 of this key" in error[2]
    assert not core.scheduler.tables.clients.by_incarnation


def test_an_agent_and_its_workers_have_one_key(core):
    """An agent renews the leases of its workers and reports their deaths. It may join after them."""
    join(core, W, events.WORKER, 22, HOST, agent=33)
    core.hello(A, events.AGENT, 33, user=HOST2)
    core.hello(W2, events.WORKER, 23, user=HOST2, agent=33)
    text = "the workers of this agent have another key"
    assert core.take() == [refused(A, text), refused(W2, text)]
    join(core, A, events.AGENT, 33, HOST)


def test_data_addresses_get_new_tickets_when_a_key_is_revoked(core):
    """A revoked host may know the old tickets. The message with the new one may be lost with its connection."""
    join(core, A, events.AGENT, 33, HOST, data=DataAddress("tcp://a:1", "", "old"))
    join(core, b"b", events.AGENT, 34, HOST2, data=DataAddress("tcp://b:1", "", "old too"))
    join(core, C, events.CLIENT, 11, ALICE)
    core.feed(events.Object(C, 7, "", [], 0, 1 << 20, DataAddress("tcp://c:1", "", "old as well")))
    cut_off(core, HOST2)
    assert [core.echoes[route].ticket for route in (A, C)] == ["new ticket"] * 2 and b"b" not in core.echoes
    agent, client = core.scheduler.tables.agents.find(33), core.scheduler.tables.clients.find(11)
    assert {agent.data.ticket, client.place.data.ticket} == {"new ticket"}
    core.echoes.clear()
    join(core, b"a 2", events.AGENT, 33, HOST, data=DataAddress("tcp://a:1", "", "old"))
    join(core, b"c 2", events.CLIENT, 11, ALICE)
    core.feed(events.Object(b"c 2", 8, "", [], 0, 1 << 20, DataAddress("tcp://c:1", "", "old as well")))
    assert [core.echoes[route].ticket for route in (b"a 2", b"c 2")] == ["new ticket"] * 2
    assert {agent.data.ticket, client.place.data.ticket} == {"new ticket"}
    core.take()


def test_a_waiting_hello_is_dropped_with_its_key(core):
    core.scheduler._duplicate_hellos._is_connected = lambda route: True
    join(core, C, events.CLIENT, 11, ALICE)
    core.hello(C2, events.CLIENT, 11, user=ALICE)
    core.hello(b"nested", events.CLIENT, 99, user=HOST, worker=22)
    cut_off(core, ALICE, HOST)
    core.take()
    core.wait(10.0)
    assert core.take() == [] and not core.scheduler.tables.clients.by_incarnation


def test_a_waiting_hello_does_not_take_an_incarnation_over(core):
    """Its incarnation has become that of another key while it waited."""
    core.hello(b"nested", events.CLIENT, 99, user=HOST, worker=22)
    join(core, C2, events.CLIENT, 99, BOB)
    give_worker_a_task(core)
    core.wait(0.3)
    assert core.take() == [refused(b"nested", ANOTHERS.format("client"))]
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
    core.function(C, 1, b"f")
    core.submit(C, [1])
    (row,) = core.take_dispatched(W)
    join(core, b"nested", events.CLIENT, 99, HOST, worker=22)
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
