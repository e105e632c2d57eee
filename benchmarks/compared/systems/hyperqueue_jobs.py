"""HyperQueue: its LocalCluster. A task is a program, so the functions of the rows are written as programs here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

from ...graph_shapes import Graph, stencil
from ...workload import hold, identity, noop, sleep_fixed, spin
from ..system import System, UnableError

_SPIN = "import sys, time\nwhile time.thread_time() < float(sys.argv[1]): pass"
_HOLD = 'touch "$0/$1"; while [ -d "$0" ]; do sleep 0.05; done'
PROGRAMS: dict[Callable[..., Any], list[str]] = {
    noop: ["true"],
    identity: ["true"],
    sleep_fixed: ["sleep"],
    spin: [sys.executable, "-I", "-S", "-c", _SPIN],
    hold: ["sh", "-c", _HOLD],
}


class HyperQueue(System):
    """One worker with as many cores as the others have workers.

    Programs give no values: `gather` and `map` give the expected ones.
    """

    scheduler_is = "its server is a thread of the program"

    def __init__(self, workers: int) -> None:
        self._cluster = LocalCluster(worker_config=WorkerConfig(cores=workers))
        self._client = self._cluster.client()

    def close(self) -> None:
        self._cluster.stop()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        job = Job()
        _add(job, function, *arguments)
        return self._client.submit(job), arguments[0] if arguments else None

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        self._client.wait_for_jobs([job for job, _ in handles])
        return [value for _, value in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        job = Job()
        for item in items:
            _add(job, function, item)
        self._client.wait_for_jobs([self._client.submit(job)])
        return list(items)

    def get(self, graph: Graph, keys: Sequence[Hashable]) -> list[Any]:
        raise UnableError("its dependencies order tasks and pass no values")

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        raise UnableError("its tasks are programs: they read files")

    def stencil(self, width: int, steps: int, seconds: float) -> None:
        graph, _ = stencil(width, steps, seconds)
        job = Job()
        made: dict[Hashable, Any] = {}
        for key, (function, length, *inputs) in graph.items():
            made[key] = _add(job, function, length, deps=[made[name] for name in inputs])
        self._client.wait_for_jobs([self._client.submit(job)])


def _add(job: Job, function: Callable[..., Any], *arguments: Any, deps: Sequence[Any] = ()) -> Any:
    """Add a task without output files: many small files would be what is measured."""
    values = [] if function in (noop, identity) else [str(argument) for argument in arguments]
    return job.program([*PROGRAMS[function], *values], stdout=None, stderr=None, deps=deps)
