"""Results that stay on their hosts (`options(keep=True)`), with real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.integration.test_host_results import kill, object_files, two_hosts
from tests.waiting import wait_until

from scaler_client import Client, KeptFuture, LocalCluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SIZE = 1 << 20


def make(log: str, value: float) -> tuple[int, Any]:
    note(log, "made")
    return os.getpid(), numpy.full(SIZE // 8, value)


def double(log: str, made: tuple[int, Any]) -> tuple[int, Any]:
    note(log, "doubled")
    return os.getpid(), made[1] * 2


def mean(made: tuple[int, Any]) -> float:
    return float(made[1].mean())


def test_results_of_a_killed_host_are_made_again(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with two_hosts(tmp_path, 1) as (_, clusters, client):
        keep = client.options(keep=True)
        doubled: list[KeptFuture[Any]] = [keep.submit(double, log, keep.submit(make, log, value)) for value in range(4)]
        client.wait(doubled)
        assert all(each.size is not None and each.size > SIZE and each.location != "scheduler" for each in doubled)
        assert len(notes(log, "made")) == len(notes(log, "doubled")) == 4
        pid = doubled[0].result()[0]
        victim = next(each for each in clusters if pid in each.seen)
        kill(victim)
        assert client.submit(mean, doubled[0]).result() == 0.0
        assert [each[1][0] for each in client.gather(doubled)] == [0.0, 2.0, 4.0, 6.0]
        assert len(notes(log, "doubled")) > 4
        del doubled
        client.submit(pow, 1, 1).result()  # the ids to forget go with the next message
        wait_until(lambda: not object_files(clusters), what="all files are removed")


def scaled(values: Any, factor: float) -> tuple[int, Any]:
    return os.getpid(), values * factor


def test_kept_results_of_nodes_that_share_a_literal_are_made_again(tmp_path: Path) -> None:
    """The client sends the literal as an object, and the user can't know that it must not be freed."""
    with two_hosts(tmp_path, 1) as (_, clusters, client):
        graph = {"values": numpy.ones(SIZE // 8), **{str(each): (scaled, "values", float(each)) for each in range(6)}}
        kept = client.options(keep=True).submit_graph(graph, [str(each) for each in range(6)])
        del graph
        client.wait(kept)
        pid = kept[0].result()[0]
        kill(next(each for each in clusters if pid in each.seen))
        assert [client.submit(mean, each).result() for each in kept] == list(range(6))


def test_the_first_results_of_a_local_cluster_stay_on_its_host(tmp_path: Path) -> None:
    """Some workers join before the agent of their host."""
    for number in range(4):
        log = str(tmp_path / f"log{number}")
        with LocalCluster(n_workers=2) as local, Client(local) as client:
            kept = [client.options(keep=True).submit(make, log, value) for value in range(4)]
            client.wait(kept)
            assert [each.location == "scheduler" for each in kept] == [False] * 4
            assert [client.submit(mean, each).result() for each in kept] == [0.0, 1.0, 2.0, 3.0]
            assert len(notes(log, "made")) == 4


def test_values_come_late_and_are_freed(tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon, cluster(tmp_path, daemon.address, 2), Client(daemon.address) as client:
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().workers == 2)
            keep = client.options(keep=True)
            small = keep.submit(pow, 2, 100)
            large = keep.executor().submit(make, str(tmp_path / "log"), 3.0)
            assert isinstance(small, KeptFuture) and isinstance(large, KeptFuture)
            assert set(client.as_completed([small, large])) == {small, large}
            assert small.location == "client" and large.location not in ("client", "scheduler")
            assert "bytes at" in repr(large)
            assert small.exception() is None
            assert client.gather([small, large])[0] == 2**100 == small.result()
            assert large.result()[1].flags.writeable

            async def awaited() -> Any:
                return await keep.submit(pow, 3, 3)

            assert asyncio.run(awaited()) == 27
            kept = keep.get({"one": (pow, 2, 3), "two": (pow, "one", 2)}, ["two"])
            assert kept["two"].result() == 64
            del small, large, kept
            client.submit(pow, 1, 1).result()
            wait_until(lambda: not watch.next().objects, what="the scheduler has no objects")
