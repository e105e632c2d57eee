"""`ProfilingInfo`: what a worker measures of a task that is submitted with profiling."""

from __future__ import annotations

from dataclasses import dataclass

_NANOSECONDS = 1000
"""Nanoseconds in a microsecond."""

NOT_DONE = "the task is not done: wait for its result before its profile"


@dataclass(frozen=True)
class ProfilingInfo:
    """The time and the memory that a task took, in its last attempt.

    `Client.options(profiling=True)` turns the measurement on; `TaskFuture.profiling_info` returns it.
    """

    duration_us: int
    """Microseconds from reading the arguments to writing the result, waiting times included."""
    cpu_time_us: int
    """Microseconds of processor time that the worker process used during the task."""
    peak_memory: int
    """The largest resident size of the worker process that was seen during the task, in bytes."""

    @property
    def duration_s(self) -> float:
        """`duration_us` in seconds."""
        return self.duration_us / 1e6

    @property
    def cpu_time_s(self) -> float:
        """`cpu_time_us` in seconds."""
        return self.cpu_time_us / 1e6


def profiling_info(duration: int, cpu_time: int, peak: int) -> ProfilingInfo:
    """Make a ProfilingInfo of nanoseconds and bytes, the units on the wire."""
    return ProfilingInfo(round(duration / _NANOSECONDS), round(cpu_time / _NANOSECONDS), peak)
