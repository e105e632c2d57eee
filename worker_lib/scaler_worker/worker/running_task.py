"""The running task: on the state page for the agent, with its times for the long-task watcher, and with its profile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from scaler_worker.fork_server.process_usage import resident_bytes
from scaler_worker.fork_server.state_page import ATTEMPT, CLIENT, ID, RUNNING
from scaler_worker.fork_server.task_processes import Interval
from scaler_worker.task_rows import Cost, Row, booking_of
from scaler_worker.worker.run_token import Threads


class Profile(Protocol):
    """The cost of one profiled task, without the time for which it is suspended."""

    def sample(self) -> None:
        """Measure the resident size. Any thread may call it."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cost(self) -> Cost:
        """The cost of the whole task. Called at its end."""


class ProcessProfile:
    """A profile by the process' CPU time and its largest resident size."""

    def __init__(self) -> None:
        self._cpu_ns = 0
        self._peak_bytes = 0
        self._since = time.process_time_ns()

    def sample(self) -> None:
        self._peak_bytes = max(self._peak_bytes, resident_bytes(os.getpid()))

    def pause(self) -> None:
        self._cpu_ns += time.process_time_ns() - self._since
        self.sample()

    def resume(self) -> None:
        self._since = time.process_time_ns()

    def cost(self) -> Cost:
        self.pause()
        return self._cpu_ns, self._peak_bytes


class Suspension(NamedTuple):
    """The state that a suspended task needs when it resumes."""

    left_ns: int
    """When it was suspended."""
    suspended_ns: int
    """For how long it was suspended before that time."""
    profile: Profile | None
    ran: list[Interval]
    """When it ran."""
    leaves_processes: bool
    surroundings: Any
    """What `Environment.suspend` has returned."""


class Environment(Protocol):
    """What a task finds in its process for its time (`task_environment.TaskEnvironment`)."""

    def enter(self, booking: str) -> None: ...

    def leave(self) -> None: ...

    def note(self) -> None: ...

    def suspend(self) -> Any: ...

    def resume(self, surroundings: Any) -> None: ...


class _NoEnvironment:
    """Leaves the process as it is."""

    def enter(self, booking: str) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""

    def note(self) -> None:
        """Do nothing."""

    def suspend(self) -> None:
        """Do nothing."""

    def resume(self, surroundings: Any) -> None:
        """Do nothing."""


class Processes(Protocol):
    """The processes that tasks start (`task_processes.WorkerProcesses`)."""

    def set_leaving(self, leaves: bool) -> None: ...

    def end(self, ran: Sequence[Interval]) -> None: ...


class _NoProcesses:
    """Tasks start no processes."""

    def set_leaving(self, leaves: bool) -> None:
        """Do nothing."""

    def end(self, ran: Sequence[Interval]) -> None:
        """Do nothing."""


SHORT_PAUSE_NS = 10_000_000
"""Times of one task between which it was suspended for less count as one: a process' start is known to 10 ms."""


class RunningTask:
    """The session's `running` is the task itself. The run loop writes `page` and `begun_ns` inline.

    Times are nanoseconds of `Threads.now_ns`.
    """

    def __init__(
        self,
        page: Any,
        threads: Threads,
        environment: Environment | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.page = page
        self.environment: Environment = environment or _NoEnvironment()
        self._processes: Processes = processes or _NoProcesses()
        self._ran: list[Interval] = []
        """When the task ran before it was suspended last."""
        self._leaves_processes = False
        self.begun_ns = 0
        """When the task began, or was resumed last."""
        self.suspended_ns = 0
        """For how long the task was suspended."""
        self.profile: Profile | None = None
        """None: the task is not profiled."""
        self.suspended_rows: dict[int, Row] = {}
        """Suspended tasks, by the threads that wait to continue them."""
        self._threads = threads

    def elapsed_ns(self) -> int:
        """The time since `begun_ns`."""
        return self._threads.now_ns() - self.begun_ns

    def end(self) -> tuple[int, Profile | None]:
        """Forget the task, which is over. Returns its `suspended_ns` and its `profile`."""
        self.suspended_rows.pop(threading.get_ident(), None)
        self.environment.leave()
        if self._leaves_processes:
            self._set_leaving(False)
        suspended_ns, profile = self.suspended_ns, self.profile
        self.suspended_ns, self.profile = 0, None
        self._ran = []
        return suspended_ns, profile

    def leave_processes(self) -> None:
        """Let the processes that the task starts from now on outlive it."""
        self._set_leaving(True)

    def end_processes(self) -> None:
        """End the processes that the task has started. It was stopped."""
        if not self._leaves_processes:
            self._processes.end([*self._ran, Interval(self.begun_ns, self._threads.now_ns())])

    def _set_leaving(self, leaves: bool) -> None:
        self._leaves_processes = leaves
        self._processes.set_leaving(leaves)

    def suspend(self, row: Row) -> Suspension:
        """Suspend the calling thread's task."""
        self.page[RUNNING] = 0
        left_ns = self._threads.now_ns()
        ran, leaves_processes = self._ran, self._leaves_processes
        if ran and self.begun_ns - ran[-1].end < SHORT_PAUSE_NS:
            ran[-1] = Interval(ran[-1].begin, left_ns)
        else:
            ran.append(Interval(self.begun_ns, left_ns))
        suspended_ns, profile = self.end()
        if profile is not None:
            profile.pause()
        self.suspended_rows[threading.get_ident()] = row
        return Suspension(left_ns, suspended_ns, profile, ran, leaves_processes, self.environment.suspend())

    def resume(self, row: Row, suspension: Suspension) -> None:
        """Resume the calling thread's task."""
        self.suspended_rows.pop(threading.get_ident(), None)
        self.begun_ns = self._threads.now_ns()
        self.suspended_ns = suspension.suspended_ns + self.begun_ns - suspension.left_ns
        self.profile = suspension.profile
        if self.profile is not None:
            self.profile.resume()
        self.environment.resume(suspension.surroundings)
        self.environment.enter(booking_of(row))
        self._ran = suspension.ran
        if suspension.leaves_processes:
            self._set_leaving(True)
        page = self.page
        page[CLIENT], page[ID], page[ATTEMPT] = row[0], row[1], row[2]
        page[RUNNING] = 1
