"""Runs the scheduler's and the cluster's commands as real processes, and subscribes to snapshots."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import zmq
from tests.waiting import wait_until

from scaler_client.commands.addresses import make_socket_directory
from scaler_client.protocol import wire
from scaler_client.protocol.snapshot_decoder import SNAPSHOT_TOPIC
from scaler_client.protocol.snapshots import Snapshot

SCHEDULER_PYTHON = os.environ.get("SCALER_SCHEDULER_PYTHON") or sys.executable
STOP_SECONDS = 5.0
"""Each command promises to end within this time."""


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of this process, without variables that configure the commands."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCALER_", "COV_"))}
    return {**kept, **variables}


def run_once(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        command, env=environment(**variables), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def scheduler_command(*arguments: str, python: str = SCHEDULER_PYTHON) -> list[str]:
    return [python, "-m", "scaler_scheduler", *arguments]


def cluster_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scaler_worker", *arguments]


def key_command(*arguments: str) -> str:
    """Run `scaler_scheduler keygen` or another key command; return its output."""
    done = run_once(scheduler_command(*arguments, python=sys.executable))
    assert done.returncode == 0, done.stderr
    return done.stdout


class Command:
    """A running command. Its log has its standard output and error."""

    def __init__(self, command: list[str], log: Path, *, pass_fds: tuple[int, ...] = (), **variables: str) -> None:
        self._log = log
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                command,
                env=environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self.seen: dict[int, psutil.Process] = {}

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def logged(self, pattern: str) -> str:
        """Wait until the log matches the pattern; return the first group."""
        wait_until(lambda: re.search(pattern, self.log()) or self.process.poll() is not None, what=pattern)
        found = re.search(pattern, self.log())
        assert found, self.log()
        return found[1]

    def descendants(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        self.seen.update((process.pid, process) for process in found)
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop the command; return its exit status. All its descendants must end in time."""
        self.descendants()
        self.process.send_signal(number)
        status = self.process.wait(STOP_SECONDS)
        wait_until(lambda: not any(map(is_alive, self.seen.values())), STOP_SECONDS, "its processes end")
        return status

    def end(self) -> None:
        """End the command and its descendants, in whatever state the test has left them."""
        if self.process.poll() is None:
            self.descendants()
            self.process.terminate()  # not killed, because it has files to remove
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        for process in self.seen.values():
            if is_alive(process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


def is_alive(process: psutil.Process) -> bool:
    try:  # is_running comes first: `status` may belong to a later process with the same number
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class SchedulerCommand(Command):
    def __init__(
        self, folder: Path, *options: str, address: str = "tcp://127.0.0.1:*", python: str = SCHEDULER_PYTHON
    ) -> None:
        super().__init__(scheduler_command(address, *options, python=python), folder / "scheduler.log")
        self.address = self.logged(r"address (\S+), event loop")
        self.monitor_address = self.logged(r"monitor address (\S+)")


@contextmanager
def scheduler(folder: Path, *options: str, **others: Any) -> Iterator[SchedulerCommand]:
    command = SchedulerCommand(folder, *options, **others)
    try:
        yield command
    finally:
        command.end()


@contextmanager
def cluster(folder: Path, address: str, workers: int = 1, *options: str) -> Iterator[Command]:
    command = Command(cluster_command("-n", str(workers), address, *options), folder / "cluster.log")
    try:
        yield command
    finally:
        command.end()


class Monitor:
    """A subscriber to the scheduler's snapshots."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.subscribe(SNAPSHOT_TOPIC)
        self._socket.connect(address)

    def next(self, seconds: float = 20.0) -> Snapshot:
        """Return the next snapshot that is made after this call."""
        while self._socket.poll(0):
            self._socket.recv_multipart()
        assert self._socket.poll(round(seconds * 1000)), "no snapshot came"
        snapshot = wire.decode_published(self._socket.recv())
        assert isinstance(snapshot, Snapshot)
        return snapshot

    def close(self) -> None:
        self._context.destroy(linger=0)


@contextmanager
def monitor(address: str) -> Iterator[Monitor]:
    subscriber = Monitor(address)
    try:
        yield subscriber
    finally:
        subscriber.close()


def monitor_address_of(address: str) -> str:
    """Return the default monitor address of a scheduler at this address."""
    if address.startswith("ipc://"):
        return f"{address}_monitor"
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return f"ipc://{make_socket_directory()}/{host.strip('[]')}_{port}_monitor"
