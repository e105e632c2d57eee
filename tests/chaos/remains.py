"""Finds what a round has left behind: processes, files in shared memory, sockets."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

from tests.integration.marked_process import MARK, marked

SECONDS = 15.0


def mark_children() -> None:
    """Mark all processes that start from now on, so that they are found later."""
    os.environ.setdefault(MARK, uuid.uuid4().hex)


def remains(directories: set[Path], sockets: list[str]) -> list[str]:
    """Find what is left of the round a while after its end.

    Args:
        directories: those of the objects of hosts.
        sockets: ZeroMQ addresses; those of files are looked at.
    """
    deadline = time.monotonic() + SECONDS
    while (found := _remains(directories, sockets)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _remains(directories: set[Path], sockets: list[str]) -> list[str]:
    own = {os.getpid(), os.getppid()}
    found = [f"process {pid}: {_command_of(pid)}" for pid in marked(os.environ[MARK]) if pid not in own]
    found += [f"{path}: {sorted(os.listdir(path))}" for path in sorted(directories) if path.exists()]
    found += [address for address in sockets if address.startswith("ipc://") and Path(address[6:]).exists()]
    return [f"left behind: {each}" for each in found]


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "it has ended meanwhile"
