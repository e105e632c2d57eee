"""The task that runs, as the thread that runs it leaves word of it: on the state page, and for the watcher."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from scaler_worker.fork_server.state_page import ATTEMPT, CLIENT, ID, RUNNING
from scaler_worker.task_rows import Row
from scaler_worker.worker.profiling import Profile


class Suspension(NamedTuple):
    """Of a suspended task: what `RunningTask` was when it left, in nanoseconds of the performance counter."""

    left_ns: int
    suspended_ns: int
    profile: Profile | None


class RunningTask:
    """Which task runs is the session's to say (`running`). The run loop writes `page` and `since` by hand."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.begun_ns = 0
        """When the task began, or went on last, in nanoseconds of the performance counter."""
        self.suspended_ns = 0
        """For how many nanoseconds it was suspended."""
        self.profile: Profile | None = None
        """Where it is profiled."""
        self.suspended_rows: dict[int, Row] = {}
        """Suspended tasks, by the threads that wait for them to go on."""

    def end(self) -> tuple[int, Profile | None]:
        """The task is over. Returns `suspended_ns` and `profile`."""
        self.suspended_rows.pop(threading.get_ident(), None)
        suspended_ns, profile = self.suspended_ns, self.profile
        self.suspended_ns, self.profile = 0, None
        return suspended_ns, profile

    def suspend(self, row: Row) -> Suspension:
        """The calling thread's task is suspended."""
        self.page[RUNNING] = 0
        left_ns = time.perf_counter_ns()
        suspended_ns, profile = self.end()
        if profile is not None:
            profile.pause()
        self.suspended_rows[threading.get_ident()] = row
        return Suspension(left_ns, suspended_ns, profile)

    def resume(self, row: Row, suspension: Suspension) -> None:
        """The calling thread's task goes on."""
        self.suspended_rows.pop(threading.get_ident(), None)
        self.begun_ns = time.perf_counter_ns()
        self.suspended_ns = suspension.suspended_ns + self.begun_ns - suspension.left_ns
        self.profile = suspension.profile
        if self.profile is not None:
            self.profile.resume()
        page = self.page
        page[CLIENT], page[ID], page[ATTEMPT] = row[0], row[1], row[2]
        page[RUNNING] = 1
