"""The task that runs, as the thread that runs it leaves word of it: on the state page, and for the attendant."""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from scaler_worker.processes.state_page import ATTEMPT, CLIENT, ID, RUNNING
from scaler_worker.task_rows import Row
from scaler_worker.worker.profiling import Profile


class Past(NamedTuple):
    """Of a suspended task: what `Present` was when it left, in nanoseconds of the performance counter."""

    left: int
    away: int
    profile: Profile | None


class Present:
    """Which task runs is the session's to say (`running`). The run loop writes `page` and `since` by hand."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.since = 0
        """When the task began, or went on last, in nanoseconds of the performance counter."""
        self.away = 0
        """For how many nanoseconds it was suspended."""
        self.profile: Profile | None = None
        """Where it is profiled."""
        self.waiting: dict[int, Row] = {}
        """Suspended tasks, by the threads that wait for them to go on."""

    def end(self) -> tuple[int, Profile | None]:
        """The task is over. Returns `away` and `profile`."""
        self.waiting.pop(threading.get_ident(), None)
        away, profile = self.away, self.profile
        self.away, self.profile = 0, None
        return away, profile

    def leave(self, row: Row) -> Past:
        """The calling thread's task is suspended."""
        self.page[RUNNING] = 0
        left = time.perf_counter_ns()
        away, profile = self.end()
        if profile is not None:
            profile.pause()
        self.waiting[threading.get_ident()] = row
        return Past(left, away, profile)

    def come_back(self, row: Row, past: Past) -> None:
        """The calling thread's task goes on."""
        self.waiting.pop(threading.get_ident(), None)
        self.since = time.perf_counter_ns()
        self.away = past.away + self.since - past.left
        self.profile = past.profile
        if self.profile is not None:
            self.profile.go_on()
        page = self.page
        page[CLIENT], page[ID], page[ATTEMPT] = row[0], row[1], row[2]
        page[RUNNING] = 1
