"""No-op tasks by `map`: each returns its argument."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass

from scaler_client import Client

from .figures import Figure, at_least
from .processes import WORKERS, client_of_combo
from .workload import identity


@dataclass(frozen=True)
class Sizes:
    tasks: int
    runs: int
    warm_up_runs: int


FULL = Sizes(tasks=1_000_000, runs=5, warm_up_runs=1)
FULL_IPC = Sizes(tasks=500_000, runs=3, warm_up_runs=1)
QUICK = Sizes(tasks=20_000, runs=2, warm_up_runs=1)


def measure(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    title = f"{sizes.tasks:,} no-op tasks by map, {WORKERS} workers, tcp"
    return [Figure("map.rate", title, "tasks/s", _rates(None, sizes), at_least(400_000))]


def measure_ipc(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL_IPC
    with tempfile.TemporaryDirectory(prefix="scaler-bench-") as folder:
        rates = _rates(f"ipc://{folder}/scheduler", sizes)
    return [Figure("ipc.map_rate", f"{sizes.tasks:,} no-op tasks by map, {WORKERS} workers, ipc", "tasks/s", rates)]


def _rates(address: str | None, sizes: Sizes) -> list[float]:
    with client_of_combo(address=address) as client:
        rates = [_rate(client, sizes.tasks) for _ in range(sizes.warm_up_runs + sizes.runs)]
    return rates[sizes.warm_up_runs :]


def _rate(client: Client, tasks: int) -> float:
    begin = time.perf_counter()
    results = client.map(identity, zip(range(tasks), strict=True))
    seconds = time.perf_counter() - begin
    if results != list(range(tasks)):
        raise RuntimeError("map gave wrong results")
    return tasks / seconds
