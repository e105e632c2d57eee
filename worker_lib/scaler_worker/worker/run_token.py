"""Which one of a worker's threads runs tasks.

A task that waits for its children lends the token to another thread, a runner, which goes on with the queue; when it
wants to go on it gets the token back before the queue's next task begins.
"""

from __future__ import annotations

import threading
from collections import deque

from scaler_worker.worker.wakeup import Wakeup

MOST_PARKED = 8
"""Runners kept for the next task that waits; further ones end. To wait and go on takes a task 70 us where a runner is
there, 200 where one is started."""


class _Waiter:
    """Where one thread waits for the token, once."""

    def __init__(self) -> None:
        self.is_granted = False
        self._latch = threading.Lock()
        self._latch.acquire()

    def grant(self) -> None:
        self.is_granted = True
        self._latch.release()

    def wait(self) -> None:
        self._latch.acquire()


class RunToken:
    def __init__(self, wakeup: Wakeup) -> None:
        self.holder = 0
        """The thread that has it, by `threading.get_ident()`; where it passes from one to another, the former."""
        self._first = 0
        self._first_waiter: _Waiter | None = None
        """Where the first thread waits, while it has nothing to run."""
        self._wakeup = wakeup
        self._lock = threading.Lock()
        self._returning: deque[_Waiter] = deque()
        self._parked: list[_Waiter] = []

    def acquire_first(self) -> None:
        """The calling thread is the first one. It is preferred: signals interrupt what it runs, and its waiting."""
        self._first = self.holder = threading.get_ident()

    def acquire(self) -> None:
        """A runner's first act, where `release` has said that it is needed."""
        self.holder = threading.get_ident()

    def release(self) -> bool:
        """Let another thread have it. False when none is there: the caller then starts one, which calls `acquire`."""
        with self._lock:
            waiter = self._next_waiter()
            if waiter is None and self._parked:
                waiter = self._parked.pop()
        if waiter is None:
            return False
        waiter.grant()
        return True

    def reacquire(self) -> BaseException | None:
        """Wait for it, after `release`.

        Returns:
            What a signal handler of the task's own has raised meanwhile; to be raised once the task goes on.
        """
        waiter = _Waiter()
        with self._lock:
            self._returning.append(waiter)
        self._wakeup.set()
        raised = None
        while not waiter.is_granted:
            try:
                waiter.wait()
            except BaseException as error:
                raised = error
        self.acquire()
        return raised

    def yield_to_waiters(self) -> bool:
        """Called by a runner between two tasks: let those have it who go first, and wait for the next turn.

        False when the thread is not needed any more: it must end.
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
        """Called by a runner that ends. False when the first thread is inside a task that waits."""
        with self._lock:
            waiter, self._first_waiter = self._first_waiter, None
        if waiter is None:
            return False
        waiter.grant()
        return True

    def _next_waiter(self) -> _Waiter | None:
        """Whose turn it is before any other runner's: who returns, then the first thread."""
        if self._returning:
            return self._returning.popleft()
        waiter, self._first_waiter = self._first_waiter, None
        return waiter

    def _park(self) -> _Waiter | None:
        """Where the calling thread is to wait; None where there is no use for it."""
        waiter = _Waiter()
        if threading.get_ident() == self._first:
            self._first_waiter = waiter
        elif len(self._parked) < MOST_PARKED:
            self._parked.append(waiter)
        else:
            return None
        return waiter
