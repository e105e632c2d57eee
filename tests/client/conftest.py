"""Two fake schedulers, each with a client: the test writes the answers of one, the other runs tasks in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.gates import gates
from tests.client.running_scheduler import RunningScheduler
from tests.client.scheduler_stand_in import NEVER, FakeScheduler

from scaler_client import Client


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


@pytest.fixture
def client(scheduler: FakeScheduler) -> Iterator[Client]:
    with Client(scheduler.address, heartbeat_interval_seconds=NEVER) as client:
        yield client


@pytest.fixture
def running() -> Iterator[RunningScheduler]:
    scheduler = RunningScheduler()
    yield scheduler
    gates.close_down()
    scheduler.close()


@pytest.fixture
def running_client(running: RunningScheduler) -> Iterator[Client]:
    with Client(running.address, timeout_seconds=20) as client:
        yield client
        gates.close_down()
