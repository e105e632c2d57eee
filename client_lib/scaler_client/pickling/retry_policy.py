"""A function whose tasks are tried again if they raise certain exceptions, or may leave processes behind.

It has a separate module, because tracebacks leave out the frames of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

RetryOn = tuple[type[BaseException], ...]


class TaskPolicy(NamedTuple):
    """The options of tasks that travel with their function, because only workers use them."""

    retry_on: RetryOn = ()
    """A task that raises one of these exceptions runs again."""
    leaves_processes: bool = False
    """Whether the processes that a task starts outlive it."""


NO_POLICY = TaskPolicy()

leave_processes: Callable[[], None] | None = None
"""Lets the processes that the running task starts outlive it. A worker sets it; None: this process is no worker."""


class RetryingFunction:
    """Calls the function on workers, and carries the exceptions after which a task runs again.

    Args:
        fn: the function to call.
        retry_on: classes of exceptions.
        leaves_processes: whether the processes that a task starts outlive it.
    """

    def __init__(self, fn: Callable[..., Any], retry_on: RetryOn, leaves_processes: bool = False) -> None:
        self.fn = fn
        self.retry_on = retry_on
        self.leaves_processes = leaves_processes

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.leaves_processes and leave_processes is not None:
            leave_processes()
        return self.fn(*args, **kwargs)
