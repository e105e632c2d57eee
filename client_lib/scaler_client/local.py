"""A scheduler and a cluster on this machine, as the real commands in processes of their own."""

from __future__ import annotations

import atexit
import dataclasses
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any, TypeVar

from . import module_folders
from .addresses import Address, parse_bind_address
from .display import counted, html_table, rows_of
from .interrupts import interrupts_deferred
from .key_files import KEYS_VARIABLE, absolute
from .logs import LEVELS
from .monitor import Watch

MOST_WORKERS = 10_000
"""What `scaler_cluster` takes."""
SCHEDULER_PYTHON_VARIABLE = "SCALER_SCHEDULER_PYTHON"
START_SECONDS = 60.0
LOOK_SECONDS = 0.02
STOP_SECONDS = 10.0
"""Each command promises to end within 5; after this it is killed."""

Cluster = TypeVar("Cluster", bound="LocalCluster")


class LocalCluster:
    """One `scaler_scheduler` and one `scaler_cluster`, as subprocesses that end with this process.

    Args:
        n_workers: worker processes; None for one a usable core.
        address: where the scheduler binds; None takes a free local port.
        scheduler_python: the interpreter that runs the scheduler. None takes $SCALER_SCHEDULER_PYTHON, a PyPy that has
            the scheduler, a `scaler_scheduler` command found on the path, or this interpreter, the first that is there.
        logging_level: the least level that the two log on standard error; None leaves it to their configuration.
        keys: the folder of keys (`scaler_scheduler keygen`) that both use, and clients of the cluster. None: that in
            SCALER_KEYS where others than this machine reach the address, else none.

    Raises:
        TypeError, ValueError: an argument is of a wrong type, or none that can be; the text names it.
        ModuleNotFoundError: the worker's or the scheduler's package is not installed.
        RuntimeError: the address is in use, or the scheduler or the cluster can't start.
    """

    def __init__(
        self,
        n_workers: int | None = None,
        *,
        address: str | None = None,
        scheduler_python: str | None = None,
        logging_level: str | None = "WARNING",
        keys: str | os.PathLike[str] | None = None,
    ) -> None:
        self._n_workers = _checked_count(n_workers)
        bind = _checked_bind(address)
        level = [] if logging_level is None else ["--logging-level", _checked_level(logging_level)]
        _check_installed("scaler_worker")
        scheduler = _scheduler_command(scheduler_python)
        # Every interface is for binding; from this machine it is reached by the loopback one.
        self._address = dataclasses.replace(bind, host="127.0.0.1") if bind.host == "*" else bind
        if _is_listened_at(self._address):
            raise RuntimeError(f"the address {bind} is in use")
        self._is_local = _is_local(bind)
        self._keys = _checked_keys(keys, bind)
        self._watch = Watch(bind)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._owner = os.getpid()
        self._stopping = threading.RLock()  # a signal's handler may come in between
        atexit.register(self.shutdown)
        options = ["--parent-process", str(os.getpid()), "--keys", self._keys, *level]
        try:
            with interrupts_deferred():
                self._start([*scheduler, str(bind), *options])
            with interrupts_deferred():
                count = [] if n_workers is None else ["-n", str(n_workers)]
                workers = [sys.executable, "-m", "scaler_worker", str(self._address), *count, *options]
                self._start(workers, **module_folders.variables())
            self._wait_until_bound()
        except BaseException:
            self.shutdown()
            raise

    @property
    def address(self) -> str:
        """The scheduler's address, for `Client(address=...)`, which takes the cluster itself as well."""
        return str(self._address)

    @property
    def keys(self) -> str:
        """The folder of keys that its clients need; empty: none."""
        return self._keys

    def get_address(self) -> str:
        """The same."""
        return str(self._address)

    @property
    def n_workers(self) -> int | None:
        """The worker processes asked for; None: one a usable core."""
        return self._n_workers

    @property
    def is_shut_down(self) -> bool:
        """Whether `shutdown` was called."""
        return not self._processes

    @property
    def scheduler_pid(self) -> int:
        return self._processes[0].pid

    @property
    def cluster_pid(self) -> int:
        return self._processes[1].pid

    def shutdown(self) -> None:
        """End both, the cluster first, and wait until they are gone. A second call does nothing, nor does a child's."""
        if os.getpid() != self._owner:
            return
        with self._stopping:
            for process in reversed(self._processes):
                _stop(process)
            self._processes = []
        self._watch.close()
        atexit.unregister(self.shutdown)

    def _start(self, command: list[str], **variables: str) -> None:
        environment = {**os.environ, **variables}
        # A group of its own: Ctrl-C in the terminal is the application's to act on, not theirs.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=environment)
        self._processes.append(process)

    def _wait_until_bound(self) -> None:
        """Until somebody listens at the address; both say themselves what is wrong when they end instead."""
        deadline = time.monotonic() + START_SECONDS
        while not _is_listened_at(self._address):
            for name, process in zip(("scaler_scheduler", "scaler_cluster"), self._processes):
                if process.poll() is not None:
                    status = f"exit status {process.returncode}{self._likely_reason(name)}"
                    raise RuntimeError(f"{name} ended at its start with {status}; standard error says why")
            if time.monotonic() > deadline:
                raise RuntimeError(f"scaler_scheduler did not bind {self._address} within {START_SECONDS:g} seconds")
            time.sleep(LOOK_SECONDS)

    def _likely_reason(self, name: str) -> str:
        if name != "scaler_scheduler" or self._keys or self._is_local:
            return ""
        return ", as it does without keys= at an address that others reach"

    def __enter__(self: Cluster) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._address}, {self._state()}>"

    def _repr_html_(self) -> str:
        snapshot = None if self.is_shut_down else self._watch.latest()
        rows = {"address": self.address, "workers": self._state(), **rows_of(snapshot)}
        return html_table(type(self).__name__, rows)

    def _state(self) -> str:
        if self.is_shut_down:
            return "shut down"
        return "a worker for each core" if self._n_workers is None else counted(self._n_workers, "worker")


class SchedulerClusterCombo(LocalCluster):
    """A `LocalCluster` whose first argument is the address, and whose processes log as they are configured to.

    Args:
        address, n_workers, scheduler_python, keys: as for LocalCluster, which says as well what is raised.
    """

    def __init__(
        self,
        address: str | None = None,
        n_workers: int | None = None,
        *,
        scheduler_python: str | None = None,
        keys: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(n_workers, address=address, scheduler_python=scheduler_python, logging_level=None, keys=keys)


def _checked_count(n_workers: Any) -> int | None:
    if n_workers is None:
        return None
    if isinstance(n_workers, bool) or not isinstance(n_workers, int):
        raise TypeError(f"n_workers must be a whole number, not {n_workers!r}")
    if not 0 < n_workers <= MOST_WORKERS:
        raise ValueError(f"n_workers must be from 1 to {MOST_WORKERS}, not {n_workers}")
    return n_workers


def _checked_bind(address: Any) -> Address:
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address must be a string, not {address!r}")
    bind = parse_bind_address(f"tcp://127.0.0.1:{_free_port()}" if address is None else address)
    if bind.transport == "tcp" and bind.port == 0:
        return dataclasses.replace(bind, port=_free_port())
    return bind


def _checked_keys(keys: Any, bind: Address) -> str:
    if keys is None:
        return "" if _is_local(bind) else absolute(os.environ.get(KEYS_VARIABLE, ""))
    if not isinstance(keys, (str, os.PathLike)):
        raise TypeError(f"keys must be a folder's path, not {keys!r}")
    return absolute(keys)


def _is_local(bind: Address) -> bool:
    """Whether this machine alone reaches it, as far as its text shows."""
    return bind.transport == "ipc" or bind.host in ("127.0.0.1", "::1", "localhost")


def _checked_level(level: Any) -> str:
    if not isinstance(level, str) or level.upper() not in LEVELS:
        raise ValueError(f"logging_level must be one of {', '.join(LEVELS)}, not {level!r}")
    return level.upper()


def _check_installed(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        name = package.replace("_", "-")
        raise ModuleNotFoundError(f"a local cluster needs {name}, which is not installed in {sys.prefix}")


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
    _check_installed("scaler_scheduler")
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
