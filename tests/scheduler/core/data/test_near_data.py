"""Tasks with large inputs wait for a host that has them, or go elsewhere. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_graphs import KEEP, NAME, NO, C
from tests.scheduler.core.data.test_transfers import agent, answer, orders
from tests.scheduler.core.harness import MILLISECOND, SECOND, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.data.transfers import FIRST_BYTES_PER_SECOND, LATE_SECONDS
from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.core.placement import near_data
from scaler_scheduler.core.placement.data_placement import MAX_PASSED

LARGE = FIRST_BYTES_PER_SECOND
"""A transfer is expected to take a second."""

MAKE, READ = 1, 2
"""The functions."""


def worker(host, number=0):
    return b"worker %d %d" % (host, number)


def host(core, number, workers=1, capabilities=()):
    data = DataAddress(f"tcp://host{number}:1", "", f"ticket{number}")
    core.feed(events.Hello(agent(number), 1, events.AGENT, 31 + number, 0, "", "", f"host{number}", 1, "a", data=data))
    for each in range(workers):
        core.worker(worker(number, each), 100 * (number + 1) + each, 31 + number, capabilities)


def submit(core, *rows, function=READ, **options):
    """Submit rows of (id, ids of inputs)."""
    event = submit_event(C, [row[0] for row in rows], [function], [b""] * len(rows), ())
    event.inputs = array("q", [each for row in rows for each in row[1]])
    event.input_counts = array("I", [len(row[1]) for row in rows])
    event.keep = array("B", [KEEP if function == MAKE else NO] * len(rows))
    event.options = events.Options(**options)
    core.feed(event)


def make(core, at, *sizes, first=1):
    """Let this worker, which is the only idle one, store results of these sizes. Their ids count from `first`."""
    for number, size in enumerate(sizes, first):
        submit(core, (number, []), function=MAKE)
        assert (at, number) in dispatched(core)
        body = size.to_bytes(8, "little")
        core.results(at, [(NAME, number, 1)], 1000, effects.OUTCOME_STORED, body)
    core.take()


def done(core, at, *ids, nanoseconds=300 * MILLISECOND):
    core.results(at, [(NAME, each, 1) for each in ids], nanoseconds)


def dispatched(core):
    """What was dispatched since the last call, as (worker, id of the task)."""
    return [(sent[1], row[1]) for sent in core.take() if sent[0] == "dispatch" for row in sent[2]]


def begin(core, mean_ns=300 * MILLISECOND, hosts=2):
    """Host 0 has one worker and the large result 1. Its worker runs task 11, which takes `mean_ns` like all readers.
    Other hosts have one idle worker."""
    core.client(C, NAME)
    for function in (MAKE, READ):
        core.function(C, function, b"%d" % function)
    host(core, 0)
    make(core, worker(0), LARGE)
    submit(core, (10, [1]))
    done(core, worker(0), 10, nanoseconds=mean_ns)
    core.take()
    submit(core, (11, [1]))
    assert dispatched(core) == [(worker(0), 11)]
    for number in range(1, hosts):
        host(core, number)
    core.take()


def test_a_task_waits_for_the_host_if_the_transfer_takes_longer(core):
    begin(core)
    submit(core, (12, [1]))
    assert core.take() == []
    core.now += 0.3
    done(core, worker(0), 11)
    assert (worker(0), 12) in dispatched(core)
    assert core.scheduler.transfers.done == 0 and not list(core.scheduler.transfers)


def test_a_task_goes_elsewhere_if_the_wait_takes_longer(core):
    begin(core, 2 * SECOND)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])


def test_tasks_that_wait_for_a_host_count_as_its_work(core):
    begin(core)
    submit(core, *[(number, [1]) for number in range(12, 20)])
    assert orders(core, LARGE) == ([(0, 1)], [])
    waiting = [task.id for task in core.scheduler.core_state.near_data.waits_until]
    assert waiting[:3] == [12, 13, 14], "they wait for 0.3, 0.6 and 0.9 s; a transfer takes 1 s"


def test_files_on_their_way_to_a_host_delay_the_next_one(core):
    begin(core, SECOND, hosts=1)
    done(core, worker(0), 11, nanoseconds=SECOND)
    make(core, worker(0), *[LARGE] * 6, first=20)
    submit(core, (30, [1]))
    host(core, 1)
    core.take()
    submit(core, *[(31 + number, [20 + number]) for number in range(6)])
    # The first transfer takes 1 s, as the wait does. The second one would take 1.25 s.
    assert [task.id for task in core.scheduler.core_state.near_data.waits_until] == [32]
    assert len(list(core.scheduler.transfers)) == 5
    core.take()


def test_nothing_waits_longer_than_a_transfer_takes(core):
    begin(core)
    submit(core, (12, [1]))
    assert core.take() == []
    assert core.scheduler.next_deadline <= core.now + 1.0
    core.wait(0.99)
    assert orders(core, LARGE) == ([], [])
    core.wait(0.02)
    assert orders(core, LARGE) == ([(0, 1)], [])
    core.wait(2)
    assert not core.scheduler.core_state.near_data.waits_until
    assert core.scheduler.next_deadline > core.now


def test_other_tasks_go_past(core):
    begin(core)
    submit(core, (12, [1]), priority=1)
    submit(core, (13, []))
    assert dispatched(core) == [(worker(1), 13)]


def test_a_late_host_counts_as_slow(core):
    begin(core)
    core.now += 2.0
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])


def test_a_task_waits_behind_short_ones_although_others_are_idle(core):
    begin(core, MILLISECOND)
    submit(core, (12, [1]), (13, [1]))
    assert dispatched(core) == [(worker(0), 12), (worker(0), 13)]


def test_a_task_of_unknown_length_goes_behind_none(core):
    begin(core, MILLISECOND)
    core.function(C, 3, b"new")
    submit(core, (12, [1]), function=3)
    assert core.take() == [] and core.scheduler.counts.waiting == 1
    done(core, worker(0), 11)
    assert (worker(0), 12) in dispatched(core)


def test_the_host_with_most_bytes_is_preferred(core):
    core.client(C, NAME)
    core.function(C, MAKE, b"1")
    core.function(C, READ, b"2")
    host(core, 0)
    make(core, worker(0), LARGE, LARGE)
    core.goodbye(worker(0))
    host(core, 1)
    make(core, worker(1), LARGE + 1, first=3)
    core.worker(worker(0, 1), 190, 31)
    core.take()
    submit(core, (10, [1, 2, 3]))
    sent = core.take()
    assert [each[4] - 31 for each in sent if each[0] == "transfer object"] == [1], "to host 0"
    answer_one(core, 1, 0, 3)
    assert dispatched(core) == [(worker(0, 1), 10)]


def answer_one(core, source, target, object_id):
    core.feed(events.Transferred(agent(target), [NAME], [object_id], 31 + source, "", False))


def test_the_rate_is_measured(core):
    begin(core, 2 * SECOND)
    before = core.scheduler.transfers.expected_ns(None, LARGE)
    assert before == SECOND
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])
    core.now += 20
    answer(core, 0, 1)
    assert core.scheduler.transfers.expected_ns(None, LARGE) == pytest.approx(20.9 / 1.9 * SECOND)
    core.take()


def test_a_host_that_lacks_a_capability_is_not_waited_for(core):
    begin(core, hosts=1)
    host(core, 1, capabilities=[("gpu", 1)])
    core.take()
    submit(core, (12, [1]), capabilities=frozenset([("gpu", 1)]))
    assert orders(core, LARGE) == ([(0, 1)], [])


def test_a_host_that_retires_is_not_waited_for(core):
    begin(core)
    submit(core, (12, [1]))
    assert core.take() == []
    core.feed(events.Heartbeat(agent(0), 1, [100], is_retiring=True))
    assert orders(core, LARGE)[0] == [(0, 1)]


def test_the_host_dies(core):
    begin(core)
    submit(core, (12, [1]))
    assert core.take() == []
    core.feed(events.Goodbye(agent(0), "ends"))
    outcomes = {row[0]: row[1] for sent in core.take() if sent[0] == "resolved" for row in sent[2]}
    assert outcomes[12] == effects.OUTCOME_INPUT_LOST
    core.wait(2)
    assert not core.scheduler.core_state.near_data.waits_until


def test_another_host_has_the_file_when_the_host_dies(core):
    begin(core, 2 * SECOND, hosts=3)
    submit(core, (12, [1]))
    [(_, target)], _ = orders(core, LARGE)
    answer(core, 0, target)
    [(at, _)] = dispatched(core)
    core.scheduler.transfers._measured_seconds = 10.0
    submit(core, (13, [1]))
    assert core.take() == []
    core.goodbye(agent(0))
    assert not dispatched(core)
    done(core, at, 12)
    core.results(at, [(NAME, 11, 2)], SECOND)
    assert (at, 13) in dispatched(core)


def test_a_task_that_waits_is_cancelled(core):
    begin(core)
    submit(core, (12, [1]))
    core.take()
    core.cancel(C, 12)
    assert core.scheduler.counts.waiting == 0
    core.now += 1.5
    core.scheduler.tick(core.now)
    assert core.scheduler.next_deadline > core.now, "the loop would not rest"
    assert not core.scheduler.core_state.near_data.waits_until
    core.take()


def test_many_tasks_that_wait_do_not_hide_the_work_behind_them(core):
    begin(core, 16 * MILLISECOND)
    submit(core, *[(number, [1]) for number in range(100, 100 + 4 * MAX_PASSED)])
    assert orders(core, LARGE) == ([(0, 1)], []), "all of it would take four seconds"


def test_the_next_tasks_wait_too_if_the_host_is_quick(core):
    begin(core, 16 * MILLISECOND)
    core.scheduler.transfers._measured_seconds = 100.0
    for number in range(100, 100 + 2 * MAX_PASSED):
        core.scheduler.handle(row(number), core.now)
    core.scheduler.collect()
    assert not list(core.scheduler.transfers)
    assert core.scheduler.counts.waiting == 2 * MAX_PASSED


def row(number):
    event = submit_event(C, [number], [READ], [b""], ())
    event.inputs, event.input_counts, event.keep = array("q", [1]), array("I", [1]), array("B", [NO])
    return event


def fill(core, number, room, *workers):
    """Let this host say that its values may take so many more bytes."""
    limits = LARGE, 2 * LARGE
    values = LARGE, 2 * LARGE - room, 0
    core.feed(events.Heartbeat(agent(number), 1, list(workers), values=values, limits=limits))
    core.take_one("echo", agent(number), 1)


def waiting(core):
    return sorted(task.id for task in core.scheduler.core_state.near_data.waits_until)


def test_a_host_without_room_is_not_chosen(core):
    begin(core, 20 * SECOND)
    fill(core, 1, LARGE - 1, 200)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([], [])
    assert waiting(core) == [12], "although its host is busy for 20 s"
    core.wait(5)
    assert orders(core, LARGE) == ([], []) and waiting(core) == [12]
    done(core, worker(0), 11)
    assert (worker(0), 12) in dispatched(core)


def test_a_host_gets_tasks_as_soon_as_it_has_room(core):
    begin(core, 20 * SECOND)
    fill(core, 1, LARGE - 1, 200)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([], [])
    fill(core, 1, LARGE, 200)
    assert orders(core, LARGE) == ([(0, 1)], [])


def test_another_idle_host_with_room_is_chosen(core):
    begin(core, 20 * SECOND, hosts=4)
    fill(core, 1, 0, 200)
    fill(core, 3, 0, 400)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 2)], [])


def test_files_on_their_way_count_in_the_room_of_a_host(core):
    begin(core, 20 * SECOND, hosts=1)
    done(core, worker(0), 11, nanoseconds=20 * SECOND)
    make(core, worker(0), LARGE, first=20)
    submit(core, (31, [1]))
    host(core, 1, workers=3)
    core.take()
    fill(core, 1, 2 * LARGE - 1, 200, 201, 202)
    submit(core, (32, [1]), (33, [20]), (34, [1]))
    assert [transfer.stored.id for transfer in core.scheduler.transfers] == [1], "for the tasks 32 and 34"
    assert waiting(core) == [33]
    core.take()


def test_what_has_come_counts_in_the_room_of_a_host(core):
    begin(core, 20 * SECOND)
    core.worker(worker(1, 1), 201, 32)
    fill(core, 1, 2 * LARGE - 1, 200, 201)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])
    answer(core, 0, 1)
    assert [task for _, task in dispatched(core)] == [12]
    assert core.scheduler.tables.agents.find(32).room.free == LARGE - 1


def test_a_host_without_room_is_chosen_if_no_other_can_have_the_task(core):
    begin(core, hosts=1)
    host(core, 1, capabilities=[("gpu", 1)])
    core.take()
    fill(core, 1, 0, 200)
    submit(core, (12, [1]), capabilities=frozenset([("gpu", 1)]))
    assert orders(core, LARGE) == ([(0, 1)], [])


def one_input_each(core, first, second):
    """Two hosts with an idle worker each. Host 0 has the result 1, of the first size, and host 1 the result 2."""
    core.client(C, NAME)
    core.function(C, MAKE, b"1")
    core.function(C, READ, b"2")
    host(core, 0)
    make(core, worker(0), first)
    core.goodbye(worker(0))
    host(core, 1)
    make(core, worker(1), second, first=2)
    core.worker(worker(0, 1), 190, 31)
    core.take()


def test_full_hosts_exchange_inputs_of_one_task(core):
    one_input_each(core, LARGE, LARGE)
    fill(core, 0, 0, 190)
    fill(core, 1, 0, 200)
    submit(core, (10, [1, 2]))
    assert len([sent for sent in core.take() if sent[0] == "transfer object"]) == 1, "else the task waits for ever"


def test_a_host_with_room_for_the_rest_is_chosen_although_it_has_fewer_bytes(core):
    one_input_each(core, LARGE + 1, LARGE)
    fill(core, 0, 0, 190)
    fill(core, 1, LARGE + 1, 200)
    submit(core, (10, [1, 2]))
    assert [sent[4] - 31 for sent in core.take() if sent[0] == "transfer object"] == [0], "to host 1"


def makes(core, *ids):
    submit(core, *[(each, []) for each in ids], function=MAKE)


def test_kept_results_go_where_there_is_room(core):
    begin(core, hosts=2)
    fill(core, 1, LARGE - 1, 200)
    makes(core, 20)
    assert dispatched(core) == [] and waiting(core) == [20], "the only other worker is busy"
    done(core, worker(0), 11)
    assert (worker(0), 20) in dispatched(core)


def test_kept_results_go_to_another_idle_host(core):
    begin(core, hosts=4)
    fill(core, 1, LARGE - 1, 200)
    fill(core, 3, LARGE - 1, 400)
    makes(core, 20)
    assert dispatched(core) == [(worker(2), 20)]


def test_kept_results_go_to_a_full_host_if_all_are_full(core):
    begin(core, hosts=2)
    fill(core, 0, 0, 100)
    fill(core, 1, 0, 200)
    makes(core, 20)
    assert dispatched(core) == [(worker(1), 20)], "its error names both limits"


def test_no_more_results_are_made_at_once_than_fit(core):
    begin(core, MILLISECOND, hosts=1)
    done(core, worker(0), 11, nanoseconds=MILLISECOND)
    host(core, 1)
    fill(core, 0, 0, 100)
    fill(core, 1, 3 * LARGE, 200)
    core.take()
    makes(core, *range(20, 26))
    assert dispatched(core) == [(worker(1), 20), (worker(1), 21), (worker(1), 22)]
    assert core.scheduler.counts.waiting == 3
    body = LARGE.to_bytes(8, "little")
    core.results(worker(1), [(NAME, each, 1) for each in (20, 21, 22)], 1000, effects.OUTCOME_STORED, body)
    core.wait(1.1)
    assert len(dispatched(core)) == 3, "no host has room: idle workers try it"


def test_the_result_needs_room_beside_the_inputs(core):
    begin(core, 20 * SECOND)
    for room, expected in ((2 * LARGE - 1, []), (2 * LARGE, [(0, 1)])):
        fill(core, 1, room, 200)
        event = submit_event(C, [20], [MAKE], [b""], ())
        event.inputs, event.input_counts, event.keep = array("q", [1]), array("I", [1]), array("B", [KEEP])
        core.feed(event)
        assert orders(core, LARGE) == (expected, [])


NO_ROOM = b"10 bytes fit nowhere"


def no_room(core, at, task, attempt=1):
    core.results(at, [(NAME, task, attempt)], SECOND, effects.OUTCOME_NO_ROOM, NO_ROOM)


def answers(core):
    return [row for sent in core.take() if sent[0] == "resolved" for row in sent[2]]


def unknown_size(core, *ids, **options):
    """Submit kept tasks of a function without results so far."""
    core.function(C, 3, b"3")
    event = submit_event(C, list(ids), [3], [b""] * len(ids), ())
    event.inputs, event.input_counts = array("q"), array("I", [0] * len(ids))
    event.keep, event.options = array("B", [KEEP] * len(ids)), events.Options(**options)
    core.feed(event)


def test_a_result_without_room_is_made_on_another_host(core):
    begin(core, hosts=3)
    unknown_size(core, 20)
    [(first, _)] = dispatched(core)
    no_room(core, first, 20)
    [(second, _)] = dispatched(core)
    assert {first, second} == {worker(1), worker(2)}
    core.results(second, [(NAME, 20, 2)], 1000, effects.OUTCOME_STORED, LARGE.to_bytes(8, "little"))
    assert [row[:2] for row in answers(core)] == [(20, effects.OUTCOME_KEPT)]


def test_it_waits_for_a_busy_host_with_room(core):
    begin(core, hosts=2)
    unknown_size(core, 20)
    assert dispatched(core) == [(worker(1), 20)]
    no_room(core, worker(1), 20)
    core.wait(3)
    assert dispatched(core) == [] and core.scheduler.counts.waiting == 1
    done(core, worker(0), 11)
    assert (worker(0), 20) in dispatched(core)


def test_a_result_that_no_host_has_room_for_fails(core):
    begin(core, hosts=2)
    unknown_size(core, 20)
    fill(core, 0, 0, 100)
    core.scheduler.tables.clients.find(NAME).functions[3].kept_bytes = LARGE
    assert dispatched(core) == [(worker(1), 20)]
    no_room(core, worker(1), 20)
    assert answers(core) == [(20, effects.OUTCOME_RESULT_FAILED, NO_ROOM)]


def test_without_retries_it_fails_at_once(core):
    begin(core, hosts=3)
    unknown_size(core, 20, retries=0)
    [(first, _)] = dispatched(core)
    no_room(core, first, 20)
    assert answers(core) == [(20, effects.OUTCOME_RESULT_FAILED, NO_ROOM)]


def test_a_task_that_is_cancelled_meanwhile_does_not_run_again(core):
    begin(core, hosts=3)
    unknown_size(core, 20)
    [(first, _)] = dispatched(core)
    core.cancel(C, 20)
    core.take()
    no_room(core, first, 20)
    assert answers(core) == [(20, effects.OUTCOME_CANCELLED, b"")]


def test_other_tasks_of_a_host_need_no_room_for_results(core):
    begin(core, hosts=1)
    host(core, 1, workers=2)
    fill(core, 0, 0, 100)
    fill(core, 1, LARGE, 200, 201)
    core.take()
    submit(core, (20, []))
    assert len(dispatched(core)) == 1, "a task without a kept result"
    makes(core, 21)
    [(at, _)] = dispatched(core)
    assert at in (worker(1, 0), worker(1, 1))


def test_small_kept_results_go_anywhere(core):
    begin(core, hosts=2)
    fill(core, 1, 0, 200)
    core.function(C, 3, b"3")
    event = submit_event(C, [20], [3], [b""], ())
    event.inputs, event.input_counts, event.keep = array("q"), array("I", [0]), array("B", [KEEP])
    core.feed(event)
    assert dispatched(core) == [(worker(1), 20)]


def test_the_limit_in_memory_says_whether_limits_are_known(core):
    begin(core, 20 * SECOND)
    core.feed(events.Heartbeat(agent(1), 1, [200], values=(LARGE, 0, 0)))
    core.take_one("echo", agent(1), 1)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])


def test_a_task_whose_input_is_late_goes_to_an_idle_worker_that_has_it(core):
    begin(core, 20 * SECOND)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])
    done(core, worker(0), 11)
    core.take()
    core.wait(LATE_SECONDS - 0.5)
    assert dispatched(core) == [], "the file may come at any moment"
    core.wait(2)
    assert dispatched(core) == [(worker(0), 12)]
    answer(core, 0, 1)
    assert dispatched(core) == []
    assert not list(core.scheduler.transfers)


def test_a_task_whose_input_is_late_waits_while_no_other_worker_is_idle(core):
    begin(core, 20 * SECOND)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])
    for _ in range(5):
        core.wait(1)
    assert orders(core, LARGE) == ([], [])
    answer(core, 0, 1)
    assert dispatched(core) == [(worker(1), 12)]


def test_small_inputs_go_anywhere(core, monkeypatch):
    begin(core)
    monkeypatch.setattr(near_data, "LEAST_BYTES", LARGE + 1)
    submit(core, (12, [1]))
    assert orders(core, LARGE) == ([(0, 1)], [])
