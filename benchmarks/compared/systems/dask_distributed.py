"""dask.distributed: a scheduler and workers with one thread each, every one a process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from distributed import Client, wait
from distributed.deploy.subprocess import SubprocessCluster

from ...graph_shapes import Graph, stencil
from ..system import System

BATCHES_PER_WORKER = 4


class Dask(System):
    """Its best practices: batches of short calls, and `scatter` for large data.

    A LocalCluster is as fast, but its scheduler is a thread of the program, so that its memory cannot be told.
    """

    def __init__(self, workers: int) -> None:
        self._cluster = SubprocessCluster(n_workers=workers, worker_kwargs={"nthreads": 1})
        self._client = Client(self._cluster)
        self._client.wait_for_workers(workers)
        self._batches = BATCHES_PER_WORKER * workers

    def close(self) -> None:
        self._client.close()
        self._cluster.close()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        results: list[Any] = self._client.gather(list(handles))
        return results

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        size = max(1, len(items) // self._batches)
        batches = [items[begin : begin + size] for begin in range(0, len(items), size)]
        done = self._client.map(_batch, [function] * len(batches), batches, pure=False)
        return [result for results in self._client.gather(done) for result in results]

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        values: list[Any] = self._client.get(graph, list(keys))
        return values

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        scattered = self._client.scatter(array)
        wait(scattered)
        return super().share(function, scattered, tasks)

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        self.get(*stencil(width, steps, seconds))

    def scheduler_processes(self) -> list[int]:
        return [self._cluster.scheduler.process.pid]


def _batch(function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
    return [function(item) for item in items]
