"""The numbers of snapshots over time: one point a second, of which the newest are kept."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..monitor.snapshot_view import SnapshotView
from .contract import outcome_kind
from .tables import queued_tasks

COLUMNS = (
    "time", "throughput", "failed", "waiting", "blocked", "queued", "running", "suspended", "workers", "clients",
    "memory", "worker_memory", "cpu", "loop",
)  # fmt: skip

Point = tuple[float | None, ...]


class Series:
    """The newest points, at most `most`."""

    def __init__(self, most: int) -> None:
        self.points: deque[Point] = deque()
        self.first = 0
        """The number of the oldest point that is kept."""
        self._most = most
        self._failures: tuple[int, float, int] | None = None
        """Of the previous snapshot: the scheduler's incarnation, its uptime, and the number of failed tasks."""

    @property
    def next_number(self) -> int:
        return self.first + len(self.points)

    def add(self, view: SnapshotView) -> None:
        """Add the point of a snapshot."""
        snapshot = view.snapshot
        numbers: Point = (
            snapshot.unix_seconds,
            round(view.resolved_rate, 1),
            round(self._failed_rate(view), 1),
            snapshot.waiting,
            snapshot.blocked,
            queued_tasks(view),
            snapshot.running,
            snapshot.suspended,
            snapshot.workers,
            snapshot.clients,
            snapshot.process.resident_bytes,
            sum(snapshot.worker_columns.resident_bytes),
            round(view.cpu_percent, 1),
            round(view.loop_percent, 1),
        )
        self.points.append(numbers)

    def add_gap(self) -> None:
        """Add a gap after the last point, because the scheduler is down."""
        if self.points and self.points[-1][1] is not None:
            self.points.append((self.points[-1][0], *[None] * (len(COLUMNS) - 1)))

    def drop_before(self, oldest: float) -> None:
        """Drop points before `oldest` (unix time), and those beyond the limit, because a clock may be set back."""
        while self.points and ((self.points[0][0] or 0.0) < oldest or len(self.points) > self._most):
            self.points.popleft()
            self.first += 1

    def message(self, begin: int) -> dict[str, Any]:
        """The message with the points from number `begin` on, which must be kept."""
        points = [self.points[number - self.first] for number in range(begin, self.next_number)]
        columns = zip(*points) if points else [()] * len(COLUMNS)
        return {"type": "series", "first": begin, "columns": dict(zip(COLUMNS, columns))}

    def number_at(self, time: float) -> int:
        """The number of the first point that is not before `time` (unix time)."""
        older = sum(1 for point in self.points if (point[0] or 0.0) < time)
        return self.first + older

    def _failed_rate(self, view: SnapshotView) -> float:
        snapshot = view.snapshot
        failed = sum(total for number, total in enumerate(snapshot.outcomes) if outcome_kind(number) == "failed")
        before, self._failures = self._failures, (snapshot.incarnation, snapshot.uptime_seconds, failed)
        if before is None or before[0] != snapshot.incarnation or snapshot.uptime_seconds <= before[1]:
            return 0.0
        return (failed - before[2]) / (snapshot.uptime_seconds - before[1])
