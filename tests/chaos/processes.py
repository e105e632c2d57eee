"""The processes of the chaos: a scheduler and hosts that end in many ways and restart, and clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from tests.chaos.load import PATIENCE_SECONDS, Outcome
from tests.chaos.network import Network
from tests.integration.commands import Command, SchedulerCommand, cluster_command, environment, is_alive
from tests.integration.host_files import directory_of

PARENT = ("--parent-process", str(os.getpid()))
"""The processes end by themselves if this process is killed."""


LEASE_SECONDS = 4.0
"""The lease of workers and agents: after this silence the scheduler gives them up."""

CLIENT_LEASE_SECONDS = 20.0

END_SECONDS = 30.0
"""The time in which a process must end when told to, on a busy machine."""


class MortalScheduler:
    """A scheduler at one address, in one incarnation after the other.

    Args:
        keys: a folder of keys; empty: the scheduler requires no keys.
    """

    def __init__(self, folder: Path, keys: str) -> None:
        self._folder = folder
        self._options = (
            *PARENT,
            *("--worker-timeout-seconds", str(LEASE_SECONDS), "--client-timeout-seconds", str(CLIENT_LEASE_SECONDS)),
            *(("--keys", keys) if keys else ()),
        )
        self._commands: list[SchedulerCommand] = []
        self.start("tcp://127.0.0.1:*")

    @property
    def command(self) -> SchedulerCommand:
        return self._commands[-1]

    @property
    def port(self) -> int:
        return int(self.command.address.rpartition(":")[2])

    def start(self, address: str) -> None:
        """Start the scheduler, and wait until it has bound the address."""
        folder = self._folder / f"scheduler-{len(self._commands)}"
        folder.mkdir()
        self._commands.append(SchedulerCommand(folder, *self._options, address=address))

    def kill_and_restart(self) -> tuple[float, float]:
        """Kill and restart the scheduler. Returns the times of the kill and of the next scheduler."""
        return self._end_and_restart(signal.SIGKILL)

    def stop_and_restart(self) -> tuple[float, float]:
        """Stop and restart the scheduler. Returns the times of the stop and of the next scheduler."""
        ended = self._end_and_restart(signal.SIGTERM)
        status = self._commands[-2].process.returncode
        if status:
            raise RuntimeError(f"a scheduler that was told to stop ended with status {status}")
        return ended

    def _end_and_restart(self, number: signal.Signals) -> tuple[float, float]:
        address = self.command.address
        ended_at = time.monotonic()
        self.command.process.send_signal(number)
        self.command.process.wait(END_SECONDS)
        self.start(address)
        return ended_at, time.monotonic()

    def logs(self) -> str:
        return "".join(command.log() for command in self._commands)

    def end(self) -> None:
        for command in self._commands:
            command.end()


class Host:
    """A host agent and its workers, in one incarnation after the other."""

    def __init__(self, folder: Path, number: int, address: str, workers: int, keys: str) -> None:
        self._arguments = cluster_command(
            *("-n", str(workers), address, *PARENT, *(("--keys", keys) if keys else ())),
            *("--death-timeout-seconds", "600", "--resources", "slot=1"),
        )
        self._folder = folder
        self._number = number
        self._commands: list[Command] = []
        self.directories: set[Path] = set()
        """The directories of object files that its incarnations have had, as far as they were seen."""
        self.living: frozenset[int] = frozenset()
        """The processes that lived at the last look."""
        self.start()

    @property
    def command(self) -> Command:
        return self._commands[-1]

    def start(self) -> None:
        """Start the agent, and wait until it handles signals."""
        log = self._folder / f"cluster-{self._number}-{len(self._commands)}.log"
        self._commands.append(Command(self._arguments, log))
        self.command.logged(r"(scaler_cluster) \S+: ")

    def processes(self) -> list[psutil.Process]:
        """The living processes: agent, fork server, workers."""
        try:
            found = [psutil.Process(self.command.process.pid), *self.command.descendants()]
        except psutil.NoSuchProcess:
            return []
        return [process for process in found if is_alive(process)]

    def workers(self) -> list[int]:
        """The pids of the living workers; empty while the agent starts."""
        try:
            fork_server = psutil.Process(self.command.process.pid).children()
            return sorted(worker.pid for each in fork_server for worker in each.children() if is_alive(worker))
        except psutil.NoSuchProcess:
            return []

    def look(self) -> None:
        """Record the processes and directories, to check later that none is left."""
        self.living = frozenset(process.pid for process in self.processes())
        with suppress(OSError, RuntimeError):  # the host is starting or ending
            self.directories.add(directory_of(self.command.process.pid))

    def stop(self) -> None:
        """Stop the agent as an operator does, with SIGTERM."""
        self.look()
        self.command.process.send_signal(signal.SIGTERM)
        status = self.command.process.wait(END_SECONDS)
        if status:
            raise RuntimeError(f"a cluster that was told to stop ended with status {status}:\n{self.command.log()}")
        self._wait_for_processes()

    def kill_agent(self) -> None:
        self.look()
        self.command.process.kill()
        self._wait_for_processes()

    def kill_fork_server(self) -> None:
        fork_servers = psutil.Process(self.command.process.pid).children()
        for fork_server in fork_servers:
            signal_to(fork_server.pid, signal.SIGSTOP)
        self.look()  # now it forks no further worker, which would die unnoticed
        for fork_server in fork_servers:
            kill(fork_server.pid)
        self._wait_for_processes()

    def kill_all(self) -> None:
        """Kill all processes, as if the host were switched off. The next agent removes the files."""
        self.look()
        processes = self.processes()
        for process in processes:
            signal_to(process.pid, signal.SIGSTOP)
        for process in processes:
            kill(process.pid)
        self._wait_for_processes()

    def _wait_for_processes(self) -> None:
        self.command.process.wait(END_SECONDS)
        living = [process for process in self.command.seen.values() if is_alive(process)]
        _, left = psutil.wait_procs(living, END_SECONDS)
        if any(map(is_alive, left)):
            raise RuntimeError(f"processes of a cluster that has ended live on: {left}\n{self.command.log()}")

    def logs(self) -> str:
        return "".join(command.log() for command in self._commands)

    def end(self) -> None:
        for process in self.processes():
            signal_to(process.pid, signal.SIGCONT)
        for command in self._commands:
            command.end()


class LoadProcess:
    """A client in a process of its own."""

    def __init__(self, folder: Path, address: str, keys: str, log: Path, number: int, seed: int) -> None:
        self._times = folder / f"times-{number}"
        self._complaints = folder / f"client-{number}.log"
        with open(self._complaints, "w") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.load", address, keys, log, self._times, str(number), str(seed)],
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"a client did not start: {self.complaints()}")

    def stop(self) -> None:
        """Tell the client to submit no more tasks."""
        if self.process.stdin is not None:
            self.process.stdin.close()
            self.process.stdin = None  # communicate() would flush it

    def finish(self) -> tuple[Outcome, array[float]]:
        """The outcome of a stopped load, and the times of its results."""
        output, _ = self.process.communicate(timeout=2 * PATIENCE_SECONDS)
        if self.process.returncode:
            raise RuntimeError(f"a client ended with status {self.process.returncode}: {self.complaints()}")
        times = array("d")
        times.frombytes(self._times.read_bytes())
        return Outcome(**json.loads(output)), times

    def complaints(self) -> str:
        return self._complaints.read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def mortal_scheduler(folder: Path, keys: str) -> Iterator[MortalScheduler]:
    scheduler = MortalScheduler(folder, keys)
    try:
        yield scheduler
    finally:
        scheduler.end()


@contextmanager
def network_to(scheduler: MortalScheduler) -> Iterator[Network]:
    network = Network(scheduler.port)
    try:
        yield network
    finally:
        network.close()


@contextmanager
def hosts(folder: Path, address: str, keys: str, count: int, workers: int) -> Iterator[list[Host]]:
    started: list[Host] = []
    try:
        for number in range(count):
            started.append(Host(folder, number, address, workers, keys))
        yield started
    finally:
        for host in started:
            host.end()


@contextmanager
def loads(folder: Path, address: str, keys: str, log: Path, count: int, seed: int) -> Iterator[list[LoadProcess]]:
    started: list[LoadProcess] = []
    try:
        for number in range(count):
            started.append(LoadProcess(folder, address, keys, log, number, seed + number))
        yield started
    finally:
        for load in started:
            load.end()


def kill(process: int) -> float:
    """Kill a process. Returns the time."""
    now = time.monotonic()
    signal_to(process, signal.SIGKILL)
    return now


def signal_to(process: int, number: signal.Signals) -> None:
    """Send a signal to a process. Does nothing if it has just ended together with a killed process."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
