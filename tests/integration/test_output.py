"""The output of tasks with real processes: the cluster's log, and clients that receive output."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import Command, SchedulerCommand, cluster_command, environment, scheduler
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

WAIT_SECONDS = 60.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCommand]:
    with scheduler(tmp_path_factory.mktemp("scheduler")) as started:
        yield started


@pytest.fixture(scope="module")
def cluster(daemon: SchedulerCommand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    log = tmp_path_factory.mktemp("cluster") / "cluster.log"
    command = Command(cluster_command("-n", "2", "--logging-level", "WARNING", daemon.address), log)
    try:
        with Client(daemon.address, timeout_seconds=30) as client:
            assert client.submit(abs, -1).result(WAIT_SECONDS) == 1
        yield command
    finally:
        command.end()


def say(*words: object) -> int:
    print("said", *words)
    print("complained", *words, file=sys.stderr)
    logging.StreamHandler().emit(logging.makeLogRecord({"msg": "logged"}))
    subprocess.run(["echo", f"echoed {words}"], stdout=sys.stdout, check=True)
    thread = threading.Thread(target=print, args=("in a thread", *words))
    thread.start()
    thread.join()
    print("half", end="")
    return os.getpid()


def parent(client: Any, number: int) -> int:
    print("before", number)
    child = client.options(name="child").submit(say, number)
    pid: int = child.result(WAIT_SECONDS)
    print("after", number)
    return pid


def crash() -> None:
    print("last words")
    os.kill(os.getpid(), signal.SIGKILL)


def flood(megabytes: int) -> None:
    for _ in range(megabytes):
        print("x" * 1_000_000)
        print("y" * 20, end="")


def fork_and_print() -> int:
    print("in the parent")
    pid = os.fork()
    if not pid:
        print("in the child", flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    return 1


def lines_of(text: str, task: str) -> list[str]:
    """The lines that this task printed, in a log or at a client."""
    return re.findall(rf"^.*[/ ]{re.escape(task)}(?:: |\] | stderr: )(.*)$", text, re.MULTILINE)


def test_log_names_the_printing_task(daemon: SchedulerCommand, cluster: Command) -> None:
    with Client(daemon.address, timeout_seconds=30) as client:
        future = client.submit(say, "something")
        pid = future.result(WAIT_SECONDS)
        named = client.options(name="fit").submit(say, "else")
        named.result(WAIT_SECONDS)
        tasks = [f"say#{future.task_id}", f"fit#{named.task_id}"]
    for task, word in zip(tasks, ("something", "else")):
        wait_until(lambda task=task: "half" in lines_of(cluster.log(), task), what="the complete log")
        assert lines_of(cluster.log(), task) == [
            f"said {word}", f"complained {word}", "logged", f"in a thread {word}", "half",
        ]  # fmt: skip
    assert re.search(rf"^\[INFO\]\S+ \S+: \S+/{pid} {tasks[0]}: said something$", cluster.log(), re.MULTILINE)
    assert re.search(rf"/{pid} {tasks[0]} stderr: complained something$", cluster.log(), re.MULTILINE)
    assert re.search(r"^echoed \('something',\)$", cluster.log(), re.MULTILINE), (
        "the output of a subprocess is unchanged"
    )


def test_output_before_a_crash_is_logged(daemon: SchedulerCommand, cluster: Command) -> None:
    with Client(daemon.address, timeout_seconds=30) as client:
        future = client.options(retries=0).submit(crash)
        assert "SIGKILL" in str(future.exception(WAIT_SECONDS))
        assert lines_of(cluster.log(), f"crash#{future.task_id}") == ["last words"]


def test_output_of_forked_processes_is_unchanged(daemon: SchedulerCommand, cluster: Command) -> None:
    with Client(daemon.address, timeout_seconds=30) as client:
        future = client.submit(fork_and_print)
        assert future.result(WAIT_SECONDS) == 1
        task = f"fork_and_print#{future.task_id}"
    assert lines_of(cluster.log(), task) == ["in the parent"]
    assert "\nin the child\n" in cluster.log()


def test_client_receives_output_of_tasks_and_children(
    daemon: SchedulerCommand, cluster: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client(daemon.address, timeout_seconds=30, stream_output=True) as client:
        futures = [client.submit(parent, client, number) for number in range(4)]
        for future in futures:
            future.result(WAIT_SECONDS)
        tasks = [f"parent#{future.task_id}" for future in futures]
    shown = capsys.readouterr()
    for number, task in enumerate(tasks):
        assert lines_of(shown.out, task) == [f"before {number}", f"after {number}"]
    for stream, words in ((shown.out, ["said", "in a thread"]), (shown.err, ["complained"])):
        for word in words:
            printed = sorted(re.findall(rf"^\[\S+/\d+ child#\d+\] ({word} \d)$", stream, re.MULTILINE))
            assert printed == [f"{word} {number}" for number in range(4)]
    assert shown.out.count("] half\n") == 4


def test_gigabytes_of_output_are_bounded_and_reported(
    daemon: SchedulerCommand, cluster: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    size = len(cluster.log())
    with Client(daemon.address, timeout_seconds=30, stream_output=True) as client:
        begun = time.monotonic()
        future = client.submit(flood, 1000)
        others = [client.submit(abs, -number).result(WAIT_SECONDS) for number in range(50)]
        assert others == list(range(50))
        assert future.result(WAIT_SECONDS) is None
        task = f"flood#{future.task_id}"
        wait_until(
            lambda: "dropped" in "".join(lines_of(cluster.log()[size:], task)[-3:]),
            what="drops are reported",
        )
        seconds = time.monotonic() - begun
    assert len(cluster.log()) - size < (16 + 2 * seconds) * 1_000_000
    told = [int(line.split()[1]) for line in lines_of(cluster.log()[size:], task) if "of output were dropped" in line]
    assert told and sum(told) > 900_000_000
    assert len(capsys.readouterr().out) < (16 + 2 * seconds) * 1_000_000


SLOW = """
import sys
from scaler_client import Client

def chatter(number):
    for line in range(1000):
        print(number, line, "x" * 1000)
    return number

with Client(sys.argv[1], stream_output=True) as client:
    futures = [client.submit(chatter, number) for number in range(20)]
    assert [future.result(60) for future in futures] == list(range(20))
    print("all results", file=sys.stderr, flush=True)
    sys.stderr.close()
"""


def test_client_with_a_full_pipe_gets_its_results(daemon: SchedulerCommand, cluster: Command, tmp_path: Path) -> None:
    """A client whose standard output is a pipe that is never read: tasks and results continue."""
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, str(program), daemon.address],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and lines[-1] != "all results\n":
            lines.append(process.stderr.readline())
        assert lines[-1] == "all results\n", lines
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()
