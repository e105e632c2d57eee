"""The threads of simulated processes. They are real threads, but only one runs at a time, and the simulation waits for
it.

A thread waits at a `Gate`. The simulation resumes the thread at its simulated time, and goes on when the thread waits
again. So a seed always gives the same run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from scaler_worker.worker.processor_wait import ProcessorWait

from .clock import Process
from .trace import SimulationError

SWITCH_SECONDS = 0.00005
"""The time between the opening of a gate and the run of its thread."""


class ProcessEnded(BaseException):
    """Unwinds the threads of a simulated process that has ended."""


class _Carrier:
    """A thread of the operating system that runs one simulated thread after the other."""

    def __init__(self) -> None:
        self.is_running = False
        """Whether a simulated thread runs or waits here."""
        self._run: Callable[[], None] = lambda: None
        self._failure: BaseException | None = None
        self._turn, self._pause = threading.Lock(), threading.Lock()
        self._turn.acquire()
        self._pause.acquire()
        threading.Thread(target=self._serve, name="simulated", daemon=True).start()

    def begin(self, run: Callable[[], None]) -> None:
        self.is_running = True
        self._run = run
        self.resume()

    def resume(self) -> None:
        """Let the thread run until it waits or ends. Called by any other thread.

        Raises:
            BaseException: what the simulated thread has raised.
        """
        self._turn.release()
        self._pause.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def pause(self) -> None:
        """Let the simulation go on until `resume`. Called by the simulated thread."""
        self._pause.release()
        self._turn.acquire()

    def _serve(self) -> None:
        _local.carrier = self
        while True:
            self._turn.acquire()
            try:
                self._run()
            except ProcessEnded:
                pass
            except BaseException as error:
                self._failure = error
            self._run = lambda: None
            self.is_running = False
            self._pause.release()


class _Local(threading.local):
    carrier: _Carrier | None = None


_local = _Local()
_idle: list[_Carrier] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of these threads


class SimulatedThreads:
    """The threads of one simulated process, as scaler_worker.worker.run_token.Threads."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._carriers: list[_Carrier] = []
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
        for carrier in self._carriers:
            if carrier.is_running and carrier is not _local.carrier:
                carrier.resume()
        self._release_ended()

    def check(self) -> None:
        """Called by a thread of this process.

        Raises:
            ProcessEnded: the process has ended.
        """
        if self._is_ended:
            raise ProcessEnded

    def current(self) -> _Carrier:
        """The carrier of the calling thread, which is one of this process."""
        carrier = _local.carrier
        if carrier is None or carrier not in self._carriers:
            raise SimulationError("the simulation itself waits, or a thread of another process")
        return carrier

    def resume(self, carrier: _Carrier) -> None:
        """Let this thread run until it waits again or ends."""
        try:
            carrier.resume()
        finally:
            if not carrier.is_running:
                self._release_ended()

    def _begin(self, run: Callable[[], None]) -> None:
        carrier = _idle.pop() if _idle else _Carrier()
        self._carriers.append(carrier)
        try:
            carrier.begin(run)
        finally:
            self._release_ended()

    def _release_ended(self) -> None:
        ended = [carrier for carrier in self._carriers if not carrier.is_running]
        self._carriers = [carrier for carrier in self._carriers if carrier.is_running]
        _idle.extend(ended)


class Gate:
    """A place where one thread waits until another thread or the simulation opens it."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self.is_open = False
        self._threads = threads
        self._carrier: _Carrier | None = None
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
            self._carrier = self._threads.current()
            if seconds is not None:
                self._resume_after(seconds)
            self._carrier.pause()
            self._carrier = None
            self._threads.check()
        return self.is_open

    def _resume_after(self, seconds: float) -> None:
        turn = self._turn
        if self._carrier is not None:
            self._threads.process.later(seconds, lambda: self._resume(turn))

    def _resume(self, turn: int) -> None:
        if self._carrier is not None and turn == self._turn:
            self._threads.resume(self._carrier)


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
