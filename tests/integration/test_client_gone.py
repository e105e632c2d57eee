"""Clients that die while their tasks run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import cloudpickle
import psutil
from tests.integration.commands import cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.integration.test_processes import program
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30
ROOT = Path(__file__).resolve().parents[2]
TEXT = """
import re
sys.path.insert(0, ROOT)
from tests.integration.executions import note

def spin():
    note(LOG, "began")
    while True:
        pass

def hold_the_gil():
    note(LOG, "began")
    re.match("(a+)+$", "a" * 60 + "b")

def parent(client):
    client.submit(spin).result()

client = Client(sys.argv[1])
futures = [client.submit(spin), client.submit(hold_the_gil), client.submit(parent, client)]
blocks = [os.urandom(1 << 20) for _ in range(50)]
futures += [client.submit(len, block) for block in blocks]
sys.stdin.read()
"""


def test_a_client_that_is_killed_while_its_tasks_run(tmp_path: Path) -> None:
    """Its tasks and their children are stopped. Tasks that cannot be interrupted end with their processes."""
    log, workers = str(tmp_path / "log"), 3
    text = TEXT.replace("LOG", repr(log)).replace("ROOT", repr(str(ROOT)))
    with (
        scheduler(tmp_path, "--client-timeout-seconds", "1") as daemon,
        cluster(tmp_path, daemon.address, workers),
        monitor(daemon.monitor_address) as watch,
    ):
        with program(tmp_path, daemon.address, text) as process:
            wait_until(lambda: len(notes(log, "began")) == 3, what="the tasks run")
            wait_until(lambda: watch.next().waiting >= 40, what="the other tasks wait")
            process.kill()
            wait_until(lambda: (now := watch.next()).waiting == now.dispatched == 0, what="no task is left")
        with Client(daemon.address) as client:
            assert client.map(abs, [(-i,) for i in range(100)]) == list(range(100))
            pids = [client.submit(meet, str(tmp_path / "meeting"), workers) for _ in range(workers)]
            assert len({pid.result(SECONDS) for pid in pids}) == workers, "all workers are free"
        # A worker that ran a parent task keeps its own client.
        wait_until(lambda: (now := watch.next()).clients <= 1 and not now.dispatched)


def meet(log: str, count: int) -> int:
    """Return when this many tasks run this function at once."""
    note(log, "there")
    while len(notes(log)) < count:
        time.sleep(0.005)
    return os.getpid()


HOARD = """
client = Client(sys.argv[1])
array = client.send_object("array", os.urandom(50 << 20))
futures = [client.submit(len, os.urandom(2000)) for _ in range(50_000)]
sys.stdin.read()
"""


def test_the_memory_of_a_killed_client_is_freed(tmp_path: Path) -> None:
    """Without workers, the scheduler keeps everything that the client has sent."""
    with (
        scheduler(tmp_path, "--client-timeout-seconds", "1") as daemon,
        monitor(daemon.monitor_address) as watch,
    ):
        process_of_daemon = psutil.Process(daemon.process.pid)

        def mebibytes() -> float:
            return process_of_daemon.memory_info().rss / (1 << 20)

        before = mebibytes()
        with program(tmp_path, daemon.address, HOARD) as process:
            wait_until(lambda: watch.next().waiting == 50_000, what="the scheduler has all tasks")
            wait_until(lambda: mebibytes() > before + 90, what="the memory has grown by the arguments")
            process.kill()
            wait_until(lambda: not watch.next().waiting, what="the client is given up")
        wait_until(lambda: mebibytes() < before + 30, what="the memory is freed")
