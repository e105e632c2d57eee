"""Deaths of worker processes: which tasks fail, and the text of the error."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client, WorkerDiedError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30
MEBIBYTE = 1 << 20


def square(x: int) -> int:
    return x * x


def noted_square(log: str, x: int) -> int:
    note(log, "began", x)
    return square(x)


def killed(log: str) -> None:
    note(log, "began")
    os.kill(os.getpid(), signal.SIGKILL)


def killed_when_large(log: str) -> None:
    """Die like a process that the kernel kills because of its memory."""
    note(log, "began")
    _taken = b"x" * (200 * MEBIBYTE)
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(log: str) -> None:
    note(log, "began")
    ctypes.string_at(0)


def leave(log: str) -> NoReturn:
    note(log, "began")
    os._exit(7)


@pytest.mark.parametrize(
    "fn, cause",
    [
        (killed, r"signal 9 \(SIGKILL\)"),
        (killed_when_large, r"signal 9 \(SIGKILL\)"),
        (segfault, r"signal 11 \(SIGSEGV\)"),
        (leave, "exit code 7"),
    ],
)
def test_the_error_names_the_cause_of_death(client: Client, tmp_path: Path, fn: object, cause: str) -> None:
    log = str(tmp_path / "log")
    with pytest.raises(WorkerDiedError) as raised:
        client.options(retries=1).submit(fn, log).result(SECONDS)  # type: ignore[arg-type, attr-defined]
    text = str(raised.value)
    assert re.search(rf"{fn.__name__}#[0-9]+: the worker died in each of 2 attempts", text), text  # type: ignore[attr-defined]
    deaths = re.findall(rf"attempt (\d+) on (\S+) \(pid (\d+)\): {cause}, peak memory (\d+) MiB", text)
    assert [int(pid) for _, _, pid, _ in deaths] == [each.pid for each in notes(log)], text
    assert [attempt for attempt, _, _, _ in deaths] == ["1", "2"]
    assert {host for _, host, _, _ in deaths} == {socket.gethostname()}
    least = 200 if fn is killed_when_large else 10
    assert all(least <= int(peak) < 10_000 for _, _, _, peak in deaths), text


def test_a_task_that_kills_workers_costs_others_no_retry(client: Client, tmp_path: Path) -> None:
    """The task kills four workers. The tasks queued behind it have no retries, and do not need any. Those that have run
    fail, if their answers were not sent when their worker died."""
    client.map(square, [(i,) for i in range(1000)])  # now their run time is known: they queue at the workers
    careful = client.options(retries=0)
    log, runs = str(tmp_path / "log"), str(tmp_path / "runs")
    poisons, others = [], []
    for round_ in range(3):
        poisons.append(client.submit(killed, log))
        others += [careful.submit(noted_square, runs, i) for i in range(round_ * 300, round_ * 300 + 300)]
    errors = [other.exception(SECONDS) for other in others]
    begun = [int(each.task) for each in notes(runs)]
    assert sorted(begun) == list(range(900)), "each task runs, and none runs twice"
    for i, (other, error) in enumerate(zip(others, errors)):
        assert isinstance(error, WorkerDiedError) if error else other.result() == i * i
    for poison in poisons:
        assert "each of 4 attempts" in str(poison.exception(SECONDS))
    assert len(notes(log)) == 12


def test_a_killed_worker_is_replaced(daemon: SchedulerCommand, tmp_path: Path) -> None:
    with cluster(tmp_path, daemon.address), Client(daemon.address) as client:
        processes = [client.submit(os.getpid).result(SECONDS)]
        for _ in range(3):
            os.kill(processes[-1], signal.SIGKILL)
            processes.append(client.submit(os.getpid).result(SECONDS))
        assert len(set(processes)) == 4
        told = re.compile(r"\[WARNING\].* \(process (\d+)\) was lost: signal 9 \(SIGKILL\).*\. It ran no task")
        wait_until(lambda: list(map(int, told.findall(daemon.log()))) == processes[:3], what="a line for each death")


def grow(log: str, most: int) -> int:
    """Take memory in steps, up to this many mebibytes, and then wait."""
    note(log, "began")
    taken = []
    for _ in range(most // 20):
        taken.append(b"x" * (20 * MEBIBYTE))
        time.sleep(0.01)
    time.sleep(600)
    return len(taken)


def sized(mebibytes: int) -> int:
    return len(b"x" * (mebibytes * MEBIBYTE)) // MEBIBYTE


def test_a_task_above_the_memory_limit_fails(daemon: SchedulerCommand, tmp_path: Path) -> None:
    limit = ("--worker-memory-limit", "400M")
    log = str(tmp_path / "log")
    with cluster(tmp_path, daemon.address, 2, *limit) as workers:
        with Client(daemon.address) as client:
            future = client.options(retries=0, name="glutton").submit(grow, log, 1000)
            wait_until(lambda: notes(log), what="it begins")
            modest = [client.submit(sized, 100) for _ in range(4)]
            with pytest.raises(WorkerDiedError, match=r"glutton#\d+: .*memory limit of 400 MiB exceeded: \d+ MiB"):
                future.result(SECONDS)
            assert [each.result(SECONDS) for each in modest] == [100] * 4
            assert len(notes(log)) == 1
        assert "memory limit of 400 MiB exceeded" in workers.log()
