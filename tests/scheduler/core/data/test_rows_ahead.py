"""Rows that are queued at a worker ahead of their inputs. Runs under PyPy and CPython."""

from __future__ import annotations

from array import array

from tests.scheduler.core.data.test_graphs import BOTH, CANCELLED, KEEP, KEPT, NAME, NO, C, V, W, resolved, run, submit
from tests.scheduler.core.harness import EXCEPTION, MILLISECOND, RETRYABLE, Core

from scaler_scheduler.core import effects, events
from scaler_scheduler.core.state.functions import LARGE_BYTES

HERE, ELSEWHERE = effects.INPUT_OF_HELD_TASK, effects.INPUT_AWAITED


class AheadCore(Core):
    """A core whose workers queue ahead, and which knows that a task takes a millisecond."""

    def __init__(self, *workers: bytes, milliseconds: int = 1) -> None:
        super().__init__()
        self.sources: list[list[list[int]]] = []
        """Of each dispatch, where the inputs of its rows are."""
        collect = self.scheduler.collect

        def collect_sources():
            collected = collect()
            for effect in collected:
                if effect.kind == effects.DISPATCH:
                    self.sources.append([])
                    begin = 0
                    for row in range(len(effect.ids)):
                        end = begin + effect.input_counts.get(row, 0)
                        self.sources[-1].append(effect.input_sources[begin:end])
                        begin = end
            return collected

        self.scheduler.collect = collect_sources
        self.client(C, NAME)
        self.function(C, 1, b"f")
        for number, worker in enumerate(workers):
            self.feed(events.Hello(worker, 1, events.WORKER, 21 + number, 0, "", "", "h", 1, "w", queues_ahead=True))
        submit(self, [(1, [], NO)])
        self.results(workers[-1], [(NAME, 1, 1)], nanoseconds=milliseconds * MILLISECOND)
        self.take()
        self.sources.clear()

    def rows(self):
        """The dispatched rows since the last call: worker, id, attempt and where its inputs are; other messages as
        they are."""
        taken = []
        for effect in self.take():
            if effect[0] == "dispatch":
                taken += [(effect[1], row[1], row[2], sources) for row, sources in zip(effect[2], self.sources.pop(0))]
            elif effect[0] != "function":
                taken.append(effect)
        return taken


def test_a_chain_goes_to_one_worker_at_once():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], KEEP), (4, [3], NO)])
    assert core.rows() == [(W, 2, 1, []), (W, 3, 1, [HERE]), (W, 4, 1, [HERE])]
    run(core, W, 2, b"two")
    run(core, W, 3, b"three")
    assert core.rows() == [resolved((2, KEPT, b"")), resolved((3, KEPT, b""))]
    run(core, W, 4, b"four")
    assert core.rows() == [resolved((4, 0, b"four"))]


def test_an_input_of_another_worker_is_sent_when_it_is_there():
    core = AheadCore(W, V)
    submit(core, [(2, [], KEEP), (3, [], KEEP), (4, [2, 3], NO), (5, [2, 3], NO)])
    assert core.rows() == [(V, 2, 1, []), (V, 4, 1, [HERE, ELSEWHERE]), (W, 3, 1, []), (W, 5, 1, [ELSEWHERE, HERE])]
    run(core, V, 2, b"two")
    assert core.rows() == [("inputs", W, [(NAME, 2, b"two")]), resolved((2, KEPT, b""))]
    run(core, W, 3, b"three")
    assert core.rows() == [("inputs", V, [(NAME, 3, b"three")]), resolved((3, KEPT, b""))]
    run(core, V, 4, b"four")
    run(core, W, 5, b"five")
    assert core.rows() == [resolved((4, 0, b"four")), resolved((5, 0, b"five"))]


def test_a_worker_that_does_not_say_so_gets_no_row_ahead():
    core = AheadCore(W)
    [worker] = core.scheduler.tables.workers
    worker.queues_ahead = False
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    assert core.rows() == [(W, 2, 1, [])]
    run(core, W, 2, b"two")
    assert core.rows() == [(W, 3, 1, [0]), resolved((2, KEPT, b""))]


def test_long_tasks_are_not_queued_ahead_in_numbers():
    core = AheadCore(W, milliseconds=20)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    assert core.rows() == [(W, 2, 1, [])]
    run(core, W, 2, b"two")
    core.rows()


def test_an_idle_worker_gets_one_of_two_readers():
    core = AheadCore(W, V)
    submit(core, [(2, [], KEEP), (3, [2], NO), (4, [2], NO)])
    assert core.rows() == [(V, 2, 1, []), (V, 3, 1, [HERE])]
    run(core, V, 2, b"two")
    assert core.rows() == [(W, 4, 1, [0]), resolved((2, KEPT, b""))]


def test_a_failed_input_fails_the_rows_behind_it_and_takes_them_back():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], KEEP), (4, [3], NO)])
    core.rows()
    run(core, W, 2, b"error", EXCEPTION)
    assert core.rows() == [
        resolved((3, EXCEPTION, b"error"), (4, EXCEPTION, b"error"), (2, EXCEPTION, b"error")),
        ("retract", W, [(NAME, 3, 1), (NAME, 4, 1)]),
    ]
    core.retracted(W, [(NAME, 3, 1), (NAME, 4, 1)], 1)
    assert core.rows() == []


def test_a_cancelled_input_cancels_the_rows_behind_it():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    core.rows()
    core.cancel(C, 2)
    assert core.rows() == [("retract", W, [(NAME, 2, 1)])]
    core.retracted(W, [(NAME, 2, 1)], 1)
    assert core.rows() == [resolved((2, CANCELLED, b""), (3, CANCELLED, b"")), ("retract", W, [(NAME, 3, 1)])]


def test_a_row_behind_an_input_that_is_tried_again_waits_again():
    core = AheadCore(W)
    submit(core, [(2, [], BOTH), (3, [2], NO)])
    core.rows()
    run(core, W, 2, b"again", RETRYABLE)
    assert core.rows() == [(W, 2, 2, []), (W, 3, 2, [HERE]), ("retract", W, [(NAME, 3, 1)])]
    run(core, W, 2, b"two", attempt=2)
    run(core, W, 3, b"three", attempt=2)
    assert core.rows() == [resolved((2, 0, b"two")), resolved((3, 0, b"three"))]


def test_rows_of_a_dead_worker_wait_again_and_count_no_attempt():
    core = AheadCore(W, V)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    assert core.rows() == [(V, 2, 1, []), (V, 3, 1, [HERE])]
    core.feed(events.Goodbye(V, "dies"))
    assert core.rows() == [(W, 2, 2, []), (W, 3, 2, [HERE])]
    client = core.scheduler.tables.clients.find(NAME)
    assert [client.tasks[number].failures for number in (2, 3)] == [0, 0]
    run(core, W, 2, b"two", attempt=2)
    run(core, W, 3, b"three", attempt=2)
    core.rows()


def test_a_row_that_waits_for_a_lost_worker_is_taken_back():
    core = AheadCore(W, V)
    submit(core, [(2, [], KEEP), (3, [], KEEP), (4, [2, 3], NO)])
    assert core.rows() == [(V, 2, 1, []), (V, 4, 1, [HERE, ELSEWHERE]), (W, 3, 1, [])]
    core.feed(events.Goodbye(W, "dies"))
    # Task 3 is queued behind task 2, and task 4 behind both of them.
    assert core.rows() == [(V, 3, 2, []), (V, 4, 2, [HERE, HERE]), ("retract", V, [(NAME, 4, 1)])]
    for number, attempt in ((2, 1), (3, 2), (4, 2)):
        run(core, V, number, b"v", attempt=attempt)
    core.rows()


def test_a_row_that_comes_back_unasked_is_dispatched_with_its_input():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    core.rows()
    run(core, W, 2, b"two")  # sent before the worker got row 3
    core.retracted(W, [(NAME, 3, 1)], 1)
    assert core.rows() == [resolved((2, KEPT, b"")), (W, 3, 2, [0])]
    run(core, W, 3, b"three", attempt=2)
    core.rows()


def test_a_large_input_is_not_handed_over():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    core.rows()
    run(core, W, 2, b"x" * LARGE_BYTES)
    rows = core.rows()
    assert ("retract", W, [(NAME, 3, 1)]) in rows
    assert (W, 3, 2, [0]) in rows
    run(core, W, 3, b"three", attempt=2)
    core.rows()


def test_a_row_does_not_wait_for_a_long_task_of_another_worker():
    core = AheadCore(W, V)
    submit(core, [(2, [], KEEP), (3, [], KEEP), (4, [2, 3], NO)])
    core.rows()
    core.feed(events.Started(W, array("q", [NAME]), array("q", [3]), array("I", [1])))
    assert ("retract", V, [(NAME, 4, 1)]) in core.rows()
    run(core, V, 2, b"two")
    run(core, W, 3, b"three")
    core.rows()


def test_a_net_has_more_paths_than_tasks():
    """A look along all paths from the first task would take 2**100 steps."""
    core = AheadCore(W, milliseconds=0)
    rows = [(2, [], KEEP), (3, [2], KEEP), (4, [2], KEEP)]
    for first in range(5, 205, 2):
        rows += [(first, [first - 2, first - 1], KEEP), (first + 1, [first - 2, first - 1], KEEP)]
    submit(core, rows)
    assert len(core.rows()) == len(rows)
    core.started(W, (NAME, 2, 1))
    assert [each[0] for each in core.rows()] == ["started"]
    core.goodbye(W)
    core.rows()


def test_a_row_behind_a_suspended_task_comes_back():
    """It would take the place of the children for which the task waits."""
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    core.rows()
    core.client(b"nested", 31, worker=21)
    core.suspended(b"nested", (NAME, 2, 1))
    assert ("retract", W, [(NAME, 3, 1)]) in core.rows()
    core.resumed(b"nested", (NAME, 2, 1))
    run(core, W, 2, b"two")
    assert (W, 3, 2, [0]) in core.rows()
    run(core, W, 3, b"three", attempt=2)
    core.rows()


def test_a_cancelled_row_ahead_comes_back():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO), (4, [2], NO)])
    core.rows()
    core.cancel(C, 3)
    assert core.rows() == [("retract", W, [(NAME, 3, 1)])]
    core.retracted(W, [(NAME, 3, 1)], 1)
    assert core.rows() == [resolved((3, CANCELLED, b""))]
    run(core, W, 2, b"two")
    run(core, W, 4, b"four")
    core.rows()


def test_the_client_leaves_while_rows_wait_ahead():
    core = AheadCore(W)
    submit(core, [(2, [], KEEP), (3, [2], NO)])
    core.rows()
    core.feed(events.Goodbye(C, "leaves"))
    assert core.rows() == [("retract", W, [(NAME, 2, 1), (NAME, 3, 1)])]
    core.retracted(W, [(NAME, 2, 1), (NAME, 3, 1)], 1)
    core.take()
    assert core.tables()["dispatched"] == core.tables()["clients by incarnation"] == 0
