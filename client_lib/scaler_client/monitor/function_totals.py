"""What functions have done since a scheduler's start, for a bounded number of names, never going back.

A snapshot has rows of functions with open tasks first, a thousand at most, and a function's row goes when the last
client that had it is gone. Whoever shows counters needs what they have come to, with and without a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol.snapshots import Snapshot

MAX_NAMES = 100
"""So many names have totals of their own."""

OTHER = "other"
"""What stands for all other names; a function that is called so is one of them."""

MAX_NAME_LENGTH = 120
"""Characters of a name that are kept."""

IDLE_SECONDS = 3600.0
"""A name without a task for that long gives its place away when another one wants it."""

MAX_REMEMBERED_FUNCTIONS = 20_000
"""So many functions are remembered that have no row any more."""


@dataclass
class FunctionTotal:
    """`open_tasks` now; the others since the start."""

    open_tasks: int = 0
    done: int = 0
    failed: int = 0
    run_nanoseconds: int = 0
    used_at: float = 0.0
    """When it last had something to do, in seconds of the scheduler's uptime."""

    def add(self, change: FunctionTotal) -> None:
        self.open_tasks += change.open_tasks
        self.done += change.done
        self.failed += change.failed
        self.run_nanoseconds += change.run_nanoseconds
        self.used_at = max(self.used_at, change.used_at)


_Counts = tuple[int, int, int]
"""Done, failed, nanoseconds."""


class FunctionTotals:
    """Of one scheduler after the other; each begins at zero."""

    def __init__(self) -> None:
        self.by_name: dict[str, FunctionTotal] = {}
        """Those with totals of their own."""
        self.other = FunctionTotal()
        self._incarnation = 0
        self._last_counts: dict[int, _Counts] = {}
        """What each function had come to, by its number, the longest without a row first."""
        self._highest_forgotten = 0
        """The highest number of a function that is remembered no more."""

    def update(self, snapshot: Snapshot) -> None:
        """Follow the next snapshot."""
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
        """What each name has come to since the snapshot before."""
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
        known = self._last_counts.pop(number, None)  # and at the end again: what has a row is forgotten last
        if known is not None:
            return known
        # One that may have been counted before counts from now on: better too little than twice.
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
