"""The memory that a graph of many nodes with 10 inputs each takes, in its client and in the scheduler.

The graph is as large as the time of a measure allows. The figures are bytes a node, so that their bars are those of a
million nodes.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from scaler_client import Client

from .figures import Figure, at_most
from .graph_shapes import levels
from .processes import client_of_combo

INPUTS = 10
WARM_UP_PART = 10
"""The warm-up graph has this part of the nodes. PyPy's space for young objects is resident after it."""

WATCH_SECONDS = 0.05


@dataclass(frozen=True)
class Sizes:
    nodes: int
    runs: int


FULL = Sizes(nodes=200_000, runs=1)
QUICK = Sizes(nodes=2_000, runs=1)


def memory_figures(is_quick: bool) -> list[Figure]:
    sizes = QUICK if is_quick else FULL
    growths = [_growth(sizes.nodes) for _ in range(sizes.runs)]
    title = f"a graph of {sizes.nodes:,} nodes, {INPUTS} inputs a node"
    client = [client / sizes.nodes for client, _ in growths]
    scheduler = [scheduler / sizes.nodes for _, scheduler in growths]
    return [
        Figure("graph.client_memory", f"{title}: client's memory, dict included", "bytes/node", client, at_most(4000)),
        Figure("graph.scheduler_memory", f"{title}: scheduler's memory", "bytes/node", scheduler, at_most(1000)),
    ]


def _growth(nodes: int) -> tuple[int, int]:
    """Return by how many bytes the resident memory of the client's process and of the scheduler has grown at most."""
    with client_of_combo() as client:
        children = psutil.Process().children(recursive=True)
        [scheduler] = [each for each in children if "scaler_scheduler" in each.cmdline()]
        _run(client, nodes // WARM_UP_PART)
        gc.collect()
        processes = psutil.Process(), scheduler
        before = [each.memory_info().rss for each in processes]
        with _peaks(processes) as peaks:
            _run(client, nodes)
    return peaks[0] - before[0], peaks[1] - before[1]


def _run(client: Client, nodes: int) -> None:
    graph, keys = levels(nodes, INPUTS)
    values = client.get(graph, keys)
    if set(values.values()) != {1}:
        raise RuntimeError(f"wrong results: {set(values.values())}")


@contextmanager
def _peaks(processes: tuple[psutil.Process, psutil.Process]) -> Iterator[list[int]]:
    """Watch the resident bytes of processes; the list holds the largest of each."""
    peaks = [0] * len(processes)
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(WATCH_SECONDS):
            for position, process in enumerate(processes):
                peaks[position] = max(peaks[position], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        is_over.set()
        watcher.join()
