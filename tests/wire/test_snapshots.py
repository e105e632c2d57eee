"""Snapshots of the scheduler, decoded by the client library. CPython only."""

from __future__ import annotations

import dataclasses
import sys
from array import array
from typing import Any

import pytest

pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from tests.scheduler.core.harness import C2, W2, A, C, Core, W, joined, results_event, rows_of, running

from scaler_client.protocol import wire
from scaler_client.protocol.columns import write_batch
from scaler_client.protocol.snapshots import History, HistoryKind, ObjectState, PoolState, Snapshot, WorkerState
from scaler_scheduler.core import effects, events
from scaler_scheduler.core.limits import LimitSettings
from scaler_scheduler.publish import snapshot_columns, snapshots
from scaler_scheduler.wire.encode import Identity

STARTED = 90.0


def publisher(core: Core) -> snapshots.SnapshotWriter:
    return snapshots.SnapshotWriter(core.scheduler, Identity(5, "1.0.0"), "tcp://127.0.0.1:1", STARTED)


def taken(core: Core, of: snapshots.SnapshotWriter | None = None) -> Snapshot:
    snapshot = wire.decode([(of or publisher(core)).snapshot(core.now, 1700000000.5)])
    assert isinstance(snapshot, Snapshot)
    return snapshot


@pytest.fixture
def core() -> Core:
    return Core()


def test_snapshot_without_peers(core: Core) -> None:
    of = publisher(core)
    of.traffic.received[events.HELLO] = 1
    of.traffic.dropped["malformed"] = 4
    of.loop.add(0.0000035)
    of.loop.add(1e9)
    of.monitor_seconds = 0.25
    snapshot = taken(core, of)
    assert (snapshot.version, snapshot.incarnation, snapshot.address) == ("1.0.0", 5, "tcp://127.0.0.1:1")
    assert (snapshot.sequence, snapshot.uptime_seconds, snapshot.unix_seconds) == (1, 10.0, 1700000000.5)
    assert (snapshot.received, snapshot.sent, snapshot.dropped) == ({"hello": 1}, {}, {"malformed": 4})
    assert snapshot.process.loop_turns == 2 and snapshot.process.loop_microseconds == 10**15 + 3
    assert snapshot.process.monitor_microseconds == 250_000
    assert {k: n for k, n in enumerate(snapshot.process.loop_durations) if n} == {2: 1, 31: 1}
    assert snapshot.process.pid > 0 and snapshot.process.interpreter.startswith(("CPython 3.", "PyPy "))
    assert snapshot.process.resident_bytes > 1 << 20 and snapshot.process.cpu_milliseconds > 0
    assert snapshot.worker_columns.incarnations == snapshot.agent_columns.names == []
    assert sum(snapshot.outcomes) == 0 and len(snapshot.outcomes) == effects.OUTCOMES
    assert taken(core, of).sequence == 2


def test_snapshot_with_peers(core: Core) -> None:
    core.agent(A, 33)
    core.worker(W, 22, agent=33, capabilities=[("gpu", 2), ("big", 1)])
    core.worker(W2, (1 << 62) + 1, agent=(1 << 64) - 1, environment="e" * 64)
    core.client(C, 11)
    core.client(C2, 12, worker=22)
    core.now += 5
    core.feed(events.Heartbeat(A, 1, [22], (1000, 50), 350, [((1 << 64) - 1, 70)], values=(8, 16, 24)))
    core.take()
    snapshot = taken(core)
    assert (snapshot.workers, snapshot.agents, snapshot.clients) == (2, 1, 2)
    workers, agents, clients = snapshot.worker_columns, snapshot.agent_columns, snapshot.client_columns
    assert workers.incarnations == [22, (1 << 62) + 1] and workers.agents == [33, (1 << 64) - 1]
    assert (workers.names, workers.hosts, workers.pids) == (["name"] * 2, ["host"] * 2, [4711] * 2)
    assert (workers.languages, workers.versions) == (["python 3"] * 2, ["1"] * 2)
    assert workers.capabilities == ["big=1 gpu=2", ""]
    assert workers.environments == ["", "e" * 64]
    assert workers.states == [WorkerState.AGENT_CONNECTED, 0]
    assert workers.resident_bytes == [(1 << 64) - 1, 0] and workers.cpu_milliseconds == [70, 0]
    assert workers.free == [core.scheduler.limits.queue_size] * 2
    assert (agents.incarnations, agents.names, agents.hosts, agents.pids) == ([33], ["name"], ["host"], [4711])
    assert (agents.resident_bytes, agents.cpu_milliseconds, agents.lag_microseconds) == ([1000], [50], [350])
    assert agents.last_heartbeat_milliseconds == [15000]
    assert (agents.memory_bytes, agents.disk_bytes, agents.moved_bytes) == ([8], [16], [24])
    assert (clients.incarnations, clients.workers) == ([11, 12], [0, 22])


def test_rejoined_worker_keeps_its_figures(core: Core) -> None:
    joined(core)
    core.feed(events.Heartbeat(A, 1, [22], (1, 2), 0, [(3, 4)]))
    core.worker(b"new connection", 22, agent=33)
    core.take()
    assert taken(core).worker_columns.resident_bytes == [3]


def test_tasks_by_state(core: Core) -> None:
    joined(core)
    row = running(core)
    core.submit(C, [2, 3])
    core.submit(C, [4, 5], capabilities=frozenset({("gpu", 1)}))
    core.now += 2
    snapshot = taken(core)
    assert (snapshot.waiting + snapshot.dispatched, snapshot.running, snapshot.blocked) == (5, 1, 0)
    workers = snapshot.worker_columns
    assert workers.states == [WorkerState.AGENT_CONNECTED | WorkerState.HOLDS_TASK | WorkerState.RUNS_LONG]
    assert (workers.running, workers.suspended, workers.held) == ([1], [0], [snapshot.dispatched])
    assert list(zip(workers.clients, workers.ids, workers.attempts)) == [row]
    assert (workers.tasks, workers.run_milliseconds) == (["function 1"], [2000])
    assert snapshot.client_columns.waiting == [snapshot.waiting]
    assert snapshot.client_columns.not_waiting == [snapshot.dispatched]
    assert (snapshot.function_columns.names, snapshot.function_columns.tasks) == (["function 1"], [5])


def test_needs_by_requirement(core: Core) -> None:
    joined(core)
    running(core)
    core.submit(C, [2, 3])
    core.submit(C, [4, 5, 6], capabilities=frozenset({("gpu", 1)}))
    core.submit(C, [7], capabilities=frozenset({("gpu", 1), ("big", 2)}))
    snapshot = taken(core)
    assert len({need.kind for need in snapshot.needs}) == 1
    found = {need.capabilities: (need.waiting, need.unknown, need.known_seconds) for need in snapshot.needs}
    assert found["gpu=1"] == (3, 3, 0.0) and found["big=2 gpu=1"] == (1, 1, 0.0)
    queued = snapshot.dispatched - snapshot.running
    assert sum(need.waiting for need in snapshot.needs) == snapshot.waiting + queued
    assert snapshot.worker_columns.functions == snapshot.function_columns.numbers


def test_needs_have_resources(core: Core) -> None:
    joined(core)
    running(core)
    core.submit(C, [2, 3], resources=(("gpu", 500), ("memory", 2000)))
    found = {tuple(need.resources.items()): (need.waiting, need.held) for need in taken(core).needs}
    assert found[("gpu", 500), ("memory", 2000)] == (2, 0)


def test_needs_say_what_shares_hold_back(core: Core) -> None:
    joined(core)
    running(core)
    (client,) = core.scheduler.tables.clients
    share = client.share
    share.limits = dataclasses.replace(share.limits, max_running=share.held + 3)
    core.submit(C, [2, 3], resources=(("gpu", 1000),))
    core.submit(C, [4, 5, 6], capabilities=frozenset({("gpu", 1)}))
    needs = taken(core).needs
    assert sum(need.waiting for need in needs) == 5 and sum(need.held for need in needs) == 2


def test_needs_of_a_gang_are_its_members(core: Core) -> None:
    joined(core)
    row = running(core)
    core.feed(results_event(W, [row], 2_000_000_000))
    core.submit(C, [100], gang_size=4, capabilities=frozenset({("gpu", 1)}))
    (need,) = taken(core).needs
    assert (need.waiting, need.unknown, need.known_seconds) == (4, 4, 8.0)


def test_needs_have_tasks_queued_behind_a_long_one(core: Core) -> None:
    """The first call was short, so a worker gets many: hosts are needed all the same when the calls become long."""
    joined(core)
    row = running(core)
    core.feed(results_event(W, [row], 0))
    core.take()
    core.submit(C, range(2, 12))
    rows = core.take_dispatched(W)
    (need,) = taken(core).needs
    assert len(rows) > 1 and (need.waiting, need.known_seconds) == (10 - len(rows), 0)
    core.started(W, rows[0])
    core.take()
    core.now += 3
    (need,) = taken(core).needs
    assert (need.waiting, need.unknown, need.known_seconds) == (9, 0, 9 * 1.5)


def test_need_has_mean_run_times(core: Core) -> None:
    joined(core)
    row = running(core)
    core.feed(results_event(W, [row], 2_000_000_000))
    core.submit(C, [4, 5, 6], capabilities=frozenset({("gpu", 1)}))
    (need,) = taken(core).needs
    assert (need.waiting, need.unknown, need.known_seconds) == (3, 0, 6.0)
    assert need.limits == []


def test_pools_of_an_autoscaler(core: Core) -> None:
    joined(core)
    pool = events.PoolState("large", 12, 3, 8, 1, 5, 2, 1, True, "no route", 90)
    core.agent(b"autoscaler", 77)
    core.feed(events.Heartbeat(b"autoscaler", 1, [], pools=[pool]))
    core.take()
    snapshot = taken(core)
    assert snapshot.pools == [PoolState("large", 12, 3, 8, 1, 5, 2, 1, True, "no route", 90)]
    assert snapshot.agents == len(snapshot.agent_columns.names) == 1  # an autoscaler is no host
    core.agent(b"another run of it", 78)
    core.feed(events.Heartbeat(b"another run of it", 1, [], pools=[pool._replace(there=9)]))
    assert [each.there for each in taken(core).pools] == [9]
    core.feed(events.Goodbye(b"autoscaler", "SIGTERM"))
    core.feed(events.Goodbye(b"another run of it", "SIGTERM"))
    assert taken(core).pools == []


def test_suspended_task_is_not_the_running_task(core: Core) -> None:
    joined(core)
    row = running(core, name="parent")
    core.client(C2, 12, worker=22)
    core.suspended(C2, row)
    snapshot = taken(core)
    assert (snapshot.running, snapshot.suspended) == (0, 1)
    assert (snapshot.worker_columns.suspended, snapshot.worker_columns.attempts) == ([1], [0])
    core.now += 3
    core.resumed(C2, row)
    workers = taken(core).worker_columns
    assert (workers.tasks, workers.run_milliseconds, workers.suspended) == (["parent"], [3000], [0])


def test_counts_of_outcomes(core: Core) -> None:
    joined(core)
    core.submit(C, [1, 2, 3])
    core.results(W, core.take_dispatched(W), 1000)
    core.results(W, [(11, 2, 1)], 500, effects.OUTCOME_EXCEPTION, b"error")
    core.results(W, [(11, 3, 9)], 500)
    core.cancel(C, 3)
    core.retracted(W, [(11, 3, 1)], 1)
    core.submit(C, [9], capabilities=frozenset({("gpu", 1)}))
    core.cancel(C, 9)
    core.take()
    snapshot = taken(core)
    ends = {number: count for number, count in enumerate(snapshot.outcomes) if count}
    assert ends == {effects.OUTCOME_VALUE: 1, effects.OUTCOME_EXCEPTION: 1, effects.OUTCOME_CANCELLED: 2}
    assert snapshot.resolved == 4 and snapshot.dropped == {"late": 1}
    functions = snapshot.function_columns
    assert (functions.done, functions.failed, functions.run_nanoseconds) == ([2], [2], [1500])
    assert (snapshot.worker_columns.sent, snapshot.worker_columns.done) == ([3], [2])


def test_objects(core: Core) -> None:
    joined(core)
    core.feed(events.Object(C, 30, "table", [b"x" * 10]))
    core.take()
    snapshot = taken(core)
    objects = snapshot.object_columns
    assert (snapshot.objects, objects.clients, objects.ids, objects.names) == (1, [11], [30], ["table"])
    assert (objects.bytes, objects.tasks, objects.states) == ([10], [0], [ObjectState.IN_MEMORY])
    assert (snapshot.client_columns.objects, snapshot.client_columns.object_bytes) == ([1], [10 + 128])


def test_functions_with_most_tasks_have_rows(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_columns, "FUNCTION_ROWS", 2)
    core.client(C, 11)
    for number in range(1, 6):
        core.function(C, number, b"f%d" % number)
        core.submit(C, range(number * 10, number * 10 + number), number)
    snapshot = taken(core)
    assert (snapshot.functions, snapshot.function_columns.tasks) == (5, [5, 4])
    assert (snapshot.waiting, snapshot.blocked) == (15, 0)


def test_clients_with_most_tasks_have_rows(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_columns, "CLIENT_ROWS", 1)
    monkeypatch.setattr(snapshot_columns, "WORKER_ROWS", 1)
    joined(core)
    core.client(C2, 12)
    core.worker(W2, 23, agent=33)
    core.submit(C, [1], capabilities=frozenset({("gpu", 1)}))
    snapshot = taken(core)
    assert snapshot.client_columns.incarnations == [11] and snapshot.worker_columns.incarnations == [22]
    assert snapshot.left_out() == {"workers": 1, "agents": 0, "clients": 1, "functions": 0, "objects": 0}


def test_a_removed_limit_is_shown_while_tasks_have_it(core: Core) -> None:
    limits = core.scheduler.task_limits
    limits.define({"db": LimitSettings(most=1)})
    joined(core)
    core.submit(C, [1], limits=("db",))
    core.submit(C, [2], limits=("db",))
    limits.define({})
    assert [(limit.name, limit.running, limit.waiting) for limit in taken(core).limits] == [("db", 1, 1)]
    core.results(W, [(11, 1, 1)])
    assert [(limit.name, limit.running, limit.waiting) for limit in taken(core).limits] == [("db", 1, 0)]
    core.results(W, [(11, 2, 1)])
    assert taken(core).limits == []
    limits.define({"db": LimitSettings(most=2)})
    assert [(limit.name, limit.most, limit.running) for limit in taken(core).limits] == [("db", 2, 0)]


def test_dispatch_latency_and_bytes_of_tasks(core: Core) -> None:
    core.client(C, 11)
    core.function(C, 1, b"f")
    core.submit(C, [1, 2], body=b"12345678")
    core.submit(C, [2, 3], body=b"12345678", large=[0])
    before = taken(core)
    assert (before.waiting_bytes, sum(before.dispatch_latencies)) == (24, 0), "a known function counts once"
    assert before.memory_limit_bytes == core.scheduler.limits.memory_limit_bytes > 0
    core.now += 0.001
    core.worker(W, 22)
    core.results(W, core.take_dispatched(W))
    core.results(W, rows_of(core))
    core.take()
    after = taken(core)
    assert {k: n for k, n in enumerate(after.dispatch_latencies) if n} == {10: 3}
    assert 2900 < after.dispatch_latency_microseconds <= 3000 and after.waiting_bytes == 0
    assert after.client_columns.done == [3]


def test_times_of_the_last_increase(core: Core) -> None:
    of = publisher(core)
    of.note_increases(100.0)
    of.traffic.dropped["malformed"] = 4
    core.scheduler.counts.deaths["lease"] = 1
    of.note_increases(200.5)
    of.traffic.dropped["ignored"] = 1
    snapshot = taken(core, of)
    assert snapshot.dropped_times == {"malformed": 200.5, "ignored": snapshot.unix_seconds}
    assert snapshot.death_times == {"lease": 200.5}


def test_deaths_of_stopped_tasks_are_intended(core: Core) -> None:
    joined(core)
    for number, reason in enumerate(("cancelled", "time limit of 2 s", "its result is not needed any more")):
        core.worker(W, 50 + number, agent=33)
        core.feed(events.WorkerDied(A, 50 + number, 4711, f"stopped: {reason}", 0, 0, 0, 0))
    assert taken(core).deaths == {"cancelled": 2, "time limit": 1}


def test_deaths_and_retries(core: Core) -> None:
    joined(core)
    row = running(core)
    core.died(A, 22, row)
    for number, cause in enumerate(("exit code 1", "memory limit of 1 MiB exceeded: 2 MiB", "signal", "\0" * 9000)):
        core.worker(W, 50 + number, agent=33)
        core.feed(events.WorkerDied(A, 50 + number, 4711, cause, 0, 0, 0, 0))
    core.worker(W, 60)
    core.wait(core.scheduler.limits.worker_timeout_seconds + 2)
    core.take()
    snapshot = taken(core)
    assert snapshot.deaths == {"signal 9": 1, "exit 1": 1, "memory limit": 1, "other": 2, "lease": 1}
    assert snapshot.retries >= 1


def test_bytes_of_objects(core: Core) -> None:
    joined(core)
    core.feed(events.Object(C, 30, "table", [b"x" * 10, b"y"]), events.Object(C, 31, "", [b"z"]))
    assert taken(core).object_bytes == 12
    core.feed(events.ForgetObjects(C, array("q", [30])))
    core.take()
    assert taken(core).object_bytes == 1


def test_hostile_name_stays_text(core: Core) -> None:
    core.hello(W, events.WORKER, 22)
    name = "\0<b>é\U0001f600"
    next(iter(core.scheduler.tables.workers)).name = name
    core.take()
    assert taken(core).worker_columns.names == [name]
    next(iter(core.scheduler.tables.workers)).name = "n" * 10_000
    assert taken(core).worker_columns.names == ["n" * 200]


def test_extreme_numbers_of_workers(core: Core) -> None:
    joined(core)
    for task_id in range(1, 5):
        core.submit(C, [task_id])
        core.results(W, core.take_dispatched(W), (1 << 63) - 1)
        core.take()
    assert taken(core).function_columns.run_nanoseconds == [(1 << 64) - 1]


def test_history(core: Core) -> None:
    of = publisher(core)
    history = core.scheduler.tables.history
    joined(core)
    assert of.history(0, 100) == (0, b"")
    core.results(W, [running(core, name="Zo\u00eb")], 1500)
    core.take()
    end, frame = of.history(0, 100)
    read = wire.decode([frame])
    assert isinstance(read, History) and end == history.next_row == 4
    assert (read.incarnation, read.first, read.ids, read.clients) == (5, 0, [1] * 4, [11] * 4)
    assert read.kinds == [
        HistoryKind.SUBMITTED, HistoryKind.DISPATCHED, HistoryKind.STARTED, HistoryKind.ENDED,
    ]  # fmt: skip
    assert (read.attempts, read.workers, read.durations) == ([0, 1, 1, 1], [0, 22, 22, 22], [0, 0, 0, 1500])
    assert (read.names, read.functions) == (["Zo\u00eb"] * 4, ["function 1"] * 4)
    assert read.times == [10_000_000] * 4
    core.submit(C, [2])
    core.take()
    read = wire.decode([of.history(4, 1)[1]])
    assert isinstance(read, History) and (read.first, read.ids) == (4, [2])


def test_errors_in_history(core: Core) -> None:
    of = publisher(core)
    joined(core)
    core.results(W, [running(core)])
    core.take()
    event = results_event(W, [running(core, 2)], 5, effects.OUTCOME_EXCEPTION, b"pickled")
    event.errors = ["KeyError: 'Zo\u00eb'"]
    core.feed(event)
    core.take()
    read = wire.decode([of.history(0, 100)[1]])
    assert isinstance(read, History) and read.ids == [1] * 4 + [2] * 4
    assert read.errors == [""] * 7 + ["KeyError: 'Zo\u00eb'"]


def test_history_with_missing_texts() -> None:
    for names, sizes in (([1], [1]), ([0], [2])):
        columns: list[Any] = [("Q", [5]), ("Q", [0]), ("B", [3]), ("Q", [7]), ("Q", [1]), ("Q", [1]), ("I", [1])]
        columns += [("Q", [1]), ("I", names), ("B", [0]), ("Q", [1]), ("B", b"f"), ("I", sizes)]
        with pytest.raises(wire.WireError, match="malformed message"):
            wire.decode([write_batch(32, columns)])
