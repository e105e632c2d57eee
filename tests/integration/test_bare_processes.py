"""Commands that start with less than usual: without standard streams, and as process 1 of a container."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import cloudpickle
import psutil
import pytest
from tests.integration.commands import Command, SchedulerCommand, cluster_command, environment, scheduler_command
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

CLOSED = [">&-", "2>&-", "<&- >&- 2>&-"]

PROGRAM = """
import sys
from scaler_client import Client, LocalCluster

def double(x):
    print("a task prints")
    return 2 * x

if __name__ == "__main__":
    with LocalCluster(n_workers=2) as cluster, Client(cluster) as client:
        values = client.map(double, [(i,) for i in range(10)])
    with open(sys.argv[1], "w") as file:
        print(sum(values), file=file)
"""


def in_shell(command: list[str], redirections: str) -> list[str]:
    return ["sh", "-c", f'exec "$@" {redirections}', "sh", *command]


@pytest.mark.parametrize("closed", CLOSED)
def test_a_local_cluster_without_standard_streams(tmp_path: Path, closed: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = in_shell([sys.executable, str(program), str(tmp_path / "result")], closed)
    assert subprocess.run(command, env=environment(), capture_output=True, timeout=60).returncode == 0
    assert (tmp_path / "result").read_text() == "90\n"


@pytest.mark.parametrize("closed", CLOSED)
def test_a_scheduler_and_a_cluster_without_standard_streams(tmp_path: Path, closed: str) -> None:
    address = f"ipc://{tmp_path}/s"
    logs = [tmp_path / "scheduler", tmp_path / "cluster"]
    commands = [
        Command(in_shell([*command, "--logging-paths", str(log)], closed), tmp_path / f"{log.name}.out")
        for command, log in zip((scheduler_command(address), cluster_command(address, "-n", "1")), logs)
    ]
    try:
        wait_until(logs[0].exists)
        with Client(address, timeout_seconds=30) as client:
            assert client.submit(abs, -3).result(timeout=30) == 3
        assert [command.stop() for command in reversed(commands)] == [0, 0]
    finally:
        for command in commands:
            command.end()


def leave_orphans(number: int) -> list[int]:
    """Start processes that outlive their parent and soon end. Returns their pids."""
    shell = "sh -c 'echo $$; exec >&-; exec sleep 0.01' &"
    return [int(subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE).stdout) for _ in range(number)]


def zombies(parent: psutil.Process) -> list[psutil.Process]:
    return [each for each in parent.children(recursive=True) if each.status() == psutil.STATUS_ZOMBIE]


def running(parent: psutil.Process, name: str) -> list[psutil.Process]:
    found = []
    for each in parent.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it may end meanwhile
            if each.name() == name:
                found.append(each)
    return found


@pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("nsenter")), reason="needs a process namespace"
)
def test_a_cluster_that_is_process_1_reaps(daemon: SchedulerCommand, tmp_path: Path) -> None:
    inside = cluster_command(daemon.address, "-n", "1")
    command = Command(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *inside], tmp_path / "log")
    try:
        with Client(daemon.address, timeout_seconds=30) as client:
            assert len(client.submit(leave_orphans, 5).result(timeout=30)) == 5
        (first,) = psutil.Process(command.process.pid).children()
        shell = "sleep 0.01 & sleep 0.02 &"  # as a debugging session in the container does
        subprocess.run(["nsenter", "-t", str(first.pid), "-p", "-m", "sh", "-c", shell], check=True)
        wait_until(lambda: not running(first, "sleep"), what="the orphans to be reaped")
        assert zombies(first) == []
        first.send_signal(signal.SIGTERM)
        assert command.process.wait(20) == 0
        assert "SIGTERM" in command.log()
    finally:
        command.end()
