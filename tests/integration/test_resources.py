"""Counted resources with real processes: ids, variables, cpus, and what is given back."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import cluster
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import (
    AsyncClient,
    Client,
    ClusterExecutor,
    SchedulerClusterCombo,
    current_task,
    register_joblib,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "OMP_NUM_THREADS")


@pytest.fixture(scope="module")
def combo() -> Iterator[SchedulerClusterCombo]:
    resources = {"gpu": 2, "memory": "1G", "license": 1}
    with SchedulerClusterCombo(n_workers=4, resources=resources, worker_timeout_seconds=5.0) as combo:
        yield combo


@pytest.fixture
def client(combo: SchedulerClusterCombo) -> Iterator[Client]:
    with Client(combo.address) as client:
        yield client


def seen() -> tuple[dict[str, Any], int | float, dict[str, str]]:
    task = current_task()
    assert task is not None
    return dict(task.resources), task.cpus, {name: os.environ[name] for name in VARIABLES if name in os.environ}


def test_a_task_is_told_what_it_has(client: Client) -> None:
    before = client.submit(seen).result()
    assert before[:2] == ({}, 1)
    resources, cpus, variables = client.options(resources={"gpu": 2, "memory": "0.5G"}, cpus=3).submit(seen).result()
    assert (resources, cpus) == ({"gpu": (0, 1), "memory": 2**29}, 3)
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1" and variables["OMP_NUM_THREADS"] == "3"
    for _ in range(8):  # the variables are as before, on each worker
        assert client.submit(seen).result() == before
    assert current_task() is None


def hold(folder: str, seconds: float = 0.1) -> tuple[int, ...]:
    """Mark the unit, and fail if another task has it."""
    task = current_task()
    assert task is not None
    units = task.resources["gpu"]
    assert isinstance(units, tuple)
    for unit in units:
        os.close(os.open(Path(folder, str(unit)), os.O_CREAT | os.O_EXCL))
    time.sleep(seconds)
    for unit in units:
        os.unlink(Path(folder, str(unit)))
    return units


def test_no_unit_is_given_twice(client: Client, tmp_path: Path) -> None:
    one = client.options(resources={"gpu": 1})
    futures = [one.submit(hold, str(tmp_path), 0.02) for _ in range(20)]
    futures += [client.options(resources={"gpu": 2}).submit(hold, str(tmp_path), 0.02) for _ in range(3)]
    assert {future.result() for future in futures} == {(0,), (1,), (0, 1)}
    assert set(one.map(hold, [(str(tmp_path), 0.005)] * 20)) <= {(0,), (1,)}
    with ClusterExecutor(one) as executor:
        assert set(executor.map(hold, [str(tmp_path)] * 4)) <= {(0,), (1,)}


def parent(address: str) -> tuple[Any, Any, Any]:
    own = seen()
    with Client(address) as client:
        child = client.submit(seen).result()
        with_gpu = client.options(resources={"gpu": 1}).submit(seen).result()
    assert seen() == own
    return own, child, with_gpu


def test_a_parent_that_waits_keeps_its_gpu_and_gives_its_cpus_back(
    combo: SchedulerClusterCombo, client: Client
) -> None:
    parents = client.options(resources={"gpu": 1}, cpus=4)
    (own, child, with_gpu) = parents.submit(parent, combo.address).result()
    assert (own[0], own[1], own[2]["CUDA_VISIBLE_DEVICES"]) == ({"gpu": (0,)}, 4, "0")
    assert child[0] == {} and child[2].get("CUDA_VISIBLE_DEVICES") != "0"
    assert with_gpu[0] == {"gpu": (1,)} and with_gpu[2]["CUDA_VISIBLE_DEVICES"] == "1"


def releasing_parent(address: str) -> tuple[Any, Any, Any]:
    own = seen()
    with Client(address) as client:
        child = client.options(resources={"gpu": 2}).submit(seen).result()
    return own, child, seen()


def test_a_parent_may_release_its_gpus(combo: SchedulerClusterCombo, client: Client) -> None:
    parents = client.options(resources={"gpu": 2}, release_resources=True)
    own, child, after = parents.submit(releasing_parent, combo.address).result()
    assert own[0] == child[0] == {"gpu": (0, 1)}
    assert after[0] == {} and after[2].get("CUDA_VISIBLE_DEVICES") != "0,1"


def die() -> None:
    os._exit(3)


def test_what_a_killed_worker_had_is_free_again(client: Client) -> None:
    greedy = client.options(resources={"gpu": 2, "license": 1}, retries=0)
    with pytest.raises(Exception, match="worker died"):
        greedy.submit(die).result()
    assert greedy.submit(seen).result()[0] == {"gpu": (0, 1), "license": 1}


def threads() -> set[int]:
    import numpy as np
    import threadpoolctl

    np.ones((4, 4)) @ np.ones((4, 4))
    return {each["num_threads"] for each in threadpoolctl.threadpool_info()}


def test_libraries_get_as_many_threads_as_cpus(client: Client) -> None:
    pytest.importorskip("numpy")
    if not client.submit(threads).result():
        pytest.skip("numpy has no library that threadpoolctl knows")
    assert client.options(cpus=2).submit(threads).result() == {2}
    assert client.options(cpus=1).submit(threads).result() == {1}


def gpus(*_: Any) -> tuple[int, ...]:
    task = current_task()
    assert task is not None
    units = task.resources["gpu"]
    assert isinstance(units, tuple)
    return units


def test_graphs_dask_and_joblib_ask_too(client: Client) -> None:
    one = client.options(resources={"gpu": 1})
    graph = {"a": (gpus,), "b": (gpus, "a"), "c": (gpus, "a")}
    values = one.get(graph, ["a", "b", "c"])
    assert {len(units) for units in values} == {1}
    dask = pytest.importorskip("dask")
    lazy = [dask.delayed(gpus)(number) for number in range(3)]
    assert {len(units) for units in dask.compute(*lazy, scheduler=one.dask_get)} == {1}
    joblib = pytest.importorskip("joblib")
    register_joblib()
    with joblib.parallel_config("scaler", client=one):
        assert {len(units) for units in joblib.Parallel()(joblib.delayed(gpus)(number) for number in range(3))} == {1}


def test_async_clients_ask_too(combo: SchedulerClusterCombo) -> None:
    async def run() -> tuple[int, ...]:
        async with AsyncClient(combo.address) as client:
            return await client.options(resources={"gpu": 2}).submit(gpus)

    assert asyncio.run(run()) == (0, 1)


def hold_until(path: str, gate: str) -> tuple[int, ...]:
    Path(path).touch()
    while not os.path.exists(gate):
        time.sleep(0.005)
    return gpus()


def test_bookings_are_exact_after_a_restart_of_the_scheduler(tmp_path: Path) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    options = (*OFTEN, "--resources", "gpu=2")
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 3, *options):
        with Client(daemon.now.address) as client:
            one = client.options(resources={"gpu": 1})
            first = one.submit(hold_until, str(begun), str(gate))
            wait_until(begun.exists, what="the first task runs")
            daemon.kill()
            daemon.start(daemon.now.address)
            others = {one.submit(gpus).result(timeout=60) for _ in range(5)}
            both = client.options(resources={"gpu": 2}).submit(gpus)
            assert others == {(1,)} and not both.done()
            gate.touch()
            assert (first.result(), both.result()) == ((0,), (0, 1))


class Lines(logging.Handler):
    """The log lines of this process."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put(record.getMessage())


def test_a_task_that_no_host_could_run_is_said_at_once(client: Client) -> None:
    lines = Lines()
    logger = logging.getLogger("scaler_client")
    logger.addHandler(lines)
    try:
        future = client.options(resources={"gpu": 3}).submit(seen)
        text = lines.queue.get(timeout=60)
        assert "no host has gpu=3 (scaler_cluster --resources gpu=3); the nearest, " in text and text.endswith(
            ", has gpu=2"
        )
        assert future.cancel()
    finally:
        logger.removeHandler(lines)
