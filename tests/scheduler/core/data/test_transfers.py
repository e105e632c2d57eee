"""Large results that go from host to host: sources, limits, failures. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_graphs import KEEP, NAME, NO, C, forget, run, submit
from tests.scheduler.core.data.test_host_results import SIZE, fetched, store
from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.data import transfers
from scaler_scheduler.core.data.transfers import (
    GRACE_SECONDS,
    QUEUE_SECONDS,
    UNREACHABLE_SECONDS,
    WAITING_TASKS,
)
from scaler_scheduler.core.ids import DataAddress, file_id, value_id
from scaler_scheduler.core.placement.data_placement import MAX_PASSED
from scaler_scheduler.core.placement.host_choice import PATIENCE_SECONDS
from scaler_scheduler.core.state.functions import LARGE_BYTES

HOSTS = 5


def agent(number):
    return b"agent %d" % number


def worker(number):
    return b"worker %d" % number


def hosts(core, count, without=()):
    """Hosts with one worker each. The first worker stores the result of task 1, which `count` tasks read."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    for number in range(count):
        data = None if number in without else DataAddress(f"tcp://host{number}:1", "", f"ticket{number}")
        hello = events.Hello(agent(number), 1, events.AGENT, 31 + number, 0, "", "", f"host{number}", 1, "a", data=data)
        core.feed(hello)
    core.worker(worker(0), 51, agent=31)
    submit(core, [(1, [], KEEP)])
    store(core, worker(0), 1)
    for number in range(1, count):
        core.worker(worker(number), 51 + number, agent=31 + number)
    core.take()
    submit(core, [(2 + number, [1], NO) for number in range(count)])


def orders(core, size=SIZE):
    """The orders since the last call, as (source, target), and the numbers of hosts that were asked for the bytes."""
    found, asked = [], []
    for sent in core.take():
        if sent[0] == "transfer object":
            _, route, name, found_size, source, data = sent
            assert (name, found_size) == ((NAME, 1), size)
            assert data == (f"tcp://host{source - 31}:1", "", f"ticket{source - 31}")
            found.append((source - 31, int(route.split()[1])))
        elif sent[0] == "fetch objects":
            asked.append(int(sent[1].split()[1]))
    return found, asked


def answer(core, source, target, error="", is_unreachable=False):
    core.feed(events.Transferred(agent(target), [NAME], [1], 31 + source, error, is_unreachable))


def read_at(core):
    """The hosts of the tasks that were dispatched to read the file since the last call."""
    return {int(sent[1].split()[1]) for sent in core.take() if sent[0] == "dispatch"}


def test_a_result_spreads_from_host_to_host(core):
    hosts(core, HOSTS)
    running, asked = orders(core)
    assert not asked and len(running) == HOSTS - 1
    assert [source for source, _ in running] == [0, *(target for _, target in running[:-1])], "each sends one copy"
    for source, target in reversed(running):
        answer(core, source, target)
    assert orders(core) == ([], [])
    assert core.scheduler.transfers.done == HOSTS - 1


def test_bytes_between_hosts_are_counted(core):
    hosts(core, HOSTS)
    running, _ = orders(core)
    agents = [core.scheduler.tables.agents.find(31 + number) for number in range(HOSTS)]
    assert [each.room.coming for each in agents] == [0] + [SIZE] * (HOSTS - 1)
    for source, target in reversed(running):
        answer(core, source, target)
    assert [each.received_bytes for each in agents] == [0] + [SIZE] * (HOSTS - 1)
    assert sorted(each.sent_bytes for each in agents) == [0] + [SIZE] * (HOSTS - 1), "the last one sends nothing"
    assert not any(each.room.coming for each in agents)
    assert orders(core) == ([], [])


def test_a_failed_transfer_counts_no_bytes(core):
    hosts(core, 2)
    [(source, target)], _ = orders(core)
    answer(core, source, target, "no", is_unreachable=True)
    agents = [core.scheduler.tables.agents.find(31 + number) for number in range(2)]
    assert not any(each.room.coming or each.received_bytes or each.sent_bytes for each in agents)
    assert orders(core) == ([], [0])


def test_a_host_that_has_the_file_is_a_better_source_than_one_that_gets_it(core):
    hosts(core, 3)
    [(_, first), (_, second)], _ = orders(core)
    answer(core, first, second)
    data = DataAddress("tcp://host3:1", "", "ticket3")
    core.feed(events.Hello(agent(3), 1, events.AGENT, 34, 0, "", "", "host3", 1, "a", data=data))
    stored = core.scheduler.tables.clients.find(NAME).objects[1]
    core.scheduler.transfers.request(stored, core.scheduler.tables.agents.find(34))
    core.feed()
    assert orders(core) == ([(second, 3)], [])


def test_what_fails_on_its_way_fails_behind_it_too(core):
    hosts(core, 4)
    [(_, first), (_, second), (_, third)], _ = orders(core)
    answer(core, first, second, "the disk is full")
    assert [(each.source.host, each.target.host) for each in core.scheduler.transfers] == [("host0", f"host{first}")]
    assert orders(core) == ([], [0])
    answer(core, second, third)
    assert not core.scheduler.transfers.done
    assert core.take() == [("forget objects", agent(third), [(NAME, 1)])], "nobody waits for it"


def test_enough_readers_on_one_host_hold_up_no_other_task(core):
    hosts(core, 2)
    assert read_at(core) == {0}
    submit(core, [(10 + number, [1], NO) for number in range(WAITING_TASKS + MAX_PASSED // 2)])
    [transfer] = core.scheduler.transfers
    assert transfer.tasks == WAITING_TASKS
    submit(core, [(500, [], NO)])
    assert {sent[1] for sent in core.take() if sent[0] == "dispatch"} == {worker(1)}
    assert core.scheduler.tables.counts.waiting > 0


@pytest.mark.parametrize("full", [0, 1])
def test_a_reader_goes_to_a_host_where_not_enough_others_wait(core, full):
    hosts(core, 3)
    assert read_at(core) == {0}
    running = list(core.scheduler.transfers)
    running[full].tasks = WAITING_TASKS
    submit(core, [(10, [1], NO)])
    assert [transfer.tasks for transfer in running] == ([WAITING_TASKS, 2] if full == 0 else [2, WAITING_TASKS])
    assert not core.scheduler.tables.counts.waiting


def test_a_reader_goes_to_a_host_whose_agent_has_not_joined(core):
    """If enough tasks wait for the file on the others."""
    hosts(core, 2)
    [transfer] = core.scheduler.transfers
    transfer.tasks = WAITING_TASKS
    core.worker(worker(2), 53, agent=33)
    core.scheduler.core_state.pool.idle.make_oldest(core.scheduler.tables.workers.find(53))
    core.take()
    submit(core, [(10, [1], NO)])
    assert orders(core) == ([], [0]), "the scheduler gives it the bytes"
    assert not core.scheduler.tables.counts.waiting


def test_a_reader_waits_until_the_file_is_on_its_host(core):
    hosts(core, 2)
    assert read_at(core) == {0}
    answer(core, 0, 1)
    [sent] = [each for each in core.take() if each[0] == "dispatch"]
    assert sent[1] == worker(1)


@pytest.mark.parametrize("is_unreachable", [False, True])
def test_a_failed_transfer_goes_through_the_scheduler(core, is_unreachable):
    hosts(core, 2)
    assert orders(core) == ([(0, 1)], [])
    answer(core, 0, 1, "no connection within 5 s", is_unreachable)
    assert orders(core) == ([], [0])
    fetched(core, 1, agent=agent(0))
    assert read_at(core) == {1}
    assert len(core.scheduler.transfers.unreachable) == is_unreachable
    logged = [text for _, text in core.scheduler.operator_log.drain() if "through the scheduler" in text]
    assert len(logged) == is_unreachable


def test_an_unreachable_pair_is_tried_again_after_a_while(core):
    hosts(core, 2)
    answer(core, 0, 1, "no connection", True)
    known, [first, second] = core.scheduler.transfers, list(core.scheduler.tables.agents)
    stored = core.scheduler.tables.clients.find(NAME).objects[1]
    assert not any(known._sources(stored, second))
    core.scheduler._clock.now += UNREACHABLE_SECONDS
    assert list(known._sources(stored, second)) == [first]
    core.take()


@pytest.mark.parametrize("without", [0, 1])
def test_a_host_without_a_data_address(core, without):
    hosts(core, 2, without=(without,))
    assert orders(core) == ([], [0])


def test_the_source_is_lost(core):
    hosts(core, 3)
    [(_, first), (_, second)], _ = orders(core)
    core.feed(events.Goodbye(agent(first), "ends"))
    assert orders(core) == ([(0, second)], []), "the last host gets it from the first one"


def test_the_target_is_lost(core):
    hosts(core, 2)
    core.take()
    core.feed(events.Goodbye(agent(1), "ends"))
    assert not list(core.scheduler.transfers)
    assert orders(core) == ([], [])
    assert core.scheduler.counts.waiting == 1, "the reader waits for the worker of the first host"


def test_a_silent_target_is_given_up(core):
    hosts(core, 2)
    core.take()
    core.scheduler._transfer_end.check(core.now + GRACE_SECONDS - 1)
    assert list(core.scheduler.transfers)
    core.scheduler._transfer_end.check(core.now + GRACE_SECONDS + SIZE)
    assert not list(core.scheduler.transfers)
    core.feed()
    assert orders(core) == ([], [0])
    answer(core, 0, 1)  # late
    assert core.take() == [("forget objects", agent(1), [(NAME, 1)])]


def test_what_waits_for_too_long_goes_through_the_scheduler(core, monkeypatch):
    monkeypatch.setattr(transfers, "MAX_OUT", 0)
    hosts(core, HOSTS)
    assert orders(core) == ([], [])
    core.scheduler._transfer_end.check(core.now + QUEUE_SECONDS)
    core.feed()
    assert orders(core)[1] == [0]


def test_a_target_that_joins_again_gets_its_order_again(core):
    hosts(core, 2)
    assert orders(core) == ([(0, 1)], [])
    data = DataAddress("tcp://host1:1", "", "ticket1")
    core.feed(events.Hello(agent(1), 1, events.AGENT, 32, 0, "", "", "host1", 1, "a", data=data))
    assert orders(core) == ([(0, 1)], [])


def test_the_file_is_removed_from_all_hosts(core):
    hosts(core, 2)
    answer(core, 0, 1)
    core.take()
    for number in range(2):
        for task_id in (2, 3):
            core.results(worker(number), [(NAME, task_id, 1)], 1000, effects.OUTCOME_VALUE, b"v")
    forget(core, 1)
    forgotten = {sent[1] for sent in core.take() if sent[0] == "forget objects"}
    assert {agent(0), agent(1)} <= forgotten
    assert not list(core.scheduler.transfers)


def test_an_answer_that_nobody_waits_for_is_ignored(core):
    hosts(core, 2)
    core.take()
    answer(core, 1, 1)
    answer(core, 0, 0)
    core.feed(events.Transferred(agent(1), [NAME], [99], 31))
    core.feed(events.Transferred(agent(1), [99], [1], 31))
    assert orders(core) == ([], [])
    assert len(list(core.scheduler.transfers)) == 1


def test_a_pair_of_hosts_leaves_room_for_others(core):
    hosts(core, 1)
    for number in (1, 2):
        data = DataAddress(f"tcp://host{number}:1", "", f"ticket{number}")
        hello = events.Hello(agent(number), 1, events.AGENT, 31 + number, 0, "", "", f"host{number}", 1, "a", data=data)
        core.feed(hello)
    core.results(worker(0), [(NAME, 2, 1)], 1000, effects.OUTCOME_VALUE, b"v")
    names = range(10, 14)
    for task_id in names:
        submit(core, [(task_id, [], KEEP)])
        store(core, worker(0), task_id, transfers.WHOLE_BYTES)
    core.take()
    known, tables = core.scheduler.transfers, core.scheduler.tables
    _, second, third = (tables.agents.find(31 + number) for number in range(3))
    files = [tables.clients.find(NAME).objects[each] for each in names]
    known.request(files[0], third)
    core.feed(events.Transferred(agent(2), [NAME], [10], 31))

    def sources():
        return [transfer.source and transfer.source.host for transfer in known]

    for file in files[1:]:
        known.request(file, second)
    assert sources() == ["host0", "host0", None], "the third waits for its turn, if host0 is silent for ever"
    known.request(files[0], second)
    assert sources() == ["host0", "host0", None, "host2"]
    core.feed()
    core.take()


def small_files(core, count):
    """Host 0 has results that tasks on host 1 read. Returns their ids."""
    hosts(core, 1)
    data = DataAddress("tcp://host1:1", "", "ticket1")
    core.feed(events.Hello(agent(1), 1, events.AGENT, 32, 0, "", "", "host1", 1, "a", data=data))
    core.results(worker(0), [(NAME, 2, 1)], 1000, effects.OUTCOME_VALUE, b"v")
    names = list(range(10, 10 + count))
    for task_id in names:
        submit(core, [(task_id, [], KEEP)])
        store(core, worker(0), task_id, LARGE_BYTES)
    core.take()
    target = core.scheduler.tables.agents.find(32)
    for task_id in names:
        core.scheduler.transfers.request(core.scheduler.tables.clients.find(NAME).objects[task_id], target)
    return names


def ordered(core):
    """The ids of the files in each order since the last call."""
    batches = []
    for effect in core.scheduler.outbox.drain(core.now):
        if isinstance(effect, effects.TransferObjects):
            assert effect.bytes == [LARGE_BYTES] * len(effect.ids) and set(effect.clients) == {NAME}
            batches.append(list(map(value_id, effect.ids)))
    return batches


def test_one_order_for_many_small_files(core):
    names = small_files(core, 40)
    assert ordered(core) == [names[:16]], "between two hosts two whole files, and each of these counts as an eighth"


def test_one_answer_for_many_small_files(core):
    names = small_files(core, 16)
    core.scheduler.outbox.drain(core.now)
    event = events.Transferred(
        agent(1), [NAME] * 4, [file_id(each, 1) for each in (names[0], 999, names[0], names[1])], 31
    )
    core.scheduler.handle(event, core.now)
    assert core.scheduler.transfers.done == 2, "one is named twice, one is unknown"


def test_a_failure_of_many_small_files(core):
    names = small_files(core, 16)
    core.scheduler.outbox.drain(core.now)
    event = events.Transferred(
        agent(1), [NAME] * 3, [file_id(each, 1) for each in (names[0], names[1], names[0])], 31, "a test"
    )
    core.scheduler.handle(event, core.now)
    assert {each.stored.id for each in core.scheduler.transfers} == set(names[2:])


def test_an_order_goes_behind_what_was_sent_before_it(core):
    """The agent may be told to remove a file, and then to get a file of this name."""
    outbox, data = core.scheduler.outbox, DataAddress("tcp://host1:1", "", "ticket1")
    outbox.transfer_object(agent(1), 31, data, NAME, 1, 9)
    outbox.transfer_object(agent(1), 32, data, NAME, 2, 9)
    outbox.transfer_object(agent(1), 31, data, NAME, 3, 9)
    outbox.add(effects.ForgetObjects(agent(1), [NAME], [4]))
    outbox.transfer_object(agent(1), 31, data, NAME, 4, 9)
    outbox.transfer_object(agent(1), 31, DataAddress(data.address, "", "another"), NAME, 5, 9)
    assert [effect.ids for effect in outbox.drain(core.now)] == [[1, 3], [2], [4], [4], [5]]


def test_an_agent_comes_back_to_a_worker_that_reads_a_file_of_its_host(core):
    """Only the agent's connection was silent, and for longer than its lease. Another host has the file as well."""
    hosts(core, 2)
    assert read_at(core) == {0}
    answer(core, 0, 1)
    core.take()
    for _ in range(int(core.scheduler.limits.worker_timeout_seconds) + 2):
        core.wait(1)
        core.feed(*[events.Heartbeat(route, 77, []) for route in (C, agent(1), worker(0), worker(1))])
    assert core.scheduler.tables.agents.find(31) is None and core.scheduler.tables.workers.find(51) is not None
    core.take()
    core.hello(agent(0), events.AGENT, 31, running=[(NAME, 1, 0)])
    assert core.take() == [("welcome", agent(0))], "the file is there, and stays for its reader"
    for number in range(2):
        run(core, worker(number), 2 + number)
    forget(core, 1)
    assert {sent[1] for sent in core.take() if sent[0] == "forget objects"} >= {agent(0), agent(1)}


def test_a_task_that_waits_for_its_file_keeps_no_workers(core):
    """Enough tasks wait for the file on the host. Another task gets the workers that were reserved meanwhile."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    for number in range(2):
        data = DataAddress(f"tcp://host{number}:1", "", "t")
        route, host = agent(number), f"host{number}"
        core.feed(
            events.Hello(route, 1, events.AGENT, 31 + number, 0, "", "", host, 1, "a", data=data, slots=1 + number)
        )
        core.worker(worker(number), 51 + number, agent=31 + number)
        if not number:
            submit(core, [(1, [], KEEP)])
            store(core, worker(0), 1)
    core.worker(worker(2), 53, agent=32)
    core.take()
    both = events.Options(resources=(("cpus", 2000),))
    core.submit(C, [5], resources=both.resources)
    [(busy, rows)] = [sent[1:3] for sent in core.take() if sent[0] == "dispatch"]
    reader = submit_event(C, [10], [1], [b"x"], ())
    reader.inputs, reader.input_counts, reader.options = array("q", [1]), array("I", [1]), both
    core.feed(reader)
    core.wait(PATIENCE_SECONDS)
    core.submit(C, [20], priority=-1, resources=both.resources)
    assert len(core.scheduler.bookings.reservations) == 1
    stored = core.scheduler.tables.clients.find(NAME).objects[1]
    core.scheduler.transfers.request(stored, core.scheduler.tables.agents.find(32))
    [transfer] = core.scheduler.transfers
    transfer.tasks = WAITING_TASKS
    core.take()
    core.results(busy, [row[:3] for row in rows])
    assert [row[1] for sent in core.take() if sent[0] == "dispatch" for row in sent[2]] == [20]
