"""The rate of no-op tasks by `submit`, one by one, in turn with a ProcessPoolExecutor.

Also the cost of checking whether the globals of a function of `__main__` have changed.
"""

from __future__ import annotations

import functools
import signal
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scaler_client.pickling.functions import FunctionTable

from .figures import Figure, at_least, ratios
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import noop


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_runs: int
    looks: int
    """Look-ups of known functions in a run."""


FULL = Sizes(tasks=100_000, runs=5, warm_up_runs=3, looks=200_000)
QUICK = Sizes(tasks=3_000, runs=2, warm_up_runs=1, looks=2_000)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    ours: list[float] = []
    pools: list[float] = []
    # The pool goes first: it forks, which is safest before threads exist.
    with _pool() as pool:
        _rate(pool.submit, 10 * WORKERS)
        with client_of_combo() as client:
            for _ in range(sizes.warm_up_runs):
                _rate(client.submit, sizes.tasks)
            for _ in range(sizes.runs):
                ours.append(_rate(client.submit, sizes.tasks))
                pools.append(_rate(pool.submit, sizes.tasks))
    captures = [_captures_cost(sizes.looks) for _ in range(sizes.runs)]
    what = f"{sizes.tasks:,} no-op tasks by submit, {WORKERS} workers, tcp"
    return [
        Figure("submit.rate", what, "tasks/s", ours, at_least(200_000)),
        Figure("submit.pool_rate", f"{sizes.tasks:,} no-op tasks by ProcessPoolExecutor", "tasks/s", pools),
        Figure("submit.ratio_to_pool", "ratio of the two", "x", ratios(ours, pools), at_least(12)),
        Figure("submit.captures", "a function of __main__ with 5 globals against one of a module", "ns", captures),
    ]


def _rate(submit: Callable[[Callable[[], None]], Future[None]], tasks: int) -> float:
    begin = time.perf_counter()
    futures = [submit(noop) for _ in range(tasks)]
    for future in futures:
        future.result(PATIENCE_SECONDS)
    return tasks / (time.perf_counter() - begin)


_OF_MAIN = """
rate, name, limits, table, offset = 1.5, "x", (1, 2), [1, 2, 3], 7
def noop():
    if offset < 0:
        print(rate, name, limits, len(table))
"""


def _captures_cost(looks: int) -> float:
    """Return how much longer the look-up of a function of `__main__` takes than that of a module's, in ns."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(_OF_MAIN, names)
    table = FunctionTable(lambda number: None)
    seconds = []
    for fn in (noop, names["noop"]):
        table.get(fn)
        # The least of several: a disturbance of one must not reverse the difference.
        seconds.append(min(timeit.repeat(functools.partial(table.get, fn), number=looks, repeat=5)))
    return (seconds[1] - seconds[0]) / looks * 1e9


@contextmanager
def _pool() -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(WORKERS, initializer=_leave_interrupts)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C queued tasks are of no use


def _leave_interrupts() -> None:
    """Ignore Ctrl-C in the pool's processes: the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
