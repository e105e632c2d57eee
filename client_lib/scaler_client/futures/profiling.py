"""What a worker measures of a task on demand."""

from __future__ import annotations

from dataclasses import dataclass

_NANOSECONDS = 1000
"""In a microsecond."""

NOT_DONE = "the task is not done: wait for its result before its profile"


@dataclass(frozen=True)
class ProfilingInfo:
    """What one task took, in its last attempt."""

    duration_us: int
    """Microseconds from its arguments read to its result written, times when it waited included."""
    cpu_time_us: int
    """Microseconds of processor time that the worker's process used meanwhile."""
    peak_memory: int
    """Bytes: the largest resident size of the worker's process that was seen meanwhile."""

    @property
    def duration_s(self) -> float:
        """`duration_us` in seconds."""
        return self.duration_us / 1e6

    @property
    def cpu_time_s(self) -> float:
        """`cpu_time_us` in seconds."""
        return self.cpu_time_us / 1e6


def profiling_info(duration: int, cpu_time: int, peak: int) -> ProfilingInfo:
    """From nanoseconds and bytes, as they travel."""
    return ProfilingInfo(round(duration / _NANOSECONDS), round(cpu_time / _NANOSECONDS), peak)
