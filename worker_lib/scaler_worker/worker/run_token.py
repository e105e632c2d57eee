"""Which one of a worker's threads runs tasks.

A task that waits for its children lends the baton to another thread, a runner, which goes on with the queue; when it
wants to go on it gets the baton back before the queue's next task begins.
"""

from __future__ import annotations

import threading
from collections import deque

from scaler_worker.worker.wakeup import Bell

MOST_PARKED = 8
"""Runners kept for the next task that waits; further ones end. To wait and go on takes a task 70 us where a runner is
there, 200 where one is started."""


class _Seat:
    """Where one thread waits for the baton, once."""

    def __init__(self) -> None:
        self.is_given = False
        self._latch = threading.Lock()
        self._latch.acquire()

    def give(self) -> None:
        self.is_given = True
        self._latch.release()

    def wait(self) -> None:
        self._latch.acquire()


class Baton:
    def __init__(self, bell: Bell) -> None:
        self.holder = 0
        """The thread that has it, by `threading.get_ident()`; where it passes from one to another, the former."""
        self._first = 0
        self._first_seat: _Seat | None = None
        """Where the first thread waits, while it has nothing to run."""
        self._bell = bell
        self._lock = threading.Lock()
        self._returning: deque[_Seat] = deque()
        self._parked: list[_Seat] = []

    def begin(self) -> None:
        """The calling thread is the first one. It is preferred: signals interrupt what it runs, and its waiting."""
        self._first = self.holder = threading.get_ident()

    def take(self) -> None:
        """A runner's first act, where `lend` has said that it is needed."""
        self.holder = threading.get_ident()

    def lend(self) -> bool:
        """Let another thread have it. False when none is there: the caller then starts one, which calls `take`."""
        with self._lock:
            seat = self._next()
            if seat is None and self._parked:
                seat = self._parked.pop()
        if seat is None:
            return False
        seat.give()
        return True

    def want_back(self) -> BaseException | None:
        """Wait for it, after `lend`.

        Returns:
            What a signal handler of the task's own has raised meanwhile; to be raised once the task goes on.
        """
        seat = _Seat()
        with self._lock:
            self._returning.append(seat)
        self._bell.ring()
        raised = None
        while not seat.is_given:
            try:
                seat.wait()
            except BaseException as error:
                raised = error
        self.take()
        return raised

    def give_way(self) -> bool:
        """Called by a runner between two tasks: let those have it who go first, and wait for the next turn.

        False when the thread is not needed any more: it must end.
        """
        with self._lock:
            seat = self._next()
            if seat is None:
                return True
            own = self._park()
        seat.give()
        if own is None:
            return False
        own.wait()
        self.take()
        return True

    def give_to_first(self) -> bool:
        """Called by a runner that ends. False when the first thread is inside a task that waits."""
        with self._lock:
            seat, self._first_seat = self._first_seat, None
        if seat is None:
            return False
        seat.give()
        return True

    def _next(self) -> _Seat | None:
        """Whose turn it is before any other runner's: who returns, then the first thread."""
        if self._returning:
            return self._returning.popleft()
        seat, self._first_seat = self._first_seat, None
        return seat

    def _park(self) -> _Seat | None:
        """Where the calling thread is to wait; None where there is no use for it."""
        seat = _Seat()
        if threading.get_ident() == self._first:
            self._first_seat = seat
        elif len(self._parked) < MOST_PARKED:
            self._parked.append(seat)
        else:
            return None
        return seat
