"""Durations of executions by function: percentiles from logarithmic buckets.

A bucket is an eighth of a power of two wide, so a percentile is accurate to 4.5 percent. Buckets can be added and
subtracted. So whole chunks of executions come and go without any sorting.
"""

from __future__ import annotations

import math
from collections import Counter

BUCKETS_PER_OCTAVE = 8


class FunctionDurations:
    """The executions of one function: their number, failures and durations."""

    __slots__ = ("buckets", "count", "failed", "nanoseconds")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.failed = 0
        self.nanoseconds = 0

    def add(self, nanoseconds: int, is_failed: bool) -> None:
        """Count an execution. `nanoseconds` is its duration, or 0 if that is not known."""
        self.count += 1
        self.failed += is_failed
        if nanoseconds > 0:
            self.nanoseconds += nanoseconds
            self.buckets[bucket_of(nanoseconds)] += 1

    def merge(self, other: FunctionDurations) -> None:
        self.count += other.count
        self.failed += other.failed
        self.nanoseconds += other.nanoseconds
        self.buckets.update(other.buckets)

    def subtract(self, other: FunctionDurations) -> None:
        """Remove what was merged before."""
        self.count -= other.count
        self.failed -= other.failed
        self.nanoseconds -= other.nanoseconds
        for bucket, number in other.buckets.items():
            left = self.buckets[bucket] - number
            if left:
                self.buckets[bucket] = left
            else:
                del self.buckets[bucket]

    def mean(self) -> float:
        """The mean in seconds; 0 if no duration is known."""
        known = self.buckets.total()
        return self.nanoseconds / known / 1e9 if known else 0.0

    def percentile(self, percent: float) -> float | None:
        """The duration in seconds that `percent` of the executions do not exceed; None if no duration is known."""
        known = self.buckets.total()
        if not known:
            return None
        left = max(1, math.ceil(known * percent / 100))
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return seconds_of(bucket)
        raise AssertionError("the buckets hold fewer executions than counted")


def bucket_of(nanoseconds: int) -> int:
    return math.floor(math.log2(nanoseconds) * BUCKETS_PER_OCTAVE)


def seconds_of(bucket: int) -> float:
    """The middle of a bucket in seconds, which has the smallest error."""
    return float(f"{2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE) / 1e9:.4g}")
