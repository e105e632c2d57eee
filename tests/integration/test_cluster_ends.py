"""A real host agent: how it ends workers and itself, and how it joins a restarted scheduler."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.integration.agent_process import IDLE, RUNNING, SHUTDOWN_SECONDS, FakeScheduler, all_of, started

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the stand-ins need os.fork")

GROWING = RUNNING.replace("time.sleep(600)", "block = b'x' * (300 << 20)\ntime.sleep(600)")
ENDING = f"import signal, sys\nsignal.signal(15, lambda *_: sys.exit(0))\n{RUNNING}"


def test_a_worker_above_the_memory_limit_is_killed(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, "--worker-memory-limit", "200M", workers=1, does=GROWING):
        scheduler.welcome()
        died = scheduler.receive("workerDied")
        assert re.fullmatch(r"memory limit of 200 MiB exceeded: [23]\d\d MiB", died["cause"])
        assert (died["client"], died["id"], died["attempt"]) == (4, 55, 2)
        assert died["peakBytes"] > 200 << 20


def test_a_worker_is_ended_only_if_it_runs_the_named_task(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=RUNNING) as cluster:
        scheduler.welcome()
        one, other = scheduler.receive("heartbeat", all_of(2))["workers"]
        cluster.wait_for_tasks(2)
        task = {"client": 4, "id": 55, "attempt": 2}
        wrong = [{**task, "client": 5}, {**task, "id": 54}, {**task, "attempt": 1}]
        for fields in (*wrong, task):
            scheduler.say("endWorker", incarnation=one["incarnation"], reason="time limit of 2 s", **fields)
        died = scheduler.receive("workerDied")
        assert (died["incarnation"], died["cause"]) == (one["incarnation"], "stopped: time limit of 2 s")
        assert (died["client"], died["id"], died["attempt"]) == (4, 55, 2)
        replaced = scheduler.receive("heartbeat", all_of(2))["workers"]
        assert other["incarnation"] in [worker["incarnation"] for worker in replaced]
        assert cluster.log().count(" died: stopped: time limit of 2 s") == 1


def test_the_cause_of_failed_starts_is_one_line(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does="raise ValueError('no such\\nGPU')") as cluster:
        scheduler.welcome()
        for _ in range(6):
            assert scheduler.receive("workerDied")["cause"] == "ValueError: no such GPU (<string>:1)"
        (line,) = [line for line in cluster.log().splitlines() if "GPU" in line]
        assert "[ERROR]" in line and "failed to start: ValueError: no such GPU" in line
        assert "Traceback" not in cluster.log()


def test_a_restarted_scheduler_gets_a_hello_at_once(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=IDLE, heartbeat=600.0):
        hello = scheduler.welcome()
        scheduler.close()
        another = FakeScheduler(scheduler.address)
        try:
            another.receive("heartbeat")
            another.say("helloWanted")
            assert another.welcome(incarnation=6000) == {**hello, "scheduler": 5000}
        finally:
            another.close()


def test_the_goodbye_follows_the_workers_last_results(scheduler: FakeScheduler, log: Path) -> None:
    with started(log, scheduler.address, does=ENDING, heartbeat=0.1) as cluster:
        scheduler.welcome()
        cluster.wait_for_tasks(2)
        cluster.workers()
        cluster.process.terminate()
        scheduler.receive("heartbeat", all_of(0))
        assert scheduler.receive("goodbye")["reason"] == "SIGTERM"
        assert cluster.wait_for_exit(SHUTDOWN_SECONDS) == 0
