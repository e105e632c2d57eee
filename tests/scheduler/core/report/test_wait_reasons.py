"""`scaler_client why`: the reasons for which a task waits, or where it runs."""

from __future__ import annotations

from array import array

import pytest
from tests.scheduler.core.data import test_near_data
from tests.scheduler.core.harness import C2, SECOND, A, C, Core, W, joined, running

from scaler_scheduler.core import events
from scaler_scheduler.core.limits import LimitSettings
from scaler_scheduler.core.report.story import story
from scaler_scheduler.core.report.wait_reasons import BATCH_LIMIT
from scaler_scheduler.core.state.history import SUBMITTED
from scaler_scheduler.core.state.records import PAUSE_SLOW_CONSUMER
from scaler_scheduler.core.state.shares import ShareLimits


def lines(core: Core, task_id: int, client: int = 11) -> list[str]:
    return core.scheduler.wait_reasons.lines(client, task_id)


def kinds(core: Core, task_id: int) -> list[str]:
    return [line.partition(":")[0] for line in lines(core, task_id)]


def busy() -> Core:
    """A worker that runs task 1 for long."""
    core = Core()
    joined(core)
    running(core)
    return core


def test_unknown_tasks_have_no_reasons() -> None:
    core = busy()
    assert lines(core, 99) == [] == lines(core, 1, client=12)


def test_where_it_runs() -> None:
    core = busy()
    core.wait(1.5)
    core.heartbeat(A, 22)
    assert lines(core, 1) == ["runs: on worker name on host, for 1.5 s"]
    core.take()


def test_hosts_without_room_for_the_inputs(core: Core) -> None:
    test_near_data.begin(core, 20 * SECOND)
    test_near_data.fill(core, 1, 0, 200)
    test_near_data.submit(core, (12, [1]))
    core.take()
    named = [line for line in lines(core, 12) if line.startswith("data: ")]
    assert named == [
        "data: host has no room for its inputs (--object-memory, --spill-limit)",
        "data: it waits until a host has room and a free worker; these have inputs: host0",
    ]


def test_an_input_that_waits_for_room(core: Core) -> None:
    test_near_data.begin(core, hosts=1)
    test_near_data.host(core, 1, capabilities=[("gpu", 1)])
    test_near_data.fill(core, 1, 0, 200)
    test_near_data.submit(core, (12, [1]), capabilities=frozenset([("gpu", 1)]))
    core.take()
    [named] = [line for line in lines(core, 12) if line.startswith("input: ")]
    assert named.endswith("is on its way from host0; host1 has no room for it (--object-memory, --spill-limit)")


def test_hosts_without_room_for_the_result(core: Core) -> None:
    test_near_data.begin(core)
    test_near_data.fill(core, 1, 0, 200)
    test_near_data.makes(core, 20)
    named = [line for line in lines(core, 20) if line.startswith("data: ")]
    assert named == [
        "data: host has no room for its result or its inputs (--object-memory, --spill-limit)",
        "data: it waits until a host has room and a free worker",
    ]


def test_what_goes_before_it() -> None:
    core = busy()
    core.submit(C, range(10, 20))
    core.submit(C, range(20, 30))
    core.submit(C, [50], priority=1)
    core.submit(C, [60], capabilities=frozenset({("gpu", 1)}))
    core.wait(1)
    assert lines(core, 22) == [
        "since: it waits for 1.0 s",
        "rank: 1 task(s) of its share have a higher priority or depth",
        "before: 12 task(s) with the same needs go first",
        "turns: it takes turns with 1 other group(s) of tasks of its rank",
        "host: host could serve it: 1 busy",
    ]
    assert lines(core, 60)[-1] == "workers: none of 1 has gpu=1 (scaler_cluster --capabilities gpu=1)"
    core.take()


def test_few_of_very_many_waiting_batches_are_looked_at() -> None:
    core = busy()
    client = core.scheduler.tables.clients.find(11)
    assert client is not None
    for task_id in range(10, 12 + BATCH_LIMIT):
        event = events.Submit(C, array("q", [task_id]), array("I", [1]), array("I", [0]), b"", {})
        core.scheduler.handle(event, core.now)
    assert f"before: at least {BATCH_LIMIT} task(s) with the same needs go first" in lines(core, 11 + BATCH_LIMIT)


def test_limits_with_their_numbers() -> None:
    core = Core()
    core.scheduler.task_limits.define({"db": LimitSettings(most=1), "api": LimitSettings(per_second=2.0)})
    joined(core)
    core.worker(b"second", 23, agent=33)
    core.wait(1)
    core.submit(C, [1], limits=("api", "db"))
    core.submit(C, [2], limits=("db",))
    core.submit(C, [3], limits=("api",))
    assert "limit: 1 of 1 tasks of 'db' run" in lines(core, 2)
    assert "turns" not in kinds(core, 2), "the tasks without this limit pass it"
    assert "limit: 'api' lets 2 tasks begin in a second; next in 0.5 s" in lines(core, 3)
    assert "host: host could serve it: 1 busy, 1 idle" in lines(core, 3)
    core.take()


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(50.0, "50 tasks begin in a second"), (0.5, "30 tasks begin in a minute"), (1 / 3600, "1 tasks begin in an hour")],
)
def test_rates_have_a_readable_unit(per_second: float, text: str) -> None:
    core = Core()
    core.scheduler.task_limits.define({"api": LimitSettings(per_second=per_second)})
    joined(core)
    core.submit(C, [1], limits=("api",))
    core.submit(C, [2], limits=("api",))
    assert any(line.startswith(f"limit: 'api' lets {text}; next in ") for line in lines(core, 2))
    core.take()


def test_shares_and_pauses() -> None:
    core = busy()
    client = core.scheduler.tables.clients.find(11)
    assert client is not None
    client.share.set_limits(ShareLimits(name="ada", max_running=1))
    core.submit(C, [2])
    assert lines(core, 2)[1] == "share: ada has 1 of 1 tasks at workers"
    core.hello(C2, events.CLIENT, 12)
    core.function(C2, 1, b"f")
    core.scheduler.tables.clients.find(12).share.base_ns -= 1  # type: ignore[union-attr]
    core.scheduler.core_state.queues.pause(client, PAUSE_SLOW_CONSUMER)
    assert lines(core, 2)[1] == "client: it has not read 0 bytes of results, so none of its tasks begins"
    core.scheduler.core_state.queues.resume(client, PAUSE_SLOW_CONSUMER)
    core.take()


def test_inputs_that_are_missing() -> None:
    core = busy()
    core.feed(
        events.Submit(
            C, array("q", [2, 3]), array("I", [1]), array("I", [0, 0]), b"", {}, events.DEFAULT_OPTIONS,
            array("q", [2]), array("I", [0, 1]), array("B", [1, 0]),
        )
    )  # fmt: skip
    assert lines(core, 3) == [
        "since: it waits for 0.0 s",
        "input: function 1#2 does not exist yet: its task has not ended",
    ]
    core.take()


def test_gangs() -> None:
    core = busy()
    core.worker(b"second", 23, agent=33)
    core.submit(C, [10], gang_size=2)
    assert lines(core, 10)[1:] == [
        "gang: it needs 2 idle workers at once; 2 can run its members, 1 of them are idle",
        "gang: idle workers are reserved for the next gang of this size",
        "host: host could serve its members: 1 busy, 1 idle",
    ]
    assert lines(core, 11) == ["gang: it is member 1 of gang 10", *lines(core, 10)]
    assert lines(core, 9) == lines(core, 12) == []
    core.submit(C, [20])
    assert "gang: up to 2 idle workers are reserved for a gang" in lines(core, 20)
    core.results(W, [(11, 1, 1)])
    core.results(W, [(11, 10, 1)], body=b"x") if core.scheduler.tables.workers.by_route[W].tasks else None
    assert kinds(core, 10) in (["gang"], ["runs"], ["queued"])
    core.take()


def test_members_of_gangs_that_wait_have_a_story() -> None:
    core = busy()
    core.submit(C, [10, 20, 5000], gang_size=2)
    core.submit(C, [6000])
    for task_id in (11, 21, 5001):
        assert lines(core, task_id) == [f"gang: it is member 1 of gang {task_id - 1}", *lines(core, task_id - 1)]
        assert [row.kinds[0] for row in story(core.scheduler.tables, 11, task_id)] == [SUBMITTED]
    for task_id in (9, 12, 19, 22, 4999, 5002, 6001):
        assert lines(core, task_id) == [] == story(core.scheduler.tables, 11, task_id)
    core.take()


def test_a_gang_without_workers() -> None:
    core = Core()
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [10], gang_size=2)
    assert lines(core, 10)[1:] == [
        "gang: it needs 2 idle workers at once; 0 can run its members, 0 of them are idle",
        "gang: the connected hosts can never run its 2 members at once: at most 0",
        "workers: none is connected",
    ]
    core.take()


def test_no_worker_is_there() -> None:
    core = Core()
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1])
    assert lines(core, 1) == ["since: it waits for 0.0 s", "workers: none is connected"]
    core.take()
