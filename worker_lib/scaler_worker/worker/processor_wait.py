"""How long the thread that runs tasks waited for a processor, although it was ready to run.

On a busy host a task that does nothing may wait for milliseconds. If that counted as its run time, the scheduler would
take such tasks for long ones: it would spread them over many workers and give each a message of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

SCHEDSTAT = "/proc/thread-self/schedstat"
"""Linux's file of a thread's times in nanoseconds: on a processor, and waiting for one. An open file always tells
the times of the thread that opened it."""

LEAST_NS = 200_000
"""Shorter waits are ignored. Reading the file takes 2 us, a hundredth of this."""

CALM_RUNS = 64
"""After so many runs without a wait, the file is read only at the end of runs that take LEAST_NS or more."""

LONG_NS = 10_000_000
"""The run time of a task that takes this long by itself includes its waits: its worker is busy for that long."""


class ProcessorWait:
    """The waits of the thread that makes this object. Only this thread uses it.

    Args:
        path: the file with the thread's times. If it can't be opened, no wait is ever found.
    """

    def __init__(self, path: str = SCHEDSTAT) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1
        self._begun = -1
        """The wait in the file when the run began, in nanoseconds; -1: the file was not read."""
        self._last = 0
        self._calm_runs = 0 if self._file >= 0 else CALM_RUNS

    def begin(self) -> None:
        """Begin a run of tasks."""
        self._begun = self._read() if self._calm_runs < CALM_RUNS else -1

    def end(self, elapsed_ns: int) -> int:
        """End a run of tasks.

        Args:
            elapsed_ns: how long the run took.

        Returns:
            For how many nanoseconds of it the thread waited for a processor.
        """
        if self._file < 0:
            return 0
        if elapsed_ns < LEAST_NS:
            self._calm_runs += 1
            return 0
        now = self._read()
        since = self._last if self._begun < 0 else self._begun
        self._last = now
        if now - since < LEAST_NS:
            self._calm_runs += 1
            return 0
        self._calm_runs = 0
        return 0 if self._begun < 0 else now - since

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self) -> int:
        try:
            return int(os.pread(self._file, 100, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return self._last


def without_waits(durations: Sequence[int], waited_ns: int) -> list[int]:
    """Return run times without the time for which their thread has waited for a processor.

    It is not known which tasks have waited; most likely the longest ones have. These are all cut to one length, so that
    the total is shorter by `waited_ns`. If this length is LONG_NS or more, nothing is changed.

    Args:
        durations: run times in nanoseconds.
        waited_ns: how long the thread has waited while they ran.
    """
    left = waited_ns
    longest = sorted(durations, reverse=True)
    limit = 0
    for count, (duration, following) in enumerate(zip(longest, [*longest[1:], 0], strict=True), 1):
        if (duration - following) * count >= left:
            limit = duration - left // count
            break
        left -= (duration - following) * count
    return [min(duration, limit) for duration in durations] if limit < LONG_NS else list(durations)
