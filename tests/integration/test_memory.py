"""Bounds on what the scheduler holds."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import psutil
import pytest
from tests.client.stand_ins import in_threads
from tests.integration.commands import SchedulerCommand, cluster, monitor, scheduler
from tests.integration.test_processes import program
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 100
MEBIBYTE = 1 << 20
LIMIT = 60
"""Mebibytes; `--memory-limit`."""

GROWTH = 2 * LIMIT + 256 + 32
"""Mebibytes by which the scheduler's resident size may grow. Each byte within the limit may exist twice: stored, and on
its way. PyPy first collects its heap at eight times the size of the nursery, 256. The nursery itself has 32."""


def square(x: int) -> int:
    return x * x


class Watch:
    """The largest resident size of a process, measured often."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self.before = self._process.memory_info().rss / MEBIBYTE
        self.peak = self.before

    def look(self) -> None:
        while not self._over.wait(0.01):
            self.peak = max(self.peak, self._process.memory_info().rss / MEBIBYTE)

    def stop(self) -> None:
        self._over.set()


@contextmanager
def watched(pid: int) -> Iterator[Watch]:
    watch = Watch(pid)
    thread = threading.Thread(target=watch.look)
    thread.start()
    try:
        yield watch
    finally:
        watch.stop()
        thread.join()


def take(block: bytes) -> int:
    return len(block)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    """A scheduler with a memory limit. These tests send ten times as much data through it, one after the other."""
    with scheduler(tmp_path_factory.mktemp("scheduler"), "--memory-limit", f"{LIMIT}M") as started:
        with watched(started.process.pid) as watch:
            yield started
        assert watch.peak - watch.before < GROWTH, f"it grew by {watch.peak - watch.before:.0f} MiB"


def test_clients_that_push_ten_times_the_limit(tmp_path: Path, limited: SchedulerCommand) -> None:
    clients, tasks = 4, 100
    block = os.urandom(MEBIBYTE)

    def push(_number: int) -> int:
        with Client(limited.address) as client:
            futures = [client.submit(take, block) for _ in range(tasks)]
            return sum(future.result(SECONDS) for future in futures)

    with cluster(tmp_path, limited.address, 2):
        assert in_threads(clients, push, SECONDS) == [tasks * MEBIBYTE] * clients


def test_tasks_without_a_worker_stay_in_the_clients(tmp_path: Path, limited: SchedulerCommand) -> None:
    """Without a worker the clients keep their own backlog, and can cancel its tasks."""
    block = os.urandom(MEBIBYTE)
    with Client(limited.address) as client, monitor(limited.monitor_address) as snapshots:
        futures = [client.submit(take, block) for _ in range(600)]
        wait_until(lambda: snapshots.next().waiting, what="some are there")
        assert snapshots.next().waiting <= LIMIT
        assert all(future.cancel() for future in reversed(futures[100:]))
        with cluster(tmp_path, limited.address):
            assert [future.result(SECONDS) for future in futures[:100]] == [MEBIBYTE] * 100


def test_a_client_that_does_not_read(tmp_path: Path, limited: SchedulerCommand) -> None:
    text = """
        def give(mebibytes):
            return b"x" * (mebibytes << 20)

        client = Client(sys.argv[1])
        futures = [client.submit(give, 1) for _ in range(400)]
        sys.stdin.readline()
        print(sum(len(future.result()) for future in futures) >> 20)
        client.disconnect()
        """
    with program(tmp_path, limited.address, text) as process, monitor(limited.monitor_address) as snapshots:
        wait_until(lambda: snapshots.next().waiting == 400, SECONDS)
        process.send_signal(signal.SIGSTOP)
        with cluster(tmp_path, limited.address, 2), Client(limited.address) as client:
            last = -1
            while last != (last := snapshots.next().resolved) or not last:
                pass  # until the counts do not change any more
            assert snapshots.next().waiting > 100, "it was granted everything"
            assert client.map(square, [(i,) for i in range(1000)]) == [i * i for i in range(1000)]
            process.send_signal(signal.SIGCONT)
            output, errors = process.communicate("\n", timeout=SECONDS)
            assert output == "400\n", errors


def test_many_tasks_in_rounds_leave_the_memory_flat(tmp_path: Path) -> None:
    rounds, tasks = 10, 30_000
    with SchedulerClusterCombo(n_workers=2) as combo, Client(combo.get_address()) as client:
        daemon = psutil.Process(combo.scheduler_pid)
        sizes = []
        for number in range(rounds):
            if number % 2:
                futures = [client.submit(square, i) for i in range(tasks)]
                assert sum(future.result(SECONDS) for future in futures) == sum(i * i for i in range(tasks))
                del futures
            else:
                assert client.map(square, [(i,) for i in range(tasks)])[-1] == (tasks - 1) ** 2
            sizes.append(daemon.memory_info().rss / MEBIBYTE)
        assert max(sizes) < 1.2 * max(sizes[:4]) + 10, sizes
