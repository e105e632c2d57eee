"""How long executions took, by function: percentiles of what is kept, in logarithmic buckets.

A bucket is an eighth of a power of two wide, so a percentile is right to within 4.5 percent of itself. Buckets can be
added and taken away, which is how executions come and go: by chunks, without sorting anything.
"""

from __future__ import annotations

import math
from collections import Counter

BUCKETS_PER_OCTAVE = 8


class FunctionDurations:
    """Of one function: how many executions, how many of them failed, and how long they took."""

    __slots__ = ("buckets", "count", "failed", "nanoseconds")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.failed = 0
        self.nanoseconds = 0

    def add(self, nanoseconds: int, is_failed: bool) -> None:
        """`nanoseconds` is 0 where it is not known how long it took: then it counts, but has no duration."""
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
        """What has joined before is there no more."""
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
        """In seconds; 0 where nothing is known."""
        known = self.buckets.total()
        return self.nanoseconds / known / 1e9 if known else 0.0

    def percentile(self, percent: float) -> float | None:
        """In seconds: the shortest that as many as that are no longer than."""
        known = self.buckets.total()
        if not known:
            return None
        left = max(1, math.ceil(known * percent / 100))
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return seconds_of(bucket)
        raise AssertionError("more were asked for than there are")


def bucket_of(nanoseconds: int) -> int:
    return math.floor(math.log2(nanoseconds) * BUCKETS_PER_OCTAVE)


def seconds_of(bucket: int) -> float:
    """The middle of a bucket, which differs least from all that is in it."""
    return float(f"{2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE) / 1e9:.4g}")
