"""The folders of environments on this host, with a limit. Several agents of one user share them by file locks.

An environment has a folder and a lock file beside it. Who builds it holds the lock alone, and who uses it shares the
lock. The kernel releases the lock of a process that was killed, so that no folder stays locked.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

if sys.platform != "win32":
    import fcntl

DOWNLOADS = "downloads"
"""What installers keep for the next build. It is removed before any environment is."""
_KEY = re.compile(r"[0-9a-f]{64}|scaler-[0-9a-f]{64}")


class CacheError(Exception):
    """The cache cannot be used. The text is one line that names the folder."""


@dataclass(frozen=True)
class Entry:
    """An environment in the cache."""

    key: str
    size: int
    """Bytes."""
    used: float
    """Time of the last use, in seconds since 1970."""


class Lock:
    """A lock on an environment. It is held as long as a process has its descriptor open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PackageCache:
    """The cache of one user on this host."""

    def __init__(self, root: str, limit_bytes: int) -> None:
        """Make the folder if it does not exist.

        Args:
            root: the folder.
            limit_bytes: how large all environments together may be.

        Raises:
            CacheError: the folder cannot be made, or others can write into it.
        """
        self.root = os.path.abspath(root)
        self.limit_bytes = limit_bytes
        try:
            os.makedirs(self.root, 0o700, exist_ok=True)
            status = os.stat(self.root)
        except OSError as error:
            raise CacheError(f"cannot make the cache of environments {root}: {error.strerror}") from None
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            raise CacheError(
                f"the cache of environments {root} belongs to another user: name one with --environment-cache"
            )
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise CacheError(f"others can write into the cache of environments {root}: chmod go-w {root}")

    def folder(self, key: str) -> str:
        """The folder of an environment."""
        return os.path.join(self.root, key)

    def lock_path(self, key: str) -> str:
        """The lock file of an environment."""
        return self.folder(key) + ".lock"

    def lock(self, key: str, *, shares: bool) -> Lock | None:
        """Lock an environment, at once or not at all. None: other processes have the lock.

        Raises:
            CacheError: the lock file cannot be made.
        """
        try:
            return lock_file(self.lock_path(key), shares=shares)
        except OSError as error:
            raise CacheError(f"cannot lock {self.lock_path(key)}: {error.strerror}") from None

    def set_size(self, key: str, size: int) -> None:
        """Note how large an environment is, also while it is built. The caller holds its lock."""
        with open(self.folder(key) + ".size", "w", encoding="ascii") as file:
            file.write(str(size))

    def touch(self, key: str) -> None:
        """Note that an environment is used now."""
        with suppress(OSError):
            os.utime(self.lock_path(key))

    def entries(self) -> list[Entry]:
        """All environments, the least recently used first."""
        found = []
        for name in os.listdir(self.root):
            key, separator, _ = name.partition(".lock")
            if separator and _KEY.fullmatch(key):
                with suppress(OSError):
                    found.append(Entry(key, self._size(key), os.stat(self.lock_path(key)).st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def total_bytes(self) -> int:
        """The size of all environments, and of what installers keep."""
        return sum(entry.size for entry in self.entries()) + folder_bytes(os.path.join(self.root, DOWNLOADS))

    def make_room(self, spared: str) -> bool:
        """Remove downloads, then environments that are not in use, until the cache is within its limit.

        Args:
            spared: the environment that needs the room. The caller holds its lock.

        Returns:
            Whether the cache is within its limit.
        """
        total = self.total_bytes()
        if total > self.limit_bytes:
            total -= self._remove_downloads()
        for entry in self.entries():
            if total <= self.limit_bytes:
                break
            if entry.key != spared and self.remove(entry.key):
                total -= entry.size
        return total <= self.limit_bytes

    def remove(self, key: str) -> bool:
        """Remove an environment. Returns False if it is in use."""
        lock = self.lock(key, shares=False)
        if lock is None:
            return False
        try:
            self.clear(key)
            for suffix in (".size", ".lock"):
                with suppress(OSError):
                    os.unlink(self.folder(key) + suffix)
        finally:
            lock.release()
        return True

    def clear(self, key: str) -> None:
        """Remove the folder of an environment whose lock the caller holds alone."""
        remove_tree(self.folder(key))

    def downloads_lock(self, *, shares: bool) -> Lock | None:
        """Lock what installers keep: shared while one runs, alone to remove it."""
        return lock_file(os.path.join(self.root, DOWNLOADS + ".lock"), shares=shares)

    def limit_downloads(self, limit_bytes: int) -> None:
        """Remove what installers keep if it is larger than this, and if none runs."""
        if folder_bytes(os.path.join(self.root, DOWNLOADS)) > limit_bytes:
            self._remove_downloads()

    def _remove_downloads(self) -> int:
        folder = os.path.join(self.root, DOWNLOADS)
        lock = self.downloads_lock(shares=False)
        if lock is None:
            return 0
        try:
            size = folder_bytes(folder)
            remove_tree(folder)
            return size
        finally:
            lock.release()

    def _size(self, key: str) -> int:
        try:
            with open(self.folder(key) + ".size", encoding="ascii") as file:
                return int(file.read() or 0)
        except (OSError, ValueError):
            return 0


def lock_file(path: str, *, shares: bool) -> Lock | None:
    """Lock a file, which is made if it does not exist. None: other processes have the lock.

    Raises:
        OSError: the file cannot be made.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shares else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return Lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        os.close(descriptor)  # somebody has removed this file since it was opened


def folder_bytes(folder: str) -> int:
    """The size of all files under a folder on the disk, in bytes. Files that vanish meanwhile count nothing."""
    total, waiting = 0, [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def remove_tree(folder: str) -> None:
    """Remove a folder, also where folders in it are read-only."""

    def retry(function: Callable[[str], object], path: str, _: object) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)

    if os.path.islink(folder):
        os.unlink(folder)
    elif os.path.isdir(folder):
        shutil.rmtree(folder, onerror=retry)
