"""What a scheduler publishes about a real cluster, read by the monitor's reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from tests.integration.commands import SchedulerCommand, cluster, scheduler

from scaler_client import Client
from scaler_client.monitor.reader import MonitorReader, Presence
from scaler_client.monitor.snapshot_view import SnapshotView
from scaler_client.protocol.snapshot_decoder import HISTORY_TOPIC, SNAPSHOT_TOPIC, story_topic
from scaler_client.protocol.snapshots import HistoryKind


class Follower:
    """A reader with a socket and a clock."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.subscribe(SNAPSHOT_TOPIC)
        self._socket.connect(address)
        self.reader = MonitorReader(time.monotonic())

    def until(self, is_wanted: Callable[[MonitorReader], object], seconds: float = 30.0) -> MonitorReader:
        deadline = time.monotonic() + seconds
        while not is_wanted(self.reader):
            assert time.monotonic() < deadline, f"it is {self.reader.presence}: {self.reader.view}"
            if self._socket.poll(100):
                self.reader.feed(self._socket.recv(), time.monotonic())
            self.reader.tick(time.monotonic())
        return self.reader

    def view(self, is_wanted: Callable[[SnapshotView], object], seconds: float = 30.0) -> SnapshotView:
        view = self.until(lambda reader: reader.view is not None and is_wanted(reader.view), seconds).view
        assert view is not None
        return view

    def subscribe(self, topic: bytes) -> None:
        self._socket.subscribe(topic)

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path) as started:
        yield started


@pytest.fixture
def follower(running: SchedulerCommand) -> Iterator[Follower]:
    following = Follower(running.monitor_address)
    yield following
    following.close()


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_snapshot_has_all_peers(running: SchedulerCommand, follower: Follower, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 2, "--capabilities", "gpu=1"), Client(running.address) as client:
        follower.view(lambda view: len(view.workers) == 2)
        future = client.submit(spin, 4.0)
        view = follower.view(lambda view: any(row.task and row.cpu_percent > 20 for row in view.workers))
        [busy] = [row for row in view.workers if row.task]
        assert busy.task is not None and "spin" in busy.task.name and busy.task.seconds > 0
        assert busy.resident_bytes > 1 << 20 and busy.agent_resident_bytes > 1 << 20 and busy.lag_seconds > 0
        assert busy.language.startswith("python 3.") and busy.capabilities == "gpu=1" and busy.version
        [agent] = view.agents
        assert (agent.workers, agent.host, agent.pid > 0) == (2, busy.host, True)
        assert len(view.clients) == 1 and view.snapshot.process.resident_bytes > 1 << 20
        future.result(30)
        ended = follower.view(lambda view: view.snapshot.resolved == 1)
        assert ended.snapshot.outcomes[0] == 1 and ended.functions[0].done == 1
        assert ended.functions[0].mean_seconds >= 4
    follower.view(lambda view: not view.workers and not view.agents and not view.clients)


def test_history_of_tasks(running: SchedulerCommand, follower: Follower, tmp_path: Path) -> None:
    follower.subscribe(HISTORY_TOPIC)
    with cluster(tmp_path, running.address, 1), Client(running.address) as client:
        before = follower.view(lambda view: len(view.workers) == 1).snapshot.sequence
        follower.view(lambda view: view.snapshot.sequence > before)
        assert client.gather([client.submit(abs, -number) for number in range(100)]) == list(range(100))
        failing = client.submit(divmod, 1, 0)
        assert isinstance(failing.exception(30), ZeroDivisionError)
        rows: list[tuple[HistoryKind, str, int, int]] = []
        errors: list[str] = []

        def has_all(reader: MonitorReader) -> bool:
            for history in reader.drain_history():
                kinds = map(HistoryKind, history.kinds)
                rows.extend(zip(kinds, history.names, history.outcomes, history.workers))
                errors.extend(filter(None, history.errors))
            return sum(row[0] is HistoryKind.ENDED for row in rows) == 101

        reader = follower.until(has_all)
        assert reader.view is not None and reader.missed_history == 0
        worker = reader.view.workers[0].incarnation
        assert sum(row == (HistoryKind.DISPATCHED, "abs", 0, worker) for row in rows) == 100
        assert rows[-1] == (HistoryKind.ENDED, "divmod", 1, worker)
        assert len(errors) == 1 and errors[0].startswith("ZeroDivisionError: ")


def test_late_subscriber_receives_kept_history(running: SchedulerCommand, follower: Follower, tmp_path: Path) -> None:
    with cluster(tmp_path, running.address, 1), Client(running.address) as client:
        assert isinstance(client.submit(divmod, 1, 0).exception(30), ZeroDivisionError)
        follower.subscribe(HISTORY_TOPIC)
        rows: list[tuple[int, int, int]] = []

        def has_rows(reader: MonitorReader) -> bool:
            for history in reader.drain_history():
                rows.extend(zip(history.kinds, history.clients, history.ids))
            return len(rows) >= 3

        follower.until(has_rows)
        _, incarnation, task_id = rows[-1]
        follower.subscribe(story_topic(incarnation, task_id))
        story = follower.until(lambda reader: reader.stories).stories[incarnation, task_id]
        assert story.kinds == [HistoryKind.SUBMITTED, HistoryKind.DISPATCHED, HistoryKind.ENDED]
        assert story.errors[-1].startswith("ZeroDivisionError: ") and story.times == sorted(story.times)


def test_second_subscriber_gets_a_snapshot(running: SchedulerCommand, follower: Follower) -> None:
    follower.view(lambda _: True)
    second = Follower(running.monitor_address)
    try:
        second.view(lambda _: True)
    finally:
        second.close()


def test_scheduler_disappears_and_returns(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/scheduler"
    with scheduler(tmp_path, address=address) as first:
        following = Follower(first.monitor_address)
        following.until(lambda reader: reader.presence is Presence.UP)
    try:
        following.until(lambda reader: reader.presence is Presence.DOWN)
        (tmp_path / "again").mkdir()
        with scheduler(tmp_path / "again", address=address):
            reader = following.until(lambda reader: reader.presence is Presence.UP)
            assert reader.schedulers == 2
    finally:
        following.close()
