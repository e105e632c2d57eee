"""The directory of a host's object files: made at the agent's start, removed at its end, however it ends.

The agent and its fork server hold a lock on the directory as long as they live. The one that lives longer removes the
directory. If both are killed at once, their lock is gone, and the next agent that starts on the host removes it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from .files import remove_all

if sys.platform != "win32":  # Windows: no locks, and no removal of what dead agents have left
    import fcntl

_NAME = re.compile(r"scaler-[0-9a-f]{16}")


class ObjectDirectory:
    """A directory of object files, locked by this process."""

    def __init__(self, path: str) -> None:
        """Make the directory, and lock it.

        Raises:
            OSError: it can't be made there.
        """
        self.path = path
        self._lock: int | None = None
        os.mkdir(path, 0o700)
        try:
            # Before the directory is locked, an agent that starts may take it for one of a dead agent, and remove it.
            while sys.platform != "win32" and (lock := _lock(path, waits=True)) is None:
                os.mkdir(path, 0o700)
        except OSError:
            remove_all(path)
            raise
        if sys.platform != "win32":
            self._lock = lock

    def release_lock(self) -> None:
        """Let go of the lock, in a process that was forked since. This process does not keep the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove the directory with all files in it. Does nothing if another process has done so."""
        remove_all(self.path)
        self.release_lock()


def make_directory(agent: int, places: Iterable[str] | None = None) -> ObjectDirectory:
    """Make a directory for the agent of this incarnation. Remove the directories that dead agents have left.

    Args:
        places: where to make it, the best place first. Default: /dev/shm, then the folder of temporary files.

    Raises:
        OSError: the reason why it can't be made in the last place.
    """
    failure: OSError | None = None
    for place in _places() if places is None else places:
        _remove_stale(place)
        try:
            return ObjectDirectory(os.path.join(place, f"scaler-{agent:016x}"))
        except OSError as error:
            failure = error
    raise failure or FileNotFoundError("no place for the directory of objects")


def _places() -> Iterable[str]:
    yield "/dev/shm"
    yield tempfile.gettempdir()


def _remove_stale(place: str) -> None:
    """Remove the directories of agents that were killed together with their fork servers."""
    with suppress(OSError):
        for name in os.listdir(place):
            if _NAME.fullmatch(name):
                path = os.path.join(place, name)
                lock = _lock(path, waits=False)
                if lock is not None:
                    remove_all(path)
                    os.close(lock)


def _lock(path: str, waits: bool) -> int | None:
    """Lock the directory. Returns the descriptor; None if another process has the lock, or the directory is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        locked = os.fstat(descriptor)
        if locked.st_uid == os.geteuid() and os.path.samestat(locked, os.stat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
