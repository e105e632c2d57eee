"""opengris-scaler: its SchedulerClusterCombo."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from scaler import Client, SchedulerClusterCombo

from ...graph_shapes import Graph, stencil
from ...workload import noop
from ..system import System


class Opengris(System):
    """A scheduler, an object storage server and workers. It has no batches: `map` sends a task for each item."""

    def __init__(self, workers: int) -> None:
        self._combo = SchedulerClusterCombo(n_workers=workers, logging_level="WARNING")
        self._client = Client(self._combo.get_address())
        self.gather([self.submit(noop) for _ in range(workers)])

    def close(self) -> None:
        self._client.disconnect()
        self._combo.shutdown()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [future.result() for future in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        results: list[Any] = self._client.map(function, items)
        return results

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        """Arguments of a node are names of nodes, also those that are values."""
        nodes: dict[str, Any] = {}
        for key, (function, *arguments) in graph.items():
            for argument in arguments:
                if argument not in graph:
                    nodes[str(argument)] = argument
            nodes[str(key)] = (function, *map(str, arguments))
        values = self._client.get(nodes, [str(key) for key in keys])
        return [values[str(key)] for key in keys]

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        return super().share(function, self._client.send_object(array), tasks)

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        self.get(*stencil(width, steps, seconds))

    def scheduler_processes(self) -> list[int]:
        return [self._combo._scheduler.pid, self._combo._object_storage.pid]
