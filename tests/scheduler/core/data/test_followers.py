"""Tasks that follow the tasks whose results they read, to one worker in one Dispatch. Under PyPy and CPython."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.harness import CANCELLED, EXCEPTION, MILLISECOND, VALUE, submit_event

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.state.functions import LARGE_BYTES

C, W, W2, A = b"client", b"worker 1", b"worker 2", b"agent"
NAME, AGENT = 11, 31


def join_worker(core, route, incarnation, takes_followers=True, agent=0):
    who = (incarnation, agent, "python 3", "1", "host", 4711, "name", 0, frozenset())
    core.feed(events.Hello(route, 1, events.WORKER, *who, takes_followers=takes_followers))


def joined(core, **options):
    """A client and two workers. The function is known to be short."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.submit(C, [1], 1)
    join_worker(core, W, 21, **options)
    core.results(W, [(NAME, 1, 1)], nanoseconds=1000)
    core.take()


def submit(core, *rows, keep=events.KEEP_BOTH, **options):
    """Submit rows: each an id and the ids of what it reads. All results are kept."""
    event = submit_event(C, [each[0] for each in rows], [1], [b"x"] * len(rows), ())
    event.inputs = array("q", [each for row in rows for each in row[1:]])
    event.input_counts = array("I", [len(row) - 1 for row in rows])
    event.keep = array("B", [keep] * len(rows))
    if options:
        event.options = events.Options(**options)
    core.feed(event)


def dispatched(core):
    """Return for each Dispatch the worker and the ids, and all other effects but functions."""
    return [
        (each[1], [row[1] for row in each[2]]) if each[0] == "dispatch" else each
        for each in core.take()
        if each[0] not in ("function", "welcome")
    ]


def end(core, task_id, outcome=VALUE, route=W, attempt=1):
    core.results(route, [(NAME, task_id, attempt)], outcome=outcome, body=b"v")


def answer(task_id, outcome=VALUE, body=b"v"):
    return ("resolved", C, [(task_id, outcome, body)])


def test_a_chain_goes_to_one_worker(core):
    joined(core)
    submit(core, (2,), (3, 2), (4, 3), (5, 4))
    assert dispatched(core) == [(W, [2, 3, 4, 5])]
    for task_id in (2, 3, 4, 5):
        end(core, task_id)
        assert dispatched(core) == [answer(task_id)]


@pytest.mark.parametrize("finished", [0, 1])
def test_a_task_does_not_follow_that_runs_or_has_ended_at_a_worker_that_joins_again(core, finished):
    joined(core)
    core.worker(W2, 22, running=[(NAME, 3, 1)], finished=finished)
    submit(core, (2,), (3, 2), (4, 3))
    assert dispatched(core) == [(W, [2])]
    end(core, 2)
    assert dispatched(core) == [answer(2)]
    end(core, 3, route=W2)
    assert dispatched(core) == [(W, [4]), answer(3)]


@pytest.mark.parametrize("keep", [events.KEEP_YES, events.KEEP_BOTH])
def test_readers_follow_a_task_whose_result_is_a_file(core, keep):
    joined(core)
    submit(core, (2,), (3, 2), keep=events.KEEP_YES)
    core.results(W, [(NAME, 2, 1)], body=bytes(LARGE_BYTES))
    end(core, 3)
    core.take()
    submit(core, (4,), (5, 4), (6, 5), keep=keep)
    assert dispatched(core) == [(W, [4, 5, 6])]
    for task_id in (4, 5, 6):
        end(core, task_id)
    core.take()


def test_where_the_inputs_come_from(core):
    joined(core)
    submit(core, (2,))
    end(core, 2)
    core.take()
    sent = []
    core.scheduler.outbox.drain, drain = (
        lambda now: sent.extend(drained := drain(now)) or drained,
        core.scheduler.outbox.drain,
    )
    submit(core, (3,), (4, 3, 2))
    [dispatch] = [each for each in sent if each.kind == effects.DISPATCH]
    assert list(dispatch.input_sources) == [effects.INPUT_OF_ROW_BEFORE, effects.INPUT_IN_MESSAGE]
    assert dispatched(core) == [(W, [3, 4])]
    end(core, 3)
    end(core, 4)
    core.take()


def test_a_tree_follows_its_leaves(core):
    joined(core)
    submit(core, (2,), (3,), (4, 2, 3), (5, 4))
    assert dispatched(core) == [(W, [2, 3, 4, 5])]
    for task_id in (2, 3, 4, 5):
        end(core, task_id)
    core.take()


@pytest.mark.parametrize(
    "rows",
    [
        [(2,), (3, 2), (4, 2)],  # two readers may run beside each other
        [(2,), (3, 2, 2)],
        [(2,), (3, 2, 1)],  # an input that is nowhere
    ],
)
def test_what_does_not_follow(core, rows):
    joined(core)
    submit(core, *rows)
    assert (W, [2]) in dispatched(core)
    end(core, 2)
    core.take()


def test_a_worker_that_takes_no_followers(core):
    joined(core, takes_followers=False)
    submit(core, (2,), (3, 2))
    assert dispatched(core) == [(W, [2])]
    end(core, 2)
    assert dispatched(core) == [(W, [3]), answer(2)]
    end(core, 3)
    core.take()


def test_long_tasks_have_no_followers(core):
    joined(core)
    core.submit(C, [2], 1)
    core.results(W, [(NAME, 2, 1)], nanoseconds=10_000 * MILLISECOND)
    core.take()
    submit(core, (3,), (4, 3))
    assert dispatched(core) == [(W, [3])]
    end(core, 3)
    core.take()


def test_other_options_do_not_follow(core):
    joined(core)
    event = submit_event(C, [2], [1], [b"x"], ())
    event.keep = array("B", [events.KEEP_BOTH])
    later = submit_event(C, [3], [1], [b"x"], ())
    later.inputs, later.input_counts = array("q", [2]), array("I", [1])
    later.options = events.Options(priority=-3)  # a higher one would be that of its input too
    core.feed(event, later)
    assert dispatched(core) == [(W, [2])]
    end(core, 2)
    assert dispatched(core) == [(W, [3]), answer(2)]
    end(core, 3)
    core.take()


def test_followers_fail_with_their_task(core):
    joined(core)
    submit(core, (2,), (3, 2), (4, 3))
    core.take()
    end(core, 2, EXCEPTION)
    sent = {each[0]: each for each in dispatched(core)}
    assert sorted(sent["resolved"][2]) == [(2, EXCEPTION, b"v"), (3, EXCEPTION, b"v"), (4, EXCEPTION, b"v")]
    assert sent["retract"] == ("retract", W, [(NAME, 3, 1), (NAME, 4, 1)])
    core.retracted(W, [(NAME, 3, 1), (NAME, 4, 1)], 1)
    submit(core, (5,))
    assert dispatched(core) == [(W, [5])], "the worker has room"
    end(core, 5)
    core.take()


def test_a_follower_that_is_given_back_waits_for_its_input(core):
    """Its task is suspended, or runs again."""
    joined(core)
    submit(core, (2,), (3, 2))
    core.take()
    core.retracted(W, [(NAME, 3, 1)], 1)
    assert dispatched(core) == []
    end(core, 2)
    assert dispatched(core) == [(W, [3]), answer(2)]
    end(core, 3, attempt=2)
    assert dispatched(core) == [answer(3)]


def test_a_lost_worker(core):
    joined(core)
    submit(core, (2,), (3, 2), (4, 3))
    core.take()
    core.goodbye(W)
    join_worker(core, W2, 22)
    assert dispatched(core) == [(W2, [2, 3, 4])]
    for task_id in (2, 3, 4):
        end(core, task_id, route=W2, attempt=2)
    core.take()


def test_a_cancelled_follower(core):
    joined(core)
    submit(core, (2,), (3, 2), (4, 3))
    core.take()
    core.cancel(C, 3)
    assert dispatched(core) == [("retract", W, [(NAME, 3, 1)])]
    core.retracted(W, [(NAME, 3, 1)], 1)
    [resolved] = [each for each in dispatched(core) if each[0] == "resolved"]
    assert [row[:2] for row in resolved[2]] == [(3, CANCELLED), (4, CANCELLED)]
    core.retracted(W, [(NAME, 4, 1)], 1)
    end(core, 2)
    assert dispatched(core) == [answer(2)]


class CountingDict(dict):
    """Counts the look-ups of objects, a measure of the work."""

    looks = 0

    def get(self, *key):
        CountingDict.looks += 1
        return dict.get(self, *key)


@pytest.mark.parametrize("ends", ["cancelled in the middle", "dropped in the middle", "all run"])
def test_a_long_chain_is_linear_work(core, ends):
    looks = [work_of_chain(core, count, ends) for count in (400, 1600)]
    assert looks[1] < 6 * looks[0]  # four times as many links


def work_of_chain(core, count, ends):
    """Return the look-ups that a chain of so many tasks costs from its cancel or the arrival of a worker to its end."""
    route, worker, name = b"client %d" % count, b"worker of %d" % count, count
    core.client(route, name)
    core.function(route, 1, b"f")
    event = submit_event(route, range(count), [1], [b"x"] * count, ())
    event.inputs = array("q", range(count - 1))
    event.input_counts = array("I", [0, *[1] * (count - 1)])
    event.keep = array("B", [events.KEEP_BOTH] * count)
    core.feed(event)
    client = core.scheduler.tables.clients.find(name)
    client.objects = CountingDict(client.objects)
    CountingDict.looks = 0
    if ends == "cancelled in the middle":
        core.cancel(route, count // 2)
    elif ends == "dropped in the middle":
        core.feed(events.ForgetObjects(route, array("q", range(count // 2))))
    if ends != "cancelled in the middle":
        join_worker(core, worker, 1000 + count)
        left = set(range(count))
        while left:
            rows = [row for each in core.take() if each[0] == "dispatch" for row in each[2]]
            assert rows, left
            core.results(worker, [row[:3] for row in rows])
            left.difference_update(row[1] for row in rows)
    looks = CountingDict.looks
    if ends != "cancelled in the middle":
        core.goodbye(worker)
    core.goodbye(route)
    core.take()
    return looks


# ---------------------------------------------------------------------------------------------- results that are files


def chain_of_files(core):
    """Rows 2, 3 and 4 on one worker, each reading the one before. Large results of their function stay on the host."""
    core.client(C, NAME)
    core.function(C, 1, b"f")
    core.agent(A, AGENT)
    join_worker(core, W, 21, agent=AGENT)
    submit(core, (1,), keep=events.KEEP_YES)
    store(core, 1)
    core.take()
    submit(core, (2,), (3, 2), (4, 3), keep=events.KEEP_YES)
    assert dispatched(core) == [(W, [2, 3, 4])]


def store(core, task_id, attempt=1):
    body = LARGE_BYTES.to_bytes(8, "little")
    core.results(W, [(NAME, task_id, attempt)], 1000, effects.OUTCOME_STORED, body)


def test_rows_behind_a_file_need_no_other_dispatch(core):
    chain_of_files(core)
    for task_id in (2, 3, 4):
        store(core, task_id)
    assert not [each for each in dispatched(core) if each[0] == W]
    core.feed(events.ForgetObjects(C, array("q", [2, 3])))
    assert dispatched(core) == [("forget objects", A, [(NAME, 2), (NAME, 3)])]


def test_a_row_that_cannot_read_the_file_before_it_runs_again(core):
    """The worker found no file: it is no failure of the task, and the client hears nothing of it."""
    chain_of_files(core)
    store(core, 2)
    end(core, 3, effects.OUTCOME_INPUT_LOST)
    sent = core.take()
    assert ("fetch objects", A, [(NAME, 2)]) in sent
    assert not [each for each in sent if each[0] == "resolved" and each[2][0][1] == effects.OUTCOME_INPUT_LOST]
    core.feed(events.Object(A, 2, "", [b"v" * LARGE_BYTES], NAME))
    (row,) = next(each[2] for each in core.take() if each[0] == "dispatch")
    assert row[1:3] == (3, 2), "its second attempt"
