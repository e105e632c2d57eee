"""The reader: snapshots, rates, presence, history, graphs and stories."""

from __future__ import annotations

from typing import Any

import pytest
from tests.schema_messages import message_of

from scaler_client.monitor.reader import SILENCE_SECONDS, MonitorReader, Presence
from scaler_client.monitor.snapshot_view import RunningTask, SnapshotView
from scaler_client.protocol.snapshot_decoder import story_topic
from scaler_client.protocol.snapshots import Graphs, GraphState, ObjectState, WorkerState

START = 1000.0
"""Time of the reader's clock."""


def published(sequence: int, seconds: float, **fields: Any) -> bytes:
    """A snapshot at this uptime."""
    fields = {"protocolVersion": 1, "version": "1.0.0", "incarnation": 5, **fields}
    return b"snapshot" + message_of("snapshot", sequence=sequence, uptimeMilliseconds=round(seconds * 1000), **fields)


def workers(heard: float, agent_cpu: int, cpu: list[int], **columns: Any) -> dict[str, Any]:
    """Two workers of one agent, whose last heartbeat came at this uptime."""
    agents = {"incarnations": [33], "lastHeartbeatMilliseconds": [round(heard * 1000)], "cpuMilliseconds": [agent_cpu]}
    zeros = (
        *("pids", "states", "residentBytes", "free", "held", "running", "suspended", "sent", "done"),
        *("clients", "ids", "attempts", "runMilliseconds"),
    )
    texts = ("names", "hosts", "languages", "versions", "capabilities", "tasks", "environments")
    rows = {name: [0] for name in (*zeros, *texts)}
    rows |= {"incarnations": [1, 2], "agents": [33], "cpuMilliseconds": cpu, **columns}
    agents |= {name: [0] for name in ("names", "hosts", "pids", "languages", "versions")}
    agents |= {"residentBytes": [7], "lagMicroseconds": [350]}
    return {
        "workerColumns": rows,
        "agentColumns": agents,
        "texts": {"text": b"node-7fit5c1f0a9d2b3e4f", "sizes": [6, 3, 14]},
    }


@pytest.fixture
def reader() -> MonitorReader:
    return MonitorReader(START)


def shown(reader: MonitorReader) -> SnapshotView:
    assert reader.view is not None
    return reader.view


def test_state_before_the_first_message(reader: MonitorReader) -> None:
    assert (reader.presence, reader.since, reader.view) == (Presence.UNKNOWN, START, None)
    assert not reader.tick(START + 1000), "a scheduler that was never heard is not lost"


def test_first_snapshot_has_no_rates(reader: MonitorReader) -> None:
    assert reader.feed(published(7, 60, resolved=1000, waiting=3), START + 1)
    assert (reader.presence, reader.since, reader.schedulers) == (Presence.UP, START + 1, 1)
    view = shown(reader)
    assert (view.snapshot.resolved, view.snapshot.waiting) == (1000, 3)
    assert (view.seconds, view.resolved_rate, view.cpu_percent) == (0, 0, 0)


def test_rates_use_the_scheduler_clock(reader: MonitorReader) -> None:
    reader.feed(
        published(
            1, 60, resolved=1000, received=[{"name": "results", "count": 10}],
            process={"cpuMilliseconds": 500, "loopTurns": 100, "loopMicroseconds": 1000},
        ), START,
    )  # fmt: skip
    reader.feed(
        published(
            2, 62, resolved=5000,
            received=[{"name": "results", "count": 30}, {"name": "hello", "count": 4}],
            process={"cpuMilliseconds": 1500, "loopTurns": 300, "loopMicroseconds": 501_000},
        ), START + 0.1,
    )  # fmt: skip
    view = shown(reader)
    assert (view.seconds, view.resolved_rate) == (2, 2000)
    assert view.received_rates == {"results": 10, "hello": 2}
    assert (view.cpu_percent, view.loop_percent, view.loop_mean_seconds) == (50, 25, 0.0025)


def test_rates_ignore_short_intervals(reader: MonitorReader) -> None:
    for sequence, (seconds, resolved) in enumerate([(1.0, 0), (2.0, 1000), (2.1, 1900), (2.2, 1950), (3.0, 3000)]):
        reader.feed(published(sequence, seconds, resolved=resolved), START)
        if sequence in (2, 3):
            assert shown(reader).resolved_rate == pytest.approx(resolved / (seconds - 1.0))
    assert shown(reader).resolved_rate == pytest.approx((3000 - 1950) / 0.8), (
        "over the time since the snapshot before the last"
    )


def test_worker_rows(reader: MonitorReader) -> None:
    reader.feed(published(1, 60, **workers(59, 100, [1000, 0], sent=[10, 0], done=[4, 0])), START)
    assert [row.cpu_percent for row in shown(reader).workers] == [0, 0]
    reader.feed(
        published(2, 61, **workers(
            60.5, 250, [2500, 1], sent=[30, 5], done=[14, 5], held=[16, 0], running=[1, 0], suspended=[2, 0],
            clients=[11, 0], ids=[9, 0], attempts=[3, 0], tasks=[1, 0], runMilliseconds=[1500, 0], states=[7, 1],
            residentBytes=[1 << 30, 5], environments=[2, 0],
        )), START + 1,
    )  # fmt: skip
    first, second = shown(reader).workers
    assert (first.cpu_percent, second.cpu_percent) == (100, 0), "over the time between its agent's heartbeats"
    assert (first.agent, first.agent_cpu_percent, first.agent_resident_bytes, first.lag_seconds) == (33, 10, 7, 0.00035)
    assert (first.sent_rate, first.done_rate, second.sent_rate) == (20, 10, 5)
    assert (first.held, first.running, first.suspended, first.queued) == (16, 1, 2, 13)
    assert first.state == WorkerState.AGENT_CONNECTED | WorkerState.HOLDS_TASK | WorkerState.RUNS_LONG
    assert (first.task, second.task) == (RunningTask(11, 9, 3, "fit", 1.5), None)
    assert (first.name, first.resident_bytes) == ("node-7", 1 << 30)
    assert (first.environment, first.short_environment) == ("5c1f0a9d2b3e4f", "5c1f0a9d2b3e")
    [agent] = shown(reader).agents
    assert (agent.workers, agent.cpu_percent, agent.silent_seconds) == (2, 10, 0.5)
    reader.feed(published(3, 62, **workers(60.5, 250, [2500, 1])), START + 2)
    assert shown(reader).workers[0].cpu_percent == 100, "no new report does not mean idle"


def test_client_function_and_object_rows(reader: MonitorReader) -> None:
    texts = {"text": b"node-7fit", "sizes": [6, 3]}
    functions = {
        "numbers": [1, 2], "names": [1, 0], "tasks": [4, 0], "failed": [1, 0], "bytes": [512], "clients": [1],
    }  # fmt: skip
    before = {**functions, "done": [10, 0], "runNanoseconds": [0]}
    after = {**functions, "done": [20, 0], "runNanoseconds": [10**10, 0]}
    clients = {
        "incarnations": [11], "names": [0], "workers": [1], "waiting": [2], "notWaiting": [3], "objects": [1],
        "objectBytes": [9], "done": [8],
    }  # fmt: skip
    objects = {"clients": [11], "ids": [30, 31], "names": [1], "bytes": [9], "tasks": [1], "states": [2, 200]}
    older = {"functionColumns": before, "clientColumns": {**clients, "done": []}}
    reader.feed(published(1, 1, texts=texts, **older), START)
    assert shown(reader).clients[0].done == 0, "an older scheduler does not publish it"
    columns = {"functionColumns": after, "clientColumns": clients, "objectColumns": objects}
    reader.feed(published(2, 3, texts=texts, **columns), START)
    view = shown(reader)
    called, other = view.functions
    assert (called.name, called.done_rate, called.mean_seconds, called.failed) == ("fit", 5, 0.5, 1)
    assert (other.done_rate, other.mean_seconds) == (0, 0)
    [client] = view.clients
    assert (client.name, client.worker, client.waiting, client.not_waiting) == ("node-7", 1, 2, 3)
    assert (client.done, client.done_rate) == (8, 4)
    assert [row.state for row in view.objects] == [ObjectState.ON_HOST, 200]


def test_silence_and_recovery(reader: MonitorReader) -> None:
    reader.feed(published(1, 60, waiting=3), START)
    assert reader.deadline == START + SILENCE_SECONDS
    assert not reader.tick(reader.deadline - 0.01)
    assert reader.tick(reader.deadline)
    assert (reader.presence, reader.since) == (Presence.DOWN, START)
    assert shown(reader).snapshot.waiting == 3
    assert not reader.tick(START + 100), "reported once"
    reader.feed(published(90, 150), START + 90)
    assert (reader.presence, reader.since, reader.schedulers) == (Presence.UP, START + 90, 1)
    assert reader.missed_snapshots == 88


def test_restarted_scheduler(reader: MonitorReader) -> None:
    reader.feed(published(100, 100, resolved=1000), START)
    reader.feed(published(1, 0, incarnation=6, resolved=5), START + 1)
    assert (reader.schedulers, reader.missed_snapshots, reader.presence) == (2, 0, Presence.UP)
    assert (shown(reader).seconds, shown(reader).resolved_rate) == (0, 0)


def test_missed_snapshots_are_counted_and_old_ones_ignored(reader: MonitorReader) -> None:
    for sequence in (1, 2, 6, 4, 6):
        reader.feed(published(sequence, sequence, waiting=sequence), START)
    assert (reader.missed_snapshots, shown(reader).snapshot.waiting) == (3, 6)


def test_other_version_is_reported(reader: MonitorReader) -> None:
    reader.feed(published(1, 1), START)
    assert reader.feed(published(0, 0, protocolVersion=2, version="9.1"), START + 1)
    assert (reader.presence, reader.since) == (Presence.INCOMPATIBLE, START + 1)
    assert reader.problem == "the scheduler, version 9.1, has protocol version 2: this is 1"
    assert reader.tick(reader.deadline) and reader.presence is Presence.DOWN
    reader.feed(published(2, 2), START + 100)
    assert (reader.presence, reader.problem) == (Presence.UP, "")


def happened(first: int, *ids: int, incarnation: int = 5) -> bytes:
    """History of tasks with these ids that have ended."""
    columns = {name: [0] for name in ("kinds", "times", "clients", "attempts", "workers", "outcomes", "durations")}
    columns |= {"incarnation": [incarnation], "first": [first], "ids": list(ids), "names": [0], "sizes": [1]}
    return b"history\0" + message_of("history", text=b"f", **columns)


def test_history_is_delivered_once(reader: MonitorReader) -> None:
    reader.feed(published(1, 60), START)
    assert reader.feed(happened(1000, 7, 8), START) and reader.feed(happened(1002, 9), START)
    assert [history.ids for history in reader.drain_history()] == [[7, 8], [9]]
    assert reader.drain_history() == [] and reader.missed_history == 0
    assert reader.feed(happened(1010, 10), START)
    assert (reader.missed_history, reader.drain_history()[0].names) == (7, ["f"])


def ids_of(reader: MonitorReader) -> list[list[int]]:
    return [history.ids for history in reader.drain_history()]


def test_history_waits_for_the_first_snapshot(reader: MonitorReader) -> None:
    assert not reader.feed(happened(0, 1), START) and reader.presence is Presence.UNKNOWN
    assert reader.drain_history() == []
    reader.feed(published(1, 60), START)
    assert ids_of(reader) == [[1]]
    reader.feed(happened(1, 1), START)
    assert not reader.feed(happened(0, 2, incarnation=6), START)
    assert ids_of(reader) == [[1]]
    reader.feed(happened(2, 7), START)
    reader.feed(published(1, 0, incarnation=6), START)
    assert ids_of(reader) == [[2]], "without the history of the earlier scheduler"
    reader.feed(happened(9, 3, incarnation=6), START)
    assert reader.missed_history == 8 and len(reader.drain_history()) == 1


def test_history_repeated_for_other_subscribers_is_ignored(reader: MonitorReader) -> None:
    reader.feed(published(1, 60), START)
    reader.feed(happened(10, 10, 11, 12), START)
    assert not reader.feed(happened(10, 10, 11), START)
    reader.feed(happened(12, 12, 13), START)
    assert ids_of(reader) == [[10, 11, 12], [13]] and reader.missed_history == 0


def test_kept_history_may_arrive_after_new_history(reader: MonitorReader) -> None:
    reader.feed(published(1, 60), START)
    reader.feed(happened(5, 5), START)
    for _ in range(2):
        reader.feed(happened(1, 1, 2), START)
        reader.feed(happened(3, 3, 4, 5, 6), START)
    assert ids_of(reader) == [[5], [1, 2], [3, 4], [6]] and reader.missed_history == 0


def test_undrained_history_is_bounded(reader: MonitorReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_client.monitor.history.HISTORY_BATCHES", 2)
    reader.feed(published(1, 60), START)
    for first in range(5):
        reader.feed(happened(first, first), START)
    assert reader.missed_history == 3 and [history.first for history in reader.drain_history()] == [3, 4]


def node(number: int, incarnation: int = 5) -> bytes:
    """Graphs of which one node is published."""
    columns = {"incarnation": [incarnation], "total": [9], "clients": [11], "ids": [number], "names": [0]}
    return b"graphs\0\0" + message_of("graphs", **columns, states=[2], text=b"f", sizes=[1])


def test_graphs_of_this_scheduler(reader: MonitorReader) -> None:
    assert not reader.feed(node(1), START) and reader.graphs is None
    reader.feed(published(1, 60), START)
    assert reader.feed(node(1), START) and reader.feed(node(2), START)
    assert reader.graphs == Graphs(5, 9, [11], [2], ["f"], [GraphState.RUNNING], [[]], [0], [""], [0])
    assert not reader.feed(node(3, incarnation=6), START) and reader.graphs.ids == [2]
    reader.feed(published(1, 0, incarnation=6), START)
    assert reader.graphs is None


def test_stories(reader: MonitorReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_client.monitor.reader.MAX_STORIES", 2)
    for task_id in (1, 2, 1, 3):
        assert reader.feed(story_topic(11, task_id) + happened(0, *[task_id] * 3)[8:], START)
    assert list(reader.stories) == [(11, 1), (11, 3)] and reader.stories[11, 3].ids == [3, 3, 3]
    assert reader.missed_history == 0 and reader.drain_history() == [], "stories are separate from history"
    reader.feed(published(1, 0, incarnation=6), START)
    assert reader.stories == {}, "stories of another scheduler are dropped"


@pytest.mark.parametrize(
    "frame", [story_topic(1, 2), story_topic(1, 2)[:11], b"story\0\0\0", b"graphs\0\0" + b"x" * 64]
)
def test_unexpected_answers(reader: MonitorReader, frame: bytes) -> None:
    assert not reader.feed(frame, START) and reader.malformed == 1


@pytest.mark.parametrize(
    "frame", [b"", b"snapshot", b"snapshot" + b"\xff" * 64, b"snapshot" + message_of("helloWanted")]
)
def test_malformed_frames_are_counted(reader: MonitorReader, frame: bytes) -> None:
    assert not reader.feed(frame, START)
    assert (reader.malformed, reader.presence) == (1, Presence.UNKNOWN)
