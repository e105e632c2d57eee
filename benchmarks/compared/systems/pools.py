"""The pools of the standard library. They have no scheduler: waiting tasks are in the program."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from ...workload import noop
from ..system import System

CHUNKS_PER_WORKER = 4
"""As `multiprocessing.Pool.map` chooses by itself."""


class FuturesExecutor(System):
    """An executor in the form of `concurrent.futures`."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor = self._make(workers)
        self.gather([self.submit(noop) for _ in range(workers)])

    def _make(self, workers: int) -> Executor:
        raise NotImplementedError

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._executor.submit(function, *arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [future.result() for future in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        chunk = max(1, len(items) // (CHUNKS_PER_WORKER * self._workers))
        return list(self._executor.map(function, items, chunksize=chunk))


class StandardExecutor(FuturesExecutor):
    """`concurrent.futures.ProcessPoolExecutor`."""

    def _make(self, workers: int) -> Executor:
        return ProcessPoolExecutor(workers)

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        return _share(self, function, array, tasks)


class MultiprocessingPool(System):
    """`multiprocessing.Pool`."""

    def __init__(self, workers: int) -> None:
        self._pool = multiprocessing.Pool(workers)
        self.gather([self.submit(noop) for _ in range(workers)])

    def close(self) -> None:
        self._pool.terminate()
        self._pool.join()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.apply_async(function, arguments)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [handle.get() for handle in handles]

    def map(self, function: Callable[[int], Any], items: Sequence[int]) -> list[Any]:
        return self._pool.map(function, items)

    def share(self, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
        return _share(self, function, array, tasks)


def _share(system: System, function: Callable[[Any], Any], array: Any, tasks: int) -> list[Any]:
    """Put the array into shared memory: multiprocessing advises against sending much data to its processes."""
    import numpy

    memory = SharedMemory(create=True, size=array.nbytes)
    try:
        shared = numpy.ndarray(array.shape, array.dtype, buffer=memory.buf)
        shared[:] = array
        call = (_on_shared, function, memory.name, array.shape, array.dtype)
        results = system.gather([system.submit(*call) for _ in range(tasks)])
        del shared  # before its buffer
        return results
    finally:
        memory.close()
        memory.unlink()


def _on_shared(function: Callable[[Any], Any], name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    import numpy

    memory = SharedMemory(name)
    try:
        return function(numpy.ndarray(shape, dtype, buffer=memory.buf))
    finally:
        memory.close()
