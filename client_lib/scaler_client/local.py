"""A scheduler and a cluster on this machine, as the real commands in processes of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
from types import TracebackType

from .addresses import parse_bind_address

SCHEDULER_PYTHON_VARIABLE = "SCALER_SCHEDULER_PYTHON"
STOP_SECONDS = 10.0
"""Each command promises to end within 5; after this it is killed."""


class SchedulerClusterCombo:
    """One `scaler_scheduler` and one `scaler_cluster`, as subprocesses.

    Args:
        address: where the scheduler binds; None takes a free local port.
        n_workers: worker processes; None for one a usable core.
        scheduler_python: the interpreter that runs the scheduler. None takes $SCALER_SCHEDULER_PYTHON, a
            `scaler_scheduler` command found on the path, or this interpreter, the first that is there.

    Raises:
        ValueError: the address is none.
        RuntimeError: a command can't be started; the text has its complaint.
    """

    def __init__(
        self, address: str | None = None, n_workers: int | None = None, *, scheduler_python: str | None = None
    ) -> None:
        if n_workers is not None and (not isinstance(n_workers, int) or n_workers < 1):
            raise ValueError(f"n_workers must be a whole number above 0, not {n_workers!r}")
        bind = parse_bind_address(address or f"tcp://127.0.0.1:{_free_port()}")
        if bind.transport == "tcp" and bind.port == 0:
            bind = parse_bind_address(f"tcp://{bind.host if not bind.is_ipv6 else f'[{bind.host}]'}:{_free_port()}")
        self._address = str(bind)
        self._processes: list[subprocess.Popen[bytes]] = []
        atexit.register(self.shutdown)
        try:
            self._start([*_scheduler_command(scheduler_python), self._address])
            cluster = [sys.executable, "-m", "scaler_worker", self._address]
            if n_workers is not None:
                cluster += ["-n", str(n_workers)]
            self._start(cluster)
        except BaseException:
            self.shutdown()
            raise

    def get_address(self) -> str:
        """The scheduler's address, for `Client(address=...)`."""
        return self._address

    @property
    def scheduler_pid(self) -> int:
        return self._processes[0].pid

    @property
    def cluster_pid(self) -> int:
        return self._processes[1].pid

    def shutdown(self) -> None:
        """End both, the cluster first, and wait until they are gone. A second call does nothing."""
        atexit.unregister(self.shutdown)
        while self._processes:
            _stop(self._processes[-1])
            self._processes.pop()

    def _start(self, command: list[str]) -> None:
        # A group of its own: Ctrl-C in the terminal is the application's to act on, not theirs.
        self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))

    def __enter__(self) -> SchedulerClusterCombo:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"<SchedulerClusterCombo at {self._address}>"


def _scheduler_command(python: str | None) -> list[str]:
    given = python or os.environ.get(SCHEDULER_PYTHON_VARIABLE)
    if given:
        return [given, "-m", "scaler_scheduler"]
    found = shutil.which("scaler_scheduler")
    if found:
        return [found]
    return [sys.executable, "-m", "scaler_scheduler"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
