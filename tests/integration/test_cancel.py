"""Cancel and force-cancel, with real processes."""

from __future__ import annotations

import concurrent.futures
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.client.stand_ins import in_threads
from tests.integration.commands import monitor, monitor_address_of
from tests.integration.endless import hold_the_gil, sleep, spin
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client, SchedulerClusterCombo

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def square(x: int) -> int:
    return x * x


def ignore_everything(log: str) -> None:
    note(log, "began")
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass


def swallow_errors(log: str) -> None:
    """A loop that swallows all errors. It must not prevent that the task is stopped."""
    note(log, "began")
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            pass


def assert_both_are_free(client: Client, meeting: Path) -> set[int]:
    """Check that two tasks run at the same time; return their process ids."""
    pids = {each.result(SECONDS) for each in [client.submit(meet, str(meeting), 2) for _ in range(2)]}
    assert len(pids) == 2
    return pids


@pytest.mark.parametrize("fn", [sleep, spin, swallow_errors], ids=lambda fn: fn.__name__)
def test_force_stops_a_running_task(client: Client, tmp_path: Path, fn: Callable[[str], None]) -> None:
    log = str(tmp_path / "log")
    future = client.submit(fn, log)
    wait_until(lambda: notes(log), what="the task begins")
    assert future.cancel(force=True) is True
    assert future.cancelled() and future.cancel() is True
    with pytest.raises(concurrent.futures.CancelledError, match=f"task {fn.__name__}#[0-9]+ was cancelled") as raised:
        future.result()
    where = str(raised.value.__cause__)
    assert f", in {fn.__name__}\n" in where and "scaler_worker" not in where, where
    pids = assert_both_are_free(client, tmp_path / "meeting")
    assert [each.pid in pids for each in notes(log)] == [True], "its process lives on"


def test_force_replaces_the_process_of_a_task_that_cannot_be_interrupted(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    futures = [client.submit(fn, log) for fn in (hold_the_gil, ignore_everything)]
    wait_until(lambda: len(notes(log)) == 2, what="the tasks begin")
    assert in_threads(2, lambda number: futures[number].cancel(force=True)) == [True, True]
    assert all(future.cancelled() for future in futures)
    pids = assert_both_are_free(client, tmp_path / "meeting")
    assert len(notes(log)) == 2 and not pids & {each.pid for each in notes(log)}


def meet(log: str, count: int) -> int:
    """Return when this many tasks run this function at once."""
    note(log, "there")
    while len(notes(log)) < count:
        time.sleep(0.005)
    return os.getpid()


def test_force_on_a_task_that_waits_or_is_done(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    blocking = [client.submit(sleep, log) for _ in range(2)]
    wait_until(lambda: len(notes(log)) == 2)
    waiting = client.submit(sleep, log)
    assert waiting.cancel(force=True) and waiting.cancelled()
    assert all(each.cancel(force=True) for each in blocking)
    done = client.submit(square, 3)
    assert done.result(SECONDS) == 9
    assert not done.cancel() and not done.cancel(force=True) and done.result() == 9
    assert len(notes(log)) == 2


@pytest.mark.parametrize("force", [False, True])
def test_cancel_right_after_submit(client: Client, tmp_path: Path, force: bool) -> None:
    """Whether the task has begun is a race, but the answer must be true."""
    log = str(tmp_path / "log")
    for round_ in range(100):
        future = client.submit(briefly, log, round_)
        if future.cancel(force=force):
            assert future.cancelled()
        else:
            assert future.result(SECONDS) == round_
    assert client.submit(square, 2).result(SECONDS) == 4


def briefly(log: str, task: int) -> int:
    note(log, "began", task)
    return task


@pytest.mark.parametrize("force", [False, True])
def test_cancel_a_thousand_tasks_at_once(
    combo: SchedulerClusterCombo, client: Client, tmp_path: Path, force: bool
) -> None:
    log = str(tmp_path / "log")
    client.map(briefly, [(log, -1)] * 50)  # from now on tasks queue at the workers
    futures = [client.submit(briefly, log, task) for task in range(1000)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda future: future.cancel(force=force), futures))
    concurrent.futures.wait(futures, SECONDS)
    for task, (future, answer) in enumerate(zip(futures, answers)):
        assert future.cancelled() is answer
        assert answer or future.result() == task
    if not force:
        ran = {int(each.task) for each in notes(log)} - {-1}
        assert ran == {task for task, answer in enumerate(answers) if not answer}, "a cancelled task ran"
    with monitor(monitor_address_of(combo.get_address())) as watch:
        wait_until(lambda: (now := watch.next()).waiting == now.dispatched == 0)


def test_a_stopped_task_can_clean_up(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def tidy() -> None:
        note(log, "began")
        try:
            while True:
                time.sleep(0.001)
        finally:
            note(log, "tidied")

    future: Any = client.submit(tidy)
    wait_until(lambda: notes(log))
    assert future.cancel(force=True)
    assert [each.event for each in notes(log)] == ["began", "tidied"]
