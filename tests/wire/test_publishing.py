"""The times and messages of publishing, with a fake monitor socket. CPython only."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("capnp", reason="pycapnp is compiled for CPython, from 3.10 on with the client's library")
if sys.version_info < (3, 10):
    pytest.skip("the client's library is for CPython from 3.10 on", allow_module_level=True)

from array import array
from collections.abc import Sequence

from tests.scheduler.core.harness import C2, A, C, Core, W, joined, running, submit_event

from scaler_client.monitor.reader import MonitorReader
from scaler_client.protocol import wire
from scaler_client.protocol.snapshot_decoder import ANY_CLIENT, story_topic
from scaler_client.protocol.snapshots import Graphs, GraphState, History, HistoryKind
from scaler_scheduler.core import effects, events
from scaler_scheduler.core.report import graph_view
from scaler_scheduler.core.tables import ENDED_NODES
from scaler_scheduler.publish import publisher, snapshots
from scaler_scheduler.publish.publisher import (
    CHECK_SECONDS,
    GRAPHS_TOPIC,
    HISTORY_ROWS,
    HISTORY_TOPIC,
    SNAPSHOT_TOPIC,
    Publisher,
)
from scaler_scheduler.wire.encode import Identity


class FakeMonitor:
    """A monitor socket with subscriptions and sent messages."""

    def __init__(self) -> None:
        self.subscriptions: set[bytes] = set()
        self.news: list[bytes] = []
        self.sent: list[bytes] = []
        self.has_more = False

    def subscribe(self, *topics: bytes) -> None:
        self.subscriptions.update(topics)
        self.news.extend(topics)

    def read_subscriptions(self, topics: Sequence[bytes], request: bytes) -> list[bytes]:
        news, self.news = self.news, []
        return news

    def has_subscribers(self, topic: bytes) -> bool:
        return any(topic.startswith(subscription) for subscription in self.subscriptions)

    def publish(self, topic: bytes, frame: bytes) -> None:
        self.sent.append(topic + frame)


class Scene:
    def __init__(self) -> None:
        self.core = Core()
        joined(self.core)
        self.core.take()
        self.monitor = FakeMonitor()
        of = snapshots.SnapshotWriter(self.core.scheduler, Identity(5, "1.0.0"), "tcp://127.0.0.1:1", 90.0)
        self.processor_seconds = 0.0
        """This thread's processor time. The tests move it, so that no slow machine changes what they see."""
        self.publisher = Publisher(
            self.monitor,  # type: ignore[arg-type]
            of,
            self.core.now,
            thread_time=lambda: self.processor_seconds,
        )
        self.next_id = 0

    def submit(self, count: int) -> None:
        self.core.submit(C, range(self.next_id, self.next_id + count), capabilities=frozenset({("gpu", 1)}))
        self.next_id += count
        self.core.take()

    def note(self, count: int) -> None:
        """Add only rows of history: to check the invariants of many open tasks takes long."""
        tables = self.core.scheduler.tables
        client, function = tables.clients.by_incarnation[11], next(iter(tables.functions))
        tables.history.record_submitted(client, range(self.next_id, self.next_id + count), [function], "")
        self.next_id += count

    def turns(self, seconds: float) -> list[bytes]:
        """The messages that are published in this time."""
        end = self.core.now + seconds
        while self.publisher.next <= end:
            self.core.now = max(self.core.now, self.publisher.next)
            self.publisher.run_due(self.core.now)
        self.core.now = end
        sent, self.monitor.sent = self.monitor.sent, []
        return sent


@pytest.fixture
def scene() -> Scene:
    return Scene()


def rows_of(frames: list[bytes]) -> list[tuple[int, int]]:
    """The number of the first row and the number of rows of each History."""
    messages = [wire.decode_published(frame) for frame in frames]
    return [(message.first, len(message.ids)) for message in messages if isinstance(message, History)]


def test_nothing_is_published_without_subscribers(scene: Scene) -> None:
    scene.submit(10)
    assert scene.turns(5) == []
    scene.monitor.subscribe(SNAPSHOT_TOPIC)
    frames = scene.turns(CHECK_SECONDS + 0.01)
    assert [frame[:8] for frame in frames] == [SNAPSHOT_TOPIC]
    assert len(scene.turns(10)) == 10
    assert scene.turns(0.1) == []
    scene.monitor.subscribe(SNAPSHOT_TOPIC)
    assert len(scene.turns(CHECK_SECONDS + 0.01)) == 1, "a second subscriber does not wait for the next second"


def test_new_subscriber_gets_all_kept_rows(scene: Scene) -> None:
    scene.submit(3 * HISTORY_ROWS + 5)
    scene.turns(5)
    scene.monitor.subscribe(HISTORY_TOPIC, SNAPSHOT_TOPIC)
    frames = scene.turns(CHECK_SECONDS + 0.1)
    assert frames[0].startswith(SNAPSHOT_TOPIC), "a reader waits for the snapshot"
    assert rows_of(frames) == [
        (0, HISTORY_ROWS), (HISTORY_ROWS, HISTORY_ROWS), (2 * HISTORY_ROWS, HISTORY_ROWS), (3 * HISTORY_ROWS, 5),
    ]  # fmt: skip
    scene.submit(7)
    assert rows_of(scene.turns(1)) == [(3 * HISTORY_ROWS + 5, 7)]
    assert rows_of(scene.turns(1)) == []
    begin = scene.next_id
    scene.submit(2 * HISTORY_ROWS)
    assert rows_of(scene.turns(1)) == [(begin, HISTORY_ROWS), (begin + HISTORY_ROWS, HISTORY_ROWS)]


def test_burst_arrives_completely(scene: Scene) -> None:
    """300,000 rows of 100,000 tasks in a third of a second."""
    scene.monitor.subscribe(SNAPSHOT_TOPIC, HISTORY_TOPIC)
    frames = scene.turns(1.5)
    for turn in range(30):
        if turn == 7:  # another subscriber, which gets all kept rows
            scene.monitor.subscribe(HISTORY_TOPIC)
        scene.note(10_000)
        frames += scene.turns(0.01)
    frames += scene.turns(1.5)
    reader = MonitorReader(0)
    for frame in frames:
        reader.feed(frame, 0)
    taken = sorted(reader.drain_history(), key=lambda history: history.first)
    assert [task for history in taken for task in history.ids] == list(range(300_000))
    assert reader.missed_history == 0


def test_lost_rows_are_visible_by_their_numbers(scene: Scene) -> None:
    scene.monitor.subscribe(SNAPSHOT_TOPIC, HISTORY_TOPIC)
    reader = MonitorReader(0)
    for _ in range(100):
        scene.note(20_000)
        for frame in scene.turns(0.01):
            reader.feed(frame, 0)
    sent = scene.turns(3)
    assert rows_of(sent)[-1][0] + rows_of(sent)[-1][1] == scene.next_id, "the newest rows arrive"
    for frame in sent:
        reader.feed(frame, 0)
    rows = sum(len(history.ids) for history in reader.drain_history())
    assert 0 < reader.missed_history == scene.next_id - rows


def test_a_busy_loop_sends_history_less_often(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = 0.001

    def send(topic: bytes, frame: bytes) -> None:
        scene.processor_seconds += cost
        scene.monitor.sent.append(topic + frame)

    monkeypatch.setattr(scene.monitor, "publish", send)
    scene.monitor.subscribe(HISTORY_TOPIC)
    scene.turns(1)
    sent = {False: 0, True: 0}
    for is_busy in (False, True):
        for _ in range(200):
            scene.note(HISTORY_ROWS)
            scene.processor_seconds += 0.01 if is_busy else 0
            sent[is_busy] += len(scene.turns(0.01))
    assert 70 <= sent[False] <= 100, "a message after each short pause"
    assert 4 <= sent[True] <= 2 / (publisher.BUSY_PAUSE_FACTOR * cost) + 1


def test_two_subscribers_at_different_times(scene: Scene) -> None:
    scene.submit(5)
    scene.monitor.subscribe(SNAPSHOT_TOPIC, HISTORY_TOPIC)
    first, second = MonitorReader(0), MonitorReader(0)
    for frame in scene.turns(1.5):
        first.feed(frame, 0)
    scene.submit(6)
    scene.turns(0.1)
    scene.monitor.subscribe(SNAPSHOT_TOPIC, HISTORY_TOPIC)
    for frame in scene.turns(1.5):
        first.feed(frame, 0)
        second.feed(frame, 0)
    for reader in (first, second):
        assert [task for history in reader.drain_history() for task in history.ids] == list(range(11))
        assert reader.missed_history == 0


def test_many_new_subscribers_do_not_delay_others(scene: Scene) -> None:
    scene.submit(30 * HISTORY_ROWS)
    kept = scene.core.scheduler.tables.history
    reader = MonitorReader(0)
    scene.monitor.subscribe(SNAPSHOT_TOPIC, HISTORY_TOPIC)
    size = 0
    for _ in range(100):
        scene.monitor.subscribe(HISTORY_TOPIC)
        for frame in scene.turns(0.1):
            reader.feed(frame, 0)
            size += frame.startswith(HISTORY_TOPIC)
    assert size <= 10 * ((kept.next_row - kept.first_row) // HISTORY_ROWS + 2), "all rows at most once a second"
    scene.submit(3)
    for frame in scene.turns(3):
        reader.feed(frame, 0)
    assert reader.drain_history()[-1].ids[-3:] == list(range(scene.next_id - 3, scene.next_id))


def test_replay_of_rows_that_are_dropped_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "HISTORY_ROWS", 10)
    scene.submit(100)
    scene.monitor.subscribe(HISTORY_TOPIC)
    found: list[tuple[int, int]] = []
    for _ in range(40):
        found += rows_of(scene.turns(0.02))
        scene.submit(200)
    assert all(first + count <= scene.next_id for first, count in found)
    assert [first for first, _ in found] == sorted({first for first, _ in found}), "each once, in order"


def story_of(scene: Scene, task_id: int, client: int = 11) -> History:
    reader = MonitorReader(0)
    scene.monitor.subscribe(story_topic(client, task_id))
    for frame in scene.turns(0.3):
        assert reader.feed(frame, 0)
    assert scene.turns(1.5) == [], "a request is answered once"
    return reader.stories[client, task_id]


def test_story_of_a_task(scene: Scene) -> None:
    row = running(scene.core, 3)
    scene.submit(2)
    scene.core.now += 2
    scene.core.died(A, 22, row)
    scene.core.worker(W, 23, agent=33)
    scene.core.take()
    story = story_of(scene, 3)
    assert story.kinds == [
        HistoryKind.SUBMITTED, HistoryKind.DISPATCHED, HistoryKind.STARTED, HistoryKind.RETURNED,
        HistoryKind.DISPATCHED,
    ]  # fmt: skip
    assert story.times == [10_000_000] * 3 + [12_000_000] * 2 and set(story.ids) == {3}
    assert (story.attempts, story.workers) == ([0, 1, 1, 1, 2], [0, 22, 22, 22, 23])


def test_story_of_an_unknown_task(scene: Scene) -> None:
    assert story_of(scene, 99).ids == [] and story_of(scene, 0, client=(1 << 64) - 1).ids == []


def test_stories_of_all_tasks_with_an_id(scene: Scene) -> None:
    number = 1_000_000
    scene.core.submit(C, [number], capabilities=frozenset({("gpu", 1)}))
    scene.note(300_000)
    scene.core.client(C2, 12)
    scene.core.function(C2, 1, b"f")
    scene.core.submit(C2, [number, number + 1], capabilities=frozenset({("gpu", 1)}))
    story = story_of(scene, number, client=ANY_CLIENT)
    assert set(story.ids) == {number} and sorted(story.clients) == [11, 12], "the tables still have the first task"
    assert story_of(scene, number + 1, client=ANY_CLIENT).clients == [12]


def test_open_task_is_known_after_its_rows_are_dropped(scene: Scene) -> None:
    running(scene.core, 1_000_000)
    scene.core.submit(C, [1_000_001], capabilities=frozenset({("gpu", 1)}))
    scene.core.now += 5
    scene.note(300_000)
    assert scene.core.scheduler.tables.history.first_row > 5
    story = story_of(scene, 1_000_000)
    assert story.kinds == [HistoryKind.SUBMITTED, HistoryKind.DISPATCHED, HistoryKind.STARTED]
    assert (story.times, story.workers, story.attempts) == ([10_000_000] * 3, [0, 22, 22], [0, 1, 1])
    waiting = story_of(scene, 1_000_001)
    assert (waiting.kinds, waiting.times, waiting.names) == ([0], [10_000_000], ["function 1"])


def test_too_many_story_requests_are_dropped(scene: Scene) -> None:
    scene.monitor.subscribe(*[story_topic(11, task_id) for task_id in range(1000)], b"story\0\0\0", b"story\0\0\0" * 99)
    sizes = []
    for _ in range(40):
        sizes.append(len(scene.turns(publisher.PAUSE_SECONDS)))
    assert max(sizes) <= 2 * publisher.STORIES_PER_TURN and sum(sizes) == publisher.STORY_REQUESTS
    assert scene.turns(1) == []


def graphs_of(scene: Scene) -> Graphs:
    frame = scene.turns(1.01)[-1]
    assert frame.startswith(GRAPHS_TOPIC)
    message = wire.decode_published(frame)
    assert isinstance(message, Graphs) and message.incarnation == 5
    return message


def graph(ids: list[int], inputs: list[int], counts: list[int]) -> events.Submit:
    event = submit_event(C, ids, [1], [b"x"] * len(ids), ())
    event.keep, event.inputs = array("B", [events.KEEP_YES] * len(ids)), array("q", inputs)
    event.input_counts = array("I", counts)
    return event


def test_graphs(scene: Scene) -> None:
    core = scene.core
    core.submit(C, [0])
    core.results(W, [(11, 0, 1)])
    scene.monitor.subscribe(GRAPHS_TOPIC)
    assert (graphs_of(scene).ids, graphs_of(scene).total) == ([], 0), "a plain task is not a node"
    core.feed(events.Object(C, 7, "table", [b"x"]))
    core.feed(graph([10, 11, 12, 13, 14], [7, 10, 10, 11, 13], [1, 1, 1, 1, 1]))
    core.results(W, [(11, 10, 1)], body=b"value")
    core.take()
    shown = graphs_of(scene)
    state = dict(zip(shown.ids, shown.states))
    assert (shown.total, state[10], state[13], state[14]) == (
        5,
        GraphState.DONE,
        GraphState.BLOCKED,
        GraphState.BLOCKED,
    )
    assert {state[11], state[12]} <= {GraphState.RUNNING, GraphState.WAITING}
    assert dict(zip(shown.ids, shown.inputs)) == {10: [7], 11: [10], 12: [10], 13: [11], 14: [13]}
    assert set(shown.names) == {"function 1"} and set(shown.clients) == {11}
    [attempt] = {row.attempt for row in core.scheduler.tables.clients.by_incarnation[11].tasks.values() if row.id == 11}
    core.results(W, [(11, 11, attempt)], outcome=effects.OUTCOME_EXCEPTION, body=b"error")
    core.take()
    shown = graphs_of(scene)
    state = dict(zip(shown.ids, shown.states))
    assert [state[number] for number in (11, 13, 14)] == [GraphState.FAILED] * 3
    assert dict(zip(shown.ids, shown.inputs))[14] == [13]
    core.wait(40)
    assert set(graphs_of(scene).ids) == {10, 12}


def test_failed_graph_keeps_its_nodes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a monitor that subscribes after its end."""
    monkeypatch.setattr(graph_view, "ENDED_SECONDS", 2.0)
    core = scene.core
    event = graph([10, 11, 12, 13], [10, 10, 11, 12], [0, 1, 1, 2])
    event.options = events.Options(graph=11, keys="summary")
    core.feed(event)
    core.results(W, [(11, 10, 1)], body=b"value")
    core.take()
    core.wait(3)  # the first node has ended long ago
    attempts = {row.id: row.attempt for row in core.scheduler.tables.clients.by_incarnation[11].tasks.values()}
    core.results(W, [(11, 11, attempts[11])], body=b"value")
    core.results(W, [(11, 12, attempts[12])], outcome=effects.OUTCOME_EXCEPTION, body=b"error")
    core.feed(events.ForgetObjects(C, array("q", [10, 11])))
    core.take()
    scene.monitor.subscribe(GRAPHS_TOPIC)
    shown = graphs_of(scene)
    state = dict(zip(shown.ids, shown.states))
    assert state == {
        10: GraphState.DONE, 11: GraphState.DONE, 12: GraphState.FAILED, 13: GraphState.FAILED,
    }  # fmt: skip
    assert dict(zip(shown.ids, shown.inputs)) == {10: [], 11: [10], 12: [10], 13: [11, 12]}
    assert set(shown.graphs) == {11} and set(shown.keys) == {"summary"} and len(set(shown.submit_milliseconds)) == 1
    core.wait(3)
    assert graphs_of(scene).total == 0


def test_number_of_ended_nodes_is_limited(scene: Scene) -> None:
    core, ended = scene.core, scene.core.scheduler.tables.ended_nodes
    for first in range(0, 6_000, 1_000):
        ids = list(range(first, first + 1_000))
        core.feed(graph(ids, [first] * 999, [0] + [1] * 999))
        core.results(W, [(11, first, 1)], body=b"value")
        while True:
            given = [row for row in core.scheduler.tables.clients.by_incarnation[11].tasks.values() if row.worker]
            if not given:
                break
            core.results(W, [(11, row.id, row.attempt) for row in given], body=b"value")
            core.take()
    assert len(ended) == ENDED_NODES and max(node.id for node in ended) < 3_000
    core.wait(2)
    core.feed(graph([9_000], [], [0]))
    core.results(W, [(11, 9_000, 1)], body=b"value")
    assert ended[-1].id == 9_000 and len(ended) == ENDED_NODES


def test_number_of_nodes_is_limited(scene: Scene) -> None:
    names = list(range(10_000))
    scene.core.scheduler.handle(graph(names, [0] * 9_999, [0] + [1] * 9_999), scene.core.now)
    scene.core.scheduler.collect()
    scene.monitor.subscribe(GRAPHS_TOPIC)
    shown = graphs_of(scene)
    assert (shown.total, len(shown.ids)) == (10_000, graph_view.NODE_LIMIT) and shown.states[0] == GraphState.RUNNING
    assert len(set(shown.ids)) == graph_view.NODE_LIMIT
    scene.core.goodbye(C)
    scene.core.take()
    assert graphs_of(scene).total == 0


def test_search_for_nodes_is_limited(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_view, "SCAN_LIMIT", 10)
    scene.core.feed(graph(list(range(50)), [0] * 49, [0] + [1] * 49))
    scene.core.take()
    scene.monitor.subscribe(GRAPHS_TOPIC)
    shown = graphs_of(scene)
    assert shown.total >= 50 and len(shown.ids) == 10
