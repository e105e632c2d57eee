"""A scheduler and a cluster for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scaler_client import Client, SchedulerClusterCombo

WORKERS = 2


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=WORKERS) as combo:
        yield combo


@pytest.fixture(scope="module")
def client(combo: SchedulerClusterCombo) -> Iterator[Client]:
    with Client(combo.get_address(), timeout_seconds=30) as client:
        yield client
