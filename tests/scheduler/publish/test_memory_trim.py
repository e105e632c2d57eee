"""The release of memory by an idle scheduler. Runs under PyPy and CPython."""

from __future__ import annotations

import os
import subprocess
import sys

from scaler_scheduler.daemon.pypy import NURSERY, NURSERY_VARIABLE
from scaler_scheduler.publish.memory_trim import (
    IDLE_CHECKS,
    MIN_GROWTH_BYTES,
    MemoryTrim,
)

MEBIBYTE = 1 << 20


class Process:
    """A process with a given size, which counts releases."""

    def __init__(self):
        self.size = 100 * MEBIBYTE
        self.released = 0

    def release(self):
        self.released += 1
        self.size = 110 * MEBIBYTE


def test_when_memory_is_released():
    process = Process()
    trim = MemoryTrim(lambda: process.size, process.release)
    process.size += 2 * MIN_GROWTH_BYTES
    for _ in range(3):
        for _ in range(IDLE_CHECKS - 1):
            trim.check(True)
        trim.check(False)
    assert not process.released, "it was not idle for long enough"
    for _ in range(10 * IDLE_CHECKS):
        trim.check(True)
    assert process.released == 1, "only once while idle"
    for grown, released in ((MIN_GROWTH_BYTES, 1), (1, 2)):
        process.size += grown
        trim.check(False)
        for _ in range(IDLE_CHECKS):
            trim.check(True)
        assert process.released == released


PROGRAM = """
import os
from scaler_scheduler.publish.memory_trim import release_memory, resident_bytes


def measure():
    release_memory()
    before = resident_bytes()
    blocks = [os.urandom(2000) for _ in range(50_000)]
    grown = resident_bytes()
    del blocks
    release_memory()
    print(grown - before, resident_bytes() - before)


measure()
"""


def test_process_releases_memory():
    """In a new process: the garbage of earlier tests would be used in place of new memory."""
    environment = {**os.environ, NURSERY_VARIABLE: NURSERY}  # else a part of the processor's cache, up to 240 MB
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    grown, kept = map(int, ended.stdout.split())
    assert grown > 60 * MEBIBYTE
    assert kept < 0.3 * grown
