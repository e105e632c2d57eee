"""Forced stops while a task imports: afterwards every worker can import the same modules as before."""

from __future__ import annotations

import concurrent.futures
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster
from tests.integration.executions import note, notes
from tests.waiting import wait_until
from tests.worker.worker_process import import_as_if_it_could_be_stopped, write_slow_module

from scaler_client import Client, SchedulerClusterCombo, WorkerDiedError
from scaler_worker.fork_server.process_events import DAMAGED

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 60
TRIALS = 5

SLOW_MODULE = """
import sys, time
if getattr(sys, "slow_module_was_begun", False):
    raise ImportError("cannot load module more than once per process")
sys.slow_module_was_begun = True
end = time.perf_counter() + 0.4
while time.perf_counter() < end:
    time.sleep(0.001)
VALUE = 17
"""
"""Behaves like a C extension that can be initialised only once in a process."""


def import_numpy(log: str, _folder: str) -> int:
    note(log, "began")
    import numpy

    return int(numpy.arange(18).sum()) - 136


def import_slow_module(log: str, folder: str) -> int:
    if folder not in sys.path:
        sys.path.append(folder)
    note(log, "began")
    import slow_module  # type: ignore[import-not-found]

    return int(slow_module.VALUE)


def vanish() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def combo() -> Iterator[SchedulerClusterCombo]:
    with SchedulerClusterCombo(n_workers=1) as combo:
        yield combo


def by_cancel(_: str, client: Client, fn: Callable[[str, str], int], log: str, folder: str, wait: float) -> None:
    future = client.submit(fn, log, folder)
    wait_until(lambda: notes(log), what="it begins")
    time.sleep(wait)  # at any moment of the import, without waiting for an event
    future.cancel(force=True)
    concurrent.futures.wait([future], SECONDS)


def by_time_limit(_: str, client: Client, fn: Callable[[str, str], int], log: str, folder: str, wait: float) -> None:
    future = client.options(timeout=0.02 + wait).submit(fn, log, folder)
    concurrent.futures.wait([future], SECONDS)


def by_gone_client(address: str, _: Client, fn: Callable[[str, str], int], log: str, folder: str, wait: float) -> None:
    with Client(address) as other:
        other.submit(fn, log, folder)
        wait_until(lambda: notes(log), what="it begins")
        time.sleep(wait)


@pytest.mark.parametrize("fn", [import_numpy, import_slow_module])
@pytest.mark.parametrize("stop", [by_cancel, by_time_limit, by_gone_client])
def test_a_stop_in_an_import_damages_no_worker(
    combo: SchedulerClusterCombo, tmp_path: Path, stop: Callable[..., None], fn: Callable[[str, str], int]
) -> None:
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)
    address = combo.get_address()
    chance = random.Random(11)
    with Client(address, timeout_seconds=SECONDS) as client:
        for trial in range(TRIALS):
            log = str(tmp_path / f"log{trial}")
            stop(address, client, fn, log, str(tmp_path), chance.uniform(0.0, 0.08))
            assert client.submit(fn, f"{log}.after", str(tmp_path)).result(SECONDS) == 17
            with pytest.raises(WorkerDiedError):
                client.options(retries=0).submit(vanish).result(SECONDS)  # the next trial gets a new process


ENDLESS_MODULE = "import time\nwhile True:\n    time.sleep(0.01)\n"


def import_endless_module(log: str, folder: str) -> None:
    sys.path.append(folder)
    note(log, "began")
    import endless_module  # type: ignore[import-not-found]  # noqa: F401


def test_a_stop_in_an_endless_import_kills_the_process(combo: SchedulerClusterCombo, tmp_path: Path) -> None:
    (tmp_path / "endless_module.py").write_text(ENDLESS_MODULE)
    log = str(tmp_path / "log")
    with Client(combo.get_address(), timeout_seconds=SECONDS) as client:
        future = client.submit(import_endless_module, log, str(tmp_path))
        wait_until(lambda: notes(log), what="it begins")
        assert future.cancel(force=True)
        assert future.cancelled()
        (began,) = notes(log)
        assert client.submit(os.getpid).result(SECONDS) != began.pid


def wait_for_a_gpu(log: str) -> str:
    note(log, "began")
    child: str = Client().options(capabilities={"gpu": 1}).submit(str, "from a gpu").result()
    return child


def test_tasks_of_a_damaged_worker_run_elsewhere(daemon: SchedulerCommand, tmp_path: Path) -> None:
    """Queued tasks of another client run elsewhere. A suspended parent has ended with the process: this counts."""
    (tmp_path / "damaged").mkdir()
    write_slow_module(tmp_path, 60.0)
    log = str(tmp_path / "log")
    with Client(daemon.address, timeout_seconds=SECONDS) as client, Client(daemon.address) as other:
        careful = other.options(retries=0)
        with cluster(tmp_path / "damaged", daemon.address) as damaged:
            parent = careful.submit(wait_for_a_gpu, log)
            wait_until(lambda: notes(log), what="it begins")
            pid = client.submit(os.getpid).result(SECONDS)
            assert pid == notes(log)[0].pid, "beside the parent, which waits"
            future = client.submit(import_as_if_it_could_be_stopped, str(tmp_path))
            wait_until(future.running, what="it runs")
            queued = [careful.submit(abs, -number) for number in range(100)]
            assert future.cancel(force=True)
            assert future.cancelled()
            assert [each.result(SECONDS) for each in queued] == list(range(100))
            assert client.submit(os.getpid).result(SECONDS) != pid
            wait_until(lambda: f"(process {pid}) died: {DAMAGED}" in damaged.log(), what="its end is logged")
            with pytest.raises(WorkerDiedError, match="in its only attempt"):
                parent.result(SECONDS)
        assert len(notes(log)) == 1
    assert "which runs again" not in daemon.log() and "within its lease" not in daemon.log()
