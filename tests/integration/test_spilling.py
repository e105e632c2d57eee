"""Values of a host that are larger than its memory: they go to disk, and their readers notice nothing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import numpy
import psutil
import pytest
from benchmarks.host_memory import Watch
from tests.integration.commands import Command, cluster, scheduler
from tests.integration.host_files import directory_of
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.errors import ResultPickleError
from scaler_worker.objects.host_storage import HostStorage, Usage

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SECONDS = 120
LIMIT = 32 << 20
COUNT = 32
SIZE = 4 * LIMIT // COUNT
"""Of one value. All values are four times the limit."""


def make(number: int) -> numpy.ndarray:
    return numpy.full(SIZE // 8, float(number))


def add(one: numpy.ndarray, other: numpy.ndarray) -> float:
    assert (one == one[0]).all() and (other == other[0]).all()
    return float(one[0] + other[0])


def add_all(*arrays: numpy.ndarray) -> float:
    return float(sum(array.mean() for array in arrays))


@contextmanager
def host(folder: Path, *options: str) -> Iterator[tuple[Client, Command]]:
    with (
        scheduler(folder) as daemon,
        cluster(folder, daemon.address, 2, "--object-memory", str(LIMIT), *options) as agent,
        Client(daemon.address) as client,
    ):
        client.submit(abs, 1).result(SECONDS)
        yield client, agent


def usage_of(agent: Command) -> Usage:
    usage = HostStorage(str(directory_of(agent.process.pid))).usage()
    assert usage is not None
    return usage


def test_a_spill_directory_in_shared_memory(tmp_path: Path) -> None:
    with host(tmp_path, "--spill-directory", "/dev/shm") as (client, agent):
        assert "no value is written to --spill-directory /dev/shm: it is shared memory" in agent.log()
        with pytest.raises(ResultPickleError, match=r"there is no usable --spill-directory"):
            client.options(keep=True).submit(numpy.zeros, 2 * LIMIT // 8).result(SECONDS)


def test_a_limit_beyond_the_shared_memory(tmp_path: Path) -> None:
    room = shutil.disk_usage("/dev/shm").total
    with (
        scheduler(tmp_path) as daemon,
        cluster(tmp_path, daemon.address, 1, "--object-memory", "1T") as agent,
        Client(daemon.address) as client,
    ):
        assert client.submit(abs, -1).result(SECONDS) == 1
        assert usage_of(agent).memory_limit == room
        assert f"--object-memory is {1 << 40:,} bytes, but /dev/shm has {room:,}: this is the limit" in agent.log()


def test_a_working_set_of_four_times_the_limit(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    graph: dict[str, object] = {f"make{number}": (make, number) for number in range(COUNT)}
    for number in range(COUNT):
        graph[f"add{number}"] = (add, f"make{number}", f"make{(number + 7) % COUNT}")
    graph["all"] = (add_all, *(f"make{number}" for number in range(COUNT)))
    keys = [*(f"add{number}" for number in range(COUNT)), "all"]
    with host(tmp_path, "--spill-directory", str(disk), "--spill-limit", "1G") as (client, agent):
        with Watch([psutil.Process(agent.process.pid), *agent.descendants()]) as watch:
            futures = client.submit_graph(graph, keys)
            results = [future.result(SECONDS) for future in futures]
        assert results == [*(float(number + (number + 7) % COUNT) for number in range(COUNT)), sum(range(COUNT))]
        usage = usage_of(agent)
        assert LIMIT / 2 < watch.peak_bytes <= 1.2 * LIMIT
        assert usage.written_bytes >= 2 * LIMIT and usage.read_bytes >= LIMIT
        wait_until(lambda: (usage_of(agent).memory_bytes, usage_of(agent).disk_bytes) == (0, 0))
        wait_until(lambda: os.listdir(next(disk.iterdir())) == [])
    assert os.listdir(disk) == []


def test_a_result_that_fits_nowhere_fails_its_task(tmp_path: Path) -> None:
    with host(tmp_path, "--spill-directory", str(tmp_path), "--spill-limit", "1M") as (client, _):
        graph = {
            "large": (numpy.ones, LIMIT // 8 + 1),
            "sum": (add_all, "large"),
            "small": (make, 3),
            "mean": (add_all, "small"),
        }
        failed, good = client.submit_graph(graph, ["sum", "mean"])
        with pytest.raises(ResultPickleError, match=r"--object-memory is 33,554,432 .*--spill-limit is 1,048,576"):
            failed.result(SECONDS)
        assert good.result(SECONDS) == 3.0


def test_without_a_usable_disk_the_cluster_runs(tmp_path: Path) -> None:
    with host(tmp_path, "--spill-directory", str(tmp_path / "missing")) as (client, agent):
        assert client.submit(add, make(1), make(2)).result(SECONDS) == 3.0
        assert usage_of(agent).disk_limit == 0
