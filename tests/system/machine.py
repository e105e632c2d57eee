"""A booted machine with its own systemd in a root, and the network of this host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
from tests.system.nspawn import Nspawn
from tests.waiting import wait_until

BOOT_SECONDS = 120.0
_INSIDE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


class CommandFailed(AssertionError):
    """A command inside the machine ended with an unexpected status."""


class Machine:
    """A machine. The constructor boots it, `end` halts it.

    Args:
        root: one of roots.py's.
        log: where its console goes.
        binds: files and folders of this host that the machine sees read-only, by their path in the machine.
    """

    def __init__(self, root: Path, log: Path, binds: dict[Path, str]) -> None:
        self._container = Nspawn(root, log, binds, "--boot")
        try:
            self._first = self._await_first_process()
            wait_until(self._systemctl_answers, BOOT_SECONDS, "systemd to answer")
            self.run("systemctl", "is-system-running", "--wait", status=None)
        except BaseException:
            self.end()
            raise

    def run(self, *command: str, status: int | None = 0, seconds: float = 120.0) -> str:
        """The standard output of a command in the machine.

        Args:
            status: the exit status that the command must have; None: any.
        """
        ended = self._run(command, seconds)
        if status is not None and ended.returncode != status:
            raise CommandFailed(f"status {ended.returncode}: {' '.join(command)}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file in the machine. Make its folder if needed."""
        self.run("mkdir", "-p", os.path.dirname(path))
        self._run(("tee", path), 20.0, text).check_returncode()

    def property_of(self, unit: str, name: str) -> str:
        """A property of a unit by `systemctl show`."""
        return self.run("systemctl", "show", "--property", name, "--value", unit).strip()

    @property
    def root(self) -> Path:
        """Its file system with all mounts, as seen by this host."""
        return Path(f"/proc/{self._first}/root")

    def journal(self, unit: str, *options: str) -> str:
        """The journal of a unit. `--sync` waits until journald has written what a unit that has just ended said."""
        self.run("journalctl", "--sync")
        return self.run("journalctl", "--no-pager", "--unit", unit, *options)

    def end(self) -> None:
        """Halt the machine."""
        self._container.end()

    def _run(self, command: tuple[str, ...], seconds: float, text: str = "") -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "--all", "--target", str(self._first), "--", *command]
        return subprocess.run(inside, env=_INSIDE, input=text, capture_output=True, text=True, timeout=seconds)

    def _await_first_process(self) -> int:
        """The process id on this host of the machine's process 1."""

        def first() -> list[psutil.Process]:
            assert self._container.process.poll() is None, f"systemd-nspawn ended: {self._container.log()}"
            children = psutil.Process(self._container.process.pid).children()
            return [child for child in children if _name_of(child) == "systemd"]

        wait_until(first, BOOT_SECONDS, "the machine's systemd")
        return int(first()[0].pid)

    def _systemctl_answers(self) -> bool:
        assert self._container.process.poll() is None, f"the machine ended: {self._container.log()}"
        said = self._run(("systemctl", "is-system-running"), 20.0).stdout.strip()
        return said in ("starting", "running", "degraded")


def _name_of(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""
