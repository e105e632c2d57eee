"""The minimum effective task granularity, after Task Bench: the shortest task with which half of the work is useful.

The efficiency of a run is the tasks' own time as a share of the time of all cores. It falls with shorter tasks, because
a system's work per task stays the same. METG(50 %) is the duration at which it crosses one half. The time that other
programs take from the cores does not count: before each search, plain processes measure the available share.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

_COARSE = 4.0

Run = Callable[[int, float], float]
"""Runs a number of steps with tasks of a number of seconds; returns the elapsed seconds."""


@dataclass(frozen=True)
class Search:
    """The durations of tasks that are tried, in seconds."""

    first: float = 0.064
    shortest: float = 20e-6
    longest: float = 1.0
    run_seconds: float = 0.3
    """How long a run takes with an efficiency of 1, and how long plain processes run."""
    halvings: int = 4
    """How often the search halves the (logarithmic) ratio of the two durations around METG."""


FULL = Search()
QUICK = Search(first=0.004, shortest=500e-6, longest=0.032, run_seconds=0.03, halvings=1)

_PLAIN_PROCESS = """
import sys, time
seconds = float(sys.argv[1])
begin = time.perf_counter()
end = time.thread_time() + seconds
while time.thread_time() < end:
    pass
print(seconds / (time.perf_counter() - begin))
"""


class InefficientError(Exception):
    """Less than half of the work is useful even with the longest tasks."""


def available_share(cores: int, seconds: float) -> float:
    """The share of its core that each of `cores` processes gets if it only computes."""
    command = [sys.executable, "-I", "-S", "-c", _PLAIN_PROCESS, str(seconds)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(cores)]
    return min(1.0, sum(float(process.communicate()[0]) for process in processes) / cores)


def shortest_useful_task(run: Run, width: int, cores: int, search: Search) -> float:
    """Return the METG(50 %) of a stencil of this width, in seconds.

    Args:
        run: runs the stencil.

    Raises:
        InefficientError: with the longest tasks less than half of the work is useful.
    """
    share = available_share(cores, search.run_seconds)

    def efficiency(seconds: float) -> float:
        steps = max(4, round(search.run_seconds * cores / (width * seconds)))
        return width * steps * seconds / (cores * share) / run(steps, seconds)

    useful, useful_share = search.first, efficiency(search.first)
    useless, useless_share = 0.0, 0.0
    while useful_share < 0.5:
        useless, useless_share = useful, useful_share
        if useful >= search.longest:
            raise InefficientError(f"with tasks of {search.longest:g} s less than half of the work is useful")
        useful = min(_COARSE * useful, search.longest)
        useful_share = efficiency(useful)
    while not useless:
        if useful <= search.shortest:
            return useful
        shorter = useful / _COARSE
        reached = efficiency(shorter)
        if reached < 0.5:
            useless, useless_share = shorter, reached
        else:
            useful, useful_share = shorter, reached
    for _ in range(search.halvings):
        middle = math.sqrt(useful * useless)
        reached = efficiency(middle)
        if reached < 0.5:
            useless, useless_share = middle, reached
        else:
            useful, useful_share = middle, reached
    place = (0.5 - useless_share) / (useful_share - useless_share) if useful_share > useless_share else 0.5
    return useless * math.pow(useful / useless, place)
