"""What a profiled task costs."""

from __future__ import annotations

import os
import time

from scaler_worker.fork_server.process_usage import resident_bytes
from scaler_worker.task_rows import Cost


class Profile:
    """Of one task: the process' CPU time and largest resident size while it ran, without the time it was suspended."""

    def __init__(self) -> None:
        self._cpu_ns = 0
        self._peak_bytes = 0
        self._since = time.process_time_ns()

    def sample(self) -> None:
        """Look at the resident size, from any thread."""
        self._peak_bytes = max(self._peak_bytes, resident_bytes(os.getpid()))

    def pause(self) -> None:
        self._cpu_ns += time.process_time_ns() - self._since
        self.sample()

    def resume(self) -> None:
        self._since = time.process_time_ns()

    def cost(self) -> Cost:
        """At the task's end."""
        self.pause()
        return self._cpu_ns, self._peak_bytes
