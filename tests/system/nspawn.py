"""systemd-nspawn on a root. The root does not change, because writes go to a layer in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil
from tests.waiting import wait_until

HALT_SECONDS = 60.0
_CONTROL_GROUPS = (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
_LEFT_GROUPS = ("payload", "supervisor")
"""The control group that systemd-nspawn makes if no outer systemd makes a scope."""


class Nspawn:
    """A running container with the network of this host. It ends by `end`, or with the process that has started it.

    Args:
        root: a folder with a root file system.
        log: where its output goes.
        binds: files and folders of this host to be seen inside, read-only, by the path that they have there.
        options: further ones, and what is to run.
    """

    def __init__(self, root: Path, log: Path, binds: dict[Path, str], *options: str) -> None:
        self.name = f"scaler-test-{os.getpid()}"
        self._log = log
        has_systemd = Path("/run/systemd/system").is_dir()
        command = [
            *("setpriv", "--pdeathsig", "TERM"),
            *("systemd-nspawn", "--quiet", f"--directory={root}", "--volatile=overlay", f"--machine={self.name}"),
            *("--register=no", "--console=pipe", "--link-journal=no", "--timezone=off"),
            *(() if has_systemd else ("--keep-unit",)),
            *(f"--bind-ro={path}:{inside}" for path, inside in binds.items()),
            *options,
        ]
        self._groups = [] if has_systemd else [path for path in _left_groups() if not path.exists()]
        with open(log, "w") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def end(self) -> None:
        """End the container, or kill all of its processes."""
        if self.process.poll() is None:
            self.process.terminate()  # this halts a booted machine, and kills another process
            try:
                self.process.wait(HALT_SECONDS)
            except subprocess.TimeoutExpired:
                for child in psutil.Process(self.process.pid).children():
                    child.kill()
                self.process.kill()
        self.process.wait()
        for group in self._groups:
            for folder, _, _ in os.walk(group, topdown=False):
                _remove_group(folder)
        shutil.rmtree(f"/run/systemd/nspawn/propagate/{self.name}", ignore_errors=True)


def _left_groups() -> list[Path]:
    return [hierarchy / name for hierarchy in _CONTROL_GROUPS if hierarchy.is_dir() for name in _LEFT_GROUPS]


def _remove_group(folder: str) -> None:
    """Remove a control group after its last process has ended."""

    def is_removed() -> bool:
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True

    wait_until(is_removed, 10.0, f"the control group {folder} to be empty")
