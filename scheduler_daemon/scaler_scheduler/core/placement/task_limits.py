"""Named limits across the cluster: how many tasks run at once, and how many begin in a second.

A task takes the tokens of its limits with its dispatch (`holdings.py`). A task that waits for a limit stays in its
lane, which the dispatcher passes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scaler_scheduler.core.limits import LimitSettings, rate_in_words
from scaler_scheduler.core.placement.wait import INFINITY
from scaler_scheduler.core.state.records import Lane
from scaler_scheduler.core.tables import Tables

BURST_SECONDS = 0.1
"""After a pause so many seconds' worth of tasks may begin at once; at least one."""

MAX_NAMES = 50
"""An error lists at most so many limits."""

LOCK = "lock:"
"""A limit whose name begins like this needs no definition. It lets one task run at once, in the whole cluster."""

_LOCK_SETTINGS = LimitSettings(most=1)

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

    def ready_at(self, now: float, tasks: int = 1) -> float:
        """When so many tasks may begin together; infinity: when others have ended."""
        settings = self.settings
        if settings.most and self.used + tasks > settings.most:
            return INFINITY
        if settings.per_second:
            return max(now, self.full_at - max(0.0, BURST_SECONDS - 1 / settings.per_second))
        return now

    def take(self, calls: int, now: float) -> None:
        """Let a row of so many calls begin, whether there is a token or not."""
        self.used += 1
        if self.settings.per_second:
            self.full_at = max(self.full_at, now) + calls / self.settings.per_second


class TaskLimits:
    """The limits of one scheduler."""

    def __init__(self, tables: Tables, incarnation: int) -> None:
        """`incarnation` is the scheduler's own."""
        self._tables = tables
        self._clock = tables.clock
        self._incarnation = incarnation
        self._hold_until = 0.0
        self.by_name: dict[str, TaskLimit] = {}
        """All limits, also those that were removed and that tasks still need, and the locks that are held."""
        self._defined: Mapping[str, LimitSettings] = {}

    def define(self, settings: Mapping[str, LimitSettings]) -> None:
        """Set the limits. What runs goes on. A limit that is gone holds for the tasks that wait for it already."""
        self._defined = settings
        for name, each in settings.items():
            limit = self.by_name.get(name)
            if limit is None:
                self.by_name[name] = TaskLimit(name, each, self._clock.now)
            else:
                limit.settings = each

    def is_defined(self, name: str) -> bool:
        """Whether the configuration has this limit. A limit that was removed holds only for tasks that wait or run."""
        return name in self._defined

    def undefined(self, names: Iterable[str]) -> str:
        """Return the error for a limit that is not defined; empty if all are."""
        for name in names:
            if name not in self._defined and not name.startswith(LOCK):
                names = sorted(self._defined)
                further = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
                known = (", ".join(names[:MAX_NAMES]) or "none") + further
                return f"the limit {name!r} is not defined in the scheduler's configuration, [limits]; defined: {known}"
        return ""

    def too_small(self, names: Iterable[str], gang_size: int) -> str:
        """Return the error for a limit that lets fewer tasks run than a gang has members; empty if there is none."""
        for name in names:
            most = self.find(name).settings.most
            if most and gang_size > most:
                return f"a gang of {gang_size} tasks can never begin: the limit {name!r} lets {most} run at once"
        return ""

    def note_peer(self, scheduler: int) -> None:
        """Hold limited tasks for a moment if another scheduler has welcomed a new peer before.

        Args:
            scheduler: the incarnation of the scheduler that welcomed the peer last; 0: none did.
        """
        if scheduler not in (0, self._incarnation) and not self._hold_until:
            self._hold_until = self._clock.now + HOLD_SECONDS

    @property
    def hold_until(self) -> float:
        """Until when no limited task begins, in seconds of the monotonic clock."""
        return self._hold_until

    def find(self, name: str) -> TaskLimit:
        """The limit with this name, which was defined at some time, or is a lock."""
        limit = self.by_name.get(name)
        return TaskLimit(name, _LOCK_SETTINGS, self._clock.now) if limit is None else limit

    def named(self, names: Iterable[str]) -> tuple[TaskLimit, ...]:
        """The limits with these names, from which tasks take tokens now. `give_back` must follow."""
        return tuple([self.by_name.setdefault(name, self.find(name)) for name in names])

    def give_back(self, limit: TaskLimit, tasks: int) -> None:
        """Take the tokens of so many tasks back. A lock that no task holds is forgotten."""
        limit.used -= tasks
        if not limit.used and limit.settings is _LOCK_SETTINGS:
            del self.by_name[limit.name]

    def ready_at(self, names: Sequence[str], tasks: int = 1) -> float:
        """When so many tasks with these limits may be dispatched together, in seconds of the monotonic clock. Infinity:
        when other tasks have ended, or a client has submitted a task that a worker runs already."""
        if self._tables.unclaimed:
            return INFINITY
        now = self._clock.now
        return max(self._hold_until, *[self.find(name).ready_at(now, tasks) for name in names])

    def explain(self, lane: Lane) -> Iterator[str]:
        """Which limits the lane's next task waits for, one line each."""
        now, tasks = self._clock.now, max(1, lane.gang_size)
        if lane.limits and self._tables.unclaimed:
            yield "limit: tasks run that no client has submitted since the scheduler's restart, and may have its tokens"
        for name in lane.limits:
            limit = self.find(name)
            ready_at = limit.ready_at(now, tasks)
            if ready_at == INFINITY:
                yield f"limit: {limit.used} of {limit.settings.most} tasks of {name!r} run"
            elif ready_at > now:
                number, unit = rate_in_words(limit.settings.per_second)
                rate = f"{number} tasks begin in {'an' if unit == 'hour' else 'a'} {unit}"
                yield f"limit: {name!r} lets {rate}; next in {ready_at - now:.1f} s"
