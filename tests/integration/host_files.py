"""What a cluster's agent has in /dev/shm."""

from __future__ import annotations

import os
from pathlib import Path

from tests.integration.commands import Command

PREFIX = "/dev/shm/scaler-"


def directory_of(pid: int) -> Path:
    """Where this agent, or a process that keeps the directory for it, has its objects."""
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue  # it was closed meanwhile
        if target.startswith(PREFIX):
            return Path(target)
    raise AssertionError(f"process {pid} has no directory of objects")


def files_of(host: Command) -> list[str]:
    """The names of the files that this cluster has there."""
    return sorted(os.listdir(directory_of(host.process.pid)))
