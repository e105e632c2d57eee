"""The balance of load over workers, also while workers come and go."""

from __future__ import annotations

import re
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import cloudpickle
from tests.integration.commands import Command, SchedulerCommand, cluster
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def pause(log: str, seconds: float) -> float:
    note(log, "began")
    time.sleep(seconds)
    return seconds


def meet(log: str, count: int) -> int:
    """Return when this many tasks run this function at the same time; at once for one task."""
    note(log, "there")
    while len(notes(log)) < count:
        time.sleep(0.005)
    return count


def test_long_tasks_queued_on_one_worker_spread_over_seven_that_join(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """All eight tasks must run at the same time, otherwise none ends."""
    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client:
        # The scheduler knows it as a short task, so the worker gets all of them.
        client.map(meet, [(str(tmp_path / "warm"), 1)] * 500)
        log = str(tmp_path / "log")
        futures = [client.submit(meet, log, 8) for _ in range(8)]
        wait_until(lambda: notes(log), what="the first begins")
        others = tmp_path / "others"
        others.mkdir()
        with cluster(others, daemon.address, 7):
            assert [future.result(SECONDS) for future in futures] == [8] * 8
        assert len({each.pid for each in notes(log)}) == 8


def test_no_worker_is_idle_while_another_has_a_queue(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Short tasks are queued behind a long task of the same function."""
    with cluster(tmp_path, daemon.address, 2), Client(daemon.address) as client:
        log = str(tmp_path / "log")
        client.map(pause, [(log, 0.0)] * 500)
        long = client.submit(pause, log, 10.0)
        short = [client.submit(pause, log, 0.001) for _ in range(300)]
        assert [each.result(SECONDS) for each in short] == [0.001] * 300
        assert not long.done()
        assert long.cancel(force=True)


def hold_the_lock(count: int) -> bool:
    """Run C code that holds the GIL, for ever with a large count."""
    return re.match("(a+)+$", "a" * count + "b") is None


def test_no_worker_is_idle_while_another_can_not_answer(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """This worker can neither report its long task nor give back its queue. Its agent reports the task."""
    with (
        cluster(tmp_path, daemon.address, 2, "--heartbeat-interval-seconds", "0.5"),
        Client(daemon.address) as client,
    ):
        client.map(hold_the_lock, [(1,)] * 500)
        before = [client.submit(hold_the_lock, 1) for _ in range(50)]
        long = client.submit(hold_the_lock, 60)
        behind = [client.submit(hold_the_lock, 1) for _ in range(300)]
        assert all(each.result(SECONDS) for each in behind)
        assert not long.done()
        assert long.cancel(force=True)
        # Those that had run there have ended with the process, if their answers had not been sent.
        assert all(each.result(SECONDS) for each in before)


def where(log: str, seconds: float, task: int) -> int:
    note(log, "began", task)
    time.sleep(seconds)
    note(log, "ended", task)
    return task


def test_joining_and_leaving_clusters_lose_no_task(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Each cluster in turn gets a SIGTERM while it has running and queued tasks. This costs no retry."""
    log = str(tmp_path / "log")
    with Client(daemon.address) as client:
        careful = client.options(retries=0)
        futures = [careful.submit(where, log, 0.01, task) for task in range(300)]
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            with cluster(folder, daemon.address, 2) as workers:
                goal = len(notes(log)) + 100
                wait_until(lambda goal=goal: len(notes(log)) >= goal, what="work is under way")  # type: ignore[misc]
                assert workers.stop() == 0
                assert "Traceback" not in workers.log()
        with cluster(tmp_path, daemon.address, 2):
            assert [future.result(SECONDS) for future in futures] == list(range(300))
    # The running tasks have ended there, and their answers have arrived.
    assert len(notes(log, "ended")) == 300


# --------------------------------------------------------------------------------------------------------- capabilities


def workers_with(folder: Path, address: str, capabilities: str) -> AbstractContextManager[Command]:
    folder.mkdir()
    return cluster(folder, address, 1, "--capabilities", capabilities)


def test_capabilities(daemon: SchedulerCommand, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    with cluster(tmp_path, daemon.address, 1), Client(daemon.address) as client:
        gpus = client.options(capabilities={"gpu": 2}, name="on-gpus")
        wanting = [gpus.submit(where, log, 0.0, task) for task in range(3)]
        others = [client.submit(where, log, 0.0, 100 + task) for task in range(100)]
        assert [other.result(SECONDS) for other in others] == [100 + task for task in range(100)]
        wait_until(lambda: "gpu" in daemon.log(), what="the log says what is wanted")
        with workers_with(tmp_path / "small", daemon.address, "gpu,linux"):
            at_once = client.options(capabilities=["linux", "gpu"]).submit(where, log, 0.0, 200)
            assert at_once.result(SECONDS) == 200
            assert not any(each.done() for each in wanting)
        with workers_with(tmp_path / "large", daemon.address, "gpu=4"):
            assert [each.result(SECONDS) for each in wanting] == [0, 1, 2]
    pids = {each.pid for each in notes(log) if int(each.task) < 100}
    assert len(pids) == 1 and not pids & {each.pid for each in notes(log) if int(each.task) >= 100}
