"""How the agent starts, ends and watches worker processes.

`ForkServer` has a small process fork them (process.py). `SubprocessStarter` starts an interpreter for each, where the
system has no fork.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any, Protocol

from scaler_client.commands import module_folders
from scaler_client.commands.object_directory import ObjectDirectory

from .json_lines import JsonLines
from .process import AGENT_SIGNALS, WorkerMain, run_fork_server
from .process_events import ProcessEnded, ProcessEvent, ProcessStarted
from .state_page import StatePage
from .worker_settings import WorkerSettings

_CLOSE_SECONDS = 1.0


class ForkServerLost(Exception):
    """The fork server has ended, and so have its workers."""


class WorkerStarter(Protocol):
    """Starts and ends worker processes. While `fileno()` is readable, there are events to receive."""

    def fileno(self) -> int: ...

    @property
    def wants_write(self) -> bool:
        """Whether requests did not fit into the socket: call `flush` once `fileno()` is writable."""

    def flush(self) -> None: ...

    def start(self, slot: int, settings: WorkerSettings) -> None:
        """Start a worker. A ProcessStarted follows, or a ProcessEnded with an error."""

    def end(self, incarnation: int, kill: bool) -> None:
        """Send SIGTERM or SIGKILL to a worker that was started. Does nothing if it has ended already."""

    def receive(self) -> list[ProcessEvent]:
        """The events since the last call.

        Raises:
            ForkServerLost: no worker lives and none can be started.
        """

    def close(self) -> None:
        """End all processes that still live."""


class ForkServer:
    """The fork server, from the agent's side. It is forked at once: make it before threads and before a ZeroMQ
    context."""

    def __init__(self, worker_main: WorkerMain, page: StatePage, objects: ObjectDirectory | None = None) -> None:
        """The fork server removes the directory `objects` after the last worker has ended, also if the agent was
        killed.
        """
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, AGENT_SIGNALS)
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            run_fork_server(theirs, worker_main, page, objects)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._channel = JsonLines(ours)

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def wants_write(self) -> bool:
        return self._channel.wants_write

    def flush(self) -> None:
        self._channel.flush()

    def start(self, slot: int, settings: WorkerSettings) -> None:
        self._channel.send({"slot": slot, "start": asdict(settings)})

    def end(self, incarnation: int, kill: bool) -> None:
        self._channel.send({"end": incarnation, "kill": kill})

    def receive(self) -> list[ProcessEvent]:
        events = [_event(message) for message in self._channel.receive()]
        if self._channel.closed and not events:
            raise ForkServerLost(f"the fork server process {self.pid} has ended")
        return events

    def close(self) -> None:
        """Have the fork server end its workers and itself. Kill it, and the workers with it, if that takes long."""
        self._channel.end_writing()
        deadline = time.monotonic() + _CLOSE_SECONDS
        while not self._channel.closed and (left := deadline - time.monotonic()) > 0:
            select.select([self._channel], [], [], left)
            self._channel.receive()
        if not self._channel.closed:
            os.kill(self.pid, signal.SIGKILL)
        self._channel.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # the agent's parent has it ignore SIGCHLD


def _event(message: dict[str, Any]) -> ProcessEvent:
    if "started" in message:
        return ProcessStarted(**message["started"])
    return ProcessEnded(**message["ended"])


class SubprocessStarter:
    """Starts `python -m scaler_worker.worker.process SETTINGS` (JSON), which ends when its standard input does."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "scaler_worker.worker.process")) -> None:
        self._command = command
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._events: queue.SimpleQueue[ProcessEvent] = queue.SimpleQueue()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self.wants_write = False

    def fileno(self) -> int:
        return self._wake_reader.fileno()

    def flush(self) -> None:
        """Does nothing: requests are carried out at once."""

    def start(self, slot: int, settings: WorkerSettings) -> None:
        incarnation = settings.incarnation
        try:
            command = [*self._command, json.dumps(asdict(settings))]
            environment = {**os.environ, **module_folders.interpreter_variables()}
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        except OSError as error:
            self._report(ProcessEnded(slot, incarnation, pid=0, error=f"could not be started: {error}"))
            return
        self._processes[incarnation] = process
        self._report(ProcessStarted(slot, incarnation, process.pid))
        watch = (slot, incarnation, process)
        threading.Thread(target=self._watch, args=watch, name=f"worker-{slot}", daemon=True).start()

    def end(self, incarnation: int, kill: bool) -> None:
        process = self._processes.get(incarnation)
        if process is not None:
            process.kill() if kill else process.terminate()

    def receive(self) -> list[ProcessEvent]:
        try:
            self._wake_reader.recv(4096)
        except BlockingIOError:
            pass
        events = []
        while not self._events.empty():
            events.append(self._events.get())
            if isinstance(events[-1], ProcessEnded):
                self._processes.pop(events[-1].incarnation, None)
        return events

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()

    def _watch(self, slot: int, incarnation: int, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        if process.stdin is not None:
            process.stdin.close()
        self._report(ProcessEnded(slot, incarnation, process.pid, status))

    def _report(self, event: ProcessEvent) -> None:
        self._events.put(event)
        self._wake_writer.send(b".")
