"""The rate of no-op tasks by `submit`, one by one, in turn with a ProcessPoolExecutor.

All ratios are to the pool's rate with gathered results, so a callback or `as_completed` costs only our side.

Also the cost of checking whether the globals of a function of `__main__` have changed.
"""

from __future__ import annotations

import functools
import threading
import time
import timeit
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from scaler_client import Client
from scaler_client.pickling.functions import FunctionTable

from .figures import Figure, at_least, ratios
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo, forked_pool
from .workload import identity, noop


@dataclass(frozen=True)
class Sizes:
    tasks: int
    pool_tasks: int
    """A pool is slow, and its rate depends little on the number of tasks."""
    runs: int
    warm_up_runs: int
    looks: int
    """Look-ups of known functions in a run."""


FULL = Sizes(tasks=100_000, pool_tasks=30_000, runs=3, warm_up_runs=2, looks=200_000)
QUICK = Sizes(tasks=1_000, pool_tasks=300, runs=2, warm_up_runs=1, looks=1_000)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    ways: dict[str, Callable[[Client], object]] = {
        "rate": lambda client: _gather([client.submit(noop) for _ in range(sizes.tasks)]),
        "values": lambda client: _gather([client.submit(identity, number) for number in range(sizes.tasks)]),
        "callbacks": lambda client: _call_back([client.submit(noop) for _ in range(sizes.tasks)]),
        "as_completed": lambda client: _gather(client.as_completed([client.submit(noop) for _ in range(sizes.tasks)])),
    }

    def run_pool(pool: ProcessPoolExecutor) -> None:
        _gather([pool.submit(noop) for _ in range(sizes.pool_tasks)])

    ours: dict[str, list[float]] = {way: [] for way in ways}
    pools: list[float] = []
    # The pool goes first: it forks, which is safest before threads exist.
    with forked_pool(WORKERS) as pool:
        _gather([pool.submit(noop) for _ in range(10 * WORKERS)])
        with client_of_combo() as client:
            for _ in range(sizes.warm_up_runs):
                ways["rate"](client)
            for _ in range(sizes.runs):
                for way, run in ways.items():
                    ours[way].append(_rate(functools.partial(run, client), sizes.tasks))
                pools.append(_rate(lambda: run_pool(pool), sizes.pool_tasks))
    captures = [_captures_cost(sizes.looks) for _ in range(sizes.runs)]
    what = f"{sizes.tasks:,} no-op tasks by submit, {WORKERS} workers"
    return [
        Figure("submit.rate", what, "tasks/s", ours["rate"], at_least(200_000)),
        Figure("submit.pool_rate", f"{sizes.pool_tasks:,} no-op tasks by ProcessPoolExecutor", "tasks/s", pools),
        *(_ratio(way, values, pools) for way, values in ours.items()),
        Figure("submit.captures", "extra time to look up a function of __main__ with 5 globals", "ns", captures),
    ]


_RATIOS = {
    "rate": ("ratio_to_pool", "ratio of submit to ProcessPoolExecutor", 25),
    "values": ("values_ratio_to_pool", "the same, with an argument and a result", None),
    "callbacks": ("callbacks_ratio_to_pool", "the same, with a callback for each future", 15),
    "as_completed": ("as_completed_ratio_to_pool", "the same, with as_completed", 15),
}
"""By way of collecting results: name and title of its ratio, and the bar."""


def _ratio(way: str, ours: Sequence[float], pools: Sequence[float]) -> Figure:
    name, title, bar = _RATIOS[way]
    return Figure(f"submit.{name}", title, "x", ratios(ours, pools), None if bar is None else at_least(bar))


def _rate(run: Callable[[], object], tasks: int) -> float:
    begin = time.perf_counter()
    run()
    return tasks / (time.perf_counter() - begin)


def _gather(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.result(PATIENCE_SECONDS)


def _call_back(futures: Sequence[Future[None]]) -> None:
    """Read all results in callbacks."""
    left = len(futures)
    is_over = threading.Event()

    def read(future: Future[None]) -> None:
        nonlocal left
        if future.cancelled():  # the benchmark was interrupted
            return
        future.result()
        with lock:
            left -= 1
            if not left:
                is_over.set()

    lock = threading.Lock()
    for future in futures:
        future.add_done_callback(read)
    if not is_over.wait(PATIENCE_SECONDS):
        raise TimeoutError("the callbacks were not called")


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
        # The minimum of several: a disturbance must not reverse the sign of the difference.
        seconds.append(min(timeit.repeat(functools.partial(table.get, fn), number=looks, repeat=5)))
    return (seconds[1] - seconds[0]) / looks * 1e9
