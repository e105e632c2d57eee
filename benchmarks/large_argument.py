"""The round trip of a task that returns its large argument."""

from __future__ import annotations

import time
from statistics import median

from scaler_client import Client

from .figures import Figure
from .processes import PATIENCE_SECONDS, client_of_combo
from .workload import identity

ARGUMENT_BYTES = 1_000_000
FULL = (5, 60)
QUICK = (2, 5)
"""The number of runs, and of round trips in a run."""


def measure(is_quick: bool) -> list[Figure]:
    runs, round_trips = QUICK if is_quick else FULL
    argument = bytes(ARGUMENT_BYTES)
    with client_of_combo(1) as client:
        _run(client, argument, round_trips)
        medians = [_run(client, argument, round_trips) for _ in range(runs)]
    return [Figure("large.round_trip", "one task, 1 MB argument, returned: median", "ms", medians)]


def _run(client: Client, argument: bytes, round_trips: int) -> float:
    milliseconds = []
    for _ in range(round_trips):
        begin = time.perf_counter()
        answer = client.submit(identity, argument).result(PATIENCE_SECONDS)
        milliseconds.append((time.perf_counter() - begin) * 1e3)
        if len(answer) != len(argument):
            raise RuntimeError("the argument did not come back whole")
    return median(milliseconds)
