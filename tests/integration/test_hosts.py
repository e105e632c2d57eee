"""A host whose agent and workers freeze, and thaw after their leases."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import psutil
from tests.integration.commands import Command, cluster, monitor, scheduler
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
OFTEN = ("--heartbeat-interval-seconds", "0.1")


def until_there(log: str, task: int, path: str) -> int:
    note(log, "began", task)
    while not os.path.exists(path):
        time.sleep(0.005)
    note(log, "ended", task)
    return task


def where() -> int:
    time.sleep(0.001)
    return os.getpid()


@contextmanager
def frozen(command: Command) -> Iterator[set[int]]:
    """The pids of all processes of a cluster, to stop them together."""
    processes = [psutil.Process(command.process.pid), *command.descendants()]
    try:
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        yield {process.pid for process in processes}
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


def test_a_frozen_host_loses_its_tasks_and_joins_again(tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    other = tmp_path / "other"
    other.mkdir()
    with (
        scheduler(tmp_path, "--worker-timeout-seconds", "1") as daemon,
        cluster(tmp_path, daemon.address, 2, *OFTEN) as vanishing,
        Client(daemon.address) as client,
    ):
        client.map(where, [()] * 100)  # now its run time is known, so its tasks queue at the workers
        running = [client.submit(until_there, log, task, str(gate)) for task in range(2)]
        wait_until(lambda: len(notes(log)) == 2, what="they run")
        queued = [client.submit(where) for _ in range(200)]
        with (
            frozen(vanishing) as frozen_pids,
            # One task more than the tasks that still run there, because those may be dispatched again first.
            cluster(other, daemon.address, 3, *OFTEN),
            monitor(daemon.monitor_address) as watch,
        ):
            assert not {each.result(SECONDS) for each in queued} & frozen_pids
            wait_until(lambda: len(notes(log)) >= 4, what="they run elsewhere")
            wait_until(lambda: watch.next().workers == 3, what="its workers are given up")
            gate.touch()
            assert [each.result(SECONDS) for each in running] == [0, 1]
        with monitor(daemon.monitor_address) as watch:
            wait_until(
                lambda: sum(each.pid in frozen_pids for each in notes(log, "ended")) == 2,
                what="the late ones end as well",
            )
            wait_until(lambda: watch.next().workers == 2)
            assert client.submit(where).result(SECONDS) in frozen_pids, "it serves on"
            assert watch.next().dispatched == 0
        assert "died" not in vanishing.log()
