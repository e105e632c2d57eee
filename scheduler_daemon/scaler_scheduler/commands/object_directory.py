"""The directory of the object files of a host agent, or of a client.

It is removed at the end of the process, also after a crash.

The agent and its fork server hold a lock on the directory as long as they live. The process that ends last removes the
directory. If both are killed at once, they lose the lock. Agents and schedulers of the host remove directories that
nobody locks, at their start and from time to time. A client has no fork server, and holds its lock alone.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from .object_files import SHARED_MEMORY, remove_all

if sys.platform != "win32":  # Windows: no locks, and directories of dead agents are not removed
    import fcntl

STALE_SECONDS = 60.0
"""The time between two searches for directories that killed processes have left."""

_NAME = re.compile(r"scaler-[0-9a-f]{16}")


class ObjectDirectory:
    """A directory of object files, locked by this process."""

    def __init__(self, path: str) -> None:
        """Make the directory, and lock it.

        Raises:
            OSError: it can't be made there.
        """
        self.path = path
        self.on_disk: ObjectDirectory | None = None
        """The directory of values that were spilled. It is released and removed with this one."""
        self._lock: int | None = None
        os.mkdir(path, 0o700)
        try:
            # Before the directory is locked, a starting agent may take it for the directory of a dead agent, and remove
            # it.
            while sys.platform != "win32" and (lock := _lock(path, waits=True)) is None:
                os.mkdir(path, 0o700)
        except OSError:
            remove_all(path)
            raise
        if sys.platform != "win32":
            self._lock = lock

    def release_lock(self) -> None:
        """Release the lock, in a process that was forked after the directory was made.

        This process does not keep the directory.
        """
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self.on_disk is not None:
            self.on_disk.release_lock()

    def remove(self) -> None:
        """Remove the directory with all files in it. Does nothing if another process has removed it."""
        remove_all(self.path)
        if self.on_disk is not None:
            self.on_disk.remove()
        self.release_lock()


def make_directory(owner: int, places: Iterable[str] | None = None) -> ObjectDirectory:
    """Make a directory for the agent or client of this incarnation. Remove those that dead processes have left.

    Args:
        places: where to make it, the best place first. Default: /dev/shm, then the folder of temporary files.

    Raises:
        OSError: the reason why it can't be made in the last place.
    """
    failure: OSError | None = None
    for place in _places() if places is None else places:
        remove_stale(place)
        try:
            return ObjectDirectory(os.path.join(place, f"scaler-{owner:016x}"))
        except OSError as error:
            failure = error
    raise failure or FileNotFoundError("no place for the directory of objects")


def _places() -> Iterable[str]:
    yield SHARED_MEMORY
    yield tempfile.gettempdir()


def remove_stale(place: str = SHARED_MEMORY) -> None:
    """Remove the directories of clients that were killed, and of agents that were killed with their fork servers."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        for name in os.listdir(place):
            if _NAME.fullmatch(name):
                path = os.path.join(place, name)
                lock = _lock(path, waits=False)
                if lock is not None:
                    remove_all(path)
                    os.close(lock)


def _lock(path: str, waits: bool) -> int | None:
    """Lock the directory.

    Returns the descriptor; None if another process has the lock, or if the directory was removed.
    """
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
