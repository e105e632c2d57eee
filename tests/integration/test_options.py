"""Options of tasks against real processes: time limits, retries, priorities, fairness, profiles."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import SchedulerCommand, cluster, monitor
from tests.integration.endless import hold_the_gil, sleep, spin
from tests.integration.executions import note, notes
from tests.waiting import wait_until

from scaler_client import Client, ProfilingInfo, TaskFuture, TaskTimeoutError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SECONDS = 30


def square(x: int) -> int:
    return x * x


def meet(log: str, count: int) -> int:
    """Return when this many tasks run this function at once."""
    note(log, "there")
    while len(notes(log)) < count:
        time.sleep(0.005)
    return os.getpid()


def test_a_time_limit(client: Client, tmp_path: Path) -> None:
    limited = client.options(timeout=0.3)
    endless = {fn.__name__: str(tmp_path / fn.__name__) for fn in (hold_the_gil, sleep, spin)}
    futures = [
        limited.options(name=f"my-{fn.__name__}").submit(fn, endless[fn.__name__]) for fn in (hold_the_gil, sleep, spin)
    ]
    for name, future in zip(endless, futures):
        with pytest.raises(TaskTimeoutError, match=rf"my-{name}#\d+: .*0\.3 s"):
            future.result(SECONDS)
        assert len(notes(endless[name])) == 1, "no second attempt"
    for name, future in zip(endless, futures):
        where = str(getattr(future.exception(), "__cause__", None))
        if name == "hold_the_gil":  # its process was ended: nobody knows the place
            assert where == "None"
        else:
            assert f", in {name}" in where and "scaler_worker" not in where, where
    pids = [client.submit(meet, str(tmp_path / "meeting"), 2) for _ in range(2)]
    assert len({each.result(SECONDS) for each in pids}) == 2, "both workers are free"


def swallow_its_stop(log: str) -> str:
    note(log, "began")
    try:
        time.sleep(600)
    except BaseException:
        note(log, "swallowed")
    return "value"


def test_a_time_limit_of_a_task_that_swallows_its_stop(client: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    error = client.options(timeout=0.3).submit(swallow_its_stop, log).exception(SECONDS)
    assert isinstance(error, TaskTimeoutError) and len(notes(log)) == 2
    where = str(error.__cause__)
    assert ", in swallow_its_stop\n    time.sleep(600)\n" in where and "scaler_worker" not in where, where
    assert "the task ignored its stop" in where


def test_a_time_limit_of_a_function_that_is_not_in_python(client: Client) -> None:
    error = client.options(timeout=0.3).submit(time.sleep, 600).exception(SECONDS)
    assert isinstance(error, TaskTimeoutError)
    assert "\n" not in str(error) and "TaskStoppedError" not in str(error)
    assert "in a function that is not written in Python\n" in str(error.__cause__)


def test_a_time_limit_is_of_run_time(client: Client, tmp_path: Path) -> None:
    """The time of waiting for a worker does not count."""
    log = str(tmp_path / "log")
    blocking = [client.submit(sleep, log) for _ in range(2)]
    wait_until(lambda: len(notes(log)) == 2)
    limited = client.options(timeout=0.5)
    waiting = [limited.submit(square, i) for i in range(20)]
    short = client.options(timeout=0.8, name="short").submit(sleep, log)
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 0.7)  # longer than the limit
    assert not any(each.done() for each in [*waiting, short])
    assert all(each.cancel(force=True) for each in blocking)
    assert [each.result(SECONDS) for each in waiting] == [i * i for i in range(20)]
    assert isinstance(short.exception(SECONDS), TaskTimeoutError)


# -------------------------------------------------------------------------------------------------------------- retries


def fails_at_first(log: str, times: int, error: type[Exception]) -> int:
    note(log, "began")
    if len(notes(log)) <= times:
        raise error(f"attempt {len(notes(log))}")
    return len(notes(log))


def test_retries_of_exceptions(client: Client, tmp_path: Path) -> None:
    patient = client.options(retries=3, retry_on=(OSError,))
    assert patient.submit(fails_at_first, str(tmp_path / "1"), 3, ConnectionResetError).result(SECONDS) == 4
    with pytest.raises(OSError, match="attempt 4") as raised:
        patient.submit(fails_at_first, str(tmp_path / "2"), 100, OSError).result(SECONDS)
    assert "in fails_at_first" in str(raised.value.__cause__)
    assert len(notes(str(tmp_path / "2"))) == 4
    for of in (patient, client.options(retries=3)):
        log = str(tmp_path / f"other-{id(of)}")
        with pytest.raises(LookupError, match="attempt 1"):
            of.submit(fails_at_first, log, 100, LookupError).result(SECONDS)
        assert len(notes(log)) == 1
    assert patient.map(square, [(i,) for i in range(100)]) == [i * i for i in range(100)]


# --------------------------------------------------------------------------------------------- who goes first, and when


def noted(log: str, task: int) -> int:
    note(log, "began", task)
    return task


def until_there(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.002)


def test_higher_priorities_start_first(daemon: SchedulerCommand, tmp_path: Path) -> None:
    log, gate = str(tmp_path / "log"), tmp_path / "gate"
    with cluster(tmp_path, daemon.address), Client(daemon.address) as client:
        first = client.submit(until_there, str(gate))
        wait_until(first.running)
        futures = []
        for priority in (-1, 0, 5, 0, 2):
            of = client.options(priority=priority)
            futures += [of.submit(noted, log, priority) for _ in range(200)]
        with monitor(daemon.monitor_address) as watch:
            wait_until(lambda: watch.next().waiting == len(futures), what="all are there")
        gate.touch()
        for future in futures:
            future.result(SECONDS)
    assert [int(each.task) for each in notes(log)] == [5] * 200 + [2] * 200 + [0] * 400 + [-1] * 200


def pause(seconds: float) -> None:
    time.sleep(seconds)


def test_ten_tasks_do_not_wait_for_a_million_of_another_client(daemon: SchedulerCommand, tmp_path: Path) -> None:
    with cluster(tmp_path, daemon.address):
        with Client(daemon.address) as greedy, Client(daemon.address) as modest:
            many = [greedy.submit(pause, 0.002) for _ in range(20_000)]
            wait_until(lambda: sum(each.done() for each in many[:20]) == 20)
            for _ in range(2):
                assert [modest.submit(pause, 0.002).result(SECONDS) for _ in range(10)] == [None] * 10
            done = sum(each.done() for each in many)
            assert done < 10_000, "its turn came when the others were through"


# ------------------------------------------------------------------------------------------------------------- profiles


def work_hard(seconds: float, mebibytes: int) -> int:
    block = b"x" * (mebibytes << 20)
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
    return len(block)


def profile(future: TaskFuture[Any]) -> ProfilingInfo:
    future.result(SECONDS)
    return future.profiling_info()


def test_profiles(client: Client) -> None:
    info = profile(client.submit(work_hard, 0.2, 100, profiling=True))
    assert info.duration_us >= info.cpu_time_us * 0.9 and 190_000 < info.cpu_time_us < 10_000_000
    assert 100 << 20 < info.peak_memory < 10 << 30
    idle = profile(client.options(profiling=True).submit(pause, 0.1))
    assert idle.duration_us > 90_000 and idle.cpu_time_us < 90_000
    with pytest.raises(ValueError, match="profil"):
        profile(client.submit(square, 2))
