"""The host agent as a real process. `agent_process.py` has the fake scheduler and the workers' stand-in."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.integration.agent_process import (
    DEAF,
    IDLE,
    RUNNING,
    SHUTDOWN_SECONDS,
    FakeScheduler,
    all_of,
    started,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the stand-ins need os.fork")


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


def test_a_killed_worker_is_reported_and_replaced(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, workers=2, does=RUNNING, heartbeat=0.1) as cluster:
        scheduler.welcome()
        before = {worker["incarnation"] for worker in scheduler.receive("heartbeat", all_of(2))["workers"]}
        cluster.wait_for_tasks(2)
        victim, _ = cluster.workers()
        os.kill(victim, signal.SIGKILL)
        died = scheduler.receive("workerDied")
        assert (died["pid"], died["cause"]) == (victim, "signal 9 (SIGKILL)")
        assert died["incarnation"] in before
        assert (died["client"], died["id"], died["attempt"]) == (4, 55, 2)
        assert died["peakBytes"] > 1 << 20

        def replaced(heartbeat: Any) -> bool:
            return len({worker.incarnation for worker in heartbeat.workers} - {died["incarnation"]}) == 2

        scheduler.receive("heartbeat", replaced)
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


def test_only_the_agent_handles_ctrl_c(scheduler: FakeScheduler, log: Path) -> None:
    does = "import signal\nsignal.signal(2, lambda *_: print('worker interrupted', flush=True))\n" + IDLE
    with started(log, scheduler.address, does=does) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        os.killpg(cluster.process.pid, signal.SIGINT)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
        assert "worker interrupted" not in cluster.log() and "Traceback" not in cluster.log()


def test_workers_that_ignore_signals_are_killed_in_time(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=DEAF) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0


def test_a_second_signal_kills_at_once(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=DEAF) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.send_signal(signal.SIGTERM)
        while "ending 2 workers" not in cluster.log():
            scheduler.receive("heartbeat")
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0


def test_no_process_outlives_a_killed_agent(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.welcome()
        scheduler.receive("heartbeat", all_of(2))
        cluster.workers()
        cluster.process.kill()
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == -signal.SIGKILL


def test_an_agent_whose_fork_server_is_killed_exits(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=RUNNING) as cluster:
        scheduler.welcome()
        cluster.wait_for_tasks(2)
        cluster.workers()
        cluster.fork_server().kill()
        assert [scheduler.receive("workerDied")["id"] for _ in range(2)] == [55, 55]
        scheduler.receive("goodbye")
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 1
        assert cluster.log().count("[ERROR]") == 1


def test_a_refusal_ends_the_agent(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address) as cluster:
        scheduler.receive("hello")
        scheduler.say("refused", reason="protocolVersion", text="too old", protocolVersion=9, version="4.2")
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 1
        (line,) = [line for line in cluster.log().splitlines() if "[ERROR]" in line]
        assert "4.2" in line and "protocol version 9" in line and "protocol version 1" in line


def test_no_scheduler_for_the_death_timeout(log: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
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
            assert another.welcome(incarnation=6000) == {**hello, "scheduler": 5000}
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
        assert "dropped a message that can't be decoded" in cluster.log()


def test_workers_that_fail_to_start_are_logged_and_back_off(scheduler: FakeScheduler, log: Path) -> None:
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
