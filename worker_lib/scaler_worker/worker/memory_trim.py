"""Garbage collection between tasks, and the return of free memory to the system."""

from __future__ import annotations

import ctypes
import gc
import os
import time

from scaler_worker.fork_server.process_usage import resident_bytes
from scaler_worker.fork_server.worker_settings import WorkerSettings


class MemoryTrim:
    """Collects garbage at an interval, and trims memory if the process is large."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._interval_seconds = settings.garbage_collect_interval_seconds
        self._threshold_bytes = settings.trim_memory_threshold_bytes
        self._next = time.monotonic() + self._interval_seconds

    def run_if_due(self, now: float) -> bool:
        """Collect and trim if the interval is over. Returns whether it did."""
        if now < self._next:
            return False
        self._next = now + self._interval_seconds
        gc.collect()
        if resident_bytes(os.getpid()) > self._threshold_bytes:
            _trim_memory()
        return True


def _trim_memory() -> None:
    """Return free pages of the C library's heap to the system. Does nothing without glibc."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        pass
