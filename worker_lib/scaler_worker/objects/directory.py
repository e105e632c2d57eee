"""The directory of a host agent's object files: made at the agent's start, gone at its end, whatever that is.

The agent and its fork server hold a lock on the directory as long as they live, and the one that lives longer removes
it. Where both are killed at once the lock goes with them, and the next agent that starts on the host removes it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from .files import remove_all

if sys.platform != "win32":  # nothing is locked there, and nothing left behind is found
    import fcntl

_NAME = re.compile(r"scaler-[0-9a-f]{16}")


class ObjectDirectory:
    def __init__(self, path: str) -> None:
        """Make it.

        Raises:
            OSError: it can't be made there.
        """
        self.path = path
        self._lock: int | None = None
        os.mkdir(path, 0o700)
        try:
            # An agent that starts may take the directory for one left behind, until the lock is there.
            while sys.platform != "win32" and (lock := _lock(path, waits=True)) is None:
                os.mkdir(path, 0o700)
        except OSError:
            remove_all(path)
            raise
        if sys.platform != "win32":
            self._lock = lock

    def release_lock(self) -> None:
        """In a process that was forked since: it does not count as one that uses the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """With all that is in it. Nothing where another process has done so."""
        remove_all(self.path)
        self.release_lock()


def make_directory(agent: int, places: Iterable[str] | None = None) -> ObjectDirectory:
    """A new directory for the agent of this incarnation, after removing those that dead agents have left.

    Args:
        places: directories to make it in, the best one first; memory of the host's, else files, unless told otherwise.

    Raises:
        OSError: none can be made; why not in the last place.
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
    """Remove what agents have left that were killed together with their nurseries."""
    with suppress(OSError):
        for name in os.listdir(place):
            if _NAME.fullmatch(name):
                path = os.path.join(place, name)
                lock = _lock(path, waits=False)
                if lock is not None:
                    remove_all(path)
                    os.close(lock)


def _lock(path: str, waits: bool) -> int | None:
    """The descriptor that holds the directory's lock; None where another process has it, or the directory is gone."""
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
