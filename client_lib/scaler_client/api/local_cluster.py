"""`LocalCluster`: runs the real commands of a scheduler and a cluster as processes of this machine."""

from __future__ import annotations

import atexit
import inspect
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any, TypeVar

from ..commands import module_folders
from ..commands.addresses import Address, parse_bind_address
from ..commands.key_files import KEYS_VARIABLE, absolute
from ..commands.logs import LEVELS
from ..commands.machine import open_standard_descriptors
from ..commands.module_command import module_command
from ..futures.notebook import Link, count_text, html_table, snapshot_rows
from ..io.process_exit import interrupts_deferred
from ..monitor.monitor_address import find_monitor_address
from ..monitor.newest_snapshot import NewestSnapshot
from ..protocol.snapshots import Snapshot
from .local_address import (
    checked_bind_address,
    choose_monitor_port,
    is_listening,
    is_local,
    reachable_address,
    remove_socket_files,
)
from .local_options import LaunchCommands, autoscaler_file, check_options, command_options
from .scheduler_commands import check_ui_libraries, installed_schedulers
from .task_options import checked_bool

MAX_WORKERS = 10_000
"""The most workers that `scaler_cluster` accepts."""
START_SECONDS = 60.0
POLL_SECONDS = 0.02
STOP_SECONDS = 10.0
"""Each command should end within 5 seconds. After this time it is killed."""
JOIN_SECONDS = 10.0
"""Notebook views wait for the workers until this time after the cluster's start."""
PREPARATION_FAILED_STATUS = 78
"""The exit status of a `scaler_cluster` whose first worker could not be prepared."""
PROGRAMS = ("scaler_scheduler", "scaler_cluster", "scaler_ui")

_page_addresses: dict[str, str] = {}
"""The page addresses of the clusters of this process, by the address of the scheduler."""

Cluster = TypeVar("Cluster", bound="LocalCluster")


def page_address(address: str) -> str:
    """Return the address of the page of a scheduler, with its token; empty if no local cluster of this process has such
    a page."""
    return _page_addresses.get(address, "")


class LocalCluster:
    """A scheduler and a cluster on this machine. Its processes end with this process.

    It runs one `scaler_scheduler` and one `scaler_cluster`. Use it in a `with` statement, or call `shutdown` at the
    end.

    Args:
        n_workers: the number of worker processes; None: one for each usable core. A pair such as `(0, 8)` makes the
            cluster elastic: it runs one `scaler_autoscaler`, which starts workers while tasks need them, and ends them
            when they do not. The numbers are the fewest and the most workers.
        address: the address that the scheduler binds, such as `tcp://127.0.0.1:2345`. None: a socket file in /tmp that
            only programs of this user can reach, or a free local port where there are no socket files.
        scheduler_python: the interpreter that runs the scheduler. None takes the first one of: the interpreter in
            `SCALER_SCHEDULER_PYTHON`, a PyPy with the scheduler, a `scaler_scheduler` command on the path, this
            interpreter.
        logging_level: the lowest level that both commands log to standard error; None: the level in their configuration
            files. The client logs the warnings that the scheduler sends to it (tasks that no worker can run);
            in the scheduler's log they have the level INFO.
        keys: the folder of keys (made by `scaler_scheduler keygen`) for both commands and for the clients of the
            cluster. If it is None, the folder in `SCALER_KEYS` is used if other machines can reach the address; else
            there are no keys.
        ui: whether to start `scaler_ui` too, on a free port of this machine; see `ui_address`. Other users of this
            machine cannot open the page without the token in its address.
        options: all other options of `scaler_scheduler` and `scaler_cluster`, with names and values as in their TOML
            files: `event_loop="builtin"`, `worker_memory_limit="2G"`, `capabilities={"gpu": 1}`. An option that both
            commands have is set for both. None stands for the default. With `event_loop="uvloop"`, the scheduler runs
            under the first interpreter that has uvloop. A warning is logged if this changes the interpreter, or if no
            interpreter has uvloop. If `scheduler_python` is given and has no uvloop, a `ValueError` is raised.

    Raises:
        TypeError: an argument has a wrong type, or neither command has such an option; the text names it.
        ValueError: an argument has a wrong value; the text names it.
        ModuleNotFoundError: a package is missing: scaler-worker, scaler-scheduler, or one that `ui` needs.
        RuntimeError: the address is in use, or a command cannot start.

    Example:
        ```python
        from scaler_client import Client, LocalCluster

        with LocalCluster(n_workers=4) as cluster, Client(cluster) as client:
            print(client.submit(pow, 2, 10).result())  # 1024
        ```
    """

    def __init__(
        self,
        n_workers: int | tuple[int, int] | None = None,
        *,
        address: str | None = None,
        scheduler_python: str | None = None,
        logging_level: str | None = "WARNING",
        keys: str | os.PathLike[str] | None = None,
        ui: bool = False,
        **options: Any,
    ) -> None:
        self._n_workers = _checked_count(n_workers)
        bind = checked_bind_address(address)
        level = [] if logging_level is None else ["--logging-level", _checked_level(logging_level)]
        if checked_bool("ui", ui):
            check_ui_libraries()
        schedulers = installed_schedulers(scheduler_python)
        workers = module_command(sys.executable, "scaler_worker")
        options = choose_monitor_port(command_options(options))
        if options:
            commands = check_options(
                options,
                schedulers,
                workers,
                n_workers=self._n_workers,
                may_leave_out_uvloop=scheduler_python is None,
                keywords=[name for name in inspect.signature(LocalCluster).parameters if name != "options"],
            )
        else:  # most clusters: asking the commands would take some tenths of a second
            commands = LaunchCommands(next(schedulers), [], [])
        self._address = reachable_address(bind)
        if is_listening(self._address):
            raise RuntimeError(f"the address {bind} is in use")
        self._is_local = is_local(bind)
        self._preload = options.get("preload", "")
        self._has_default_address = address is None
        self._keys = _checked_keys(keys, bind)
        monitor = (
            reachable_address(parse_bind_address(options["monitor_address"])) if "monitor_address" in options else None
        )
        open_standard_descriptors()  # else the pipes to the commands would take the numbers of closed ones
        self._watch = NewestSnapshot(bind, monitor)
        self._ui_address = self._page_token = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._autoscaler: subprocess.Popen[bytes] | None = None
        self._owner_pid = os.getpid()
        self._stop_lock = threading.RLock()  # reentrant: a signal handler may call shutdown during shutdown
        atexit.register(self.shutdown)
        parent = ["--parent-process", str(os.getpid())]
        common = [*parent, "--keys", self._keys, *level]
        prepares = bool(options.get("preload") or options.get("offer"))
        try:
            with interrupts_deferred():
                self._start([*commands.scheduler, str(bind), *common, *commands.scheduler_arguments], {})
            with interrupts_deferred():
                count = [] if n_workers is None else ["-n", str(1 if self._is_elastic else n_workers)]
                workers += [str(self._address), *count, *common, *commands.cluster_arguments]
                if not self._is_elastic or prepares:
                    self._start(workers, module_folders.variables())
            self._wait_until_bound()
            if prepares:
                self._wait_for_worker()
            if self._is_elastic:
                with interrupts_deferred():
                    if prepares:  # an autoscaler would start hosts for ever whose preparation fails
                        _stop(self._processes.pop())
                    self._start_autoscaler(monitor or find_monitor_address(bind), common, commands.cluster_arguments)
            if ui:
                with interrupts_deferred():
                    self._start_ui(monitor or find_monitor_address(bind), [*parent, *level])
                self._wait_for_page()
        except BaseException:
            self.shutdown()
            raise
        self._join_deadline = time.monotonic() + JOIN_SECONDS

    @property
    def address(self) -> str:
        """The address of the scheduler, for `Client(address=...)`. `Client` also takes the cluster itself."""
        return str(self._address)

    @property
    def keys(self) -> str:
        """The folder of keys that clients of this cluster need; empty: no keys."""
        return self._keys

    @property
    def ui_address(self) -> str:
        """The address of the page that `ui=True` started, with the token that it needs; empty: there is no page."""
        return self._ui_address

    def get_address(self) -> str:
        """Return the address of the scheduler, which is also the property `address`."""
        return str(self._address)

    @property
    def n_workers(self) -> int | tuple[int, int] | None:
        """The requested number of worker processes; None: one for each usable core. A pair: the fewest and the most."""
        return self._n_workers

    @property
    def _is_elastic(self) -> bool:
        return isinstance(self._n_workers, tuple)

    @property
    def is_shut_down(self) -> bool:
        """Whether `shutdown` was called."""
        return not self._processes

    @property
    def scheduler_pid(self) -> int:
        """The process id of `scaler_scheduler`."""
        return self._processes[0].pid

    @property
    def cluster_pid(self) -> int:
        """The process id of `scaler_cluster`; of an elastic cluster: that of `scaler_autoscaler`."""
        return self._processes[1].pid

    def shutdown(self) -> None:
        """End all processes, the scheduler last, and wait for them.

        A second call, or a call in a child process, does nothing.
        """
        if os.getpid() != self._owner_pid:
            return
        with self._stop_lock:
            for process in reversed(self._processes):
                _stop(process)
                if process.stdout is not None:
                    process.stdout.close()
            if self._processes and self._has_default_address:
                remove_socket_files(self._address)
            self._processes = []
        if self._ui_address and _page_addresses.get(self.address) == self._ui_address:
            del _page_addresses[self.address]
        self._ui_address = ""
        self._watch.close()
        atexit.unregister(self.shutdown)

    def _start(
        self, command: list[str], variables: dict[str, str], stdout: int | None = None, pass_fds: tuple[int, ...] = ()
    ) -> None:
        environment = {**os.environ, **variables}
        # A session of its own: Ctrl-C in the terminal reaches only the application.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            start_new_session=True,
            env=environment,
            pass_fds=pass_fds,
        )
        self._processes.append(process)

    def _start_autoscaler(self, monitor: Address, common: list[str], cluster_arguments: list[str]) -> None:
        assert isinstance(self._n_workers, tuple)
        level = common[common.index("--logging-level") :] if "--logging-level" in common else []
        text = autoscaler_file(*self._n_workers, [*cluster_arguments, *level])
        readable, writable = os.pipe()
        try:
            os.write(writable, text.encode())  # it fits into the pipe: arguments are bounded
            os.close(writable)
            command = [*module_command(sys.executable, "scaler_worker.autoscaler"), str(self._address)]
            command += ["--monitor-address", str(monitor), "--config", f"/dev/fd/{readable}", *common]
            self._start(command, module_folders.variables(), pass_fds=(readable,))
            self._autoscaler = self._processes[-1]
        finally:
            os.close(readable)

    def _start_ui(self, monitor: Address, options: list[str]) -> None:
        keys = ["--keys", self._keys] if self._keys and monitor.transport == "tcp" else []
        command = module_command(sys.executable, "scaler_client.ui")
        command += [str(monitor), "--port", "0", *keys, *options]
        # In the environment, because other users can read arguments in the list of processes.
        self._page_token = secrets.token_urlsafe(24)
        self._start(command, {"SCALER_UI_TOKEN": self._page_token}, subprocess.PIPE)

    def _wait_until_bound(self) -> None:
        """Wait until the scheduler listens at the address.

        Raises:
            RuntimeError: a command has ended, or the scheduler does not bind in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while not is_listening(self._address):
            self._check_running()
            if time.monotonic() > deadline:
                raise RuntimeError(f"scaler_scheduler did not bind {self._address} within {START_SECONDS:g} seconds")
            time.sleep(POLL_SECONDS)

    def _wait_for_worker(self) -> None:
        """Wait until the first worker is prepared, but not long: preparation may take minutes.

        Raises:
            RuntimeError: a command has ended, because the preparation has failed.
        """
        deadline = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < deadline:
            self._check_running()
            snapshot = self._watch.latest()
            if snapshot is not None and snapshot.workers:
                return
            time.sleep(POLL_SECONDS)

    def _wait_for_page(self) -> None:
        """Wait until scaler_ui prints its first line, which is the address of its page.

        Raises:
            RuntimeError: a command has ended, or scaler_ui does not start in time.
        """
        output = self._processes[-1].stdout
        assert output is not None
        deadline = time.monotonic() + START_SECONDS
        while not select.select([output], [], [], POLL_SECONDS)[0]:
            self._check_running()
            if time.monotonic() > deadline:
                raise RuntimeError(f"scaler_ui did not start within {START_SECONDS:g} seconds")
        address = output.readline().decode().strip()
        if not address:
            self._processes[-1].wait(START_SECONDS)
            self._check_running()
        self._ui_address = f"{address}?token={self._page_token}"
        _page_addresses[self.address] = self._ui_address

    def _check_running(self) -> None:
        """Check that all commands run.

        Raises:
            RuntimeError: a command has ended. It has written the reason to standard error.
        """
        for name, process in self._ended():
            status = f"exit status {process.returncode}{self._likely_cause(name, process)}"
            raise RuntimeError(f"{name} ended at its start with {status}; standard error says why")

    def _ended(self) -> list[tuple[str, subprocess.Popen[bytes]]]:
        """Return the commands that have ended by themselves, with their names."""
        ended = [(name, each) for name, each in zip(PROGRAMS, self._processes) if each.poll() is not None]
        return [("scaler_autoscaler" if each is self._autoscaler else name, each) for name, each in ended]

    def _likely_cause(self, name: str, process: subprocess.Popen[bytes]) -> str:
        if name == "scaler_cluster" and process.returncode == PREPARATION_FAILED_STATUS:
            return f" (preload={self._preload!r} or offer= has failed)" if self._preload else " (offer= has failed)"
        if name != "scaler_scheduler" or self._keys or self._is_local:
            return ""
        return " (an address that other machines reach needs keys=)"

    def __enter__(self: Cluster) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        page = page_address(self.address)
        return f"<{type(self).__name__} at {self._address}, {self._state()}{', page ' if page else ''}{page}>"

    def _repr_html_(self) -> str:
        rows = {"address": self.address, "workers": self._state(), **snapshot_rows(self._snapshot())}
        page = page_address(self.address)
        if page:
            rows["page"] = Link(page)
        return html_table(type(self).__name__, rows)

    def _snapshot(self) -> Snapshot | None:
        """Return the scheduler's newest snapshot. Soon after the start, wait until the workers have joined."""
        if self.is_shut_down:
            return None
        counts = [-1]

        def has_all(snapshot: Snapshot) -> bool:
            if isinstance(self._n_workers, tuple):
                return snapshot.workers >= self._n_workers[0]
            if self._n_workers is not None:
                return snapshot.workers >= self._n_workers
            counts.append(snapshot.workers)
            return counts[-1] == counts[-2] > 0  # the number of cores is unknown: wait for a steady count

        while (left := self._join_deadline - time.monotonic()) > 0:
            snapshot = self._watch.wait(0, left, has_all)
            if snapshot is not None:
                return snapshot
            time.sleep(POLL_SECONDS)  # the scheduler listens already, and binds its monitor address next
        return self._watch.latest()

    def _state(self) -> str:
        if self.is_shut_down:
            return "shut down"
        for name, process in self._ended():
            return f"{name} has ended with exit status {process.returncode}"
        if isinstance(self._n_workers, tuple):
            return f"{self._n_workers[0]} to {count_text(self._n_workers[1], 'worker')}"
        return "a worker for each core" if self._n_workers is None else count_text(self._n_workers, "worker")


class SchedulerClusterCombo(LocalCluster):
    """A `LocalCluster` with the signature of opengris-scaler's `SchedulerClusterCombo`: the address comes first.

    Args:
        address: the address that the scheduler binds; None: a socket file or a free local port, as for `LocalCluster`.
        n_workers: the number of worker processes; None: one for each usable core.
        scheduler_python: the interpreter that runs the scheduler; as for `LocalCluster`.
        keys: the folder of keys for both commands and for the clients of the cluster; as for `LocalCluster`.
        ui: whether to start `scaler_ui` too; see `ui_address`.
        logging_level: the lowest level that both commands log to standard error; None: the level in their configuration
            files.
        options: all other options of both commands, as for `LocalCluster`. Keywords of opengris-scaler's class are
            accepted too; a keyword without effect here logs a warning.

    Raises:
        TypeError: as for `LocalCluster`.
        ValueError: as for `LocalCluster`.
        ModuleNotFoundError: as for `LocalCluster`.
        RuntimeError: as for `LocalCluster`.
    """

    def __init__(
        self,
        address: str | None = None,
        n_workers: int | None = None,
        *,
        scheduler_python: str | None = None,
        keys: str | os.PathLike[str] | None = None,
        ui: bool = False,
        logging_level: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            n_workers,
            address=address,
            scheduler_python=scheduler_python,
            logging_level=logging_level,
            keys=keys,
            ui=ui,
            **options,
        )


def _checked_count(n_workers: Any) -> int | tuple[int, int] | None:
    if n_workers is None:
        return None
    if isinstance(n_workers, tuple):
        if len(n_workers) != 2:
            raise ValueError(f"n_workers must be a number, or a pair (fewest, most), not {n_workers!r}")
        least, most = (_checked_number(number, lowest) for number, lowest in zip(n_workers, (0, 1)))
        if least > most:
            raise ValueError(f"n_workers must be (fewest, most), not {n_workers!r}: {least} is more than {most}")
        return least, most
    return _checked_number(n_workers, 1)


def _checked_number(n_workers: Any, lowest: int) -> int:
    if isinstance(n_workers, bool) or not isinstance(n_workers, int):
        raise TypeError(f"n_workers must be a whole number, not {n_workers!r}")
    if not lowest <= n_workers <= MAX_WORKERS:
        raise ValueError(f"n_workers must be from {lowest} to {MAX_WORKERS}, not {n_workers}")
    return n_workers


def _checked_keys(keys: Any, bind: Address) -> str:
    if keys is None:
        return "" if is_local(bind) else absolute(os.environ.get(KEYS_VARIABLE, ""))
    if not isinstance(keys, (str, os.PathLike)):
        raise TypeError(f"keys must be a folder's path, not {keys!r}")
    return absolute(keys)


def _checked_level(level: Any) -> str:
    if not isinstance(level, str) or level.upper() not in LEVELS:
        raise ValueError(f"logging_level must be one of {', '.join(LEVELS)}, not {level!r}")
    return level.upper()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
