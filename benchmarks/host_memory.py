"""The memory of one host of several on this machine: the values of its agent in /dev/shm, and its processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import psutil

from scaler_client.commands.object_files import STORAGE_FILES

_PREFIX = "/dev/shm/scaler-"
_INTERVAL_SECONDS = 0.02


def directory_of(agent: int) -> Path:
    """The directory of the values of an agent, or of a process that keeps the directory for it."""
    for descriptor in os.listdir(f"/proc/{agent}/fd"):
        try:
            target = os.readlink(f"/proc/{agent}/fd/{descriptor}")
        except OSError:
            continue  # closed meanwhile
        if target.startswith(_PREFIX) and os.path.isdir(target):
            return Path(target)
    raise RuntimeError(f"process {agent} has no directory of values")


def value_bytes(directory: Path, processes: Sequence[psutil.Process]) -> int:
    """The memory of values, those included whose files were removed, but are still mapped."""
    sizes = {}
    for path in directory.iterdir():
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if path.name not in STORAGE_FILES and not path.is_symlink():
            sizes[status.st_ino] = status.st_blocks * 512
    for process in processes:
        for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
            if str(directory) in line:
                begin, end = (int(each, 16) for each in line.split()[0].split("-"))
                sizes.setdefault(int(line.split()[4]), end - begin)
    return sum(sizes.values())


def private_bytes(processes: Sequence[psutil.Process]) -> int:
    """The memory that is no file's: the sum over processes."""
    found = 0
    for process in processes:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                found += int(line.split()[1]) * 1024
    return found


class Watch:
    """Measures the largest memory that the values of a host take during the `with` block."""

    def __init__(self, processes: Sequence[psutil.Process]) -> None:
        self.peak_bytes = 0
        self._processes = processes
        self._directory = directory_of(processes[0].pid)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._is_over.wait(_INTERVAL_SECONDS):
            self.peak_bytes = max(self.peak_bytes, value_bytes(self._directory, self._processes))
