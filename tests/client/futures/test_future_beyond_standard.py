"""The features of TaskFuture beyond the standard library's: force-cancel, timeouts, profiling."""

from __future__ import annotations

import concurrent.futures
import gc
import subprocess
import sys
from typing import Any

import pytest
from tests.client.stand_ins import (
    FakeIoThread,
    cancelled,
    end_with_exception,
    end_with_value,
    pending,
    running,
    with_exception,
    with_value,
)

from scaler_client.errors import ScalerError, TaskTimeoutError
from scaler_client.futures.profiling import ProfilingInfo
from scaler_client.protocol.messages import Options, Outcome


def fields_of_the_first_futures() -> str:
    """Make futures, end one after the others, and return whether it has a dict. Called in a process of its own."""
    futures = [pending() for _ in range(1000)]
    for future in futures:
        end_with_value(future)
        future.task_id = 1
        assert future.result(0) == 42
    return str(any(isinstance(each, dict) for each in gc.get_referents(futures[-1])))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="every instance has a dict before Python 3.11")
def test_futures_have_no_dicts_of_their_own() -> None:
    """A dict for each future costs half of what the client needs for its task."""
    code = "from tests.client.futures import test_future_beyond_standard as t; print(t.fields_of_the_first_futures())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_force_cancel_asks_for_a_running_task() -> None:
    io_thread = FakeIoThread(grants_cancel=True)
    future = pending(io_thread)
    future.start()
    assert future.cancel() is False
    assert io_thread.cancels == 0
    assert future.cancel(force=True) is True
    assert future.cancel(force=True) is True
    assert (io_thread.cancels, io_thread.forced_cancels) == (1, 1)


@pytest.mark.parametrize("make", [with_value, lambda: with_exception(OSError())])
def test_force_cancel_of_a_done_task(make: Any) -> None:
    assert make().cancel(force=True) is False


def test_a_task_that_ends_before_it_is_stopped() -> None:
    future = running()
    future._io_thread.grants_cancel = False  # type: ignore[attr-defined]
    assert future.cancel(force=True) is False
    end_with_value(future, 1)
    assert future.result(0) == 1


def test_a_task_beyond_its_timeout() -> None:
    future = pending()
    future.resolve(0, Outcome.TIMED_OUT, "f ran for more than 2 s – stopped".encode())
    with pytest.raises(TaskTimeoutError, match="2 s – stopped") as raised:
        future.result(0)
    assert isinstance(raised.value, TimeoutError) and isinstance(raised.value, ScalerError)


@pytest.mark.parametrize("end", [end_with_value, lambda future: end_with_exception(future, OSError())])
def test_profiling_info(end: Any) -> None:
    future = pending()
    future.set_measurements(1_499_999, 2_500, 4096)
    end(future)
    info = future.profiling_info()
    assert info == ProfilingInfo(duration_us=1500, cpu_time_us=2, peak_memory=4096)
    assert (info.duration_s, info.cpu_time_s) == (0.0015, 2e-6)


def test_profiling_info_without_measurement_raises() -> None:
    with pytest.raises(ValueError, match="profiling=True"):
        with_value(1).profiling_info()
    died = pending()
    died.options = Options(profiling=True)
    died.resolve(0, Outcome.WORKER_DIED, b"signal 9")
    with pytest.raises(ValueError, match="did not end on a worker"):
        died.profiling_info()
    with pytest.raises(concurrent.futures.CancelledError):
        cancelled().profiling_info()
    with pytest.raises(ValueError, match="^the task is not done: wait for its result"):
        pending().profiling_info()


def test_measurements_after_the_end_are_ignored() -> None:
    future = with_value(1)
    future.set_measurements(1, 1, 1)
    with pytest.raises(ValueError, match="not profiled"):
        future.profiling_info()
