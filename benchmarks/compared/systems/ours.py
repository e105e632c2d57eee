"""Scaler: a local cluster, its scheduler under PyPy if there is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from scaler_client import Client, SchedulerClusterCombo

from ...graph_shapes import Graph, stencil
from ...workload import noop
from ..system import System

PATIENCE_SECONDS = 60.0


class Scaler(System):
    """A client of a `SchedulerClusterCombo`."""

    def __init__(self, workers: int) -> None:
        python = os.environ.get("SCALER_SCHEDULER_PYTHON")
        self._combo = SchedulerClusterCombo(n_workers=workers, scheduler_python=python)
        self._client = Client(self._combo, timeout_seconds=PATIENCE_SECONDS)
        self.gather([self.submit(noop) for _ in range(workers)])

    def close(self) -> None:
        self._client.disconnect()
        self._combo.shutdown()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [future.result() for future in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        return self._client.map(function, zip(items, strict=True))

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        values = self._client.get(graph, list(keys))
        return [values[key] for key in keys]

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        reference = self._client.send_object(array)
        return super().share(function, reference, tasks)

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        self.get(*stencil(width, steps, seconds))

    def scheduler_processes(self) -> list[int]:
        return [self._combo.scheduler_pid]
