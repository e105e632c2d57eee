"""Both commands under a service manager: their notifications, SIGHUP, and their log lines for a journal."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.commands import Command, cluster, cluster_command, scheduler, scheduler_command
from tests.waiting import wait_until

from scaler_client import Client


class Manager:
    """A stand-in for systemd."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(30)
        self.told: list[str] = []

    def await_line(self, begin: str) -> str:
        """Return the next line that begins like this."""
        while True:
            self.told.append(self._socket.recv(4096).decode())
            if self.told[-1].startswith(begin):
                return self.told[-1]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    there = Manager(tmp_path)
    yield there
    there.close()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[list[Command]]:
    started: list[Command] = []
    yield started
    for each in started:
        each.end()


def start(command: list[Command], tmp_path: Path, *options: str, **variables: str) -> Command:
    command.append(Command(scheduler_command("tcp://127.0.0.1:*", *options), tmp_path / "scheduler.log", **variables))
    return command[0]


def test_a_service_s_life(command: list[Command], manager: Manager, tmp_path: Path) -> None:
    running = start(command, tmp_path, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="1500000")
    manager.await_line("READY=1")
    assert manager.told == ["READY=1"]
    running.process.send_signal(signal.SIGHUP)  # the command is ready for this signal as well
    running.logged(r"(SIGHUP)")
    address = running.logged(r"address (\S+), event loop")  # it is bound: the line is there
    assert manager.await_line("STATUS=").startswith("STATUS=0 workers on 0 hosts, 0 clients; 0 tasks wait")
    manager.await_line("WATCHDOG=1")
    with cluster(tmp_path, address):
        manager.await_line("STATUS=1 workers on 1 hosts")
        manager.await_line("WATCHDOG=1")
    running.process.send_signal(signal.SIGTERM)
    manager.await_line("STOPPING=1")
    assert running.process.wait(5) == 0


def test_a_hung_loop_sends_no_watchdog_message(command: list[Command], manager: Manager, tmp_path: Path) -> None:
    running = start(command, tmp_path, NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="300000")
    manager.await_line("WATCHDOG=1")
    running.process.send_signal(signal.SIGSTOP)
    manager._socket.settimeout(1.0)
    with pytest.raises(TimeoutError):
        manager.await_line("never")
    running.process.send_signal(signal.SIGCONT)
    manager.await_line("WATCHDOG=1")


def test_the_monitor_of_a_service_is_in_its_runtime_directory(command: list[Command], tmp_path: Path) -> None:
    running = start(command, tmp_path, RUNTIME_DIRECTORY=f"{tmp_path}:/run/other")
    assert running.logged(r"monitor address (\S+)") == f"ipc://{tmp_path}/monitor"
    assert (tmp_path / "monitor").stat().st_mode & 0o777 == 0o660, "for its user and group"
    assert running.stop() == 0


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("NOTIFY_SOCKET", "WATCHDOG_USEC")}


def test_a_cluster_s_life(manager: Manager, tmp_path: Path) -> None:
    with scheduler(tmp_path) as daemon:
        told = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1500000"}
        log = str(tmp_path / "the.log")
        arguments = cluster_command("-n", "2", "--logging-paths", log, daemon.address)
        running = Command(arguments, tmp_path / "cluster.log", **told)
        try:
            manager.await_line("READY=1")
            assert manager.told == ["READY=1"]
            manager.await_line("WATCHDOG=1")
            manager.await_line(f"STATUS=2 workers, 0 busy; the scheduler at {daemon.address} answers")
            with Client(daemon.address) as client:
                assert client.submit(variables).result(30) == {}, "who runs in a worker does not speak for the service"
                task = client.submit(time.sleep, 600)
                manager.await_line("STATUS=2 workers, 1 busy")
                wait_until(task.running, what="the client knows that the task runs")
                Path(log).rename(tmp_path / "the.log.1")
                running.process.send_signal(signal.SIGHUP)
                wait_until(lambda: Path(log).exists() and "opened again" in Path(log).read_text(), what="the new log")
                assert running.process.poll() is None and task.running()
                assert running.stop() == 0
                manager.await_line("STOPPING=1")
        finally:
            running.end()


def test_a_cluster_without_a_scheduler(manager: Manager, tmp_path: Path) -> None:
    arguments = cluster_command("-n", "1", f"ipc://{tmp_path}/nobody")
    running = Command(arguments, tmp_path / "cluster.log", NOTIFY_SOCKET=manager.path)
    try:
        manager.await_line("READY=1")
        assert manager.await_line("STATUS=").endswith(f"the scheduler at ipc://{tmp_path}/nobody does not answer")
        assert running.stop() == 0
        assert "WATCHDOG=1" not in manager.told
    finally:
        running.end()


def test_log_files_are_opened_again(command: list[Command], tmp_path: Path) -> None:
    log, moved = tmp_path / "the.log", tmp_path / "the.log.1"
    running = start(command, tmp_path, "--logging-paths", str(log))
    wait_until(lambda: log.exists() and "monitor address" in log.read_text(), what="the log")
    log.rename(moved)
    running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: log.exists() and "the log files are opened again" in log.read_text(), what="the new log")
    assert "monitor address" in moved.read_text() and "monitor address" not in log.read_text()
    assert running.stop() == 0 and "stopped" in log.read_text()


def test_lines_for_the_journal(command: list[Command], tmp_path: Path) -> None:
    log = tmp_path / "scheduler.log"
    log.touch()
    there = log.stat()
    running = start(command, tmp_path, JOURNAL_STREAM=f"{there.st_dev}:{there.st_ino}")
    running.logged(r"(<6>monitor address)")
    assert running.stop() == 0
    assert all(line.startswith("<6>") for line in running.log().splitlines())


def test_a_journal_that_is_another_file(command: list[Command], tmp_path: Path) -> None:
    running = start(command, tmp_path, JOURNAL_STREAM="1:2")
    running.logged(r"(\[INFO\]\S+ \S+: monitor address)")
    assert running.stop() == 0 and "<6>" not in running.log()
