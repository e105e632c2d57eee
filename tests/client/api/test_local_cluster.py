"""The checks of a local cluster before it starts processes, and the local cluster of a client without an address."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.client.running_scheduler import RunningScheduler

from scaler_client import AsyncClient, Client, LocalCluster, SchedulerClusterCombo
from scaler_client.api import client, local_address, scheduler_commands
from scaler_client.commands import addresses
from scaler_client.commands.addresses import ADDRESS_VARIABLE, parse_bind_address
from scaler_client.commands.install_hints import install_hint, packages_hint
from scaler_client.nested import task_host


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a process is started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.parametrize("kind", [LocalCluster, SchedulerClusterCombo])
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"n_workers": 0}, ValueError, "n_workers must be from 1 to 10000, not 0"),
        ({"n_workers": 10_001}, ValueError, "n_workers must be from 1 to 10000, not 10001"),
        ({"n_workers": "4"}, TypeError, "n_workers must be a whole number, not '4'"),
        ({"n_workers": True}, TypeError, "n_workers must be a whole number, not True"),
        ({"address": 2345}, TypeError, "address must be a string, not 2345"),
        ({"address": ""}, ValueError, "bad address ''"),
        ({"address": "http://x"}, ValueError, "bad address 'http://x'"),
    ],
)
def test_bad_arguments(no_processes: None, kind: Any, arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        kind(**arguments)


def test_a_bad_logging_level(no_processes: None) -> None:
    with pytest.raises(ValueError, match="logging_level must be one of DEBUG, .* not 'LOUD'"):
        LocalCluster(logging_level="LOUD")


def test_ui_without_its_libraries_raises(no_processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "aiohttp" else find(name))
    text = f"ui=True needs aiohttp, which is not installed: {install_hint('ui')}"
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(text)}$"):
        LocalCluster(n_workers=1, ui=True)
    with pytest.raises(TypeError, match="ui must be True or False, not 8081"):
        LocalCluster(n_workers=1, ui=8081)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        (["scaler_worker"], "needs scaler-worker, which is not installed in"),
        (["scaler_scheduler"], "needs scaler-scheduler, which is not installed in"),
        (["scaler_worker", "scaler_scheduler"], "needs scaler-worker and scaler-scheduler, which are not installed in"),
    ],
)
def test_missing_packages_are_named(
    no_processes: None, monkeypatch: pytest.MonkeyPatch, missing: list[str], text: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else object())
    monkeypatch.delenv(scheduler_commands.SCHEDULER_PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(scheduler_commands, "_find_pypy", lambda: None)
    monkeypatch.setattr(scheduler_commands.shutil, "which", lambda name: None)  # type: ignore[attr-defined]
    names = [name.replace("_", "-") for name in missing]
    with pytest.raises(ModuleNotFoundError, match=f"a local cluster {text}") as raised:
        LocalCluster(n_workers=1)
    assert str(raised.value).endswith(f" {sys.prefix}: {packages_hint(names)}")


@pytest.mark.parametrize(
    ("host", "hint"), [("0.0.0.0", " (an address that other machines reach needs keys=)"), ("127.0.0.1", "")]
)
def test_a_scheduler_that_does_not_start_raises(monkeypatch: pytest.MonkeyPatch, host: str, hint: str) -> None:
    monkeypatch.delenv("SCALER_KEYS", raising=False)
    ending = [sys.executable, "-c", "raise SystemExit(2)"]
    monkeypatch.setattr(scheduler_commands, "_scheduler_commands", lambda python: iter([ending]))
    text = f"scaler_scheduler ended at its start with exit status 2{hint}; standard error says why"
    with pytest.raises(RuntimeError, match=f"^{re.escape(text)}$"):
        LocalCluster(n_workers=1, address=f"tcp://{host}:{local_address.free_port()}")


def test_the_default_address_is_a_socket_file_that_does_not_exist() -> None:
    first, second = local_address.checked_bind_address(None), local_address.checked_bind_address(None)
    assert first != second and first.transport == "ipc" and not os.path.exists(first.path)
    assert os.path.dirname(first.path) == addresses.make_socket_directory() and local_address.is_local(first)


def test_the_default_address_is_a_port_without_a_folder_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "SOCKET_PARENT", "/no/such/folder")
    address = local_address.checked_bind_address(None)
    assert str(address).startswith("tcp://127.0.0.1:") and address.port


def test_left_socket_files_are_removed(tmp_path: Path) -> None:
    address = parse_bind_address(f"ipc://{tmp_path}/scaler")
    for path in (tmp_path / "scaler", tmp_path / "scaler_monitor", tmp_path / "other"):
        path.touch()
    local_address.remove_socket_files(address)
    local_address.remove_socket_files(address)
    local_address.remove_socket_files(parse_bind_address("tcp://127.0.0.1:2345"))
    assert os.listdir(tmp_path) == ["other"]


def test_files_of_killed_clusters_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    kept = {
        f"scaler_{os.getpid()}_00000001": "its program lives",
        f"scaler_{ended.pid}_00000002": "its scheduler lives",
        f"scaler_{ended.pid}_00000003": "it is new",
        f"scaler_{ended.pid}_00000004": "it is not a socket",
        f"scaler_{ended.pid}_other": "it has another name",
    }
    left = [f"scaler_{ended.pid}_00000005", f"scaler_{ended.pid}_00000005_monitor"]
    with ExitStack() as stack:
        # Not tmp_path: the path of a socket must be short.
        monkeypatch.setattr(addresses, "SOCKET_PARENT", stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        folder = Path(addresses.make_socket_directory())
        for name in [*kept, *left]:
            path = folder / name
            if kept.get(name) == "it is not a socket":
                path.touch()
            else:
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(str(path))
                if kept.get(name) == "its scheduler lives":
                    listener.listen()
            if kept.get(name) != "it is new":
                os.utime(path, (0, 0))
        local_address.checked_bind_address(None)
        assert sorted(os.listdir(folder)) == sorted(kept)


# --------------------------------------------------------------------------------------------------------- a client's


class FakeCluster(LocalCluster):
    """A local cluster whose scheduler already runs."""

    made: list[FakeCluster] = []

    def __init__(self, address: str) -> None:
        self._address = address  # type: ignore[assignment]
        self._keys = ""
        self._processes = [object()]  # type: ignore[list-item]
        self.made.append(self)

    def shutdown(self) -> None:
        self._processes = []


@pytest.fixture
def clusters(running: RunningScheduler, monkeypatch: pytest.MonkeyPatch) -> list[FakeCluster]:
    """The local clusters that clients have started."""
    made: list[FakeCluster] = []
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.setattr(FakeCluster, "made", made)
    monkeypatch.setattr(client, "LocalCluster", lambda: FakeCluster(running.address))
    return made


def test_a_client_without_an_address_starts_a_local_cluster(
    clusters: list[FakeCluster], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "scaler_client"):
        with Client() as made:
            assert made.submit(abs, -1).result(20) == 1
            (cluster,) = clusters
            assert not cluster.is_shut_down
    assert cluster.is_shut_down
    (line,) = caplog.messages
    assert line == f"no scheduler address was given: a local cluster for this client runs at {cluster.address}"


def test_the_address_in_the_environment_counts_first(
    running: RunningScheduler, clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, running.address)
    with Client() as made:
        assert made.address == running.address
    assert not clusters


def test_disconnecting_a_view_ends_the_local_cluster(clusters: list[FakeCluster]) -> None:
    made = Client()
    made.options(priority=1).disconnect()
    assert clusters[0].is_shut_down


def test_the_local_cluster_ends_if_the_client_cannot_join(
    clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LocalCluster", lambda: FakeCluster("tcp://127.0.0.1:1"))
    with pytest.raises(ConnectionError):
        Client(timeout_seconds=0.01)
    assert clusters[0].is_shut_down


def test_no_local_cluster_in_a_process_forked_by_a_task(
    clusters: list[FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_host, "is_forked_by_task", True)
    with pytest.raises(ValueError, match=f"no address: a process forked by a task needs one.*{ADDRESS_VARIABLE}"):
        Client()
    assert not clusters


def test_a_local_cluster_as_address(running: RunningScheduler) -> None:
    cluster = FakeCluster(running.address)
    with Client(cluster) as made:
        assert made.address == running.address
    assert not cluster.is_shut_down
    cluster.shutdown()
    for kind in (Client, AsyncClient):
        with pytest.raises(RuntimeError, match="shut down> accepts no more clients"):
            kind(cluster)
