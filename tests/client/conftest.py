"""A scheduler that runs tasks in the test's process, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.client.gates import gates
from tests.client.running_scheduler import RunningScheduler

from scaler_client import Client


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
