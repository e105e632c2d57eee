"""The long-task watcher: a thread that serves the connection while one task runs for long.

It sends the answers of tasks that ended before, handles messages, reports that the task runs, and measures its memory.
"""

from __future__ import annotations

import threading
import time

from scaler_worker.worker.connection import Connection
from scaler_worker.worker.interruption import Interruption
from scaler_worker.worker.running_task import RunningTask
from scaler_worker.worker.session import WorkerSession

LONG_TASK_NS = 10_000_000
LOOK_SECONDS = 0.02
"""The time between two checks for a long task, while the worker is busy."""

SIGNAL_SECONDS = 0.2
"""The longest wait for a message while a long task runs. Then the watcher sends the task's output, and heartbeats.

A thousand workers on two cores that looked every LOOK_SECONDS took both cores (`make bench ONLY=scale`).
"""

RETRY_SECONDS = 0.001
"""The time between two checks while a stopped task was not interrupted yet.

In a task that logs or prints all the time, one check in fifty finds a safe point.
"""

PARK_AFTER_LOOKS = 50
"""After so many checks of an idle worker the thread sleeps until tasks run."""

SAMPLE_SECONDS = 1.0
"""Between two measurements of a profiled task's memory."""


class LongTaskWatcher:
    """The watcher of one worker, with its thread."""

    def __init__(
        self, session: WorkerSession, connection: Connection, interruption: Interruption, task: RunningTask
    ) -> None:
        self._session = session
        self._connection = connection
        self._interruption = interruption
        self._task = task
        self._woken = threading.Event()
        self._is_parked = False
        self._is_busy = False
        """Set before `_is_parked` is read.

        The watcher sets `_is_parked` before it reads this flag. So one of the two threads sees the other's flag.
        """
        self._is_serving = False
        """Whether the thread waits for messages, because a long task runs. The connection's lock guards it."""
        self._next_sample = 0.0

    def start(self) -> None:
        threading.Thread(target=self._watch, name="long-task-watcher", daemon=True).start()

    def wake(self) -> None:
        """Watch from now on: tasks run."""
        self._is_busy = True
        if self._is_parked:
            self._woken.set()

    def task_ended(self) -> None:
        """End the wait for messages after a task that may have been long. The caller holds the connection's lock."""
        if self._is_serving:
            self._is_serving = False
            self._connection.end_signal_wait()

    def rest(self) -> None:
        """Stop watching: no task runs."""
        self._is_busy = False

    @property
    def is_parked(self) -> bool:
        return self._is_parked

    def _watch(self) -> None:
        quiet = 0
        while True:
            if self._interruption.is_pending:
                time.sleep(RETRY_SECONDS)
            elif self._is_serving:
                self._connection.await_signal(SIGNAL_SECONDS)
            else:
                time.sleep(LOOK_SECONDS)
            if self.look():
                quiet = 0
                continue
            quiet += 1
            if quiet > PARK_AFTER_LOOKS:
                self._park()
                quiet = 0

    def look(self) -> bool:
        """Serve the connection if the running task runs long. Returns whether a task runs."""
        running = self._session.running
        if running is None or self._task.elapsed_ns() < LONG_TASK_NS:
            self._is_serving = False
            return running is not None
        self._sample()
        with self._connection.lock:
            if self._session.running is running:
                self._session.started(running)
                self._connection.look_for_scheduler()
                self._connection.exchange()
                self._interruption.retry()
                self._is_serving = True
        self._session.objects.release()
        return True

    def _sample(self) -> None:
        profile, now = self._task.profile, time.monotonic()
        if profile is not None and now >= self._next_sample:
            self._next_sample = now + SAMPLE_SECONDS
            profile.sample()

    def _park(self) -> None:
        """Sleep until the worker has something to run."""
        self._woken.clear()
        self._is_parked = True
        if not self._is_busy:
            self._woken.wait()
        self._is_parked = False
