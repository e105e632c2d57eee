"""The scheduler is killed and another one starts at its address: clients notice only a pause."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import pytest
from tests.chaos.restarts import GAP, KEPT, LONG, SHORT, restart_once
from tests.integration.commands import cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.integration.restarts import OFTEN, restarts
from tests.waiting import wait_until

from scaler_client import Client, SchedulerLostError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60


def square(x: int) -> int:
    return x * x


def until_there(log: str, task: int, path: str) -> int:
    """Run until a file exists."""
    note(log, "began", task)
    while not os.path.exists(path):
        time.sleep(0.005)
    return task


def parent(log: str, path: str, client: Client) -> int:
    note(log, "began", "parent")
    return client.submit(until_there, log, 1, path).result()


def test_100_000_tasks_in_flight(tmp_path: Path) -> None:
    """A task that runs, or waits for a running child, is not run again. Every future is resolved once."""
    count = 100_000
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    resolved: list[object] = []
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client:
            long = [client.submit(until_there, log, 0, str(gate)), client.submit(parent, log, str(gate), client)]
            wait_until(lambda: len(notes(log)) == 3, what="the long tasks begin")
            futures = [client.submit(square, i) for i in range(count)]
            for future in futures[::10]:  # each costs more than its task
                future.add_done_callback(resolved.append)
            with monitor(daemon.now.monitor_address) as watch:
                wait_until(lambda: watch.next().waiting >= count - 3000, what="the scheduler has the tasks")
            daemon.kill()
            daemon.start(daemon.now.address)
            with monitor(daemon.now.monitor_address) as watch:
                wait_until(lambda: (now := watch.next()).dispatched >= 3 and now.waiting, what="everybody is back")
            gate.touch()
            assert [future.result(SECONDS) for future in long] == [0, 1]
            assert all(future.result(SECONDS) == i * i for i, future in enumerate(futures))
            wait_until(lambda: len(resolved) >= count // 10, what="the callbacks")
        assert len(resolved) == len(set(resolved)) == count // 10, "one was resolved twice"
        assert sorted(each.task for each in notes(log)) == ["0", "1", "parent"], "what ran was run again"


def test_running_tasks_stay_although_another_worker_is_free(tmp_path: Path) -> None:
    """The client and the worker may return in either order: the scheduler waits for the second one."""
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client:
            with monitor(daemon.now.monitor_address) as watch:
                wait_until(lambda: watch.next().workers == 2, what="both workers are there")
            long = client.submit(until_there, log, 0, str(gate))
            wait_until(lambda: notes(log), what="the task begins")
            daemon.kill()
            daemon.start(daemon.now.address)
            # The free worker runs this task, and would have run the other task earlier.
            assert client.submit(square, 3).result(SECONDS) == 9
            gate.touch()
            assert long.result(SECONDS) == 0
        assert len(notes(log)) == 1, "what ran was run again"


def hold_the_gil(log: str, seconds: int) -> None:
    note(log, "began", 0)
    ctypes.PyDLL(None).sleep(seconds)


@pytest.mark.parametrize("by_kill", [False, True], ids=["stopped", "killed"])
def test_a_task_that_holds_the_gil_runs_once(tmp_path: Path, by_kill: bool) -> None:
    """Its worker can join the new scheduler only when the task ends. The agent names the task meanwhile."""
    log = str(tmp_path / "log")
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client:
            long = client.options(retries=0).submit(hold_the_gil, log, 6)
            wait_until(lambda: notes(log), what="the task begins")
            (daemon.kill if by_kill else daemon.stop)()
            daemon.start(daemon.now.address)
            assert client.submit(square, 3).result(SECONDS) == 9
            long.result(SECONDS)
        assert len(notes(log)) == 1, "what ran was run again"


@pytest.mark.parametrize("by_kill", [False, True], ids=["stopped", "killed"])
def test_each_task_runs_once_over_a_restart_under_load(tmp_path: Path, by_kill: bool) -> None:
    """Tasks run, and end while no scheduler is there; answers are on their way; the client submits more meanwhile."""
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 4, *OFTEN):
        with Client(daemon.now.address) as client:
            log = str(tmp_path / "log")
            counts = restart_once(client, daemon, log, random.Random(by_kill), by_kill=by_kill)
    assert {task: count for task, count in counts.items() if count > 1} == {}
    assert len(counts) == LONG + KEPT + SHORT + GAP


def random_bytes(log: str, size: int) -> bytes:
    note(log, "made", size)
    return os.urandom(size)


def begin_of(value: bytes) -> bytes:
    return value[:16]


@pytest.mark.parametrize("by_kill", [False, True])
@pytest.mark.parametrize("size", [10, 2_000, 20_000, 100_000])
def test_kept_results_survive_a_restart(tmp_path: Path, by_kill: bool, size: int) -> None:
    """The values are random: each reader gets the one value of its future, whatever restarts."""
    log = str(tmp_path / "log")
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client:
            kept = [client.options(keep=True).submit(random_bytes, log, size + number) for number in range(20)]
            before = client.gather([client.submit(begin_of, each) for each in kept])
            for _ in range(2):
                daemon.kill() if by_kill else daemon.stop()
                daemon.start(daemon.now.address)
                assert client.gather([client.submit(begin_of, each) for each in kept]) == before
                assert kept[0].result(SECONDS)[:16] == before[0]
                assert {each.location == "client" for each in kept} == {size < 4096}
            assert len(notes(log)) == len(kept)
            files = [each for each in Path("/dev/shm").glob("scaler-*/*-*") if each.stat().st_size > size]
            assert len(files) >= len(kept) or size < 4096
            del kept
            gc.collect()
            wait_until(lambda: not any(each.exists() for each in files), what="the hosts have removed the results")


def test_a_backlog_is_submitted_once(tmp_path: Path) -> None:
    """Each of its messages is answered by `helloWanted`, and the scheduler needs time for them."""
    count = 3000
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        log = str(tmp_path / "log")
        with Client(daemon.now.address, heartbeat_interval_seconds=0.1) as client:
            assert client.submit(square, 2).result(SECONDS) == 4
            daemon.stop()
            futures = [
                client.options(retries=i % 5, priority=i % 3).submit(note, log, "began", i) for i in range(count)
            ]
            daemon.start(daemon.now.address)
            for future in futures:
                future.result(SECONDS)
    assert sorted(int(each.task) for each in notes(log)) == list(range(count))


def test_the_scheduler_is_killed_while_results_arrive(tmp_path: Path) -> None:
    """Schedulers are killed several times in a row while results arrive; the next one starts at once."""
    with restarts(tmp_path) as daemon, cluster(tmp_path, daemon.now.address, 2, *OFTEN):
        with Client(daemon.now.address) as client, ThreadPoolExecutor(2) as threads:
            assert client.submit(square, 2).result(SECONDS) == 4
            total = 150_000
            mapped = threads.submit(client.map, square, ((i,) for i in range(total)))
            single = threads.submit(lambda: [client.submit(square, i).result(SECONDS) for i in range(100)])
            for how in (daemon.stop, daemon.kill):
                with monitor(daemon.now.monitor_address) as watch:
                    wait_until(lambda: watch.next().resolved or mapped.done(), what="results")
                how()
                daemon.start(daemon.now.address)
            assert single.result(SECONDS) == [i * i for i in range(100)]
            assert mapped.result(SECONDS) == [i * i for i in range(total)]


def test_a_lost_scheduler_fails_waiting_tasks(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/socket"  # a killed scheduler does not remove its files
    with scheduler(tmp_path, address=address) as daemon, Client(address, timeout_seconds=1) as client:
        futures = [client.submit(square, i) for i in range(1000)]
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().waiting == 1000)
        daemon.process.kill()
        for future in futures:
            with pytest.raises(SchedulerLostError, match=f"no scheduler at {daemon.address} for 1 seconds"):
                future.result(SECONDS)
