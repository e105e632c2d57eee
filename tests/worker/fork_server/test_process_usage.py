from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.waiting import wait_until

from scaler_worker.fork_server import process_usage
from scaler_worker.fork_server.process_usage import ProcessUsage


def test_usage_of_this_process() -> None:
    data = bytearray(os.urandom(1 << 24))
    wait_until(lambda: sum(range(100_000)) and process_usage.process_usage(os.getpid()).cpu_milliseconds >= 50)
    used = process_usage.process_usage(os.getpid())
    times = os.times()
    assert 50 <= used.cpu_milliseconds <= 1000 * (times.user + times.system) + 10
    assert used.resident_bytes > len(data)
    assert used.resident_bytes == pytest.approx(process_usage.resident_bytes(os.getpid()), rel=0.1)


def test_usage_is_that_of_psutil() -> None:
    used, elsewhere = process_usage.process_usage(os.getpid()), process_usage._usage_elsewhere(os.getpid())
    assert elsewhere.resident_bytes == pytest.approx(used.resident_bytes, rel=0.1)
    assert 0 <= elsewhere.cpu_milliseconds - used.cpu_milliseconds < 1000


def test_process_with_an_odd_name() -> None:
    code = """if True:
        import ctypes, time
        ctypes.CDLL(None).prctl(15, b") R 1 (", 0, 0, 0)
        while time.process_time() < 0.05:
            pass
        print(flush=True)
        input()
    """
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process_usage.process_usage(process.pid).cpu_milliseconds >= 30
        process.communicate(b"\n")


def test_ended_process_has_no_usage() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    assert process_usage.process_usage(process.pid) == ProcessUsage()
