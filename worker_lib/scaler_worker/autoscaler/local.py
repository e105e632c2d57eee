"""The provider `local`: each host is a `scaler_cluster` on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psutil

from scaler_client.autoscale.pools import parse_host_name

from .providers import HostCommand, ProviderError

NAME_OPTION = "--agent-name"
"""A host's process is found by the name behind this argument."""


class LocalProvider:
    """Runs host agents as processes of this machine.

    Args:
        command: makes the command of a host.
        ends_with_parent: whether the hosts end with this process, even if it is killed.
    """

    def __init__(self, command: HostCommand, *, ends_with_parent: bool = False) -> None:
        self._command = command
        self._ends_with_parent = ends_with_parent
        self._own: dict[str, subprocess.Popen[bytes]] = {}
        self._found: dict[str, psutil.Process] | None = None
        """Hosts of an earlier run; None: not looked for yet."""

    def start(self, names: Sequence[str]) -> dict[str, str]:
        failed: dict[str, str] = {}
        for name in names:
            arguments = self._command.arguments(name)
            if self._ends_with_parent:
                arguments += ["--parent-process", str(os.getpid())]
            try:
                # A session of its own: signals of a terminal reach only the autoscaler.
                self._own[name] = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                failed[name] = f"{arguments[0]} cannot be run: {error.strerror}"
        if len(failed) == len(names) and failed:
            raise ProviderError(failed[names[0]])
        return failed

    def drain(self, names: Sequence[str]) -> None:
        self._signal(names, signal.SIGTERM)

    def kill(self, names: Sequence[str]) -> None:
        for name in names:
            process = self._process(name)
            if process is None:
                continue
            with suppress(psutil.Error):
                for each in [process, *process.children(recursive=True)]:
                    with suppress(psutil.Error):
                        each.kill()

    def stop(self, names: Iterable[str]) -> None:
        """End these hosts at once, but in order: their tasks run elsewhere."""
        self._signal(names, signal.SIGINT)

    def host_names(self) -> set[str]:
        if self._found is None:
            self._found = find_hosts(self._command.pool.name, self._command.address)
        for name, child in list(self._own.items()):
            if child.poll() is not None:
                del self._own[name]
        for name, found in list(self._found.items()):
            if not _lives(found):
                del self._found[name]
        return {*self._own, *self._found}

    def _signal(self, names: Iterable[str], number: signal.Signals) -> None:
        for name in names:
            process = self._process(name)
            if process is not None:
                with suppress(psutil.Error):
                    process.send_signal(number)

    def _process(self, name: str) -> psutil.Process | None:
        child = self._own.get(name)
        if child is not None:
            if child.poll() is not None:
                return None
            with suppress(psutil.Error):
                return psutil.Process(child.pid)
            return None
        return None if self._found is None else self._found.get(name)


def find_hosts(pool: str, address: str) -> dict[str, psutil.Process]:
    """Find the host agents of a pool on this machine, of this user and this scheduler, by name."""
    by_pid: dict[int, tuple[str, psutil.Process]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real != os.getuid() or not _lives(process):
                continue
            arguments = process.cmdline()
            if NAME_OPTION not in arguments[:-1] or address not in arguments:
                continue
            name = arguments[arguments.index(NAME_OPTION) + 1]
            parsed = parse_host_name(name)
            if parsed is not None and parsed[0] == pool:
                by_pid[process.pid] = name, process
    found = {}
    for name, process in by_pid.values():
        with suppress(psutil.Error):
            if process.ppid() not in by_pid:  # its workers are forks with the same arguments
                found[name] = process
    return found


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
