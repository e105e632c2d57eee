"""The interface between a client inside a task and the worker that runs the task.

A worker installs itself as `host`; in other processes `host` is None. A task that waits for its child tasks gives up
its slot, and another thread of the same worker runs the next task. Work-stealing runtimes do the same in blocking
sections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ..protocol.messages import Output, TaskAttempt
from .gang import GangMember


class TaskStoppedError(BaseException):
    """Raised inside a task that is stopped: it was cancelled with `force=True`, or exceeded its `timeout`.

    It is not an `Exception`, so `except Exception` in a task does not catch it. Do not catch it; use `finally` to clean
    up.
    """


class RunningTask(Protocol):
    """The task that a thread of this process runs."""

    @property
    def name(self) -> TaskAttempt: ...

    @property
    def depth(self) -> int:
        """The number of tasks above this one: 0 if a client outside of tasks submitted it, 1 for its children."""

    @property
    def priority(self) -> int: ...

    @property
    def stream_output(self) -> bool:
        """Whether the client shows the output of the task."""

    @property
    def booking(self) -> str:
        """The resources that the task has, as `17 cpus=4 gpu=1.5:0+2`: the booking's number, then names, amounts and
        ids. Empty: none."""

    @property
    def gang(self) -> GangMember | None:
        """Its place in its gang; None: it is no member of one."""

    def suspend(self) -> None:
        """Give up the slot, so that another task may begin.

        The calling thread must not run any code of the task until `resume` returns.
        """

    def resume(self) -> None:
        """Wait until the task has a slot again.

        Raises:
            TaskStoppedError: the task was stopped while it was suspended. In this case too, the task has a slot.

        """

    def wait(self, latch: threading.Lock, timeout: float | None) -> None:
        """Wait between `suspend` and `resume`, until another thread releases the latch.

        Also returns after `timeout` seconds, or if the task is stopped.
        """


class TaskHost(Protocol):
    """The worker of this process."""

    @property
    def address(self) -> str:
        """The address of the worker's scheduler."""

    @property
    def keys(self) -> str:
        """The folder of the worker's keys; empty: no keys."""

    @property
    def worker(self) -> int:
        """The incarnation of the worker."""

    @property
    def environment(self) -> str:
        """The name of the worker's environment; empty: none."""

    def current(self) -> RunningTask | None:
        """Return the task that the calling thread runs; None in a thread that a task started."""

    def forward_output(self, parents: list[TaskAttempt], output: Output) -> None:
        """Send the output of child tasks to the clients of their parents. Does not block.

        Args:
            parents: for each row of `output` the parent of its task.
            output: what the tasks printed.
        """


host: TaskHost | None = None
"""The worker of this process; None in other processes."""

is_forked_by_task = False
"""Whether a task forked this process: it is a child of a worker, but not a worker itself."""

stop_children: Callable[[TaskAttempt], None] | None = None
"""Stops all tasks that a task of this process submitted and that are not done. Does not wait.

The client inside the worker sets it. The worker calls it for each task that it stops, and when a task that has used a
client has ended, in any thread.
"""
