"""`scaler_client` as a process, with a real cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster, run_once, scheduler
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client, TaskFuture

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECRET = "an argument that nobody may read"


def stays(log: str, _: str = "") -> None:
    """A task that runs until this file exists."""
    note(log, "began")
    while not os.path.exists(log + ".end"):
        time.sleep(0.01)


def fails() -> None:
    raise ValueError("no such curve")


@dataclass
class Cluster:
    scheduler: SchedulerCommand
    client: Client
    log: Path
    retried: TaskFuture[None]
    """A task that runs for the second time."""
    failed: TaskFuture[None]
    cancelled: TaskFuture[int]

    def ask(self, *arguments: str, **variables: str) -> CompletedProcess[str]:
        command = [sys.executable, "-m", "scaler_client", *arguments]
        return run_once(command, SCALER_MONITOR_ADDRESS=self.scheduler.monitor_address, **variables)

    def text(self, *arguments: str) -> str:
        ran = self.ask(*arguments)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert max(map(len, ran.stdout.splitlines())) <= 80 and "\x1b" not in ran.stdout
        return ran.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        ran = self.ask(*arguments, "--json")
        assert (ran.returncode, ran.stderr) == (0, "")
        answer: dict[str, Any] = json.loads(ran.stdout)
        return answer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    log = folder / "log"
    with scheduler(folder) as started, cluster(folder, started.address, 1), Client(started.address) as client:
        failed = client.submit(fails)
        assert isinstance(failed.exception(30), ValueError)
        retried = client.submit(stays, str(log), SECRET)
        wait_until(lambda: log.exists() and notes(str(log)), what="the task to begin")
        os.kill(notes(str(log))[0].pid, signal.SIGKILL)
        wait_until(lambda: len(notes(str(log))) == 2, what="the task to begin again")
        cancelled = client.submit(abs, -1)
        wait_until(lambda: cancelled.task_id >= 0, what="its id")
        assert cancelled.cancel()
        yield Cluster(started, client, log, retried, failed, cancelled)
        Path(f"{log}.end").touch()
        retried.result(30)


def kinds(story: dict[str, Any]) -> list[str]:
    return [event["event"] for event in story["events"] if event["event"] != "started"]


def test_status(running: Cluster) -> None:
    text = running.text("status")
    assert f"scheduler  {running.scheduler.address} on " in text and "1 with workers" in text
    assert "1 worker has died since the start: signal 9" in text
    status = running.json("status")
    assert status["tasks"]["with_workers"] == status["workers"]["there"] == status["clients"] == 1
    assert status["tasks"]["outcomes"]["exception"] == 1 and status["tasks"]["retries"] == 1
    assert status["workers"]["deaths"] == {"signal 9": 1} and status["rates_seconds"] > 0


def test_workers(running: Cluster) -> None:
    lines = running.text("workers").splitlines()
    assert lines[0].startswith("WORKER") and f"stays#{running.retried.task_id}" in lines[1] and len(lines) == 3
    (worker,) = running.json("workers", "--sort", "memory", "--filter", "busy")["workers"]
    assert worker["task"]["id"] == str(running.retried.task_id) and worker["task"]["attempt"] == 2
    assert running.json("workers", "--filter", "no such worker")["workers"] == []


def test_why_a_task_waits(running: Cluster) -> None:
    text = running.text("why", f"stays#{running.retried.task_id}")
    assert re.search(r"^runs +on worker \S+ on \S+, for [\d.]+ s$", text, re.MULTILINE)
    waiting = [running.client.submit(pow, 2, number) for number in range(3)]
    wait_until(lambda: waiting[-1].task_id >= 0, what="its id")
    answer = running.json("why", f"pow#{waiting[-1].task_id}")
    assert [reason["kind"] for reason in answer["reasons"]] == ["since", "before", "host"]
    assert answer["reasons"][1]["text"] == "2 task(s) with the same needs go first"
    assert answer["reasons"][2]["text"].endswith(" could serve it: 1 busy")
    for future in waiting:
        assert future.cancel()
    ended = running.text("why", f"abs#{running.cancelled.task_id}")
    assert "it ended " in ended


def test_story_of_a_retried_running_task(running: Cluster) -> None:
    story = running.json("story", f"stays#{running.retried.task_id}")
    assert kinds(story) == ["submitted", "dispatched", "returned", "dispatched"]
    attempts = [event["attempt"] for event in story["events"] if event["event"] == "dispatched"]
    assert attempts == [1, 2] and story["now"].startswith("it runs on ")
    assert all(abs(event["unix_seconds"] - time.time()) < 300 for event in story["events"])
    exact = story["task"]
    for name in (
        exact,
        f"task {exact}",
        f"a name of its own, task {exact}",
        str(running.retried.task_id),
        repr(running.retried),
    ):
        text = running.text("story", name)
        assert text.startswith(f"stays#{running.retried.task_id}  task {exact}\n") and "attempt 2" in text
    assert f"task {exact} of client " in running.scheduler.log(), "the log's name of the task can be looked up"


def test_story_of_a_failed_task(running: Cluster) -> None:
    story = running.json("story", str(running.failed.task_id))
    assert kinds(story) == ["submitted", "dispatched", "ended"]
    last = story["events"][-1]
    assert (last["outcome"], last["error"]) == ("exception", "ValueError: no such curve") and last["run_seconds"] > 0
    assert last["traceback"].startswith("Traceback (most recent call last):\n") and ", in fails\n" in last["traceback"]
    assert "    ValueError: no such curve" in running.text("story", str(running.failed.task_id)).splitlines()


def test_story_of_a_cancelled_task(running: Cluster) -> None:
    story = running.json("story", f"abs#{running.cancelled.task_id}")
    assert kinds(story)[0] == "submitted" and story["events"][-1]["outcome"] == "cancelled"
    assert "cancelled" in running.text("story", f"abs#{running.cancelled.task_id}")


@pytest.mark.parametrize("name", ["123456789", "nothing#0", "1/1"])
def test_story_of_an_unknown_task(running: Cluster, name: str) -> None:
    ran = running.ask("story", name)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert "nothing is known of task " in ran.stderr
    assert ("with that number there is: " in ran.stderr) == (name == "nothing#0")


def test_of_two_tasks_with_one_name_the_open_one_is_told(running: Cluster) -> None:
    with Client(running.scheduler.address) as other:
        future = other.submit(abs, -1)  # it waits: the worker is busy
        wait_until(lambda: running.json("status")["clients"] == 2 and future.task_id == 0, what="the second client")
        ran = running.ask("story", "0")
    # The first client's task 0 has ended, so this is the one that waits.
    assert ran.returncode == 0 and "now: it waits for a worker" in ran.stdout


def test_dump(running: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    ran = running.ask("dump", str(path), SCALER_TEST_TOKEN="secret-of-mine")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    text = path.read_text()
    assert SECRET not in text and "secret-of-mine" not in text
    dump = json.loads(text)
    assert dump["snapshot"]["worker_columns"]["tasks"] == ["stays"] and dump["versions"]["protocol"] == 1
    assert any("ValueError: no such curve" in history["errors"] for history in dump["history"])
    assert dump["problems"][0].startswith("1 worker has died since the start: signal 9, last at 20")
    assert "graphs" in dump and len(dump["problems"]) == 1
    again = running.ask("dump", str(path))
    assert again.returncode == 2 and "--force overwrites it" in again.stderr
    assert running.ask("dump", str(path), "--force").returncode == 0
    assert running.json("dump", "-")["format"] == 1


def test_closed_pipe_is_no_error(running: Cluster) -> None:
    command = f"{sys.executable} -m scaler_client workers --json | head -n 1"
    ran = run_once(["bash", "-o", "pipefail", "-c", command], SCALER_MONITOR_ADDRESS=running.scheduler.monitor_address)
    assert ran.stdout == "{\n" and ran.stderr == ""


def test_monitor_is_found_by_the_scheduler_address(running: Cluster) -> None:
    ran = run_once(
        [sys.executable, "-m", "scaler_client", "status", "--json"], SCALER_ADDRESS=running.scheduler.address
    )
    assert json.loads(ran.stdout)["monitor_address"] == running.scheduler.monitor_address
