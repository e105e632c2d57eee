"""The contents of environments on this host, by their SHA-256. They outlive the agent, and agents share them.

A content is checked at each read: a file that was changed is removed, and counts as missing.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from scaler_client.environments.manifest import digest_of

TRIM_SHARE = 0.9
"""If the cache has reached its limit, the oldest contents go until this share of it is left."""

_log = logging.getLogger(__name__)


class CacheFolderError(OSError):
    """The folder of the cache cannot be used."""


def default_cache_folder() -> str:
    """Return the folder of the cache if the operator names none."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "scaler")


def temporary_cache_folder() -> str:
    """Return the folder of the cache if the default one cannot be written."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    return os.path.join(tempfile.gettempdir(), f"scaler-cache-{user}")


def own_folder(folder: str) -> str:
    """Make a folder that only this user can write to, and return it.

    Raises:
        CacheFolderError: the folder cannot be made, or others may write to it.
    """
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError as error:
        raise CacheFolderError(f"{error.strerror}: {folder}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise CacheFolderError(f"{folder} is not a folder")
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise CacheFolderError(f"{folder} belongs to another user, or others may write to it: use another")
    return folder


class ContentCache:
    """Files named by their content."""

    def __init__(self, folder: str, limit_bytes: int) -> None:
        """
        Args:
            folder: the folder of the cache; it need not exist.
            limit_bytes: the most bytes of contents that stay there.

        Raises:
            CacheFolderError: the folder cannot be used.
        """
        self._folder = own_folder(os.path.join(own_folder(folder), "contents"))
        self._limit_bytes = limit_bytes

    def path(self, name: str) -> str:
        """Return the path of a content, which may be missing."""
        return os.path.join(self._folder, name)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those of these contents that are not here."""
        return [name for name in names if not os.path.isfile(self.path(name))]

    def add(self, content: bytes | bytearray | memoryview) -> str:
        """Keep a content. Returns its name.

        Raises:
            OSError: it cannot be written.
        """
        name = digest_of(content)
        if os.path.isfile(self.path(name)):
            return name
        descriptor, unfinished = tempfile.mkstemp(prefix=".", dir=self._folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            os.replace(unfinished, self.path(name))
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        return name

    def read(self, name: str) -> bytes | None:
        """Return a content; None: it is not here, or its file was changed."""
        try:
            with open(self.path(name), "rb") as file:
                content = file.read()
            os.utime(self.path(name))
        except OSError:
            return None
        if digest_of(content) == name:
            return content
        _log.warning("the file %s was changed: it is removed and got again", self.path(name))
        self.remove(name)
        return None

    def remove(self, name: str) -> None:
        """Remove a content, if it is here."""
        with suppress(OSError):
            os.unlink(self.path(name))

    def trim(self) -> None:
        """Remove the contents that were not used for the longest time, if they exceed the limit."""
        files = []
        total = 0
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    files.append((found.st_mtime, found.st_size, entry.path))
                    total += found.st_size
        if total <= self._limit_bytes:
            return
        for _, size, path in sorted(files):
            if total <= self._limit_bytes * TRIM_SHARE:
                return
            with suppress(OSError):
                os.unlink(path)
                total -= size
