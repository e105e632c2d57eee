"""Large objects that are files of their client: hosts get them from there. Runs under PyPy and CPython."""

from __future__ import annotations

import pytest
from tests.scheduler.core.data.test_graphs import BOTH, LOST, NAME, NO, C, forget, submit
from tests.scheduler.core.harness import SECOND, warnings_of

from scaler_scheduler.core import events
from scaler_scheduler.core.data.transfers import GRACE_SECONDS, UNREACHABLE_SECONDS
from scaler_scheduler.core.ids import DataAddress

SIZE = 1_000_000
FRAMES = [b"pickle", b"b" * (SIZE - 6)]
HOST = "laptop"
OBJECT = 1
DATA = DataAddress("tcp://laptop:1", "", "ticket")
NEAR, FAR, W, U = b"near agent", b"far agent", b"near worker", b"far worker"


def join(core, has_address=True):
    """A client, and two hosts with one worker each: the client's own, whose agent has no data address, and another."""
    core.feed(events.Hello(C, 1, events.CLIENT, NAME, 0, "", "", HOST, 1, "ada"))
    core.function(C, 1, b"f")
    for route, incarnation, host, data in (
        (NEAR, 31, HOST, None),
        (FAR, 32, "far", DataAddress("tcp://far:1", "", "")),
    ):
        core.feed(events.Hello(route, 1, events.AGENT, incarnation, 0, "", "", host, 1, "agent", data=data))
    send(core, DATA if has_address else None)
    core.take()


def send(core, data=DATA, object_id=OBJECT, size=SIZE):
    core.feed(events.Object(C, object_id, "table", [], file_bytes=size, data=data))


def only(core, kind):
    """The effects of this kind since the last call."""
    return [sent for sent in core.take() if sent[0] == kind]


def answer(core, route, error="", is_unreachable=False):
    core.feed(events.Transferred(route, [NAME], [OBJECT], NAME, error, is_unreachable))


def order(route, data=DATA):
    found = ("", "", "") if data is None else (data.address, data.key, data.ticket)
    return ("transfer object", route, (NAME, OBJECT), SIZE, NAME, found)


def read_by(core, worker, incarnation, agent, *task_ids):
    core.worker(worker, incarnation, agent=agent)
    submit(core, [(task_id, [OBJECT], NO) for task_id in task_ids])


FETCH = ("fetch objects", C, [(NAME, OBJECT)])


def test_only_clients_are_told_that_they_may_have_files(core):
    join(core)
    assert core.welcomes[C].takes_files and not core.welcomes[NEAR].takes_files


def test_why_a_reader_of_the_file_waits(core):
    """The client has no host agent whose heartbeats could be missing."""
    join(core)
    read_by(core, U, 22, 32, 2)
    assert core.scheduler.wait_reasons.lines(NAME, 2)[1] == "input: table#1 is on its way from laptop"
    core.take()


def test_a_host_gets_the_file_from_the_client(core):
    join(core)
    read_by(core, U, 22, 32, 2, 3)
    assert core.take() == [order(FAR)], "once for both"
    answer(core, FAR)
    [(_, _, rows)] = only(core, "dispatch")
    assert [row[1] for row in rows] == [2] and not core.scheduler.tables.objects.bytes
    core.results(U, [(NAME, 2, 1)])
    forget(core, OBJECT)
    core.take()
    core.results(U, [(NAME, 3, 1)])
    told = {sent[1] for sent in core.take() if sent[0] == "forget objects" and sent[2] == [(NAME, OBJECT)]}
    assert told == {C, FAR, U}, "the client removes its file, too"


def test_the_host_of_the_client_needs_no_data_address(core):
    join(core, has_address=False)
    read_by(core, W, 21, 31, 2)
    assert core.take() == [order(NEAR, None)]
    answer(core, NEAR)
    assert [sent[1] for sent in only(core, "dispatch")] == [W]


def test_a_file_spreads_from_host_to_host(core):
    join(core)
    read_by(core, U, 22, 32, 2)
    data = DataAddress("tcp://third:1", "", "other")
    core.feed(events.Hello(b"third", 1, events.AGENT, 33, 0, "", "", "third", 1, "agent", data=data))
    core.take()
    read_by(core, b"worker 3", 23, 33, 3)
    [sent] = only(core, "transfer object")
    assert sent[1] == b"third" and sent[4] == 32, "the client sends one copy at once"


@pytest.mark.parametrize("has_address", [False, True])
def test_what_hosts_cannot_get_goes_through_the_scheduler(core, has_address):
    join(core, has_address)
    read_by(core, U, 22, 32, 2)
    if has_address:
        assert core.take() == [order(FAR)]
        answer(core, FAR, "no connection within 5 s", is_unreachable=True)
        [warning] = [text for text in warnings_of(core) if "can't connect" in text]
        assert "tcp://laptop:1 of client ada on host laptop" in warning and "go through the scheduler" in warning
    assert core.take() == [FETCH]
    core.feed(events.Object(C, OBJECT, "", FRAMES))
    assert [sent[0] for sent in core.take() if sent[0] != "function"] == ["object", "dispatch"]
    submit(core, [(3, [OBJECT], NO)])
    assert not only(core, "fetch objects")


def test_a_host_that_shares_no_memory_with_the_client_is_noted(core):
    join(core, has_address=False)
    read_by(core, W, 21, 31, 2)
    core.take()
    answer(core, NEAR, "its client has no data address", is_unreachable=True)
    assert core.take() == [FETCH]
    assert any("can't connect to the shared memory of client ada" in text for text in warnings_of(core))


def test_what_holds_for_one_client_of_a_host_holds_for_the_others(core):
    join(core)
    read_by(core, U, 22, 32, 2)
    answer(core, FAR, "no connection within 5 s", is_unreachable=True)
    core.feed(events.Object(C, OBJECT, "", FRAMES))
    core.goodbye(C)
    core.results(U, [(NAME, 2, 1)])
    join(core)
    submit(core, [(2, [OBJECT], NO)])
    assert core.take()[0] == FETCH
    core.heartbeat(FAR, 22)
    for _ in range(int(UNREACHABLE_SECONDS) // 10):
        core.now += 10
        core.heartbeat(FAR, 22)
        core.heartbeat(NEAR)
        core.feed(events.Heartbeat(C, 1, []))
    core.take()
    send(core, object_id=7)
    submit(core, [(8, [7], NO)])
    assert [sent[2] for sent in only(core, "transfer object")] == [(NAME, 7)]


def test_a_slow_transfer_is_given_up(core):
    join(core)
    read_by(core, U, 22, 32, 2)
    core.take()
    for _ in range(int(GRACE_SECONDS) + 2):
        core.heartbeat(FAR, 22)
        core.feed(events.Heartbeat(C, 1, []))
        core.wait(1)
    assert FETCH in core.take()


def test_a_worker_without_an_agent_gets_the_bytes(core):
    join(core)
    core.worker(b"alone", 29)
    submit(core, [(2, [OBJECT], NO)])
    assert FETCH in core.take()
    core.feed(events.Object(C, OBJECT, "", FRAMES))
    assert ("object", b"alone", NAME, OBJECT, FRAMES) in core.take()


def test_a_client_that_leaves_ends_its_transfers(core):
    core.scheduler._takeover._offers_until = 0.0  # else a client of an earlier scheduler may come, and need the file
    join(core)
    read_by(core, U, 22, 32, 2)
    core.goodbye(C)
    assert not list(core.scheduler.transfers)
    assert ("forget objects", C, [(NAME, OBJECT)]) not in core.take()
    answer(core, FAR)
    assert ("forget objects", FAR, [(NAME, OBJECT)]) in core.take()


def test_a_new_connection_of_the_client_is_asked_again(core):
    join(core, has_address=False)
    read_by(core, U, 22, 32, 2)
    assert core.take() == [FETCH]
    core.feed(events.Hello(b"new", 1, events.CLIENT, NAME, 0, "", "", HOST, 1, "ada"))
    assert ("fetch objects", b"new", [(NAME, OBJECT)]) in core.take()
    core.feed(events.Object(b"new", OBJECT, "table", [], file_bytes=SIZE, data=DATA))
    assert only(core, "dispatch") == [], "the client has only said again that it has the file"
    core.feed(events.Object(b"new", OBJECT, "", FRAMES))
    assert [sent[1] for sent in only(core, "dispatch")] == [U]


@pytest.mark.parametrize("frames", [[b""], [b"x" * (SIZE + 1)]])
def test_bytes_of_another_size_are_refused_and_the_object_is_lost(core, frames):
    join(core, has_address=False)
    read_by(core, U, 22, 32, 2)
    credit = core.scheduler.tables.clients.find(NAME).object_bytes
    core.feed(events.Object(C, OBJECT, "", frames))
    assert f"and not {SIZE} as its file" in core.errors[-1].text
    [(_, _, [(task_id, outcome, _)])] = only(core, "resolved")
    assert (task_id, outcome) == (2, LOST)
    assert credit and not core.scheduler.tables.clients.find(NAME).object_bytes


def test_a_lost_file_comes_from_a_host_that_has_it(core):
    join(core)
    read_by(core, U, 22, 32, 2)
    answer(core, FAR)
    core.worker(b"alone", 29)
    submit(core, [(3, [OBJECT], NO)])
    core.take()
    core.feed(events.Object(C, OBJECT, "", [b""]))
    assert ("fetch objects", FAR, [(NAME, OBJECT)]) in core.take()
    core.feed(events.Object(FAR, OBJECT, "", [b"short"], NAME))
    assert "as its client said" in core.errors[-1].text
    assert [row[0] for sent in only(core, "resolved") for row in sent[2]] == [3]


def test_unwanted_bytes_are_ignored(core):
    join(core)
    core.feed(events.Object(C, OBJECT, "", FRAMES))
    assert not core.scheduler.tables.objects.bytes and not core.take()


def test_an_agent_has_no_files_of_clients(core):
    join(core)
    core.feed(events.Object(FAR, OBJECT, "", [], NAME, file_bytes=SIZE))
    assert [sent[0] for sent in core.take()] == ["error"]
    assert "from a peer that is no client" in core.errors[-1].text


def test_files_count_in_the_credit_of_their_client(core):
    join(core)
    client = core.scheduler.tables.clients.find(NAME)
    assert client.object_bytes > SIZE and not core.scheduler.tables.objects.bytes
    forget(core, OBJECT)
    assert not client.object_bytes and client.returned_bytes > SIZE
    assert only(core, "forget objects") == [("forget objects", C, [(NAME, OBJECT)])]


def test_a_file_that_is_rejected_is_told_to_the_client(make_core):
    core = make_core(client_object_bytes=SIZE)
    join(core)
    send(core, object_id=5, size=SIZE)
    assert "--client-object-size-limit" in core.errors[-1].text
    assert ("forget objects", C, [(NAME, 5)]) in core.take()


def test_a_file_of_a_result_that_the_scheduler_has_is_not_needed(core):
    join(core)
    core.worker(U, 22, agent=32)
    submit(core, [(2, [], BOTH)])
    core.take()
    core.results(U, [(NAME, 2, 1)], body=b"value")
    core.take()
    send(core, object_id=2)
    assert core.take() == [("forget objects", C, [(NAME, 2)])]
    send(core)
    assert core.take() == [], "this one is the only copy"


def test_a_task_of_a_returned_client_reads_its_file(core):
    join(core)
    read_by(core, U, 22, 32, 2)
    answer(core, FAR)
    core.take()
    core.wait(70)  # the leases of all peers run out
    assert core.scheduler.tables.clients.find(NAME) is None or core.scheduler.tables.clients.find(NAME).is_gone
    join(core)
    read_by(core, U, 22, 32, 2)
    assert order(FAR) in core.take()
    answer(core, FAR)
    core.results(U, [(NAME, 2, 1)], SECOND)
    core.goodbye(C)
    assert core.tables()["objects"] == 0
    assert "dispatch" in {sent[0] for sent in core.take()}


def test_snapshots_show_clients_that_hosts_cannot_reach(core):
    from scaler_scheduler.publish.snapshots import _unreachable_hosts

    join(core)
    read_by(core, U, 22, 32, 2)
    answer(core, FAR, "no connection within 5 s", is_unreachable=True)
    assert [counter.name for counter in _unreachable_hosts(core.scheduler)] == ["clients on laptop from far"]
    assert core.take() == [order(FAR), FETCH]
