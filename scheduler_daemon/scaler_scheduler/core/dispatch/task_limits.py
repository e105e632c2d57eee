"""Named limits across the cluster: how many tasks run at once, and how many begin in a second.

A task takes the tokens of its limits with its dispatch. They come back when its worker says that this attempt is over,
or when the worker is lost. So an attempt that no longer counts, and may still run, keeps its tokens. A task that waits
for a limit stays in its lane, which the dispatcher passes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scaler_scheduler.core.dispatch.near_data import INFINITY
from scaler_scheduler.core.limits import LimitSettings
from scaler_scheduler.core.state.records import Task, Worker
from scaler_scheduler.core.state.tables import Tables

BURST_SECONDS = 0.1
"""After a pause so many seconds' worth of tasks may begin at once; at least one."""

HOLD_SECONDS = 1.0
"""After a restart no limited task is dispatched for so long: workers join again, and name the tasks that they run."""


class TaskLimit:
    """One limit, and what it has given."""

    __slots__ = ("full_at", "name", "settings", "used")

    def __init__(self, name: str, settings: LimitSettings, now: float) -> None:
        self.name = name
        self.settings = settings
        self.used = 0
        """Attempts that have a token."""
        self.full_at = now + (BURST_SECONDS if settings.per_second else 0.0)
        """Of a rate: when all tokens that were taken are made up for, in seconds of the monotonic clock (GCRA, ITU-T
        I.371). It begins with none."""

    def ready_at(self, now: float) -> float:
        """When a task may begin; infinity: when another one has ended."""
        settings = self.settings
        if settings.most and self.used >= settings.most:
            return INFINITY
        if settings.per_second:
            return max(now, self.full_at - max(0.0, BURST_SECONDS - 1 / settings.per_second))
        return now

    def take(self, calls: int, now: float) -> None:
        """Let a row of so many calls begin, whether there is a token or not."""
        self.used += 1
        if self.settings.per_second:
            self.full_at = max(self.full_at, now) + calls / self.settings.per_second


Attempt = tuple[int, int, int]
"""A client's incarnation, a task's id, and the number of the attempt."""


class TaskLimits:
    """The limits of one scheduler."""

    def __init__(self, tables: Tables, incarnation: int) -> None:
        """`incarnation` is the scheduler's own."""
        self._tables = tables
        self._clock = tables.clock
        self._incarnation = incarnation
        self._hold_until = 0.0
        self.by_name: dict[str, TaskLimit] = {}
        """All limits, also those that were removed and that tasks still need."""
        self._defined: Mapping[str, LimitSettings] = {}
        self.held: dict[int, dict[Attempt, tuple[TaskLimit, ...]]] = {}
        """The tokens of attempts, by the worker's incarnation. No worker has an empty table."""

    def define(self, settings: Mapping[str, LimitSettings]) -> None:
        """Set the limits. What runs goes on. A limit that is gone holds for the tasks that wait for it already."""
        self._defined = settings
        for name, each in settings.items():
            limit = self.by_name.get(name)
            if limit is None:
                self.by_name[name] = TaskLimit(name, each, self._clock.now)
            else:
                limit.settings = each

    def undefined(self, names: Iterable[str]) -> str:
        """Return the error for a limit that is not defined; empty if all are."""
        for name in names:
            if name not in self._defined:
                known = ", ".join(sorted(self._defined)) or "none"
                return f"the limit {name!r} is not defined in the scheduler's configuration, [limits]; defined: {known}"
        return ""

    def note_peer(self, scheduler: int) -> None:
        """Hold limited tasks for a moment if another scheduler has welcomed a new peer before.

        Args:
            scheduler: the incarnation of the scheduler that welcomed the peer last; 0: none did.
        """
        if scheduler not in (0, self._incarnation) and not self._hold_until:
            self._hold_until = self._clock.now + HOLD_SECONDS

    def ready_at(self, names: Sequence[str]) -> float:
        """When a task with these limits may be dispatched, in seconds of the monotonic clock. Infinity: when another
        task has ended, or a client has submitted a task that a worker runs already."""
        if self._tables.unclaimed:
            return INFINITY
        now = self._clock.now
        return max(self._hold_until, *[self.by_name[name].ready_at(now) for name in names])

    def take(self, task: Task, worker: Worker) -> None:
        """Give tokens to a task that is dispatched to a worker, or that it runs already."""
        limits = tuple([self.by_name[name] for name in task.options.limits])
        attempts = self.held.setdefault(worker.incarnation, {})
        name = task.client.incarnation, task.id, task.attempt
        if name not in attempts:
            attempts[name] = limits
            for limit in limits:
                limit.take(task.options.weight, self._clock.now)

    def give_back(self, worker: Worker, names: Iterable[Attempt]) -> None:
        """Take the tokens of these attempts back: the worker says that they are over. Unknown ones are ignored."""
        attempts = self.held.get(worker.incarnation)
        if attempts is None:
            return
        for name in names:
            for limit in attempts.pop(name, ()):
                limit.used -= 1
        if not attempts:
            del self.held[worker.incarnation]

    def worker_lost(self, worker: Worker) -> None:
        """Take all tokens of a worker back that is lost, or joins again and names what it runs."""
        for limits in self.held.pop(worker.incarnation, {}).values():
            for limit in limits:
                limit.used -= 1
