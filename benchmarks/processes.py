"""The processes of a measure. Each is ended by its own id, also after an error."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from scaler_client import Client, SchedulerClusterCombo
from scaler_client.io.process_exit import interrupts_deferred

from .interpreters import scheduler_python

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 10
PATIENCE_SECONDS = 60.0
"""A process that takes longer than this to answer is broken."""

_STOP_SECONDS = 10.0
_DEAF_SECONDS = 20.0


def allow_many_files() -> None:
    """Raise the limit of open files to the system's maximum: a thousand peers need as many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def free_address() -> str:
    """Return a free tcp address of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def running(
    command: Sequence[str], stdout: int | None = None, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Run a process during the `with` block."""
    # A session of its own: Ctrl-C in the terminal reaches this process alone, which then ends the others.
    started: list[subprocess.Popen[str]] = []
    try:
        with interrupts_deferred():
            started.append(
                subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=stdout, text=True, start_new_session=True)
            )
        yield started[0]
    finally:
        for process in started:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdout, process.stdin):
        if pipe is not None:
            pipe.close()
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def running_scheduler(address: str, *options: str, python: str | None = None) -> Iterator[subprocess.Popen[str]]:
    with running([python or scheduler_python(), "-m", "scaler_scheduler", address, *options]) as process:
        yield process


def make_keys(folder: str) -> str:
    """Make a folder of keys in this one, for a scheduler and its peers."""
    keys = f"{folder}/keys"
    keygen = [scheduler_python(), "-m", "scaler_scheduler", "keygen", keys]
    subprocess.run(keygen, check=True, stdout=subprocess.DEVNULL)
    return keys


@contextmanager
def running_module(name: str, *arguments: str, python: str = sys.executable) -> Iterator[subprocess.Popen[str]]:
    """Run a module of this package as a process whose standard output is a pipe."""
    with running([python, "-m", f"benchmarks.{name}", *arguments], stdout=subprocess.PIPE) as process:
        yield process


@contextmanager
def client_of_combo(workers: int = WORKERS, address: str | None = None, keys: str | None = None) -> Iterator[Client]:
    """Run a scheduler and a cluster; yield a client of them."""
    with (
        SchedulerClusterCombo(address, workers, scheduler_python=scheduler_python(), keys=keys) as combo,
        Client(combo, timeout_seconds=PATIENCE_SECONDS) as client,
    ):
        yield client


def processor_seconds() -> float:
    """Return the processor time that this process and all of its descendants have used so far, in seconds."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has just ended
    found = [os.getpid()]
    for process in found:  # grows in the loop
        found += [each for each, parent in parents.items() if parent == process]
    # The clock of each process, as clock_getcpuclockid returns it: /proc counts in steps of 10 ms.
    return sum(time.clock_gettime((~process << 3) | 2) for process in found)


@contextmanager
def forked_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A ProcessPoolExecutor to compare with. Enter it before there are threads: it forks."""
    pool = ProcessPoolExecutor(workers, initializer=leave_interrupts)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C queued tasks are of no use


def leave_interrupts() -> None:
    """Ignore Ctrl-C in the pool's processes: the main process handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the main thread after so many seconds as Ctrl-C does: every measure ends its processes then.

    Raises:
        TimeoutError: the block has not ended in time.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident or 0
    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
        timer.cancel()
        timer.join()  # so that an interrupt of the last moment is raised here
    except KeyboardInterrupt:
        if not expired.is_set():
            raise
        raise TimeoutError(f"not done within {seconds:.0f} s") from None
    finally:
        timer.cancel()


def interrupt_on_signals() -> None:
    """Let SIGTERM and Ctrl-C raise KeyboardInterrupt, once: a second signal must not interrupt the clean-up."""
    last = -_DEAF_SECONDS

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _DEAF_SECONDS:
            last = now
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
