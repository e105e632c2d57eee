"""The object files of a host agent in /dev/shm."""

from __future__ import annotations

import os
from pathlib import Path

from tests.integration.commands import Command

from scaler_client.commands.object_files import STORAGE_FILES

PREFIX = "/dev/shm/scaler-"


def directory_of(pid: int) -> Path:
    """Return the directory of the objects of this agent, or of a process that keeps the directory for it."""
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue  # closed meanwhile
        if target.startswith(PREFIX) and os.path.isdir(target):
            return Path(target)
    raise AssertionError(f"process {pid} has no directory of objects")


def files_of(host: Command) -> list[str]:
    """Return the names of the object files of this cluster."""
    return sorted(set(os.listdir(directory_of(host.process.pid))).difference(STORAGE_FILES))
