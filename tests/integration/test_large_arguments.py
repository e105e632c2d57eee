"""Large arguments of a client on another host than the scheduler go from the client to hosts. Real processes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy
import pytest
from tests.integration.commands import SchedulerCommand, cluster_command, key_command, monitor
from tests.integration.executions import note, notes
from tests.integration.test_client_files import SIZE, elsewhere, files_of
from tests.integration.test_host_transfers import SECONDS, hosts_of
from tests.waiting import wait_until

from scaler_client import Client
from scaler_client.commands.object_files import SHARED_BYTES
from scaler_client.io import io_thread
from scaler_client.protocol.snapshots import Snapshot

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers can't import the tests

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm here")


@pytest.fixture(autouse=True)
def _other_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The client takes the scheduler's host for another one."""
    monkeypatch.setattr(io_thread, "is_local_address", lambda address: False)
    yield


def add_one(array: Any, *others: Any, scale: float = 1.0) -> float:
    """Write to the array, as a task may do with its own arguments."""
    array += 1
    return float(numpy.sum(array)) * scale + sum(others)


def fail_once(log: str, array: Any) -> float:
    array += 1
    note(log, "runs")
    if len(notes(log, "runs")) == 1:
        raise OSError("the first attempt")
    return float(array.sum())


def die_once(log: str, array: Any) -> float:
    note(log, "runs")
    if len(notes(log, "runs")) == 1:
        os._exit(1)
    return float(array.sum())


def wait_for(path: str, array: Any) -> float:
    note(path, "began")
    wait_until(lambda: os.path.exists(path + ".go"), SECONDS)
    return float(array.sum())


def ones() -> Any:
    return numpy.ones(SIZE // 8)


def state_of(daemon: SchedulerCommand) -> Snapshot:
    with monitor(daemon.monitor_address) as watch:
        return watch.next()


def wait_for_transfers(daemon: SchedulerCommand, count: int) -> Snapshot:
    """Wait until the scheduler says that hosts got so many files. Returns what it says."""
    with monitor(daemon.monitor_address) as watch:
        while (passed := sum((seen := watch.next()).agent_columns.received_bytes) // SIZE) != count:
            assert passed < count
        return seen


@pytest.mark.parametrize("has_keys", [False, True])
def test_arguments_go_to_the_host(tmp_path: Path, has_keys: bool) -> None:
    keys = str(tmp_path / "keys") if has_keys else ""
    if keys:
        key_command("keygen", keys)
    with hosts_of(tmp_path, elsewhere(), keys=keys) as (daemon, _, client):
        assert client.submit(add_one, ones(), 5, scale=2.0).result(SECONDS) == SIZE / 2 + 5
        seen = wait_for_transfers(daemon, 1)
        assert seen.received.get("object") == 1 and not seen.sent.get("object") and not seen.sent.get("fetch_objects")
        wait_until(lambda: files_of(client) == [], SECONDS, "the file is removed")


def test_very_large_arguments_on_the_scheduler_s_own_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_thread, "is_local_address", lambda address: True)
    with hosts_of(tmp_path, elsewhere()) as (daemon, _, client):
        assert client.submit(add_one, numpy.ones(SHARED_BYTES)).result(SECONDS) == 2 * SHARED_BYTES, "not as an object"
        assert SIZE > io_thread.LOCAL_BYTES
        assert client.submit(add_one, ones()).result(SECONDS) == SIZE / 4
        seen = state_of(daemon)
        assert seen.received.get("object") == 1 and not seen.sent.get("object")
        wait_until(lambda: files_of(client) == [], SECONDS, "the file is removed")


def test_arguments_of_a_map_a_gang_and_a_graph(tmp_path: Path) -> None:
    with hosts_of(tmp_path, elsewhere()) as (daemon, _, client):
        assert client.map(add_one, [(ones(), number) for number in range(4)]) == [SIZE / 4 + n for n in range(4)]
        wait_for_transfers(daemon, 4)
        assert client.get({"sum": (add_one, ones()), "end": (abs, "sum")}, ["end"]) == {"end": SIZE / 4}
        wait_for_transfers(daemon, 5)
        # The members of a gang begin in one step: their inputs come through the scheduler.
        assert client.submit_gang(add_one, ones(), size=1).result(SECONDS) == [SIZE / 4]
        wait_until(lambda: files_of(client) == [], SECONDS, "the files are removed")


def test_other_inputs_beside_large_arguments(tmp_path: Path) -> None:
    with hosts_of(tmp_path, elsewhere()) as (_, _, client):
        reference, future = client.send_object(3), client.submit(abs, -4)
        assert client.submit(add_one, ones(), reference, future).result(SECONDS) == SIZE / 4 + 7
        assert client.options(keep=True).submit(add_one, ones(), reference).result(SECONDS) == SIZE / 4 + 3


def test_each_attempt_has_its_own_arguments(tmp_path: Path) -> None:
    with hosts_of(tmp_path, elsewhere()) as (_, _, client):
        retrying = client.options(retry_on=OSError)
        assert retrying.submit(fail_once, str(tmp_path / "log"), ones()).result(SECONDS) == SIZE / 4


def test_a_worker_that_dies(tmp_path: Path) -> None:
    with hosts_of(tmp_path, elsewhere()) as (_, _, client):
        assert client.submit(die_once, str(tmp_path / "log"), ones()).result(SECONDS) == SIZE / 8


def test_a_host_that_is_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "path")
    with hosts_of(tmp_path, elsewhere(), elsewhere()) as (_, hosts, client):
        future = client.submit(wait_for, path, ones())
        wait_until(lambda: len(notes(path, "began")) == 1, SECONDS)
        running = client.submit(wait_for, path, ones())
        wait_until(lambda: len(notes(path, "began")) == 2, SECONDS)
        hosts[0].end()
        Path(path + ".go").touch()
        assert client.gather([future, running]) == [SIZE / 8] * 2


def test_clear_leaves_running_tasks_their_arguments(tmp_path: Path) -> None:
    path = str(tmp_path / "path")
    with hosts_of(tmp_path, elsewhere()) as (_, _, client):
        running = client.submit(wait_for, path, ones())
        waiting = client.submit(wait_for, path, ones())
        wait_until(lambda: len(notes(path, "began")) == 1, SECONDS)
        client.clear()
        assert waiting.cancelled()
        wait_until(lambda: len(files_of(client)) == 1, SECONDS, "the file of the cancelled task is removed")
        Path(path + ".go").touch()
        assert running.result(SECONDS) == SIZE / 8


def test_many_large_arguments_get_the_advice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = bytes(11_000_000)
    with hosts_of(tmp_path, elsewhere()) as (_, _, client), caplog.at_level(logging.WARNING):
        client.gather([client.submit(len, data) for _ in range(10)])
    assert "10 tasks had arguments of 11 MB each" in caplog.text


def test_without_a_data_address_arguments_are_sent(tmp_path: Path) -> None:
    with hosts_of(tmp_path, cluster_command()) as (daemon, _, _), Client(daemon.address, data_address="") as client:
        assert client.submit(add_one, ones()).result(SECONDS) == SIZE / 4
        assert client.submit(add_one, client.send_object(0)).result(SECONDS) == 1
        wait_until(lambda: state_of(daemon).received.get("object") == 1, SECONDS, "the small one alone")
