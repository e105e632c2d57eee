"""The thread that runs the callbacks of futures. A slow callback delays only other callbacks."""

from __future__ import annotations

import queue
import threading
from typing import Any

from ..futures.future import TaskFuture


class Callbacks:
    """Runs callbacks in a thread, which starts with the first future that has callbacks."""

    def __init__(self) -> None:
        self._adding = threading.Lock()
        self._is_over = False
        self._futures: queue.SimpleQueue[TaskFuture[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, future: TaskFuture[Any]) -> None:
        """Run a future's callbacks in the thread, or in the calling thread after `end`."""
        with self._adding:
            if not self._is_over:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=_run, args=(self._futures,), name="scaler-client-callbacks", daemon=True
                    )
                    self._thread.start()
                self._futures.put(future)
                return
        future.run_callbacks()

    def end(self) -> None:
        """End the thread after the callbacks that were added before."""
        with self._adding:
            self._is_over = True
            self._futures.put(None)

    def join(self) -> None:
        """Wait until all callbacks have run, after `end`. A call within a callback returns at once."""
        thread = self._thread
        if thread is not None and threading.current_thread() is not thread:
            thread.join()


def _run(futures: queue.SimpleQueue[TaskFuture[Any] | None]) -> None:
    while (future := futures.get()) is not None:
        future.run_callbacks()
        del future
