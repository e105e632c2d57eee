"""The host agent as a real process, with real worker processes that run a stand-in, against a fake scheduler."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import capnp
import psutil
import pytest
import zmq

import scaler_client

SCHEMA = capnp.SchemaParser().load(str(Path(scaler_client.__file__).with_name("scaler.capnp")))
WAIT_SECONDS = 20.0
SHUTDOWN_SECONDS = 5.0

COMMAND = """
import os, sys
from scaler_client import logs
from scaler_client.command_line import parse_arguments
from scaler_worker import cluster, config

def stand_in(settings, words):
    exec(os.environ["STAND_IN"], {"settings": settings, "words": words})

options = config.load(parse_arguments(config.COMMAND, sys.argv[1:]), {})
logs.set_up(options.logging_level, options.logging_paths)
sys.exit(cluster.run(options, stand_in))
"""

IDLE = "import time\nwords[4] = 1\ntime.sleep(600)"
RUNNING = "import time\nwords[:4] = memoryview(bytes(32)).cast('Q')\nwords[0] = 4; words[1] = 55; words[2] = 2\n"
RUNNING += "words[3] = 1; words[4] = 1\ntime.sleep(600)"
DEAF = "import signal, time\nsignal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)\nwords[4] = 1\n"
DEAF += "while True: pow(3, 10_000_000)"  # holds the GIL for seconds at a time

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the stand-ins need os.fork")


class FakeScheduler:
    """A ROUTER socket that reads everything and says what the test says."""

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
        """Who said the last message."""

    def receive(self, kind: str, matches: Callable[[Any], bool] = lambda _: True) -> Any:
        """The next message of this kind that matches; what comes before it is dropped, heartbeats are answered."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self._socket.poll(max(0, round((deadline - time.monotonic()) * 1000))):
            self.peer, frame = self._socket.recv_multipart()
            with SCHEMA.Message.from_bytes(frame) as message:
                name = str(message.which())
                if name == "heartbeat":
                    self.say("heartbeatEcho", sequence=message.heartbeat.sequence)
                if name == kind and matches(getattr(message, name)):
                    return getattr(message, name).to_dict()
        raise AssertionError(f"no {kind} came")

    def say(self, kind: str, **fields: Any) -> None:
        message = SCHEMA.Message.new_message()
        if fields:
            body = message.init(kind)
            for name, value in fields.items():
                setattr(body, name, value)
        else:
            setattr(message, kind, None)
        self.say_bytes(message.to_bytes())

    def say_bytes(self, frame: bytes) -> None:
        self._socket.send_multipart([self.peer, frame])

    def welcome(self, incarnation: int = 5000) -> Any:
        """Wait for a hello and welcome it; the hello."""
        hello = self.receive("hello")
        self.say("welcome", protocolVersion=1, version="0.9", incarnation=incarnation, peer=3, leaseMilliseconds=60_000)
        return hello

    def close(self) -> None:
        self._context.destroy(linger=0)


class Cluster:
    """The agent's process and, as far as they were seen, all that it started."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.agent = psutil.Process(process.pid)
        self.seen: dict[int, psutil.Process] = {}
        self._log = log

    def log(self) -> str:
        return self._log.read_text()

    def nursery(self) -> psutil.Process:
        (nursery,) = self.agent.children()
        self.seen[nursery.pid] = nursery
        return nursery

    def workers(self) -> dict[int, psutil.Process]:
        workers = {worker.pid: worker for worker in self.nursery().children()}
        self.seen.update(workers)
        return workers

    def wait_for_exit(self, seconds: float = WAIT_SECONDS) -> int:
        """Its status, once the agent and everything that was seen of it is gone."""
        deadline = time.monotonic() + seconds
        status = self.process.wait(seconds)
        pause = threading.Event()
        while left := [process for process in self.seen.values() if not is_gone(process)]:
            assert time.monotonic() < deadline, f"left over after {seconds} s: {left}"
            pause.wait(0.005)
        return status


def is_gone(process: psutil.Process) -> bool:
    """Whether it ended; who reaps it, and when, is not the cluster's."""
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


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    scheduler = FakeScheduler()
    yield scheduler
    scheduler.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def all_of(number: int) -> Callable[[Any], bool]:
    return lambda heartbeat: len(heartbeat.workers) == number


def test_hello_welcome_heartbeats(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, workers=3) as cluster:
        hello = scheduler.welcome()
        assert (hello["role"], hello["protocolVersion"], hello["pid"]) == ("agent", 1, cluster.process.pid)
        assert (hello["language"], hello["host"]) == ("python", socket.gethostname())
        assert 0 < hello["incarnation"] < 1 << 63
        heartbeat = scheduler.receive("heartbeat", all_of(3))
        assert heartbeat["residentBytes"] > 1 << 20
        assert all(worker["residentBytes"] > 1 << 20 for worker in heartbeat["workers"])
        assert len({worker["incarnation"] for worker in heartbeat["workers"]} - {hello["incarnation"]}) == 3
        assert scheduler.receive("heartbeat")["sequence"] == heartbeat["sequence"] + 1
        assert len(cluster.workers()) == 3
        (line,) = [line for line in cluster.log().splitlines() if "3 workers" in line]
        for part in ("[INFO]", scheduler.address, "CPython" if "CPython" in sys.version else "", "process"):
            assert part in line


def test_a_killed_worker_is_told_and_replaced_within_a_second(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, workers=2, does=RUNNING, heartbeat=0.1) as cluster:
        scheduler.welcome()
        before = {worker["incarnation"] for worker in scheduler.receive("heartbeat", all_of(2))["workers"]}
        victim, _ = cluster.workers()
        killed_at = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        died = scheduler.receive("workerDied")
        assert (died["pid"], died["cause"]) == (victim, "signal 9 (SIGKILL)")
        assert died["incarnation"] in before
        assert (died["client"], died["id"], died["attempt"]) == (4, 55, 2)
        assert died["peakBytes"] > 1 << 20

        def replaced(heartbeat: Any) -> bool:
            return len({worker.incarnation for worker in heartbeat.workers} - {died["incarnation"]}) == 2

        scheduler.receive("heartbeat", replaced)
        assert time.monotonic() - killed_at < 1.0
        assert victim not in cluster.workers() and len(cluster.workers()) == 2
        assert "signal 9 (SIGKILL)" in cluster.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything(scheduler: FakeScheduler, log: Path, number: signal.Signals) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.send_signal(number)
        assert scheduler.receive("goodbye")["reason"] == number.name
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert "Traceback" not in cluster.log()


def test_ctrl_c_reaches_the_agent_alone(scheduler: FakeScheduler, log: Path) -> None:
    does = "import signal\nsignal.signal(2, lambda *_: print('worker interrupted', flush=True))\n" + IDLE
    with started(log, scheduler.address, does=does) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        os.killpg(cluster.process.pid, signal.SIGINT)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert "worker interrupted" not in cluster.log() and "Traceback" not in cluster.log()


def test_workers_that_ignore_signals_and_hold_the_gil_are_gone_in_time(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=DEAF) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0


def test_a_second_signal_does_not_wait(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=DEAF) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.send_signal(signal.SIGTERM)
        while "ending 2 workers" not in cluster.log():
            scheduler.receive("heartbeat")
        signalled_at = time.monotonic()
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert time.monotonic() - signalled_at < 1.5


def test_nothing_outlives_an_agent_that_is_killed(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.kill()
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == -signal.SIGKILL


def test_an_agent_whose_nursery_is_killed_says_so_and_exits(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=RUNNING) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.nursery().kill()
        assert [scheduler.receive("workerDied")["id"] for _ in range(2)] == [55, 55]
        scheduler.receive("goodbye")
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 1
        assert cluster.log().count("[ERROR]") == 1


def test_refused(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.receive("hello")
        scheduler.say("refused", reason="protocolVersion", text="too old", protocolVersion=9, version="4.2")
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 1
        (line,) = [line for line in cluster.log().splitlines() if "[ERROR]" in line]
        assert "4.2" in line and "protocol version 9" in line and "protocol version 1" in line


def test_no_scheduler_for_the_death_timeout(log: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = "tcp://127.0.0.1:%d" % nobody.getsockname()[1]
        with started(log, address, "--death-timeout-seconds", "1.5") as cluster:
            assert cluster.wait_for_exit() == 1
            (line,) = [line for line in cluster.log().splitlines() if "[ERROR]" in line]
            assert address in line and "1.5 s" in line


def test_another_scheduler_at_the_same_address(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        hello = scheduler.welcome()
        workers = cluster_of(scheduler.receive("heartbeat", all_of(2)))
        scheduler.close()
        another = FakeScheduler(scheduler.address)
        try:
            another.receive("heartbeat")
            another.say("helloWanted")
            assert another.welcome(incarnation=6000) == hello
            assert cluster_of(another.receive("heartbeat")) == workers
            assert cluster.process.poll() is None
            assert "new one" in cluster.log()
        finally:
            another.close()


def cluster_of(heartbeat: Any) -> set[int]:
    return {worker["incarnation"] for worker in heartbeat["workers"]}


def test_garbage_from_the_scheduler_is_dropped(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.welcome()
        for garbage in (b"", b"junk", b"\0" * 4 + b"\xff" * 12, os.urandom(1000)):
            scheduler.say_bytes(garbage)
        scheduler.say("goodbye", reason="restart")
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        assert "Traceback" not in cluster.log()
        assert "no message of the protocol" in cluster.log()


def test_workers_that_fail_to_start_are_told_plainly_and_retried_without_haste(
    scheduler: FakeScheduler, log: Path
) -> None:
    with started(log, scheduler.address, workers=2, does="raise SystemExit(3)") as cluster:
        scheduler.welcome()
        pids = {scheduler.receive("workerDied")["pid"] for _ in range(8)}
        assert len(pids) == 8
        (line,) = [line for line in cluster.log().splitlines() if "[ERROR]" in line]
        assert "failed to start: exit code 3" in line


def test_an_idle_agent_does_not_poll_busily(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, heartbeat=0.5) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        before = cluster.agent.cpu_times()
        for _ in range(4):
            scheduler.receive("heartbeat")
        after = cluster.agent.cpu_times()
        assert (after.user + after.system) - (before.user + before.system) < 0.2


def test_ipv6(log: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        scheduler = FakeScheduler("tcp://[::1]:*")
    except zmq.ZMQError:
        pytest.skip("no IPv6 address here")
    try:
        with started(log, scheduler.address):
            scheduler.welcome()
    finally:
        scheduler.close()
