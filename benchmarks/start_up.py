"""The time from no process to the first result: scheduler, cluster, client and one task."""

from __future__ import annotations

import time

from .figures import Figure
from .processes import PATIENCE_SECONDS, WORKERS, client_of_combo
from .workload import noop

RUNS = 5
QUICK_RUNS = 1


def measure(is_quick: bool) -> list[Figure]:
    seconds = [_seconds() for _ in range(QUICK_RUNS if is_quick else RUNS)]
    return [Figure("start.seconds", f"start of scheduler and {WORKERS} workers, to the first result", "s", seconds)]


def _seconds() -> float:
    begin = time.perf_counter()
    with client_of_combo() as client:
        client.submit(noop).result(PATIENCE_SECONDS)
        return time.perf_counter() - begin
