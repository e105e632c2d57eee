"""The processes of the chaos: a scheduler that is killed and started again, agents with workers, and clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tests.chaos.load import PATIENCE_SECONDS, Outcome
from tests.integration.commands import Command, SchedulerCommand, cluster_command, environment, is_alive

PARENT = ("--parent-process", str(os.getpid()))
"""They end by themselves when even this process is killed."""


class MortalScheduler:
    """A scheduler at one address, in one incarnation after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commands: list[SchedulerCommand] = []
        self.start("tcp://127.0.0.1:*")

    @property
    def command(self) -> SchedulerCommand:
        return self._commands[-1]

    def start(self, address: str) -> None:
        """Returns once it has bound the address."""
        folder = self._folder / f"scheduler-{len(self._commands)}"
        folder.mkdir()
        self._commands.append(SchedulerCommand(folder, *PARENT, address=address))

    def kill_and_restart(self) -> tuple[float, float]:
        """When it was killed and when the next one was there."""
        address = self.command.address
        killed_at = time.monotonic()
        self.command.process.kill()
        self.command.process.wait()
        self.start(address)
        return killed_at, time.monotonic()

    def logs(self) -> str:
        return "".join(command.log() for command in self._commands)

    def end(self) -> None:
        for command in self._commands:
            command.end()


class Agent:
    """A host agent and its workers."""

    def __init__(self, folder: Path, number: int, address: str, workers: int) -> None:
        arguments = cluster_command("-n", str(workers), address, *PARENT)
        self.command = Command(arguments, folder / f"cluster-{number}.log")

    def workers(self) -> list[int]:
        """The processes of the workers that live; none while the agent is starting."""
        try:
            nursery = psutil.Process(self.command.process.pid).children()
            return sorted(worker.pid for each in nursery for worker in each.children() if is_alive(worker))
        except psutil.NoSuchProcess:
            return []


class LoadProcess:
    """A client in a process of its own."""

    def __init__(self, folder: Path, address: str, log: Path, number: int, seed: int) -> None:
        self._times = folder / f"times-{number}"
        self._complaints = folder / f"client-{number}.log"
        with open(self._complaints, "w") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.load", address, log, self._times, str(number), str(seed)],
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
        """No more tasks."""
        if self.process.stdin is not None:
            self.process.stdin.close()
            self.process.stdin = None  # communicate() would flush it

    def finish(self) -> tuple[Outcome, array[float]]:
        """What came of the load that was told to stop, and when results came."""
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
def mortal_scheduler(folder: Path) -> Iterator[MortalScheduler]:
    scheduler = MortalScheduler(folder)
    try:
        yield scheduler
    finally:
        scheduler.end()


@contextmanager
def agents(folder: Path, address: str, count: int, workers: int) -> Iterator[list[Agent]]:
    started: list[Agent] = []
    try:
        for number in range(count):
            started.append(Agent(folder, number, address, workers))
        yield started
    finally:
        for agent in started:
            agent.command.end()


@contextmanager
def loads(folder: Path, address: str, log: Path, count: int, seed: int) -> Iterator[list[LoadProcess]]:
    started: list[LoadProcess] = []
    try:
        for number in range(count):
            started.append(LoadProcess(folder, address, log, number, seed + number))
        yield started
    finally:
        for load in started:
            load.end()


def kill(process: int) -> float:
    """Kill it; when that was."""
    now = time.monotonic()
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has just ended, with the one killed before it
    return now
