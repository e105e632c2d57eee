"""The thread that runs the callbacks of futures. A slow callback delays only other callbacks."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import Any

from ..futures.future import TaskFuture


class Callbacks:
    """Runs callbacks in a thread, which starts with the first future that has callbacks.

    It has no lock: a signal handler may call `add` in a thread that is inside of `add`.
    """

    def __init__(self) -> None:
        self._is_over = False
        self._futures: queue.SimpleQueue[TaskFuture[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, future: TaskFuture[Any]) -> None:
        """Run a future's callbacks in the thread, or in the calling thread after `end`."""
        self._futures.put(future)
        if self._is_over:  # read after the put: if the thread may have ended, its queue is emptied here
            self._run_rest()
        elif self._thread is None:
            thread = threading.Thread(target=self._run, name="scaler-client-callbacks", daemon=True)
            if self._thread is None:  # no call in between, which could run a signal handler
                self._thread = thread
                thread.start()

    def end(self) -> None:
        """End the thread after the callbacks that were added before."""
        self._is_over = True
        self._futures.put(None)

    def join(self) -> None:
        """Wait until all callbacks have run, after `end`. A call within a callback returns at once."""
        thread = self._thread
        # A thread without a number is about to start: this call is in a signal handler of the thread that starts it.
        if thread is not None and thread.ident is not None and threading.current_thread() is not thread:
            thread.join()

    def _run(self) -> None:
        while (future := self._futures.get()) is not None:
            future.run_callbacks()
            del future

    def _run_rest(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                future = self._futures.get_nowait()
                if future is not None:
                    future.run_callbacks()
                elif self._thread is not None:
                    self._futures.put(None)  # for the thread, which runs the others first
                    return
