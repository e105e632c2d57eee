"""A scheduler and a cluster on this machine, as the real commands in processes of their own."""

from __future__ import annotations

import atexit
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Any

from .addresses import Address, parse_bind_address
from .interrupts import interrupts_deferred

SCHEDULER_PYTHON_VARIABLE = "SCALER_SCHEDULER_PYTHON"
START_SECONDS = 60.0
LOOK_SECONDS = 0.02
STOP_SECONDS = 10.0
"""Each command promises to end within 5; after this it is killed."""


class SchedulerClusterCombo:
    """One `scaler_scheduler` and one `scaler_cluster`, as subprocesses.

    Args:
        address: where the scheduler binds; None takes a free local port.
        n_workers: worker processes; None for one a usable core.
        scheduler_python: the interpreter that runs the scheduler. None takes $SCALER_SCHEDULER_PYTHON, a PyPy that has
            the scheduler, a `scaler_scheduler` command found on the path, or this interpreter, the first that is there.

    Raises:
        ValueError: the address is none.
        RuntimeError: the address is in use, or the scheduler can't start.
    """

    def __init__(
        self, address: str | None = None, n_workers: int | None = None, *, scheduler_python: str | None = None
    ) -> None:
        if n_workers is not None and (not isinstance(n_workers, int) or n_workers < 1):
            raise ValueError(f"n_workers must be a whole number above 0, not {n_workers!r}")
        bind = parse_bind_address(address or f"tcp://127.0.0.1:{_free_port()}")
        if bind.transport == "tcp" and bind.port == 0:
            bind = parse_bind_address(f"tcp://{bind.host if not bind.is_ipv6 else f'[{bind.host}]'}:{_free_port()}")
        # Every interface is for binding; from this machine it is reached by the loopback one.
        self._address = dataclasses.replace(bind, host="127.0.0.1") if bind.host == "*" else bind
        if _is_listened_at(self._address):
            raise RuntimeError(f"the address {bind} is in use")
        self._processes: list[subprocess.Popen[bytes]] = []
        atexit.register(self.shutdown)
        parent = ["--parent-process", str(os.getpid())]
        try:
            with interrupts_deferred():
                self._start([*_scheduler_command(scheduler_python), str(bind), *parent])
            with interrupts_deferred():
                count = [] if n_workers is None else ["-n", str(n_workers)]
                self._start([sys.executable, "-m", "scaler_worker", str(self._address), *count, *parent])
            self._wait_until_bound()
        except BaseException:
            self.shutdown()
            raise

    def get_address(self) -> str:
        """The scheduler's address, for `Client(address=...)`."""
        return str(self._address)

    @property
    def scheduler_pid(self) -> int:
        return self._processes[0].pid

    @property
    def cluster_pid(self) -> int:
        return self._processes[1].pid

    def shutdown(self) -> None:
        """End both, the cluster first, and wait until they are gone. A second call does nothing."""
        while self._processes:
            _stop(self._processes[-1])
            self._processes.pop()
        atexit.unregister(self.shutdown)

    def _start(self, command: list[str]) -> None:
        # A group of its own: Ctrl-C in the terminal is the application's to act on, not theirs.
        self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))

    def _wait_until_bound(self) -> None:
        """Until somebody listens at the address; the scheduler says itself what is wrong when it ends instead."""
        scheduler = self._processes[0]
        deadline = time.monotonic() + START_SECONDS
        while not _is_listened_at(self._address):
            if scheduler.poll() is not None:
                raise RuntimeError(f"scaler_scheduler ended at its start with exit status {scheduler.returncode}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"scaler_scheduler did not bind {self._address} within {START_SECONDS:g} seconds")
            time.sleep(LOOK_SECONDS)

    def __enter__(self) -> SchedulerClusterCombo:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"<SchedulerClusterCombo at {self._address}>"


def _is_listened_at(address: Address) -> bool:
    family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
    target: Any = (address.host, address.port)
    if address.transport == "ipc":
        family = socket.AF_UNIX
        target = "\0" + address.path[1:] if address.path.startswith("@") else address.path
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(target) == 0


def _scheduler_command(python: str | None) -> list[str]:
    given = python or os.environ.get(SCHEDULER_PYTHON_VARIABLE) or _find_pypy()
    if given:
        return [given, "-m", "scaler_scheduler"]
    found = shutil.which("scaler_scheduler")
    if found:
        return [found]
    return [sys.executable, "-m", "scaler_scheduler"]


def _find_pypy() -> str | None:
    """A PyPy that has the scheduler: of the environment beside this one (`.venv-pypy`), or on the path."""
    beside = os.path.join(sys.prefix.rstrip(os.sep) + "-pypy", "bin", "python")
    for python in (beside, shutil.which("pypy3")):
        if python is not None and os.path.exists(python):
            ask = [python, "-c", "import scaler_scheduler"]
            asked = subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True)
            if asked.returncode == 0:
                return python
    return None


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
