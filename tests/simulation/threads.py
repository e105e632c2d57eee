"""The threads of simulated processes. They are greenlets: only one runs at a time, and the simulation waits for it.

A thread waits at a `Gate`. The simulation resumes the thread at its simulated time, and goes on when the thread waits
again. So a seed always gives the same run. Threads of the operating system took half of the time of all runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from operator import length_hint
from typing import Any

from greenlet import getcurrent, greenlet

from scaler_worker.worker.processor_wait import ProcessorWait

from .clock import Process
from .trace import SimulationError

SWITCH_SECONDS = 0.00005
"""The time between the opening of a gate and the run of its thread."""


_idents = count(1 << 62)
_free_idents: list[int] = []
"""Of threads that have ended: the operating system gives them again too."""
_real_ident = threading.get_ident


def get_ident() -> int:
    """As `threading.get_ident`, in whose place a run has it."""
    thread = getcurrent()
    return thread.ident if isinstance(thread, _Thread) else _real_ident()


class ProcessEnded(BaseException):
    """Unwinds the threads of a simulated process that has ended."""


class _Thread(greenlet):
    """One simulated thread."""

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__(self._serve)
        self._run = run
        self.source: Iterator[Any] = iter(())
        self.ident = _free_idents.pop() if _free_idents else next(_idents)

    def resume(self) -> None:
        """Let the thread run until it waits or ends. Any other thread may call this.

        Raises:
            BaseException: what the simulated thread has raised.
        """
        self.parent = getcurrent()
        self.switch()

    def pause(self) -> None:
        """Let the thread that has resumed this one go on, until `resume`. Called by the thread itself."""
        assert self.parent is not None
        self.parent.switch()

    def _serve(self) -> None:
        try:
            self._run()
        except ProcessEnded:
            pass


class SimulatedRow:
    """What is `scaler_worker.worker.executor.thread_row` in a process: each thread has its own."""

    @property
    def source(self) -> Iterator[Any]:
        thread = getcurrent()
        return thread.source if isinstance(thread, _Thread) else iter(())

    @source.setter
    def source(self, source: Iterator[Any]) -> None:
        thread = getcurrent()
        assert isinstance(thread, _Thread)
        thread.source = source

    def calls_left(self) -> int:
        return length_hint(self.source)


class SimulatedThreads:
    """The threads of one simulated process, as scaler_worker.worker.run_token.Threads."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._threads: list[_Thread] = []
        self._is_ended = False

    def start(self, run: Callable[[], None], name: str) -> None:
        self.process.later(SWITCH_SECONDS, lambda: self._begin(run))

    def new_waiter(self) -> Waiter:
        return Waiter(self)

    def processor_wait(self) -> ProcessorWait:
        return ProcessorWait("")  # simulated threads never wait

    def now_ns(self) -> int:
        return round(self.process.clock.now * 1e9)

    def end(self) -> None:
        """Unwind all threads. A thread of this process that calls this must end by itself (`check`)."""
        self._is_ended = True
        for thread in list(self._threads):
            if not thread.dead and thread is not getcurrent():
                self.resume(thread)

    def check(self) -> None:
        """Called by a thread of this process.

        Raises:
            ProcessEnded: the process has ended.
        """
        if self._is_ended:
            raise ProcessEnded

    def current(self) -> _Thread:
        """The calling thread, which is one of this process."""
        for thread in self._threads:
            if thread is getcurrent():
                return thread
        raise SimulationError("the simulation itself waits, or a thread of another process")

    def resume(self, thread: _Thread) -> None:
        """Let this thread run until it waits again or ends."""
        try:
            thread.resume()
        finally:
            if thread.dead and thread in self._threads:
                self._threads.remove(thread)
                _free_idents.append(thread.ident)

    def _begin(self, run: Callable[[], None]) -> None:
        thread = _Thread(run)
        self._threads.append(thread)
        self.resume(thread)


class Gate:
    """A place where one thread waits until another thread or the simulation opens it."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self.is_open = False
        self._threads = threads
        self._thread: _Thread | None = None
        self._turn = 0

    def open(self, seconds: float = SWITCH_SECONDS) -> None:
        """Open the gate. A thread that already waits continues after this time."""
        if not self.is_open:
            self.is_open = True
            self._resume_after(seconds)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the gate is open, at most for this time. Returns whether it is open."""
        self._threads.check()
        if not self.is_open:
            self._turn += 1
            self._thread = self._threads.current()
            if seconds is not None:
                self._resume_after(seconds)
            self._thread.pause()
            self._thread = None
            self._threads.check()
        return self.is_open

    def _resume_after(self, seconds: float) -> None:
        turn = self._turn
        if self._thread is not None:
            self._threads.process.later(seconds, lambda: self._resume(turn))

    def _resume(self, turn: int) -> None:
        if self._thread is not None and turn == self._turn:
            self._threads.resume(self._thread)


class Waiter:
    """One wait for the run token, as scaler_worker.worker.run_token.Waiter."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self.is_granted = False
        self._gate = Gate(threads)

    def grant(self) -> None:
        self.is_granted = True
        self._gate.open()

    def wait(self) -> None:
        self._gate.wait()

    def wait_out(self) -> BaseException | None:
        self._gate.wait()
        return None
