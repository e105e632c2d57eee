"""loky: a ProcessPoolExecutor that survives dead workers and pickles by cloudpickle."""

from __future__ import annotations

from typing import Any

from loky import get_reusable_executor

from .pools import FuturesExecutor


class Loky(FuturesExecutor):
    """`loky.get_reusable_executor`, which its documents recommend. An array is pickled once a task."""

    def _make(self, workers: int) -> Any:
        return get_reusable_executor(max_workers=workers, timeout=None)

    def close(self) -> None:
        executor: Any = self._executor
        executor.shutdown(wait=True, kill_workers=True)  # else it first runs all waiting tasks
