"""What a client inside a task needs to know of the worker that runs it.

A worker installs itself here (`host`); in every other process there is none. A task that waits for its children gives
up its slot while it waits: another thread of the same worker then runs the next task (the idea is blocking-section
parking, as in work-stealing runtimes).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ..protocol.messages import Output, TaskName


class TaskStoppedError(BaseException):
    """Raised inside a task that is stopped: cancelled by force, or past its time limit.

    No Exception: a task that passes over errors must not pass over this.
    """


class RunningTask(Protocol):
    """A task that a thread of this process runs."""

    @property
    def name(self) -> TaskName: ...

    @property
    def depth(self) -> int:
        """How many tasks wait for this one and for one another; 0 when a client outside of tasks submitted it."""

    @property
    def priority(self) -> int: ...

    @property
    def stream_output(self) -> bool:
        """Whether its client wants to see what it prints."""

    def suspend(self) -> None:
        """Give up the slot: another task may begin. The calling thread must run nothing of the task until `resume`."""

    def resume(self) -> None:
        """Wait for the slot.

        Raises:
            TaskStoppedError: the task was stopped meanwhile. The slot is held then as well.
        """

    def wait(self, latch: threading.Lock, timeout: float | None) -> None:
        """Acquire the latch, which another thread releases; between `suspend` and `resume`.

        Returns as well when `timeout`, in seconds, is over or the task is stopped.
        """


class TaskHost(Protocol):
    """The worker that tasks of this process run in."""

    @property
    def address(self) -> str:
        """The scheduler's."""

    @property
    def keys(self) -> str:
        """The folder of the worker's keys; empty: it has none."""

    @property
    def worker(self) -> int:
        """The worker's incarnation."""

    def current(self) -> RunningTask | None:
        """The task that the calling thread runs; None in a thread that a task has started."""

    def forward_output(self, parents: list[TaskName], output: Output) -> None:
        """Send what children have printed to the clients of their parents, one for each row. It does not block."""


host: TaskHost | None = None
"""The worker of this process, where it is one."""

is_forked_by_task = False
"""Whether this process is no worker, but a worker's child by a task's fork."""

stop_children: Callable[[TaskName], None] | None = None
"""Has everything stopped that a task of this process has submitted and that is not over. The nested client puts it
here; the worker calls it for each task that it stops, in any thread. It does not wait."""
