"""Large objects go from the client to hosts, or through the scheduler if hosts cannot get them. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import Command, SchedulerCommand, cluster_command, key_command, monitor, run_once
from tests.integration.executions import note, notes
from tests.integration.test_host_transfers import SECONDS, hosts_of
from tests.waiting import wait_until

from scaler_client import Client, WorkerDiedError
from scaler_client.commands.object_files import directory_of
from scaler_client.io import client_files
from scaler_client.net import data_server
from scaler_client.protocol.snapshots import Snapshot

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")

SIZE = 20 << 20

ELSEWHERE = """
import sys
from scaler_worker.agent.value_files import ValueFiles
from scaler_worker.cli import main

ValueFiles.can_link = lambda self, name: False
sys.exit(main(sys.argv[1:]))
"""
"""scaler_cluster that shares no memory with the client, as on another host."""

PROGRAM = """
import os, sys
import numpy
from scaler_client import Client, WorkerDiedError

def wait_for(path):
    import os, time
    open(path + ".began", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)

def total(array):
    return float(array.sum())

with Client(sys.argv[1]) as client:
    array = client.send_object(numpy.ones(int(sys.argv[3]) // 8))
    gate = client.submit(wait_for, sys.argv[2])
    reader = client.submit(total, array)
    print(client._connection._session.incarnation, flush=True)
    print(reader.result(), flush=True)
"""
"""A client whose second task reads an object as soon as its first one is let go on."""


def elsewhere(*options: str) -> list[str]:
    return [sys.executable, "-c", ELSEWHERE, *options]


def total(array: Any) -> float:
    return float(array.sum())


def meet(log: str, hosts: int, array: Any) -> tuple[int, float]:
    """Wait for the tasks of the other hosts."""
    note(log, "meets")
    wait_until(lambda: len(notes(log, "meets")) == hosts, SECONDS)
    return os.getpid(), float(array.sum())


def files_of(client: Client) -> list[str]:
    return os.listdir(directory_of(client._connection._session.incarnation))


def read_everywhere(folder: Path, daemon: SchedulerCommand, client: Client, hosts: int) -> Snapshot:
    """Send an array, and read it on all hosts at once. Returns what the scheduler then says."""
    array = client.send_object(numpy.ones(SIZE // 8))
    results = client.gather([client.submit(meet, str(folder / "log"), hosts, array) for _ in range(hosts)])
    assert len({pid for pid, _ in results}) == hosts
    assert {total for _, total in results} == {SIZE / 8}
    with monitor(daemon.monitor_address) as watch:
        return watch.next()


@pytest.mark.parametrize("has_keys", [False, True])
def test_hosts_get_an_object_from_the_client(tmp_path: Path, has_keys: bool) -> None:
    keys = str(tmp_path / "keys") if has_keys else ""
    if keys:
        key_command("keygen", keys)
    with hosts_of(tmp_path, cluster_command(), elsewhere(), elsewhere(), keys=keys) as (daemon, _, client):
        seen = read_everywhere(tmp_path, daemon, client, 3)
        assert seen.sent["transfer_objects"] == seen.received["transferred"] == 3
        assert seen.received.get("object") == 1 and not seen.sent.get("object") and not seen.sent.get("fetch_objects")
        assert not seen.unreachable_hosts
        client.submit(abs, 1).result()  # the references of the tasks are gone with it
        wait_until(lambda: files_of(client) == [], SECONDS, "the file is removed")


def test_a_result_that_the_client_has_goes_to_hosts_as_a_file(tmp_path: Path) -> None:
    with hosts_of(tmp_path, elsewhere()) as (daemon, _, client):
        made = client.submit(numpy.ones, SIZE // 8)
        assert made.result().size == SIZE // 8
        assert client.submit(total, made).result() == SIZE / 8
        with monitor(daemon.monitor_address) as watch:
            assert watch.next().sent.get("transfer_objects") == 1


def test_a_client_that_hosts_cannot_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "DataServer", _Elsewhere)
    with hosts_of(tmp_path, elsewhere()) as (daemon, _, client):
        for _ in range(2):
            assert client.submit(total, client.send_object(numpy.ones(SIZE // 8))).result(SECONDS) == SIZE / 8
        assert daemon.log().count("can't connect to tcp://127.0.0.1:1 of client") == 1
        with monitor(daemon.monitor_address) as watch:
            seen = watch.next()
        assert seen.sent.get("transfer_objects") == 1 and seen.sent.get("fetch_objects") == 2
        [pair] = seen.unreachable_hosts
        assert pair.startswith("clients on ") and " from " in pair
        status = run_once([sys.executable, "-m", "scaler_client", "status", daemon.monitor_address])
        assert f"because hosts can't reach others (--data-address): {pair}" in " ".join(status.stdout.split())


@pytest.mark.parametrize("is_near", [True, False])
def test_without_a_data_address_only_the_host_of_the_client_gets_files(tmp_path: Path, is_near: bool) -> None:
    host = cluster_command("--data-address", "") if is_near else elsewhere()
    with hosts_of(tmp_path, host) as (daemon, _, _), Client(daemon.address, data_address="") as client:
        assert client.submit(total, client.send_object(numpy.ones(SIZE // 8))).result(SECONDS) == SIZE / 8
        with monitor(daemon.monitor_address) as watch:
            seen = watch.next()
        assert seen.sent.get("transfer_objects") == 1 and seen.sent.get("fetch_objects", 0) == (not is_near)
        assert ("can't connect to the shared memory of client" in daemon.log()) == (not is_near)


def _send_large(client: Client) -> float:
    """A task that sends an object to a task of its own on any host."""
    with client:
        array = client.send_object(numpy.ones(SIZE // 8))
        return float(client.options(capabilities=["other"]).submit(total, array).result())


def test_an_object_that_a_task_sends(tmp_path: Path) -> None:
    hosts = elsewhere("--capabilities", "one"), elsewhere("--capabilities", "other")
    with hosts_of(tmp_path, *hosts) as (daemon, _, client):
        assert client.options(capabilities=["one"]).submit(_send_large, client).result(SECONDS) == SIZE / 8
        with monitor(daemon.monitor_address) as watch:
            seen = watch.next()
    assert seen.sent.get("transfer_objects") == 1 and not seen.sent.get("fetch_objects")


def _send_large_and_die(client: Client, path: str) -> None:
    with client:
        client.submit(total, client.send_object(numpy.ones(SIZE // 8))).result()
        Path(path).write_text(directory_of(client._connection._session.incarnation))
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_leaves_no_files_of_its_tasks(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    with hosts_of(tmp_path, cluster_command()) as (_, _, client):
        with pytest.raises(WorkerDiedError):
            client.options(retries=0).submit(_send_large_and_die, client, str(path)).result(SECONDS)
        wait_until(lambda: not os.path.exists(path.read_text()), SECONDS, "its agent removes them")


def _program(address: str, gate: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, address, str(gate), str(SIZE)], stdout=subprocess.PIPE, text=True
    )


def test_a_frozen_client_holds_up_nobody_else(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    with hosts_of(tmp_path) as (daemon, _, client), ExitStack() as stack:
        program = _program(daemon.address, gate)
        try:
            with monitor(daemon.monitor_address) as watch:
                wait_until(lambda: watch.next().waiting == 2, SECONDS)
                program.send_signal(signal.SIGSTOP)  # before any host can get its file
                options = ["-n", "1", daemon.address, "--heartbeat-interval-seconds", "0.2"]
                host = Command(elsewhere(*options), tmp_path / "cluster.log")
                stack.callback(host.end)
                wait_until(lambda: watch.next().sent.get("transfer_objects") == 1, SECONDS)
                assert client.submit(pow, 2, 10).result(SECONDS) == 1024
                wait_until(lambda: watch.next().sent.get("fetch_objects") == 1, SECONDS, "the agent has given up")
            assert client.submit(pow, 2, 10).result(SECONDS) == 1024
            program.send_signal(signal.SIGCONT)
            assert program.communicate(timeout=SECONDS)[0].split()[1:] == [str(SIZE / 8)]
        finally:
            program.kill()
            program.wait()


def test_a_client_that_is_killed_leaves_no_file_and_no_task(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with hosts_of(tmp_path, elsewhere()) as (daemon, _, client):
        program = _program(daemon.address, gate)
        try:
            wait_until((tmp_path / "gate.began").exists, SECONDS)
            assert program.stdout is not None
            left = directory_of(int(program.stdout.readline()))
            wait_until(lambda: os.path.isdir(left) and len(os.listdir(left)) == 1, SECONDS)
        finally:
            program.kill()
            program.wait()
        gate.touch()
        assert client.submit(total, client.send_object(numpy.ones(SIZE // 8))).result(SECONDS) == SIZE / 8
        with Client(daemon.address):
            assert not os.path.exists(left), "the next client on this host removes it"


class _Elsewhere(data_server.DataServer):
    """A data address where nobody listens."""

    def _bind(self, *arguments: Any) -> None:
        super()._bind(*arguments)
        self.address = type(self.address)("tcp://127.0.0.1:1", self.address.key, self.address.ticket)
