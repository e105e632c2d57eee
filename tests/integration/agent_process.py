"""The host agent as a real process, with worker processes that run test code, against a fake scheduler."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import zmq
from tests.schema_messages import SCHEMA, message_of
from tests.waiting import wait_until

WAIT_SECONDS = 20.0
SHUTDOWN_SECONDS = 5.0

COMMAND = """
import os, sys
from scaler_client.commands import logs
from scaler_client.commands.command_line import parse_arguments
from scaler_worker import config
from scaler_worker.agent import process

def stand_in(settings, words):
    exec(os.environ["STAND_IN"], {"settings": settings, "words": words})

options = config.load(parse_arguments(config.COMMAND, sys.argv[1:]), {})
logs.set_up(options.logging_level, options.logging_paths)
sys.exit(process.run(options, stand_in))
"""

IDLE = "import time\nwords[4] = 1\ntime.sleep(600)"
RUNNING = "import time\nwords[:4] = memoryview(bytes(32)).cast('Q')\nwords[0] = 4; words[1] = 55; words[2] = 2\n"
RUNNING += "words[3] = 1; words[4] = 1\nprint('runs a task', flush=True)\ntime.sleep(600)"
DEAF = "import signal, time\nsignal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)\nwords[4] = 1\n"
DEAF += "while True: pow(3, 10_000_000)"  # holds the GIL for seconds at a time


class FakeScheduler:
    """A ROUTER socket that the test drives."""

    def __init__(self, address: str = "tcp://127.0.0.1:*") -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.IPV6, "[" in address)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(address)
        endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes)
        self.address = endpoint.decode().rstrip("\0")
        self.peer = b""
        """The sender of the last message."""

    def receive(self, kind: str, matches: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the next message of this kind that matches. Drops the messages before it, and answers heartbeats."""
        return self.receive_any(kind, matches=matches)[1]

    def receive_any(self, *kinds: str, matches: Callable[[Any], bool] = lambda _: True) -> tuple[str, Any, list[bytes]]:
        """The next matching message of one of these kinds: its kind, the message, and its further frames."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self._socket.poll(max(0, round((deadline - time.monotonic()) * 1000))):
            self.peer, frame, *further = self._socket.recv_multipart()
            with SCHEMA.Message.from_bytes(frame) as message:
                name = str(message.which())
                if name == "heartbeat":
                    self.say("heartbeatEcho", sequence=message.heartbeat.sequence)
                if name in kinds and matches(getattr(message, name)):
                    return name, getattr(message, name).to_dict(), further
        raise AssertionError(f"no {' or '.join(kinds)} came")

    def say(self, kind: str, /, *frames: bytes, **fields: Any) -> None:
        self.say_bytes(message_of(kind, **fields), *frames)

    def say_bytes(self, *frames: bytes) -> None:
        self._socket.send_multipart([self.peer, *frames])

    def welcome(self, incarnation: int = 5000) -> Any:
        """Wait for a hello and send a welcome. Returns the hello."""
        hello = self.receive("hello")
        self.say("welcome", protocolVersion=1, version="0.9", incarnation=incarnation, leaseMilliseconds=60_000)
        return hello

    def close(self) -> None:
        self._context.destroy(linger=0)


class Cluster:
    """The agent's process, and the processes that it is known to have started."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.agent = psutil.Process(process.pid)
        self.seen: dict[int, psutil.Process] = {}
        self._log = log

    def log(self) -> str:
        return self._log.read_text()

    def wait_for_tasks(self, number: int) -> None:
        """Wait until this many workers execute RUN. Each writes its state page first, and then the log."""
        wait_until(lambda: self.log().count("runs a task") == number, what="tasks run")

    def fork_server(self) -> psutil.Process:
        (fork_server,) = self.agent.children()
        self.seen[fork_server.pid] = fork_server
        return fork_server

    def workers(self) -> dict[int, psutil.Process]:
        workers = {worker.pid: worker for worker in self.fork_server().children()}
        self.seen.update(workers)
        return workers

    def wait_for_exit(self, seconds: float = WAIT_SECONDS) -> int:
        """Wait until the agent and all its seen processes have ended. Returns the agent's exit status."""
        deadline = time.monotonic() + seconds
        status = self.process.wait(seconds)
        pause = threading.Event()
        while left := [process for process in self.seen.values() if not is_gone(process)]:
            assert time.monotonic() < deadline, f"left over after {seconds} s: {left}"
            pause.wait(0.005)
        return status


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended. It may be a zombie: the cluster does not reap it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def started(
    log: Path, address: str, *options: str, workers: int = 2, does: str = IDLE, heartbeat: float = 0.2
) -> Iterator[Cluster]:
    arguments = [address, "-n", str(workers), "--heartbeat-interval-seconds", str(heartbeat), *options]
    with open(log, "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "STAND_IN": does},
            start_new_session=True,
        )
    cluster = Cluster(process, log)
    try:
        yield cluster
    finally:
        if process.poll() is None:
            cluster.seen.update({child.pid: child for child in cluster.agent.children(recursive=True)})
            process.kill()
        process.wait()
        for child in cluster.seen.values():
            if child.is_running():
                child.kill()


def all_of(number: int) -> Callable[[Any], bool]:
    return lambda heartbeat: len(heartbeat.workers) == number
