"""The token that decides which one of a worker's threads runs tasks, and the wakeup of this thread.

A task that waits for its children releases the token to another thread, a runner, which runs the queued tasks. Before
the task continues, it acquires the token again; then the queue's next task has to wait.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Protocol

from scaler_client.net.wakeup import WakeupFd
from scaler_worker.worker.processor_wait import ProcessorWait

MAX_PARKED_THREADS = 8
"""Runners kept for the next task that waits; further ones end.

To wait and continue takes a task 70 us if a parked runner takes over, and 200 us if a new runner is started.
"""


class Wakeup:
    """Wakes the thread that runs tasks, if there is work besides the queue: a flag with a descriptor.

    Any thread or signal handler sets it, after it has stored the reason.
    The run loop reads `is_set` once a task: one attribute for all reasons, because each further check costs a hundredth
    of a no-op task. It clears the flag first, and then checks every reason.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._wake = WakeupFd()
        self._is_waited_for = False

    def set(self) -> None:
        self.is_set = True
        if self._is_waited_for:
            self._wake.set()

    def fileno(self) -> int:
        """A descriptor that is readable if the wakeup is set between `begin_wait` and `end_wait`."""
        return self._wake.fileno()

    def begin_wait(self) -> bool:
        """Call it before a poll of `fileno`. Returns False if the wakeup is set already: do not poll then."""
        self._is_waited_for = True
        return not self.is_set

    def end_wait(self) -> None:
        """Call it after the poll."""
        self._is_waited_for = False
        self._wake.clear()


class Waiter(Protocol):
    """One wait of one thread for the token."""

    is_granted: bool

    def grant(self) -> None:
        """Let the thread continue. Another thread calls this once."""

    def wait(self) -> None:
        """Wait until the token is granted."""

    def wait_out(self) -> BaseException | None:
        """Wait until the token is granted, even if signal handlers raise exceptions.

        Returns:
            The last exception that a signal handler of the task's own has raised.
        """


class Threads(Protocol):
    """How a worker's threads start, wait for the token, and tell the time. The simulation has its own."""

    def start(self, run: Callable[[], None], name: str) -> None:
        """Start a thread.

        Raises:
            RuntimeError: the system has no more threads.
        """

    def new_waiter(self) -> Waiter: ...

    def now_ns(self) -> int:
        """Nanoseconds of a monotonic clock of high resolution."""

    def processor_wait(self) -> ProcessorWait:
        """Return an object that measures how long the calling thread waits for a processor."""


class SystemThreads:
    """The threads of this process."""

    now_ns = staticmethod(time.perf_counter_ns)

    def start(self, run: Callable[[], None], name: str) -> None:
        threading.Thread(target=_run_or_exit, args=(run,), name=name, daemon=True).start()

    def new_waiter(self) -> Waiter:
        return _LockWaiter()

    def processor_wait(self) -> ProcessorWait:
        return ProcessorWait()


def _run_or_exit(run: Callable[[], None]) -> None:
    try:
        run()
    except BaseException:
        # The thread had the token: nothing would ever run here again, and the agent would not know.
        traceback.print_exc()
        os._exit(1)


class _LockWaiter:
    """A wait by a lock."""

    def __init__(self) -> None:
        self.is_granted = False
        self._latch = threading.Lock()
        self._latch.acquire()

    def grant(self) -> None:
        self.is_granted = True
        self._latch.release()

    def wait(self) -> None:
        self._latch.acquire()

    def wait_out(self) -> BaseException | None:
        raised = None
        while not self.is_granted:
            try:
                self._latch.acquire()
            except BaseException as error:
                raised = error
        return raised


class RunToken:
    """The token of one worker. Its threads pass it to one another."""

    def __init__(self, wakeup: Wakeup, threads: Threads) -> None:
        self.holder = 0
        """The thread that has the token, by `threading.get_ident()`. While the token passes from one thread to another,
        the former one."""
        self._first = 0
        self._first_waiter: Waiter | None = None
        """The waiter of the first thread, while it has nothing to run."""
        self._wakeup = wakeup
        self._threads = threads
        self._lock = threading.Lock()
        self._returning: deque[Waiter] = deque()
        self._parked: list[Waiter] = []

    def acquire_first(self) -> None:
        """Take the token as the worker's first thread. This thread is preferred: signals interrupt its task and its
        waiting."""
        self._first = self.holder = threading.get_ident()

    def acquire(self) -> None:
        """Take the token. A runner calls it first, after a `release` that returned False."""
        self.holder = threading.get_ident()

    def release(self) -> bool:
        """Give the token to another thread. Returns False if no thread waits: the caller then starts one, which calls
        `acquire`."""
        with self._lock:
            waiter = self._next_waiter()
            if waiter is None and self._parked:
                waiter = self._parked.pop()
        if waiter is None:
            return False
        waiter.grant()
        return True

    def reacquire(self) -> BaseException | None:
        """Wait for the token, after `release`.

        Returns:
            The exception that a signal handler of the task has raised during the wait. Raise it when the task
            continues.
        """
        waiter = self._threads.new_waiter()
        with self._lock:
            self._returning.append(waiter)
        self._wakeup.set()
        raised = waiter.wait_out()
        self.acquire()
        return raised

    def yield_to_waiters(self) -> bool:
        """Give the token to threads with precedence, and wait until it comes back. A runner calls it between two tasks.

        Returns:
            False if the thread is not needed any more: it must end.
        """
        with self._lock:
            waiter = self._next_waiter()
            if waiter is None:
                return True
            own = self._park()
        waiter.grant()
        if own is None:
            return False
        own.wait()
        self.acquire()
        return True

    def pass_to_first(self) -> bool:
        """Give the token to the first thread. A runner calls it when it ends. Returns False if the first thread is
        inside a task that waits."""
        with self._lock:
            waiter, self._first_waiter = self._first_waiter, None
        if waiter is None:
            return False
        waiter.grant()
        return True

    def _next_waiter(self) -> Waiter | None:
        """The waiter with precedence over runners: first that of a task that resumes, then that of the first thread."""
        if self._returning:
            return self._returning.popleft()
        waiter, self._first_waiter = self._first_waiter, None
        return waiter

    def _park(self) -> Waiter | None:
        """A waiter for the calling thread; None if the thread is not needed."""
        waiter = self._threads.new_waiter()
        if threading.get_ident() == self._first:
            self._first_waiter = waiter
        elif len(self._parked) < MAX_PARKED_THREADS:
            self._parked.append(waiter)
        else:
            return None
        return waiter
