"""Large results of graphs on two hosts.

They stay on their host, and are fetched if another host needs them. If their host is killed, they are computed again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import psutil
import pytest
from tests.integration.commands import Command, SchedulerCommand, cluster, is_alive, monitor, scheduler
from tests.integration.executions import note, notes
from tests.integration.test_scheduler_restart import restarts
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.commands.object_directory import remove_stale
from scaler_client.commands.object_files import STORAGE_FILES
from scaler_client.protocol.snapshots import Snapshot

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SECONDS = 60
SIZE = 50 << 20
LINKS = 8
OFTEN = ("--heartbeat-interval-seconds", "0.2")


def make(log: str) -> Any:
    note(log, "made")
    return numpy.zeros(SIZE // 8)


def add_one(log: str, array: Any) -> Any:
    note(log, "added")
    return array + 1


def total(log: str, *arrays: Any) -> float:
    note(log, "summed")
    return float(sum(array.sum() for array in arrays))


def wait_for(path: str, log: str, *arrays: Any) -> float:
    """Return the sum of the first elements, after this file exists."""
    note(log, "waits")
    while not os.path.exists(path):
        time.sleep(0.005)
    return float(sum(array[0] for array in arrays))


def meet(log: str, array: Any) -> tuple[int, int, bool]:
    """Wait for the other task, which can't run on the same worker."""
    note(log, "meets")
    while len(notes(log, "meets")) < 2:
        time.sleep(0.005)
    return os.getpid(), int(array.sum()), array.flags.writeable


@contextmanager
def two_hosts(folder: Path, workers: int) -> Iterator[tuple[SchedulerCommand, list[Command], Client]]:
    with ExitStack() as stack:
        daemon = stack.enter_context(scheduler(folder, "--worker-timeout-seconds", "2"))
        clusters = []
        for name in ("one", "other"):
            (folder / name).mkdir()
            clusters.append(stack.enter_context(cluster(folder / name, daemon.address, workers, *OFTEN)))
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().workers == 2 * workers, what="all workers are there")
        for each in clusters:
            each.descendants()
        yield daemon, clusters, stack.enter_context(Client(daemon.address, timeout_seconds=SECONDS))


def host_of(clusters: list[Command], pid: int) -> Command:
    (found,) = [each for each in clusters if pid in each.seen]
    return found


def kill(host: Command) -> None:
    """Kill all processes of a host at once: the fork server can't remove the files."""
    processes = [*host.descendants(), psutil.Process(host.process.pid)]
    for process in processes:
        process.suspend()
    for process in processes:
        process.kill()
    host.process.wait()
    wait_until(lambda: not any(map(is_alive, processes)))
    remove_stale()  # as the next agent does at its start


def peak_of(command: Command) -> int:
    """The peak resident size of the process, in bytes."""
    (line,) = [
        line
        for line in Path(f"/proc/{command.process.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) << 10


def object_files(clusters: list[Command]) -> list[str]:
    """The files in the directories of living agents, which hold a lock on their directory."""
    names: list[str] = []
    for each in clusters:
        if each.process.poll() is None:
            opened = {os.readlink(path) for path in Path(f"/proc/{each.process.pid}/fd").iterdir() if path.is_symlink()}
            (directory,) = [path for path in opened if path.startswith("/dev/shm/scaler-") and os.path.isdir(path)]
            names += set(os.listdir(directory)).difference(STORAGE_FILES)
    return names


def pids(log: str, word: str) -> list[int]:
    return [each.pid for each in notes(log, word)]


def test_a_chain_stays_on_one_host(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with two_hosts(tmp_path, 2) as (daemon, clusters, client):
        graph: dict[str, Any] = {"0": (make, log)}
        for number in range(1, LINKS):
            graph[str(number)] = (add_one, log, str(number - 1))
        graph["end"] = (total, log, str(LINKS - 1))
        client.get({"warm": (abs, -1)}, ["warm"])
        before = peak_of(daemon)
        assert client.get(graph, ["end"]) == {"end": SIZE / 8 * (LINKS - 1)}
        assert peak_of(daemon) - before < SIZE, "none of it came by the scheduler"
        ran = {host_of(clusters, pid).process.pid for word in ("made", "added", "summed") for pid in pids(log, word)}
        assert len(ran) == 1
        with monitor(daemon.monitor_address) as watch:
            sent = watch.next().sent
            assert not sent.get("fetch_objects") and not sent.get("object")
        wait_until(lambda: object_files(clusters) == [], what="unneeded results are removed from memory")


def test_a_result_read_on_both_hosts_goes_there_once(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with two_hosts(tmp_path, 1) as (daemon, clusters, client):
        graph = {"a": (make, log), "b": (add_one, log, "a"), "c": (meet, log, "b"), "d": (meet, log, "b")}
        results = client.get(graph, ["c", "d"])
        assert {host_of(clusters, pid).process.pid for pid, *_ in results.values()} == {
            each.process.pid for each in clusters
        }
        assert [rest for _, *rest in results.values()] == [[SIZE // 8, False]] * 2
        with monitor(daemon.monitor_address) as watch:
            sent = watch.next().sent
            assert sent.get("transfer_objects") == 1 and not sent.get("fetch_objects") and not sent.get("object")
        wait_until(lambda: object_files(clusters) == [])


def test_a_host_is_killed_while_its_result_is_read(tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with two_hosts(tmp_path, 1) as (_, clusters, client):
        graph = {"a": (make, log), "b": (add_one, log, "a"), "c": (wait_for, str(gate), log, "b")}
        (future,) = client.submit_graph(graph, ["c"])
        wait_until(lambda: pids(log, "waits"))
        kill(host_of(clusters, pids(log, "waits")[0]))
        wait_until(lambda: len(pids(log, "waits")) == 2, SECONDS, "it runs again elsewhere")
        gate.touch()
        assert future.result(SECONDS) == 1.0
        assert len(pids(log, "made")) == len(pids(log, "added")) == 2


def open_tasks(snapshot: Snapshot) -> int:
    """The number of tasks that run or could run."""
    return snapshot.waiting + snapshot.dispatched


def test_a_host_is_killed_before_its_result_is_read(tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with two_hosts(tmp_path, 1) as (daemon, clusters, client):
        graph = {
            "slow": (wait_for, str(gate), log),
            "a": (make, log),
            "b": (add_one, log, "a"),
            "sum": (lambda slow, array: slow + float(array[0]), "slow", "b"),
            "early": (lambda array: float(array[-1]), "a"),
        }
        summed, early = client.submit_graph(graph, ["sum", "early"])
        wait_until(lambda: pids(log, "waits") and pids(log, "added"))
        assert early.result(SECONDS) == 0.0
        wait_until(lambda: len(object_files(clusters)) == 1)
        [busy], [added] = pids(log, "waits"), pids(log, "added")
        assert host_of(clusters, busy) is not host_of(clusters, added)
        kill(host_of(clusters, added))
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().agents == 1, SECONDS, "the scheduler has given it up")
            # Else the running task may end while no reader of its result is there: it would not be kept.
            wait_until(lambda: open_tasks(watch.next()) >= 2, SECONDS, "the client has submitted the lost task again")
        gate.touch()
        assert summed.result(SECONDS) == 1.0
        assert pids(log, "waits") == [busy], "what still ran is not run again"
        assert len(pids(log, "added")) == 2 and early.result(0) == 0.0


def test_a_stopped_host_hands_over_its_results(tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with two_hosts(tmp_path, 1) as (daemon, clusters, client):
        graph = {
            "slow": (wait_for, str(gate), log),
            "a": (make, log),
            "b": (add_one, log, "a"),
            "sum": (lambda slow, array: slow + float(array[0]), "slow", "b"),
        }
        (summed,) = client.submit_graph(graph, ["sum"])
        wait_until(lambda: pids(log, "waits") and pids(log, "added"))
        wait_until(lambda: len(object_files(clusters)) == 1)
        assert host_of(clusters, pids(log, "added")[0]).stop() == 0
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().agents == 1, SECONDS)
        gate.touch()
        assert summed.result(SECONDS) == 1.0
        assert len(pids(log, "made")) == len(pids(log, "added")) == 1, "nothing is made again"


def test_a_host_is_killed_in_the_middle_of_a_chain(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with two_hosts(tmp_path, 1) as (_, clusters, client):
        graph: dict[str, Any] = {"0": (make, log)}
        for number in range(1, 30):
            graph[str(number)] = (add_one, log, str(number - 1))
        graph["end"] = (total, log, "29")
        (future,) = client.submit_graph(graph, ["end"])
        wait_until(lambda: len(pids(log, "added")) > 5)
        kill(host_of(clusters, pids(log, "added")[-1]))
        assert future.result(SECONDS) == SIZE / 8 * 29


def test_the_scheduler_is_killed_in_the_middle_of_a_chain(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with (
        restarts(tmp_path) as daemon,
        cluster(tmp_path, daemon.now.address, 2, *OFTEN) as host,
        Client(daemon.now.address, timeout_seconds=SECONDS) as client,
    ):
        graph: dict[str, Any] = {"0": (make, log)}
        for number in range(1, 30):
            graph[str(number)] = (add_one, log, str(number - 1))
        graph["end"] = (total, log, "29")
        (future,) = client.submit_graph(graph, ["end"])
        wait_until(lambda: len(pids(log, "added")) > 5)
        daemon.kill()
        daemon.start(daemon.now.address)
        assert future.result(SECONDS) == SIZE / 8 * 29
        wait_until(lambda: object_files([host]) == [], what="nothing is left of what the first one knew")
