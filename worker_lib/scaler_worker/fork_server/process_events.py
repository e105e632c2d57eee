"""Events of worker processes, as plain data, from the fork server to the agent's session."""

from __future__ import annotations

import signal
from dataclasses import dataclass

SCHEDULER_LOST_STATUS = 69
"""Exit status (EX_UNAVAILABLE) of a worker that ends because no scheduler answers it.

This does not count as a death.
"""

DAMAGED_STATUS = 75
"""Exit status (EX_TEMPFAIL) of a worker that ends because the stop of a task has damaged its process."""

DAMAGED = "stopping a task had damaged its process"

PRELOAD_FAILED_STATUS = 78
"""Exit status (EX_CONFIG) of a worker whose `--preload` or `--offer` has failed, and of its agent if no other worker is
ready."""


@dataclass(frozen=True)
class ProcessStarted:
    """A worker process has started."""

    slot: int
    incarnation: int
    pid: int


@dataclass(frozen=True)
class ProcessEnded:
    """A worker process has ended, or could not be started."""

    slot: int
    incarnation: int
    pid: int
    """0 if the process could not be started: `error` says why."""
    status: int = 0
    """The exit status; negative: the number of the signal that ended the process."""
    peak_bytes: int = 0
    """The largest resident size of the process; 0 if the system does not tell."""
    error: str = ""

    def cause(self) -> str:
        """Why the process ended, for people: "signal 9 (SIGKILL)", "exit code 1"."""
        if self.error:
            return self.error
        if self.status == DAMAGED_STATUS:
            return DAMAGED
        if self.status >= 0:
            return f"exit code {self.status}"
        try:
            return f"signal {-self.status} ({signal.Signals(-self.status).name})"
        except ValueError:  # a real-time signal has no name
            return f"signal {-self.status}"


ProcessEvent = ProcessStarted | ProcessEnded
