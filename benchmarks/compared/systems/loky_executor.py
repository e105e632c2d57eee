"""loky: a ProcessPoolExecutor that survives dead workers and pickles by cloudpickle."""

from __future__ import annotations

from concurrent.futures import Executor

from loky import get_reusable_executor

from .pools import FuturesExecutor


class Loky(FuturesExecutor):
    """`loky.get_reusable_executor`, which its documents recommend. An array is pickled once a task."""

    def _make(self, workers: int) -> Executor:
        executor: Executor = get_reusable_executor(max_workers=workers, timeout=None)
        return executor

    def close(self) -> None:
        self._executor.shutdown(wait=True)
