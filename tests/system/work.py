"""Tasks for the scheduler that take some seconds, so that the tests can disturb it meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.commands import cluster

from scaler_client import Client
from scaler_client.futures.future import TaskFuture

WORKERS = 2


@contextmanager
def workers_and_client(folder: Path, address: str) -> Iterator[Client]:
    """A cluster and a client on this host, in the environment of the tests."""
    with cluster(folder, address, WORKERS), Client(address) as client:
        yield client


def square_slowly(number: int, seconds: float = 0.05) -> int:
    time.sleep(seconds)
    return number * number


def submit_many(client: Client, number: int = 200) -> list[TaskFuture[int]]:
    """Submit tasks that take seconds. Returns when the first is done."""
    futures = [client.submit(square_slowly, value) for value in range(number)]
    futures[0].result(60)
    return futures


def check(futures: list[TaskFuture[int]]) -> None:
    """Check that each future has its own result."""
    assert [future.result(120) for future in futures] == [value * value for value in range(len(futures))]
