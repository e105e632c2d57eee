"""The work of each row, on any system: the runs of each figure, or a text that says why there are none.

Sizes adapt to the system: a run has as many tasks as fill a second or two, at most the size of the row. Before the runs
every system does the same work for some seconds, which does not count.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from ..figures import percentile
from ..graph_shapes import levels
from ..metg import FULL as FULL_SEARCH
from ..metg import QUICK as QUICK_SEARCH
from ..metg import InefficientError, Search, shortest_useful_task
from ..workload import hold, identity, noop, ones, sleep_fixed, total
from .system import System, UnableError

WORKERS = 4
STENCIL_WIDTH = 8
SHARING_TASKS = 16
SLEEP_SECONDS = 0.010
FEWEST_TASKS = 40
PAGE_BYTES = 4096

Figures = dict[str, "list[float] | str"]


@dataclass(frozen=True)
class Sizes:
    """The greatest number of tasks in a run, and how long runs may take."""

    submit: int
    map: int
    one: int
    sleep: int
    graph: int
    array_bytes: int
    waiting: int
    run_seconds: float
    warm_up_seconds: float
    stencil: Search
    search_seconds: float
    """After so long no further search for METG begins."""
    submit_seconds: float
    """How long the waiting tasks of `memory` may be submitted."""
    runs: int


FULL = Sizes(
    submit=100_000,
    map=1_000_000,
    one=2_000,
    sleep=1_000,
    graph=10_000,
    array_bytes=100_000_000,
    waiting=100_000,
    run_seconds=1.5,
    warm_up_seconds=4.0,
    stencil=FULL_SEARCH,
    search_seconds=15.0,
    submit_seconds=20.0,
    runs=3,
)
QUICK = Sizes(
    submit=1_000,
    map=1_000,
    one=50,
    sleep=40,
    graph=200,
    array_bytes=1_000_000,
    waiting=1_000,
    run_seconds=0.2,
    warm_up_seconds=0.1,
    stencil=QUICK_SEARCH,
    search_seconds=0.0,
    submit_seconds=2.0,
    runs=1,
)


def workers_of(row: str) -> int:
    """How many workers a row has: METG is a share of the cores' time, so it has as many as there are cores."""
    return len(os.sched_getaffinity(0)) if row == "metg" else WORKERS


def submit(system: System, sizes: Sizes) -> Figures:
    def run(tasks: int) -> None:
        results = system.gather([system.submit(noop) for _ in range(tasks)])
        _check(len(results) == tasks)

    return {"submit": [tasks / seconds for tasks, seconds in _runs(run, sizes.submit, sizes)]}


def map_(system: System, sizes: Sizes) -> Figures:
    def run(tasks: int) -> None:
        items = list(range(tasks))  # not a range, whose parts some systems send as three numbers
        _check(system.map(identity, items) == items)

    return {"map": [tasks / seconds for tasks, seconds in _runs(run, sizes.map, sizes)]}


def one(system: System, sizes: Sizes) -> Figures:
    blocks: list[list[float]] = []

    def run(tasks: int) -> None:
        times = [time.perf_counter()]
        for number in range(tasks):
            _check(system.gather([system.submit(identity, number)]) == [number])
            times.append(time.perf_counter())
        blocks.append([(after - before) * 1e3 for before, after in zip(times, times[1:], strict=False)])

    measured = len(_runs(run, sizes.one, sizes, fewest=2))
    last = blocks[-measured:]
    return {"one": [median(block) for block in last], "one_p99": [percentile(block, 99) for block in last]}


def sleep(system: System, sizes: Sizes) -> Figures:
    def run(tasks: int) -> None:
        system.gather([system.submit(sleep_fixed, SLEEP_SECONDS) for _ in range(tasks)])

    # A run of the full size takes 2.5 s at best.
    runs = _runs(run, sizes.sleep, sizes, seconds=3 * sizes.run_seconds)
    return {"sleep": [100 * tasks * SLEEP_SECONDS / WORKERS / seconds for tasks, seconds in runs]}


def graph(system: System, sizes: Sizes) -> Figures:
    def run(nodes: int) -> None:
        wanted, keys = levels(nodes)
        _check(set(system.get(wanted, keys)) == {1})

    return {"graph": [nodes / seconds for nodes, seconds in _runs(run, sizes.graph, sizes)]}


def metg(system: System, sizes: Sizes) -> Figures:
    cores = workers_of("metg")

    def run(steps: int, seconds: float) -> float:
        begin = time.perf_counter()
        system.stencil(STENCIL_WIDTH, steps, seconds)
        return time.perf_counter() - begin

    def found(search: Search) -> float:
        try:
            return shortest_useful_task(run, STENCIL_WIDTH, cores, search)
        except InefficientError as error:
            raise UnableError(str(error)) from None

    end = time.monotonic() + sizes.warm_up_seconds
    while time.monotonic() < end:
        run(10, 0.0)
    # A client may learn only once a second that all is done. That delay shall be a small part of a run.
    delay = run(1, 0.0)
    search = sizes.stencil
    if 2 * delay > search.run_seconds:
        search = replace(search, run_seconds=2 * delay, halvings=2)
    end = time.monotonic() + sizes.search_seconds
    results = [found(search)]
    while len(results) < sizes.runs and time.monotonic() < end:
        results.append(found(replace(search, first=4 * results[0])))
    return {"metg": [seconds * 1e3 for seconds in results]}


def array(system: System, sizes: Sizes) -> Figures:
    import numpy

    shared = numpy.ones(sizes.array_bytes // 8)

    def run(tasks: int) -> None:
        _check(set(system.share(total, shared, tasks)) == {float(len(shared))})

    run(1)
    return {"array": [_seconds(run, SHARING_TASKS) for _ in range(sizes.runs)]}


def result(system: System, sizes: Sizes) -> Figures:
    """One array at a time, from the submission until the program has read a byte of each page of the result."""
    figures: Figures = {}
    for name, size in (("result_8", sizes.array_bytes * 8 // 100), ("result_80", sizes.array_bytes * 80 // 100)):

        def run(tasks: int, size: int = size) -> None:
            for _ in range(tasks):
                (value,) = system.gather([system.submit(ones, size)])
                _check(int(value[::PAGE_BYTES].sum()) == -(-size // PAGE_BYTES))

        figures[name] = [1e3 * seconds / tasks for tasks, seconds in _runs(run, FEWEST_TASKS, sizes, fewest=2)]
    return figures


def start(system: System, began: float) -> Figures:
    """`began` is when the process was started, as `time.monotonic()`."""
    _check(system.gather([system.submit(identity, 1)]) == [1])
    return {"start": [time.monotonic() - began]}


def memory(system: System, sizes: Sizes) -> Figures:
    end = time.monotonic() + sizes.warm_up_seconds
    while time.monotonic() < end:
        system.gather([system.submit(identity, number) for number in range(FEWEST_TASKS)])
    schedulers = system.scheduler_processes()
    folder = Path(tempfile.mkdtemp(prefix="held-"))
    handles = [system.submit(hold, str(folder), number) for number in range(WORKERS)]
    try:
        _await(lambda: len(list(folder.iterdir())) == WORKERS, "its workers did not all begin a task")
        gc.collect()
        before, program_before = _resident_bytes(schedulers), _resident_bytes([os.getpid()])
        end = time.monotonic() + sizes.submit_seconds
        waiting = 0
        while waiting < sizes.waiting and time.monotonic() < end:
            handles.append(system.submit(identity, waiting))
            waiting += 1
        _settle(schedulers or [os.getpid()])
        growth = (_resident_bytes(schedulers) - before) / waiting
        program_growth = (_resident_bytes([os.getpid()]) - program_before) / waiting
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"memory": [growth] if schedulers else system.scheduler_is, "program_memory": [program_growth]}


def _runs(
    run: Callable[[int], None], most: int, sizes: Sizes, seconds: float = 0.0, fewest: int = FEWEST_TASKS
) -> list[tuple[int, float]]:
    """Warm up, then return the tasks and the seconds of each run."""
    tasks = _fitting_tasks(run, most, seconds or sizes.run_seconds, fewest)
    end = time.monotonic() + sizes.warm_up_seconds
    while time.monotonic() < end:
        run(tasks)
    return [(tasks, _seconds(run, tasks)) for _ in range(sizes.runs)]


def _fitting_tasks(run: Callable[[int], None], most: int, seconds: float, fewest: int) -> int:
    """How many tasks, at most so many, take about so long. A delay that all tasks share shall be a small part."""
    tasks = min(most, fewest)
    elapsed = _seconds(run, tasks)
    while tasks < most and elapsed < 4 * seconds:
        more = min(most, int(tasks * min(10.0, max(2.0, seconds / elapsed))))
        longer = _seconds(run, more)
        is_linear = longer / elapsed > 0.7 * more / tasks
        tasks, elapsed = more, longer
        if is_linear and elapsed > seconds / 4:
            break
    return max(min(most, fewest), min(most, int(tasks * seconds / elapsed)))


def _seconds(run: Callable[[int], None], tasks: int) -> float:
    gc.collect()
    begin = time.perf_counter()
    run(tasks)
    return time.perf_counter() - begin


def _check(is_right: bool) -> None:
    if not is_right:
        raise RuntimeError("wrong results")


def _await(condition: Callable[[], bool], failure: str, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise UnableError(failure)
        time.sleep(0.05)


def _settle(processes: list[int], seconds: float = 15.0) -> None:
    """Return when the memory of the processes does not grow by 1 % in a second; after so many seconds anyway."""
    end = time.monotonic() + seconds
    last, now = 0, _resident_bytes(processes)
    while now > 1.01 * last and time.monotonic() < end:
        time.sleep(1.0)
        last, now = now, _resident_bytes(processes)


def _resident_bytes(processes: list[int]) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * page for process in processes)
