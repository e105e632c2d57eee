"""Copies that nobody reads leave hosts without room. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data.test_graphs import KEEP, NAME, C
from tests.scheduler.core.data.test_near_data import (
    LARGE,
    READ,
    answers,
    done,
    fill,
    host,
    make,
    no_room,
    submit,
    unknown_size,
    waiting,
    worker,
)
from tests.scheduler.core.data.test_transfers import agent
from tests.scheduler.core.harness import submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.ids import DataAddress
from scaler_scheduler.core.placement.near_data import FULL_SECONDS

GPU = frozenset([("gpu", 1)])
MAKE = 1


@pytest.fixture
def hosts(core):
    """Host 0 has the large results 1 to 6 and has room. Host 1 alone has workers with a GPU, two of them."""
    core.client(C, NAME)
    for function in (MAKE, READ):
        core.function(C, function, b"%d" % function)
    host(core, 0)
    make(core, worker(0), *[LARGE] * 6)
    submit(core, (9, [1]))
    done(core, worker(0), 9)
    host(core, 1, workers=2, capabilities=[("gpu", 1)])
    core.take()
    return core


def say_room(core, room):
    """Let host 1 say that so many more bytes fit, of a limit of twice LARGE. Returns what the scheduler does then."""
    values = LARGE, 2 * LARGE - room, 0
    limits = LARGE, 2 * LARGE
    core.feed(events.Heartbeat(agent(1), 1, [200, 201], values=values, limits=limits))
    return [sent for sent in core.take() if sent[0] != "echo"]


def read(core, *rows, **options):
    submit(core, *rows, capabilities=GPU, **options)


def ordered(core, sent=None):
    """The ids of the values that host 1 is told to get, and of those that its agent is told to remove."""
    sent = core.take() if sent is None else sent
    got = [each[2][1] for each in sent if each[0] == "transfer object" and each[1] == agent(1)]
    removed = [number for each in sent if each[0] == "forget objects" and each[1] == agent(1) for _, number in each[2]]
    return got, removed


def arrive(core, *ids):
    core.feed(events.Transferred(agent(1), [NAME] * len(ids), list(ids), 31, "", False))


def dispatched_to(core):
    """The only worker that a task was dispatched to since the last call."""
    [route] = [sent[1] for sent in core.take() if sent[0] == "dispatch"]
    return route


def begin_at_host(core):
    """Let task 10, which reads the value 1, be dispatched to host 1. Returns its worker."""
    say_room(core, 2 * LARGE)
    read(core, (10, [1]))
    core.take()
    arrive(core, 1)
    return dispatched_to(core)


def run_at_host(core, *rows):
    """Let readers (id, ids of inputs) run on host 1, one after another. It has room for their inputs."""
    for number, inputs in rows:
        say_room(core, 2 * LARGE)
        read(core, (number, inputs))
        core.take()
        arrive(core, *inputs)
        route = dispatched_to(core)
        done(core, route, number)
        core.take()


def test_a_copy_that_nobody_reads_makes_room(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    say_room(core, LARGE // 2)
    read(core, (12, [3]))
    assert ordered(core) == ([], [1]), "the oldest copy goes"
    assert waiting(core) == [12]
    assert ordered(core, say_room(core, LARGE)) == ([3], [])


def test_its_workers_forget_it_too(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE // 2)
    read(core, (12, [3]))
    routes = [sent[1] for sent in core.take() if sent[0] == "forget objects"]
    assert sorted(routes)[0] == agent(1) and len(routes) == 2 and routes[0].startswith(b"worker 1")


def test_a_copy_that_a_task_there_reads_stays(hosts):
    core = hosts
    route = begin_at_host(core)
    say_room(core, LARGE // 2)
    read(core, (12, [2]))
    assert ordered(core) == ([], []) and waiting(core) == [12]
    core.wait(5 * FULL_SECONDS)
    assert ordered(core) == ([], []) and waiting(core) == [12]
    done(core, route, 10)
    assert ordered(core) == ([], [1])
    assert ordered(core, say_room(core, LARGE)) == ([2], [])


def test_a_copy_stays_for_a_placed_task_that_waits_for_another_input(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE)
    read(core, (11, [1, 2]))
    assert ordered(core) == ([2], [])
    read(core, (12, [3]))
    assert ordered(core) == ([], []) and waiting(core) == [12]


def test_copies_that_no_open_task_reads_go_first(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    say_room(core, LARGE // 2)
    submit(core, (20, [1]), capabilities=frozenset([("nowhere", 1)]))
    read(core, (12, [3]))
    assert ordered(core) == ([], [2]), "although the copy of 1 is older"


def test_a_task_that_never_fits_does_not_wait(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE)
    read(core, (12, [2, 3, 4]))
    assert ordered(core) == ([], [1]) and waiting(core) == [12], "it waits for the heartbeat"
    say_room(core, 2 * LARGE)
    core.wait(FULL_SECONDS)
    got, removed = ordered(core)
    assert sorted(got)[:2] == [2, 3] and not removed and waiting(core) == []


def test_a_file_that_counts_twice_makes_no_task_go_beyond_the_limits(hosts):
    core = hosts
    say_room(core, 2 * LARGE)
    read(core, (10, [1]))
    assert ordered(core) == ([1], [])
    say_room(core, LARGE)  # it counts the file already, whose answer is late
    read(core, (12, [2]))
    assert ordered(core) == ([], []) and waiting(core) == [12]
    arrive(core, 1)
    assert ordered(core) == ([], []) and waiting(core) == [12]
    assert ordered(core, say_room(core, LARGE)) == ([2], [])


def test_a_value_can_come_again_after_its_copy_was_removed(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE // 2)
    read(core, (12, [3]))
    assert ordered(core) == ([], [1])
    assert ordered(core, say_room(core, LARGE)) == ([3], [])
    read(core, (13, [1]))
    arrive(core, 3)
    route = dispatched_to(core)
    done(core, route, 12)
    assert ordered(core) == ([], [3])
    assert ordered(core, say_room(core, LARGE)) == ([1], [])


def test_the_source_of_a_transfer_keeps_its_copy(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    host(core, 2, capabilities=[("other", 1)])
    agents = core.scheduler.tables.agents
    core.scheduler.transfers.unreachable[agents.find(31), agents.find(33)] = core.now
    submit(core, (20, [1]), capabilities=frozenset([("other", 1)]))
    assert [sent[4] for sent in core.take() if sent[0] == "transfer object"] == [32]
    say_room(core, LARGE // 2)
    read(core, (12, [3]))
    assert ordered(core) == ([], [2])


def test_the_only_file_of_a_value_stays(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    core.goodbye(agent(0))
    core.take()
    say_room(core, 0)
    assert ordered(core) == ([], [])
    assert core.scheduler.tables.clients.find(NAME).objects[1].home.incarnation == 32
    assert not core.scheduler.tables.agents.find(32).copies


def test_tasks_with_resources_wait_for_room_too(core):
    core.client(C, NAME)
    for function in (MAKE, READ):
        core.function(C, function, b"%d" % function)
    host(core, 0)
    make(core, worker(0), *[LARGE] * 3)
    data = DataAddress("tcp://host1:1", "", "ticket1")
    core.agent(agent(1), 32, data=data, resources=[("gpu", 1000, False)], slots=1)
    core.worker(worker(1), 200, 32)
    core.take()
    fill(core, 1, LARGE, 200)
    submit(core, (10, [1]), resources=(("gpu", 1000),))
    assert ordered(core) == ([1], [])
    arrive(core, 1)
    core.take()
    fill(core, 1, 0, 200)
    submit(core, (12, [2]), resources=(("gpu", 1000),))
    assert ordered(core) == ([], [])
    done(core, worker(1), 10)
    assert ordered(core) == ([], [1]) and waiting(core) == [12]
    assert ordered(core, say_room(core, LARGE)) == ([2], [])


def test_a_host_with_little_room_keeps_no_copies_that_no_open_task_reads(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    submit(core, (20, [1]), capabilities=frozenset([("nowhere", 1)]))
    core.take()
    assert ordered(core, say_room(core, LARGE)) == ([], [])
    assert ordered(core, say_room(core, LARGE // 5)) == ([], [2])
    assert ordered(core, say_room(core, LARGE // 5)) == ([], [])


def test_a_host_beyond_its_limits_removes_copies_until_it_is_within_them(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]), (12, [3]))
    values, limits = (LARGE, 3 * LARGE, 0), (LARGE, 2 * LARGE)
    core.feed(events.Heartbeat(agent(1), 1, [200, 201], values=values, limits=limits))
    assert ordered(core) == ([], [1, 2]), "one for the excess, one for the room that it keeps"


def test_a_result_without_room_is_made_again_where_copies_make_room(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE // 3)
    unknown_size(core, 20, capabilities=GPU)
    route = dispatched_to(core)
    no_room(core, route, 20)
    sent = core.take()
    assert ordered(core, sent) == ([], [1])
    assert [row[1:3] for each in sent if each[0] == "dispatch" for row in each[2]] == [(20, 2)]
    assert not [each for each in sent if each[0] == "resolved"]
    say_room(core, LARGE)
    no_room(core, next(each[1] for each in sent if each[0] == "dispatch"), 20, 2)
    assert answers(core)[0][1] == effects.OUTCOME_RESULT_FAILED, "there are no further copies"


def test_a_result_without_room_keeps_the_inputs_of_its_task(hosts):
    core = hosts
    run_at_host(core, (10, [1]))
    say_room(core, LARGE)
    core.function(C, 3, b"3")
    event = submit_event(C, [20], [3], [b""], ())
    event.inputs, event.input_counts = array("q", [1]), array("I", [1])
    event.keep, event.options = array("B", [KEEP]), events.Options(capabilities=GPU)
    core.feed(event)
    route = dispatched_to(core)
    no_room(core, route, 20)
    assert answers(core)[0][1] == effects.OUTCOME_RESULT_FAILED, "its input is the only copy"


def test_placed_tasks_that_have_ended_are_forgotten(hosts):
    core = hosts
    run_at_host(core, (10, [1]), (11, [2]))
    core.wait(10)
    assert not core.scheduler.tables.agents.find(32).placed
