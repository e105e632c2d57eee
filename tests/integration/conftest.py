"""A scheduler, or a scheduler with a cluster, that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent_process import FakeScheduler
from tests.integration.commands import SchedulerCommand, scheduler

from scaler_client import Client, SchedulerClusterCombo


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=2) as combo:
        yield combo


@pytest.fixture(scope="module")
def client(combo: SchedulerClusterCombo) -> Iterator[Client]:
    with Client(combo.get_address(), timeout_seconds=30) as client:
        yield client


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    """A scheduler without workers."""
    with scheduler(tmp_path_factory.mktemp("scheduler")) as started:
        yield started


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file that tasks wait for. It is made after the test, so that no task waits on."""
    path = tmp_path / "gate"
    yield path
    path.touch()


@pytest.fixture(name="scheduler")
def fake_scheduler() -> Iterator[FakeScheduler]:
    """A fake scheduler for a host agent; the test writes its messages."""
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log file of the fake workers."""
    return tmp_path / "log"
