"""The object files of a host agent in /dev/shm."""

from __future__ import annotations

import os

from benchmarks.host_memory import directory_of
from tests.integration.commands import Command

from scaler_client.commands.object_files import STORAGE_FILES


def files_of(host: Command) -> list[str]:
    """Return the names of the object files of this cluster."""
    return sorted(set(os.listdir(directory_of(host.process.pid))).difference(STORAGE_FILES))
