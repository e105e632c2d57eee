"""Fork servers in interpreters of their own, beside that of the agent: real processes."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest
from tests.waiting import wait_until
from tests.worker.fork_server.test_fork_server import SLEEP, needs_fork, stand_in, worker

from scaler_worker.agent.launched_fork_server import MODULE, LaunchedForkServer
from scaler_worker.fork_server.client import ForkServer, ForkServerLost
from scaler_worker.fork_server.process_events import ProcessEnded, ProcessEvent, ProcessStarted
from scaler_worker.fork_server.starter_group import FORK_SERVER_LOST, UNUSED_SECONDS, StarterGroup
from scaler_worker.fork_server.state_page import StatePage
from scaler_worker.fork_server.worker_settings import WorkerSettings

SECONDS = 30

pytestmark = [needs_fork, pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memory files here")]


class Group:
    """A group with one further fork server, and the events that came."""

    def __init__(self) -> None:
        self.page = StatePage(4)
        self.own = ForkServer(stand_in, self.page)
        self.group = StarterGroup(self.own)
        self.events: list[ProcessEvent] = []
        self.launched: list[LaunchedForkServer] = []

    def launch(self) -> LaunchedForkServer:
        self.launched.append(LaunchedForkServer([sys.executable, "-m", MODULE], self.page, os.environ))
        return self.launched[-1]

    def start(self, slot: int, incarnation: int, environment: str = "e") -> None:
        settings = self.settings(incarnation, environment)
        self.group.start(slot, settings, self.launch if environment else None)

    @staticmethod
    def settings(incarnation: int, environment: str) -> WorkerSettings:
        return replace(worker(incarnation, SLEEP), environment=environment)

    def wait(self, kind: type, incarnation: int) -> ProcessEvent:
        """The first event of this kind about a worker."""
        deadline = time.monotonic() + SECONDS
        while True:
            for event in self.events:
                if isinstance(event, kind) and event.incarnation == incarnation:
                    return event
            assert time.monotonic() < deadline, self.events
            if not self.group.has_events:
                select.select([descriptor for descriptor, _ in self.group.filenos()], [], [], 1.0)
            self.events += self.group.receive()


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    try:
        yield made
    finally:
        made.group.close()
        made.own.close()
        assert all(not psutil.pid_exists(launched.pid) for launched in made.launched)


def test_each_worker_comes_from_the_fork_server_of_its_environment(group: Group) -> None:
    group.start(0, 11, environment="")
    group.start(1, 12)
    own, launched = group.wait(ProcessStarted, 11), group.wait(ProcessStarted, 12)
    assert psutil.Process(own.pid).ppid() != psutil.Process(launched.pid).ppid() == group.launched[0].pid
    group.start(2, 13)
    assert psutil.Process(group.wait(ProcessStarted, 13).pid).ppid() == group.launched[0].pid
    assert len(group.launched) == 1


def test_workers_are_ended_where_they_are(group: Group) -> None:
    group.start(0, 11, environment="")
    group.start(1, 12)
    group.wait(ProcessStarted, 12)
    for incarnation in (11, 12):
        group.group.end(incarnation, kill=True)
        ended = group.wait(ProcessEnded, incarnation)
        assert isinstance(ended, ProcessEnded) and ended.status == -signal.SIGKILL


def test_the_death_of_a_further_fork_server_ends_its_workers_alone(group: Group) -> None:
    group.start(0, 11, environment="")
    group.start(1, 12)
    started = group.wait(ProcessStarted, 12)
    os.kill(group.launched[0].pid, signal.SIGKILL)
    ended = group.wait(ProcessEnded, 12)
    assert isinstance(ended, ProcessEnded) and (ended.pid, ended.error) == (started.pid, FORK_SERVER_LOST)
    wait_until(lambda: not psutil.pid_exists(started.pid), SECONDS, "the worker has died with its fork server")
    group.start(1, 13)
    group.wait(ProcessStarted, 13)
    assert len(group.launched) == 2 and psutil.pid_exists(group.wait(ProcessStarted, 11).pid)


def test_an_unused_fork_server_ends(group: Group) -> None:
    group.start(1, 12)
    group.wait(ProcessStarted, 12)
    group.group.close_unused(0.0)
    group.group.close_unused(UNUSED_SECONDS)
    assert len(group.group.filenos()) == 2, "it has a worker"
    group.group.end(12, kill=True)
    group.wait(ProcessEnded, 12)
    group.group.close_unused(100.0)
    assert len(group.group.filenos()) == 2
    group.group.close_unused(100.0 + UNUSED_SECONDS)
    assert len(group.group.filenos()) == 1 and not psutil.pid_exists(group.launched[0].pid)


def test_an_interpreter_that_does_not_exist(group: Group) -> None:
    page = group.page
    settings = group.settings(12, "e")
    group.group.start(1, settings, lambda: LaunchedForkServer(["/no/python"], page, os.environ))
    ended = group.wait(ProcessEnded, 12)
    assert isinstance(ended, ProcessEnded) and "the interpreter of its environment cannot be started" in ended.error


def test_an_interpreter_without_scaler_worker(group: Group) -> None:
    page = group.page
    settings = group.settings(12, "e")
    group.group.start(1, settings, lambda: LaunchedForkServer(["/bin/false"], page, os.environ))
    ended = group.wait(ProcessEnded, 12)
    assert isinstance(ended, ProcessEnded) and ended.error == FORK_SERVER_LOST


def test_the_loss_of_the_agents_own_fork_server_ends_all(group: Group) -> None:
    group.start(0, 11, environment="")
    os.kill(psutil.Process(group.wait(ProcessStarted, 11).pid).ppid(), signal.SIGKILL)
    with pytest.raises(ForkServerLost):
        group.wait(ProcessEnded, 11)
