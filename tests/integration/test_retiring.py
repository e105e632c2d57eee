"""A host agent that retires at SIGTERM: running tasks end there, queued tasks go to other workers."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.integration.commands import cluster, scheduler
from tests.waiting import wait_until

from scaler_client import Client


def test_running_tasks_end_there_and_queued_ones_go_elsewhere(tmp_path: Path, gate: Path) -> None:
    ran, has_passed = tmp_path / "ran", str(gate)

    def note_and_wait(number: int) -> int:
        import os
        import time

        with open(ran, "a") as file:
            file.write(f"{number} ")
        while number == 0 and not os.path.exists(has_passed):
            time.sleep(0.01)
        return number

    for name in ("leaving", "staying"):
        (tmp_path / name).mkdir()
    with scheduler(tmp_path) as daemon, Client(daemon.address) as client:
        with cluster(tmp_path / "leaving", daemon.address, 1, "--retire-seconds", "600") as leaving:
            tasks = [client.submit(note_and_wait, number) for number in range(3)]
            wait_until(lambda: ran.exists() and tasks[0].running(), what="the first task runs")
            leaving.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "retires" in daemon.log(), what="the scheduler says that the agent retires")
            with cluster(tmp_path / "staying", daemon.address, 1):
                assert [task.result(60) for task in tasks[1:]] == [1, 2]
                assert client.submit(abs, -5).result(60) == 5
                assert not tasks[0].done() and leaving.process.poll() is None
                gate.touch()
                assert tasks[0].result(60) == 0
                assert leaving.process.wait(60) == 0
    assert sorted(ran.read_text().split()) == ["0", "1", "2"], "nothing ran twice"
    assert "retiring" in leaving.log() and "no task runs any more" in leaving.log()
