"""No-op tasks by `submit`, one by one, results gathered; and a ProcessPoolExecutor doing the same, run by run."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from .figures import Figure, at_least, ratios
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import noop


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_runs: int


FULL = Sizes(tasks=100_000, runs=5, warm_up_runs=3)
QUICK = Sizes(tasks=3_000, runs=2, warm_up_runs=1)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    ours: list[float] = []
    pools: list[float] = []
    # The pool goes first: it forks, which is best done before there are threads.
    with _pool() as pool:
        _rate(pool.submit, 10 * WORKERS)
        with client_of_combo() as client:
            for _ in range(sizes.warm_up_runs):
                _rate(client.submit, sizes.tasks)
            for _ in range(sizes.runs):
                ours.append(_rate(client.submit, sizes.tasks))
                pools.append(_rate(pool.submit, sizes.tasks))
    what = f"{sizes.tasks:,} no-op tasks by submit, {WORKERS} workers, tcp"
    return [
        Figure("submit.rate", what, "tasks/s", ours, at_least(200_000)),
        Figure("submit.pool_rate", "the same by ProcessPoolExecutor", "tasks/s", pools),
        Figure("submit.ratio_to_pool", "ratio of the two", "x", ratios(ours, pools), at_least(12)),
    ]


def _rate(submit: Callable[[Callable[[], None]], Future[None]], tasks: int) -> float:
    begin = time.perf_counter()
    futures = [submit(noop) for _ in range(tasks)]
    for future in futures:
        future.result(PATIENCE_SECONDS)
    return tasks / (time.perf_counter() - begin)


@contextmanager
def _pool() -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(WORKERS, initializer=_leave_interrupts)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C nobody waits for what is still queued


def _leave_interrupts() -> None:
    """In the pool's processes: Ctrl-C is this program's to act on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
