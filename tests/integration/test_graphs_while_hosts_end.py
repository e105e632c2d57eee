"""Graphs with results on hosts, while hosts end in different ways: each `get` returns the right values."""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import psutil
import pytest
from tests.integration.commands import Command, cluster_command, is_alive, scheduler
from tests.integration.host_files import directory_of
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SECONDS = 60
WORKERS = 2
OFTEN = ("--heartbeat-interval-seconds", "0.2")
SIZES = (10_000, 120_000)
"""Numbers of array elements, below and above the size from which results stay on their host."""


def make(size: int, value: int) -> Any:
    return numpy.full(size, value)


def add(one: Any, other: Any) -> Any:
    return one + other


def total(*arrays: Any) -> int:
    return int(sum(array.sum() for array in arrays))


def random_graph(chance: random.Random) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a random graph, and the expected values of the requested keys."""
    size = chance.randint(*SIZES)
    graph: dict[str, Any] = {}
    values: dict[str, int] = {}
    for name in map("made-{}".format, range(6)):
        values[name] = chance.randrange(10)
        graph[name] = (make, size, values[name])
    for name in map("added-{}".format, range(20)):
        one, other = chance.choice(list(graph)), chance.choice(list(graph)[-6:])
        graph[name] = (add, one, other)
        values[name] = (values[one] + values[other]) % (1 << 40)
    expected = {}
    for name in map("total-{}".format, range(3)):
        read = chance.sample(list(values), 3)
        graph[name] = (total, *read)
        expected[name] = size * sum(values[each] for each in read)
    return graph, expected


class Host:
    """A cluster that ends and is started again."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address
        self._numbers = itertools.count()
        self.directories: list[Path] = []
        self.command = self.start()

    def start(self) -> Command:
        log = self._folder / f"cluster-{next(self._numbers)}.log"
        self.command = Command(cluster_command("-n", str(WORKERS), self._address, *OFTEN), log)
        wait_until(lambda: len(self.command.descendants()) == 1 + WORKERS, SECONDS, "the workers are there")
        self.directories.append(directory_of(self.command.process.pid))
        return self.command

    def stop(self) -> None:
        assert self.command.stop() == 0

    def kill_agent(self) -> None:
        self.command.descendants()
        self.command.process.kill()
        self._wait_for_end()

    def kill_fork_server(self) -> None:
        self.command.descendants()
        for fork_server in psutil.Process(self.command.process.pid).children():
            fork_server.kill()
        self._wait_for_end()

    def _wait_for_end(self) -> None:
        self.command.process.wait(SECONDS)
        wait_until(lambda: not any(map(is_alive, self.command.seen.values())), SECONDS, "its processes end")


def end_and_start(hosts: list[Host], is_over: threading.Event) -> None:
    """End one host after the other, in different ways, and start each one again."""
    ways = itertools.cycle([Host.stop, Host.stop, Host.kill_agent, Host.stop, Host.kill_fork_server])
    for host, way in zip(itertools.cycle(hosts), ways):
        if is_over.wait(0.5):
            return
        way(host)
        host.start()


def test_hosts_end_in_different_ways(tmp_path: Path) -> None:
    chance = random.Random(1)
    with scheduler(tmp_path, "--worker-timeout-seconds", "1") as daemon:
        folders = [tmp_path / name for name in ("one", "other")]
        for folder in folders:
            folder.mkdir()
        hosts = [Host(folder, daemon.address) for folder in folders]
        is_over = threading.Event()
        ending = threading.Thread(target=end_and_start, args=(hosts, is_over))
        ending.start()
        try:
            with Client(daemon.address, timeout_seconds=SECONDS) as client:
                while len(hosts[0].directories) + len(hosts[1].directories) < 9:
                    graph, expected = random_graph(chance)
                    assert client.get(graph, list(expected)) == expected
        finally:
            is_over.set()
            ending.join()
            for host in hosts:
                host.command.end()
        left = [path for host in hosts for path in host.directories if path.exists()]
        assert left == [], "no host leaves files behind"
