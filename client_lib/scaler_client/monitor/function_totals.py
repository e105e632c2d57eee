"""Counters by function name since the scheduler's start, for a bounded number of names. A counter never goes back.

A snapshot has at most 1,000 function rows. A function's row disappears with the last client that uses it. Prometheus
needs counters that stay, so this module adds the rows up by name and keeps the sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.snapshots import Snapshot

MAX_NAMES = 100
"""The number of names that have totals of their own."""

OTHER = "other"
"""All further names are counted under this one. So is a function that is really called "other"."""

MAX_NAME_LENGTH = 120
"""Characters of a name that are kept."""

IDLE_SECONDS = 3600.0
"""After this time without a task, a name may be replaced by a new one."""

MAX_REMEMBERED_FUNCTIONS = 20_000
"""The number of functions without a row whose last counts are remembered."""


@dataclass
class FunctionTotal:
    """Counters of one function name: `open_tasks` now, the others since the scheduler's start."""

    open_tasks: int = 0
    done: int = 0
    failed: int = 0
    run_nanoseconds: int = 0
    used_at: float = 0.0
    """The last time the function had a task, in seconds of the scheduler's uptime."""

    def add(self, change: FunctionTotal) -> None:
        self.open_tasks += change.open_tasks
        self.done += change.done
        self.failed += change.failed
        self.run_nanoseconds += change.run_nanoseconds
        self.used_at = max(self.used_at, change.used_at)


_Counts = tuple[int, int, int]
"""Done, failed, nanoseconds."""


class FunctionTotals:
    """Totals by function name. They start over at zero when another scheduler publishes."""

    def __init__(self) -> None:
        self.by_name: dict[str, FunctionTotal] = {}
        """The names that have totals of their own."""
        self.other = FunctionTotal()
        self._incarnation = 0
        self._last_counts: dict[int, _Counts] = {}
        """The last counts of each function, by function number. The functions that have been without a row longest come
        first."""
        self._highest_forgotten = 0
        """The highest number of a function that is no longer remembered."""

    def update(self, snapshot: Snapshot) -> None:
        """Add the changes since the previous snapshot."""
        if snapshot.incarnation != self._incarnation:
            self._reset(snapshot.incarnation)
        for total in (*self.by_name.values(), self.other):
            total.open_tasks = 0
        changes = self._changes(snapshot)
        new_names = [name for name in changes if name not in self.by_name and name != OTHER]
        new_names.sort(key=lambda name: (changes[name].open_tasks + changes[name].done, name), reverse=True)
        self._make_room(len(new_names), snapshot.uptime_seconds - IDLE_SECONDS)
        for name in new_names[: MAX_NAMES - len(self.by_name)]:
            self.by_name[name] = FunctionTotal()
        for name, change in changes.items():
            self.by_name.get(name, self.other).add(change)

    def _reset(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self.by_name = {}
        self.other = FunctionTotal()
        self._last_counts = {}
        self._highest_forgotten = 0

    def _changes(self, snapshot: Snapshot) -> dict[str, FunctionTotal]:
        """What each name has gained since the previous snapshot."""
        columns = snapshot.function_columns
        changes: dict[str, FunctionTotal] = {}
        rows = zip(columns.numbers, columns.names, columns.tasks, columns.done, columns.failed, columns.run_nanoseconds)
        for number, name, tasks, done, failed, nanoseconds in rows:
            now = done, failed, nanoseconds
            before = self._previous_counts(number, now)
            self._last_counts[number] = now
            change = changes.get(_shortened(name))
            if change is None:
                change = changes[_shortened(name)] = FunctionTotal()
            change.open_tasks += tasks
            if tasks or now != before:
                change.done += max(0, done - before[0])
                change.failed += max(0, failed - before[1])
                change.run_nanoseconds += max(0, nanoseconds - before[2])
                change.used_at = snapshot.uptime_seconds
        while len(self._last_counts) > MAX_REMEMBERED_FUNCTIONS:
            number = next(iter(self._last_counts))
            del self._last_counts[number]
            self._highest_forgotten = max(self._highest_forgotten, number)
        return changes

    def _previous_counts(self, number: int, now: _Counts) -> _Counts:
        known = self._last_counts.pop(number, None)  # inserted again at the end: forgotten last
        if known is not None:
            return known
        # This function may have been counted before it was forgotten. Counting continues from its present counts:
        # to miss some is better than to count them twice.
        return now if number <= self._highest_forgotten else (0, 0, 0)

    def _make_room(self, needed: int, idle_since: float) -> None:
        excess = len(self.by_name) + needed - MAX_NAMES
        if excess <= 0:
            return
        idle = [(total.used_at, name) for name, total in self.by_name.items() if total.used_at < idle_since]
        for _, name in sorted(idle)[:excess]:
            del self.by_name[name]


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 3] + "..."
