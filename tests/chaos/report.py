"""The report of a run of the chaos: outcomes, outages, recoveries."""

from __future__ import annotations

import statistics
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.chaos.judge import unexplained
from tests.chaos.killers import Deaths
from tests.chaos.load import Outcome
from tests.integration.executions import Note

SHOWN = 5
"""The most wrong tasks that the report names."""


@dataclass
class Recoveries:
    """The times from a kill until work continues, in seconds."""

    scheduler: list[float] = field(default_factory=list)
    """Until a client gets the first result from the next scheduler."""
    worker: list[float] = field(default_factory=list)
    """Until the process that replaces a worker begins its first task."""
    worker_meanwhile: list[float] = field(default_factory=list)
    """The times of workers whose recovery ran into a time without a scheduler."""


@dataclass
class Repeats:
    executions: int = 0
    repeated: int = 0
    """Executions beyond the first one of each task."""
    finished_before: int = 0
    """Executions of tasks that an earlier execution had finished."""


@dataclass
class Figures:
    """The figures of one round, or of several rounds together."""

    outcome: Outcome = field(default_factory=Outcome)
    deaths: Deaths = field(default_factory=Deaths)
    recoveries: Recoveries = field(default_factory=Recoveries)
    repeats: Repeats = field(default_factory=Repeats)
    seconds: float = 0.0
    longest_gap: float = 0.0
    """Seconds in which no client got a result."""
    longest_gap_outside: float = 0.0
    """Seconds in which no client got a result although the scheduler could be reached all the time."""
    unexplained: list[str] = field(default_factory=list)
    """Executions that nothing explains (`judge.py`)."""
    complaints: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        self.outcome = total([self.outcome, other.outcome])
        self.deaths.workers += other.deaths.workers
        self.deaths.schedulers += other.deaths.schedulers
        self.deaths.counts += other.deaths.counts
        self.recoveries.scheduler += other.recoveries.scheduler
        self.recoveries.worker += other.recoveries.worker
        self.recoveries.worker_meanwhile += other.recoveries.worker_meanwhile
        self.repeats.executions += other.repeats.executions
        self.repeats.repeated += other.repeats.repeated
        self.repeats.finished_before += other.repeats.finished_before
        self.seconds += other.seconds
        self.longest_gap = max(self.longest_gap, other.longest_gap)
        self.longest_gap_outside = max(self.longest_gap_outside, other.longest_gap_outside)
        self.unexplained += other.unexplained
        self.complaints += other.complaints

    @property
    def is_good(self) -> bool:
        outcome = self.outcome
        faults = outcome.lost, outcome.resolved_twice, outcome.wrong, outcome.failed, self.unexplained, self.complaints
        return not any(faults)

    def summary(self) -> str:
        outcome = self.outcome
        done = f"{outcome.done:,} of {outcome.submitted:,} tasks and {outcome.graphs:,} graphs in {self.seconds:.0f} s"
        return done if self.is_good else "\n".join([done, *self._faults()])

    def lines(self) -> list[str]:
        outcome, deaths, found, repeated = self.outcome, self.deaths, self.recoveries, self.repeats
        share = 100 * repeated.repeated / max(1, repeated.executions)
        return [
            f"killed               {len(deaths.workers)} workers, {len(deaths.schedulers)} schedulers",
            f"other faults         {_counts(deaths.counts)}",
            f"tasks done           {outcome.done:,} of {outcome.submitted:,} "
            f"({outcome.done / max(1.0, self.seconds):,.0f} a second)",
            f"by kind              {_counts(outcome.kinds)}",
            f"graphs               {outcome.graphs:,}",
            *self._faults(),
            f"executions           {repeated.executions:,}; repeated {repeated.repeated:,} ({share:.2f} %), of these "
            f"{repeated.finished_before:,} of tasks that had run to their end",
            f"scheduler killed     to the next result: {_spread(found.scheduler)}",
            f"worker killed        to the first task of its replacement: {_spread(found.worker)}",
            f"  without scheduler  {_spread(found.worker_meanwhile)}",
            f"without results      {_shown(self.longest_gap)} at the longest; {_shown(self.longest_gap_outside)} while "
            "the scheduler could be reached",
        ]

    def _faults(self) -> list[str]:
        outcome = self.outcome
        return [
            f"lost                 {_named(outcome.lost)}",
            f"resolved twice       {_named(outcome.resolved_twice)}",
            f"wrong values         {_named(outcome.wrong)}",
            f"failed               {_named(outcome.failed)}",
            f"unexplained repeats  {_named(self.unexplained)}",
            *(f"also: {complaint}" for complaint in self.complaints),
        ]


def figures(
    outcomes: Sequence[tuple[Outcome, array[float]]],
    deaths: Deaths,
    executions: Sequence[Note],
    seconds: float,
    complaints: list[str],
) -> Figures:
    """The figures of one round. Each client's outcome comes with the times at which it got results."""
    moments = sorted(moment for _, times in outcomes for moment in times)
    gaps = [(begin, end) for begin, end in zip(moments, moments[1:])]
    outside = [gap for gap in gaps if not _meets(gap, deaths.outages)]
    return Figures(
        total(outcome for outcome, _ in outcomes),
        deaths,
        recoveries(deaths, moments, executions),
        repeats(executions),
        seconds,
        max((end - begin for begin, end in gaps), default=0.0),
        max((end - begin for begin, end in outside), default=0.0),
        unexplained(executions, deaths.faults),
        complaints,
    )


def _meets(gap: tuple[float, float], outages: Iterable[tuple[float, float]]) -> bool:
    return any(gap[0] <= end and begin <= gap[1] for begin, end in outages)


def recoveries(deaths: Deaths, results: Iterable[float], executions: Iterable[Note]) -> Recoveries:
    found = Recoveries()
    moments = sorted(results)
    outages = list(deaths.outages)
    for death in deaths.schedulers:
        after = bisect_right(moments, death.back_at)
        if after < len(moments):
            found.scheduler.append(moments[after] - death.time)
            outages.append((death.time, moments[after]))
    first_task: dict[int, float] = {}
    for note in executions:
        first_task.setdefault(note.pid, note.time)
    for killed in deaths.workers:
        began = first_task.get(killed.replacement)
        if began is not None:
            is_in_outage = any(begin <= began and killed.time <= end for begin, end in outages)
            (found.worker_meanwhile if is_in_outage else found.worker).append(began - killed.time)
    return found


def repeats(executions: Sequence[Note]) -> Repeats:
    begun = Counter(note.task for note in executions if note.event == "begin")
    ended = Counter(note.task for note in executions if note.event == "end")
    return Repeats(begun.total(), begun.total() - len(begun), ended.total() - len(ended))


def total(outcomes: Iterable[Outcome]) -> Outcome:
    together = Outcome()
    for each in outcomes:
        together.submitted += each.submitted
        together.done += each.done
        together.graphs += each.graphs
        for kind, count in each.kinds.items():
            together.kinds[kind] = together.kinds.get(kind, 0) + count
        together.lost += each.lost
        together.resolved_twice += each.resolved_twice
        together.wrong += each.wrong
        together.failed += each.failed
    return together


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())) or "none"


def _named(tasks: list[str]) -> str:
    return f"{len(tasks):,}" + "".join(f"\n    {task}" for task in tasks[:SHOWN])


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return f"median {_shown(statistics.median(ordered))}, p99 {_shown(p99)} (of {len(ordered)})"


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"
