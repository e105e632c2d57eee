"""Ray: remote functions on one node. The program owns waiting tasks; the node has a raylet and a control store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Hashable, Sequence
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.util.multiprocessing import Pool

from ...graph_shapes import Graph, stencil
from ...workload import noop
from ..system import System, child_processes


class Ray(System):
    """Its documents recommend larger batches in place of tiny tasks: its Pool makes them for `map`."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, _temp_dir=tempfile.gettempdir())
        self._functions: dict[Callable[..., Any], Any] = {}
        self._pool: Pool | None = None
        self.gather([self.submit(noop) for _ in range(workers)])

    def close(self) -> None:
        ray.shutdown()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        remote = self._functions.get(function)
        if remote is None:
            remote = self._functions[function] = ray.remote(function)
        return remote.remote(*arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        results: list[Any] = ray.get(list(handles))
        return results

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        if self._pool is None:
            self._pool = Pool(self._workers)
        results: list[Any] = self._pool.map(function, items)
        return results

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        made: dict[Hashable, Any] = {}
        for key, (function, *arguments) in graph.items():  # inputs come first
            made[key] = self.submit(function, *[made.get(argument, argument) for argument in arguments])
        return self.gather([made[key] for key in keys])

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        return super().share(function, ray.put(array), tasks)

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        self.get(*stencil(width, steps, seconds))

    def scheduler_processes(self) -> list[int]:
        return child_processes("raylet/raylet", "gcs/gcs_server")
