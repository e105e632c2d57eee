"""The core's clock, the check of leases, and the timers of tasks."""

from heapq import heapify, heappop, heappush

from scaler_scheduler.core.state.records import Task, Timer

LEASE_CHECK_SECONDS = 1.0
"""The time between two checks of leases. A peer may live this much longer than its lease."""


STALL_SECONDS = 3.0
"""If a check is late by more than this, the scheduler's process was stopped. Then leases are extended."""

_MIN_STALE_ENTRIES = 1000
"""Cancelled timers stay in the heap up to this number, before the heap is rebuilt."""


class Clock:
    """The core's time: the arrival of the event or tick that is being handled.

    Only the scheduler sets `now`. All parts of the core that handle one event read the same time.
    """

    __slots__ = ("now",)

    def __init__(self, now: float) -> None:
        self.now = now
        """Seconds of the monotonic clock."""


class LeaseTimer:
    """When leases are checked next."""

    def __init__(self, now: float) -> None:
        self.next_check = now + LEASE_CHECK_SECONDS
        self._lateness = 0.0

    def is_due(self, now: float) -> bool:
        """Whether leases are to be checked now. If so, the next check is scheduled."""
        if now < self.next_check:
            return False
        self._lateness = now - self.next_check
        self.next_check = now + LEASE_CHECK_SECONDS
        return True

    def stall_seconds(self) -> float:
        """Return how long the scheduler's process was stopped before the due check, in seconds. 0: it was not
        stopped."""
        return self._lateness if self._lateness > STALL_SECONDS else 0.0


class TimerQueue:
    """Timers of tasks by deadline. A cancelled timer drops its task at once and leaves the heap later."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._number = 0
        self._stale = 0

    def __len__(self) -> int:
        return len(self._heap) - self._stale

    @property
    def next_deadline(self) -> float:
        """The earliest deadline in the heap. Infinity if there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def set(self, task: Task, deadline: float) -> None:
        """Set the task's timer to this deadline, instead of an earlier setting."""
        self.cancel(task)
        timer = task.timer = Timer(task)
        self._number += 1  # equal deadlines keep their order, and timers are not compared
        heappush(self._heap, (deadline, self._number, timer))

    def cancel(self, task: Task) -> None:
        """Remove the task's timer, if it has one."""
        timer = task.timer
        if timer is None:
            return
        timer.task = task.timer = None
        self._stale += 1
        if self._stale > _MIN_STALE_ENTRIES and self._stale * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].task is not None]
            heapify(self._heap)
            self._stale = 0

    def pop_due(self, now: float) -> list[Task]:
        """Remove and return the tasks whose deadline has passed."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            task = heappop(self._heap)[2].task
            if task is None:
                self._stale -= 1
            else:
                task.timer = None
                due.append(task)
        return due
