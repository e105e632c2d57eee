"""Tasks that read the same object. Each loads a value of its own, or the tasks of a worker share one."""

from __future__ import annotations

import time
from typing import Any

import numpy

from scaler_client import Client

from .figures import Figure
from .processes import PATIENCE_SECONDS, client_of_combo

WORKERS = 2
FULL = (5, 400)
QUICK = (2, 20)
"""The number of runs, and of tasks in a run."""


def measure(is_quick: bool) -> list[Figure]:
    runs, tasks = QUICK if is_quick else FULL
    values: dict[str, Any] = {
        "array": numpy.ones(1_000_000),
        "columns": {f"column {number}": numpy.ones(50_000) for number in range(20)},
        "floats": [float(number) for number in range(100_000)],
    }
    texts = {
        "array": "an array of 8 MB",
        "columns": "a dict of 20 arrays of 0.4 MB",
        "floats": "a list of 100,000 floats",
    }
    figures = []
    with client_of_combo(WORKERS) as client:
        for name, value in values.items():
            references = {shared: client.send_object(value, shared=shared) for shared in (False, True)}
            for reference in references.values():
                _microseconds(client, reference, len(value), tasks)  # each worker has it
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(runs):
                for shared, reference in references.items():
                    times[shared].append(_microseconds(client, reference, len(value), tasks))
            for shared, found in times.items():
                how = "shared" if shared else "own"
                what = "the tasks of a worker share it" if shared else "each task has its own"
                figures.append(Figure(f"inputs.{name}_{how}", f"a task that reads {texts[name]}: {what}", "us", found))
    return figures


def _microseconds(client: Client, reference: Any, length: int, tasks: int) -> float:
    begin = time.perf_counter()
    futures = [client.submit(len, reference) for _ in range(tasks)]
    lengths = {future.result(PATIENCE_SECONDS) for future in futures}
    microseconds = (time.perf_counter() - begin) * 1e6 / tasks
    if lengths != {length}:
        raise RuntimeError("a task has read another value")
    return microseconds
