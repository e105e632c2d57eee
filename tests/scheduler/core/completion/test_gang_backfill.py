"""What surely ends before a waiting gang can begin runs on the workers that are kept for the gang."""

from __future__ import annotations

from tests.scheduler.core.completion.test_gangs import cluster, dispatched
from tests.scheduler.core.harness import C2, MILLISECOND, SECOND, C, Core

from scaler_scheduler.core import events


def waiting_gang(busy_seconds: float, tiny_ns: int, workers: int = 4) -> tuple[Core, bytes]:
    """A gang of all workers waits for one of them, which has run a task of another user for so long. Returns its
    worker. Client 2 has function 1, which takes `tiny_ns`."""
    core = cluster(workers)
    hello = events.Hello(C2, 1, events.CLIENT, 12, 0, "python 3", "1", "host", 1, "name", account="bob")
    core.feed(hello, events.Function(C2, 1, "tiny", "", b"digest of tiny", b"g"))
    core.submit(C2, [1])
    for worker, row in dispatched(core).items():
        core.results(worker, [row], tiny_ns)
    core.submit(C, [1])
    ((busy, row),) = dispatched(core).items()
    core.started(busy, row)
    core.submit(C, [10], gang_size=workers)
    core.wait(busy_seconds)
    core.take()
    return core, busy


def test_tiny_tasks_of_another_user_run_meanwhile() -> None:
    core, busy = waiting_gang(1.0, MILLISECOND)
    core.submit(C2, range(100, 200))
    ended = 0
    while ended < 100:
        sent = [each for each in core.take() if each[0] == "dispatch"]
        assert sent and all(each[1] != busy for each in sent)
        for each in sent:
            ended += len(each[2])
            core.results(each[1], [row[:3] for row in each[2]], MILLISECOND)
        core.wait(0.01)
    core.take()
    core.results(busy, [(11, 1, 1)], SECOND)
    assert sorted(row[1] for row in dispatched(core).values()) == [10, 11, 12, 13]


def test_a_task_that_may_end_later_waits() -> None:
    core, busy = waiting_gang(1.0, SECOND // 2)
    core.submit(C2, range(100, 200))
    assert [each for each in core.take() if each[0] == "dispatch"] == []
    core.results(busy, [(11, 1, 1)], SECOND)
    assert sorted(row[1] for row in dispatched(core).values()) == [10, 11, 12, 13]


def test_a_task_of_unknown_length_waits() -> None:
    core, _ = waiting_gang(1.0, MILLISECOND)
    core.function(C2, 2, b"unknown")
    core.submit(C2, range(100, 200), 2)
    assert [each for each in core.take() if each[0] == "dispatch"] == []


def test_nothing_runs_while_the_gang_may_begin_at_any_time() -> None:
    """The worker has not said yet that its task takes long."""
    core, _ = waiting_gang(0.0, MILLISECOND)
    core.submit(C2, range(100, 200))
    assert [each for each in core.take() if each[0] == "dispatch"] == []


def test_the_gang_waits_for_its_worker_and_not_for_tiny_tasks() -> None:
    """The last worker becomes free earlier than estimated: the gang waits for one dispatch of tiny tasks at most."""
    core, busy = waiting_gang(10.0, 20 * MILLISECOND)
    core.submit(C2, range(100, 200))
    tiny = {each[1]: [row[:3] for row in each[2]] for each in core.take() if each[0] == "dispatch"}
    assert tiny and all(len(rows) <= 2 for rows in tiny.values())
    core.results(busy, [(11, 1, 1)], SECOND)
    core.take()
    for worker, rows in tiny.items():
        core.results(worker, rows, 20 * MILLISECOND)
    assert sorted(row[1] for row in dispatched(core).values()) == [10, 11, 12, 13]
