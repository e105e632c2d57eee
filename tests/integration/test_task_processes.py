"""What a task has started ends with it: processes, also those that have left their group, and child tasks."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
from tests.integration.agent_process import is_gone
from tests.waiting import wait_until

from scaler_client import Client, LocalCluster, TaskStoppedError, TaskTimeoutError, WorkerDiedError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group ends")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, timeout_seconds=30) as client:
        yield client


# ------------------------------------------------------------------------------------------------ tasks, run by workers


def start_processes(log: str) -> int:
    """Start processes of all kinds, and write their pids to the log."""
    first = subprocess.Popen(["sleep", "600"])
    session = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
    shell = "setsid sleep 600 > /dev/null 2>&1 & echo $!"
    orphan = int(subprocess.run(["sh", "-c", shell], env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE).stdout)
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:  # as daemons are made
        os.setsid()
        daemon = os.fork()
        if daemon:
            os.write(writing, b"%d" % daemon)
            os._exit(0)
        os.closerange(0, 1024)
        time.sleep(600)
        os._exit(0)
    os.waitpid(middle, 0)
    daemon = int(os.read(reading, 20))
    os.close(reading)
    os.close(writing)
    with open(log + ".part", "w") as file:
        json.dump([first.pid, session.pid, orphan, daemon], file)
    os.rename(log + ".part", log)
    return os.getpid()


def start_and_sleep(log: str) -> None:
    start_processes(log)
    time.sleep(600)


def start_and_go_on(log: str) -> str:
    start_processes(log)
    while True:
        try:
            time.sleep(600)
        except TaskStoppedError:
            return "went on"


def start_and_die(log: str) -> None:
    start_processes(log)
    os.kill(os.getpid(), signal.SIGKILL)


def hold_the_gil(log: str) -> None:
    import re

    start_processes(log)
    re.match("(a+)+$", "a" * 60 + "b")


def endless(log: str) -> None:
    while True:
        with open(log, "a") as file:
            file.write(".")
        time.sleep(0.01)


def leave_children(log: str, end: str) -> str:
    """Submit endless tasks, and end when they run."""
    client = Client()
    logs = [f"{log}.{number}" for number in range(2)]
    for each in logs:
        client.submit(endless, each)
    while not all(map(os.path.exists, logs)):
        time.sleep(0.01)
    if end == "raise":
        raise ValueError("it ends")
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "stop":
        time.sleep(600)
    return end


class Pools:
    executor: Any = None


def use_pool() -> int:
    """Use a pool of processes that further tasks of the worker use too."""
    if Pools.executor is None:
        Pools.executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver"))
    return int(Pools.executor.submit(os.getpid).result())


# ---------------------------------------------------------------------------------------------------------------- tests


def processes_in(log: Path) -> list[psutil.Process]:
    wait_until(log.exists, what="a task to start processes")
    found = []
    for pid in json.loads(log.read_text()):
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def wait_for_end(processes: list[psutil.Process]) -> None:
    wait_until(lambda: all(map(is_gone, processes)), what="the end of the processes of a task")


@contextmanager
def killed_after(processes: list[psutil.Process]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize("fn", [start_and_sleep, start_and_go_on])
def test_processes_end_with_a_cancelled_task(client: Client, tmp_path: Path, fn: Callable[[str], Any]) -> None:
    log = tmp_path / "log"
    future = client.submit(fn, str(log))
    processes = processes_in(log)
    with killed_after(processes):
        assert future.cancel(force=True)
        wait_for_end(processes)
    assert future.cancelled()


@pytest.mark.parametrize("fn", [start_and_sleep, start_and_go_on, hold_the_gil])
def test_processes_end_with_a_task_that_exceeds_its_time(
    client: Client, tmp_path: Path, fn: Callable[[str], Any]
) -> None:
    log = tmp_path / "log"
    future = client.options(timeout=1.0).submit(fn, str(log))
    processes = processes_in(log)
    with killed_after(processes):
        with pytest.raises(TaskTimeoutError):  # also if it has caught its stop and returned
            future.result(timeout=30)
        wait_for_end(processes)


def test_processes_end_with_their_worker(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log"
    future = client.options(retries=0).submit(start_and_die, str(log))
    processes = processes_in(log)
    with killed_after(processes):
        with pytest.raises(WorkerDiedError):
            future.result(timeout=30)
        wait_for_end(processes)


@pytest.mark.parametrize("who", ["cluster", "fork server"])
def test_processes_live_on_after_their_task_and_end_with_the_cluster(tmp_path: Path, who: str) -> None:
    log = tmp_path / "log"
    with LocalCluster(n_workers=1) as cluster, Client(cluster) as client:
        worker = psutil.Process(client.submit(start_processes, str(log)).result(timeout=30))
        processes = processes_in(log)
        with killed_after(processes):
            assert len(processes) == 4 and not any(map(is_gone, processes))
            if who == "fork server":
                fork_server = worker.parent()
                assert fork_server is not None
                fork_server.kill()
            else:
                cluster.shutdown()
            wait_for_end(processes)


def test_a_stopped_task_ends_no_process_of_others(client: Client, tmp_path: Path) -> None:
    first = [client.submit(use_pool).result(timeout=30) for _ in range(8)]
    log = tmp_path / "log"
    future = client.submit(start_and_sleep, str(log))
    processes = processes_in(log)
    with killed_after(processes):
        assert future.cancel(force=True)
        wait_for_end(processes)
    assert {client.submit(use_pool).result(timeout=30) for _ in range(8)} <= set(first)


def test_processes_may_be_left(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1) as cluster, Client(cluster) as client:
        leaving = client.options(leave_processes=True)
        done, stopped, killed, ended = (tmp_path / name for name in ("done", "stopped", "killed", "ended"))
        leaving.submit(start_processes, str(done)).result(timeout=30)
        left = processes_in(done)
        future = leaving.submit(start_and_sleep, str(stopped))
        left += processes_in(stopped)
        with killed_after(left):
            assert future.cancel(force=True)
            client.submit(start_processes, str(ended)).result(timeout=30)
            with killed_after(processes_in(ended)):
                future = leaving.options(retries=0).submit(start_and_die, str(killed))
                left += processes_in(killed)
                with pytest.raises(WorkerDiedError):
                    future.result(timeout=30)
                wait_for_end(processes_in(ended))
            assert len(left) == 12 and not any(map(is_gone, left))


@pytest.mark.parametrize("end", ["return", "raise", "kill", "stop"])
def test_children_end_with_their_parent(tmp_path: Path, end: str) -> None:
    with LocalCluster(n_workers=3) as cluster, Client(cluster) as client:
        future = client.options(retries=0).submit(leave_children, str(tmp_path / "log"), end)
        logs = [tmp_path / f"log.{number}" for number in range(2)]
        wait_until(lambda: all(log.exists() for log in logs))
        if end == "stop":
            assert future.cancel(force=True)
        else:
            expected = {"return": None, "raise": ValueError, "kill": WorkerDiedError}[end]
            error = future.exception(timeout=30)
            assert error is None if expected is None else isinstance(error, expected)
        # All workers are free again.
        assert len(client.gather([client.submit(time.sleep, 0.01) for _ in range(12)])) == 12
        running = [client.submit(endless, str(tmp_path / f"free.{number}")) for number in range(3)]
        wait_until(lambda: len(list(tmp_path.glob("free.*"))) == 3, what="the workers to be free")
        sizes = [log.stat().st_size for log in logs]
        for each in running:
            each.cancel(force=True)
        assert [log.stat().st_size for log in logs] == sizes
