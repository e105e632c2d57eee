"""ipyparallel: a controller and engines, used by a load-balanced view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipyparallel

from ...graph_shapes import Graph
from ..system import System, UnableError, child_processes

CHUNKS_PER_ENGINE = 4


class Ipyparallel(System):
    """A large array is pushed to each engine once, and tasks name it there."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._cluster = ipyparallel.Cluster(n=workers)
        self._client = self._cluster.start_and_connect_sync()
        self._view = self._client.load_balanced_view()

    def close(self) -> None:
        self._cluster.stop_cluster_sync()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._view.apply_async(function, *arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [handle.get() for handle in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        chunk = max(1, len(items) // (CHUNKS_PER_ENGINE * self._workers))
        return list(self._view.map_sync(function, items, chunksize=chunk))

    def get(self, graph: Graph, keys: Any) -> list[Any]:
        raise UnableError("its dependencies order tasks and pass no values")

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        self._client[:].push({"shared": array}, block=True)
        return super().share(function, ipyparallel.Reference("shared"), tasks)

    def scheduler_processes(self) -> list[int]:
        return child_processes("ipyparallel.controller")
