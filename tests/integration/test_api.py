"""Features of the client beside submit and map, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import psutil
import pytest
from tests.integration.commands import STOP_SECONDS, environment, is_alive
from tests.waiting import wait_until
from tqdm import tqdm

from scaler_client import AsyncClient, Client, LocalCluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, timeout_seconds=30) as client:
        yield client


def square(x: int) -> int:
    return x * x


def until_there(path: str) -> int:
    while not os.path.exists(path):
        time.sleep(0.002)
    return os.getpid()


# ------------------------------------------------------------------------------------------------------------ executor


def test_an_executor_behaves_like_that_of_the_standard_library(client: Client) -> None:
    def use(executor: Any) -> list[Any]:
        with executor:
            return [
                list(executor.map(square, range(500), chunksize=7)),
                list(executor.map(pow, range(30), range(30), timeout=SECONDS)),
                executor.submit(sorted, [3, 1, 2], reverse=True).result(),
            ]

    assert use(client.executor()) == use(ThreadPoolExecutor(2))


def test_libraries_that_accept_an_executor(client: Client) -> None:
    total = dask.delayed(sum)([dask.delayed(square)(x) for x in range(20)])
    with client.executor() as executor:
        assert dask.compute(total, scheduler=executor) == (sum(x * x for x in range(20)),)

        async def main() -> list[int]:
            loop = asyncio.get_running_loop()
            return list(await asyncio.gather(*(loop.run_in_executor(executor, square, x) for x in range(50))))

        assert asyncio.run(main()) == [x * x for x in range(50)]


def test_executors_in_tasks_give_up_their_slot(client: Client) -> None:
    def parent(client: Client, x: int) -> int:
        with client.executor() as executor:
            return sum(executor.map(square, range(x)))

    parents = [client.submit(parent, client, x) for x in range(8)]
    assert client.gather(parents) == [sum(map(square, range(x))) for x in range(8)]


# ------------------------------------------------------------------------------------------------------------- asyncio


def test_an_asyncio_program(cluster: LocalCluster, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(cluster) as client:
            assert await client.submit(square, 3) == 9
            assert await client.map(square, [(x,) for x in range(3000)]) == [x * x for x in range(3000)]
            futures = [client.submit(square, x) for x in range(100)]
            assert {await future async for future in client.as_completed(futures)} == {x * x for x in range(100)}
            assert await client.gather(futures) == [x * x for x in range(100)]
            stuck = [client.submit(until_there, str(tmp_path / "never")) for _ in range(6)]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.gather(stuck), 0.3)
            assert all(future.cancelled() for future in stuck)
            assert await asyncio.wait_for(client.submit(square, 4), SECONDS) == 16, "the workers are free again"

    asyncio.run(main())


def test_an_asyncio_program_in_tasks(client: Client) -> None:
    def parent(x: int) -> int:
        async def main() -> int:
            async with AsyncClient() as client:
                first = await client.submit(square, x)
                return first + sum(await client.gather([client.submit(square, y) for y in range(x)]))

        return asyncio.run(main())

    parents = [client.submit(parent, x) for x in range(6)]
    assert client.gather(parents) == [x * x + sum(y * y for y in range(x)) for x in range(6)]


# ------------------------------------------------------------------------------------------------------- many futures


def test_bars(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert client.map(square, [(x,) for x in range(200)], progress=True) == [x * x for x in range(200)]
    futures = [client.submit(square, x) for x in range(100)]
    assert sum(future.result() for future in tqdm(client.as_completed(futures), total=100)) == 328350
    shown = capsys.readouterr().err
    assert "200/200" in shown and "100/100" in shown


def test_clear(client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    futures = [client.submit(until_there, str(gate)) for _ in range(500)]
    wait_until(lambda: sum(future.running() for future in futures) == 2)
    client.clear()
    assert sum(future.cancelled() for future in futures) == 498
    gate.touch()
    kept = [future for future in futures if not future.cancelled()]
    assert len(set(client.gather(kept))) == 2
    assert client.submit(square, 5).result(SECONDS) == 25


def test_a_client_passed_to_a_task_keeps_its_options(client: Client, tmp_path: Path) -> None:
    def fails(path: str) -> None:
        with open(path, "a") as log:
            log.write("x")
        raise OSError("always")

    def parent(view: Client, path: str) -> int:
        error = view.submit(fails, path).exception()
        return os.path.getsize(path) if isinstance(error, OSError) else -1

    view = client.options(retry_on=OSError, retries=2)
    assert client.submit(parent, view, str(tmp_path / "log")).result(SECONDS) == 3


# ------------------------------------------------------------------------------------------------------------ notebooks


def test_text_and_html_of_objects(cluster: LocalCluster, client: Client) -> None:
    wait_until(lambda: "<td style='text-align:left'>2</td>" in cluster._repr_html_(), what="a snapshot of 2 workers")
    for shown in (cluster, client):
        wait_until(lambda shown=shown: "waiting" in shown._repr_html_())  # type: ignore[misc]
        assert cluster.address in repr(shown) and cluster.address in shown._repr_html_()
    assert "2 workers" in repr(cluster)


# ------------------------------------------------------------------------------------------- a client's own cluster


SCRIPT = """
import logging, sys
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
from scaler_client import Client
client = Client()
print(client.submit(pow, 2, 10).result(), flush=True)
sys.stdin.readline()
"""


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate("go on\n", timeout=SECONDS)
    assert process.returncode == 0


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("end", [leave, kill])
def test_a_client_without_an_address_starts_a_cluster(end: Callable[[subprocess.Popen[str]], None]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment(SCALER_SCHEDULER_PYTHON=sys.executable),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    family: list[psutil.Process] = []
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(
            "no scheduler address was given: a local cluster for this client runs at ipc:///tmp/scaler-sockets-"
        )
        assert process.stdout.readline() == "1024\n"
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 3, "scheduler, agent, fork_server, workers"
        end(process)
        wait_until(lambda: not any(map(is_alive, family)), 3 * STOP_SECONDS, "all of it ends")
    finally:
        process.kill()
        process.wait()
        for each in family:
            if is_alive(each):
                each.kill()


def test_a_cluster_that_cannot_start(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, scheduler_python=sys.executable) as first:
        with pytest.raises(RuntimeError, match=f"the address {first.address} is in use"):
            LocalCluster(n_workers=1, address=first.address)
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o700)
    with pytest.raises(RuntimeError, match="scaler_scheduler ended at its start with exit status 3"):
        LocalCluster(n_workers=1, scheduler_python=str(script))
