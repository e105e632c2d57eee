"""The processes that tasks have started: they end with their worker, or with their task if it is stopped.

On Linux, a worker marks itself by a limit that has no effect (RLIMIT_RTTIME, the time of real-time scheduling without a
pause), whose value names the worker. All descendants inherit the mark: also those that leave the process group and
the session, clean their environment, or have no parent any more. Elsewhere the process group of the worker stands for
them, and a stopped task leaves its processes to the worker.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

if sys.platform != "win32":
    import resource

_LONG = 1 << 62
"""Makes each mark a time of 140,000 years in microseconds: no process reaches this limit."""

_HELPERS = b"resource_tracker"
"""In the command of the resource trackers of multiprocessing and loky. They remove what killed processes leave in
shared memory, and end with the last process that uses them."""

_FORK_SERVER = b"multiprocessing.forkserver"
"""In the command of the fork server of multiprocessing, and of all processes that it forks."""


class Interval(NamedTuple):
    """A time in which a task ran, in nanoseconds of `time.perf_counter_ns`."""

    begin: int
    end: int


def can_mark() -> bool:
    """Whether processes can be marked here."""
    if sys.platform != "linux" or not os.path.isdir("/proc/self"):
        return False
    return resource.getrlimit(resource.RLIMIT_RTTIME)[1] == resource.RLIM_INFINITY


def mark(incarnation: int, agent_pid: int) -> None:
    """Mark this process, and what it starts from now on, as a worker's.

    Args:
        incarnation: the worker's.
        agent_pid: the process of its agent.
    """
    _set_mark(_mark_of(incarnation, agent_pid))


def end_processes(incarnations: Iterable[int], agent_pid: int) -> None:
    """Kill the marked processes of these workers, which have ended. Their resource trackers end by themselves.

    Args:
        incarnations: the workers'.
        agent_pid: the process of their agent.
    """
    marks = {_mark_of(incarnation, agent_pid) for incarnation in incarnations}
    if marks and can_mark():
        _kill_all(lambda: (pid for pid in _marked(marks) if _HELPERS not in _command_of(pid)))


class WorkerProcesses:
    """The processes that the tasks of this worker start."""

    def __init__(self) -> None:
        self._mark = resource.getrlimit(resource.RLIMIT_RTTIME)[0] if can_mark() else -1
        """The mark of this process; RLIM_INFINITY, which is -1: it has none."""

    def set_leaving(self, leaves: bool) -> None:
        """Choose whether what is started from now on outlives task and worker."""
        if self._mark > 0:
            _set_mark(resource.RLIM_INFINITY if leaves else self._mark)

    def end(self, ran: Sequence[Interval]) -> None:
        """Kill the processes that began while a stopped task ran.

        The fork server and the resource trackers of multiprocessing serve all tasks of the worker, and stay.

        Args:
            ran: when the task ran.
        """
        if self._mark > 0:
            _kill_all(lambda: self._started(ran))

    def _started(self, ran: Sequence[Interval]) -> Iterator[int]:
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.perf_counter_ns()
        tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
        ticks = [((begin + boot_ns) // tick_ns, (end + boot_ns) // tick_ns) for begin, end in ran]
        own = os.getpid()
        for pid in _marked({self._mark}):
            if pid == own:
                continue
            parent, started = _parent_and_start(pid)
            if not any(begin <= started <= end for begin, end in ticks):
                continue
            command = _command_of(pid)
            if _HELPERS not in command and not (_FORK_SERVER in command and parent == own):
                yield pid


def _mark_of(incarnation: int, agent_pid: int) -> int:
    # With the pid of the agent: other agents of the machine may have the same incarnations, in tests.
    return (incarnation ^ agent_pid << 32) & (_LONG - 1) | _LONG


def _set_mark(value: int) -> None:
    if can_mark():
        resource.setrlimit(resource.RLIMIT_RTTIME, (value, resource.RLIM_INFINITY))


def _marked(marks: Collection[int]) -> Iterator[int]:
    """The processes with one of these marks."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):  # it has ended, or belongs to another user
                if resource.prlimit(int(entry), resource.RLIMIT_RTTIME)[0] in marks:
                    yield int(entry)


def _kill_all(find: Callable[[], Iterator[int]]) -> None:
    """Kill processes, and those that they have forked meanwhile. A process that is killed forks no more."""
    killed: set[int] = set()
    while found := set(find()) - killed:
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def _command_of(pid: int) -> bytes:
    """The arguments of a process; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _parent_and_start(pid: int) -> tuple[int, int]:
    """The parent of a process, and its start in clock ticks since the boot; zeros if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[1]), int(fields[19])
