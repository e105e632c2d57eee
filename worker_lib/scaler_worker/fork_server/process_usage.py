"""What a process uses, as the operating system counts it."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessUsage:
    resident_bytes: int = 0
    cpu_milliseconds: int = 0
    """User and system time since the process started."""


def process_usage(pid: int) -> ProcessUsage:
    """Resident bytes and processor time of a process; zeros once it is gone (or where reading is not allowed)."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return ProcessUsage(process.memory_info().rss, round((times.user + times.system) * 1000))
    except psutil.Error:
        return ProcessUsage()


def resident_bytes(pid: int, without: int = 0) -> int:
    """The resident size alone, for who looks several times a second; 0 as above.

    Args:
        without: bytes that the process shares with others and that don't count, as far as it has that much; on Linux.
    """
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # Linux: 14 us where psutil takes 75
            _, resident, shared, *_ = map(int, file.read().split())
            return resident * mmap.PAGESIZE - min(shared * mmap.PAGESIZE, without)
    except OSError:
        return process_usage(pid).resident_bytes
