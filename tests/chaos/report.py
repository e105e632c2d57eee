"""What came of a run."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.chaos.killers import Deaths
from tests.chaos.load import Outcome
from tests.integration.executions import Note

SHOWN = 5
"""So many of what went wrong are named."""


@dataclass
class Recoveries:
    """From a kill until it goes on, in seconds."""

    scheduler: list[float] = field(default_factory=list)
    """To the first result that a client got from the next one."""
    worker: list[float] = field(default_factory=list)
    """To the first task of the process that took its place."""
    worker_meanwhile: list[float] = field(default_factory=list)
    """The same, where it lasted into a time without scheduler."""


def recoveries(deaths: Deaths, results: Iterable[float], executions: Iterable[Note]) -> Recoveries:
    found = Recoveries()
    moments = sorted(results)
    outages = []
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


@dataclass
class Repeats:
    executions: int
    repeated: int
    """Beyond one of each task."""
    finished_before: int
    """Of tasks that an earlier execution had run to their end."""


def repeats(executions: Sequence[Note]) -> Repeats:
    begun = Counter(note.task for note in executions if note.event == "begin")
    ended = Counter(note.task for note in executions if note.event == "end")
    return Repeats(begun.total(), begun.total() - len(begun), ended.total() - len(ended))


def total(outcomes: Iterable[Outcome]) -> Outcome:
    together = Outcome()
    for each in outcomes:
        together.submitted += each.submitted
        together.done += each.done
        together.lost += each.lost
        together.resolved_twice += each.resolved_twice
        together.wrong += each.wrong
        together.failed += each.failed
    return together


def went_well(outcome: Outcome, complaints: list[str]) -> bool:
    return not (outcome.lost or outcome.resolved_twice or outcome.wrong or outcome.failed or complaints)


def lines(outcome: Outcome, deaths: Deaths, found: Recoveries, repeated: Repeats, seconds: float) -> list[str]:
    share = 100 * repeated.repeated / max(1, repeated.executions)
    return [
        f"killed               {len(deaths.workers)} workers, {len(deaths.schedulers)} schedulers",
        f"tasks done           {outcome.done:,} of {outcome.submitted:,} ({outcome.done / seconds:,.0f} a second)",
        f"lost                 {_named(outcome.lost)}",
        f"resolved twice       {_named(outcome.resolved_twice)}",
        f"wrong values         {_named(outcome.wrong)}",
        f"failed               {_named(outcome.failed)}",
        f"executions           {repeated.executions:,}; repeated {repeated.repeated:,} ({share:.2f} %), of these "
        f"{repeated.finished_before:,} of tasks that had run to their end",
        f"scheduler killed     to the next result: {_spread(found.scheduler)}",
        f"worker killed        to the first task of its replacement: {_spread(found.worker)}",
        f"  without scheduler  {_spread(found.worker_meanwhile)}",
    ]


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
