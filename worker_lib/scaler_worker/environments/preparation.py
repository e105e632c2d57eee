"""Prepares environments: writes their modules to folders of this agent, from contents that are checked. Their packages
are installed elsewhere (packages/preparation.py).

The folders belong to one agent, which removes them at its end. Those of a killed agent go when the next one starts.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from scaler_client.environments.manifest import Manifest, ManifestError, ModuleFile, digest_of, read_manifest
from scaler_client.errors import PackagesError
from scaler_client.packages.package_set import PackageSet, package_set_from

from .content_cache import ContentCache, own_folder

if sys.platform != "win32":  # Windows: no locks, and folders of killed agents stay
    import fcntl

RUNNING = "running"


class PreparationError(Exception):
    """An environment cannot be prepared. The text says why."""


class ContentsMissingError(Exception):
    """Contents are not in the cache, or their files were changed.

    Args:
        names: their names.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"{len(names)} contents are missing")
        self.names = names


@dataclass(frozen=True)
class PreparedEnvironment:
    """What a worker of an environment needs."""

    name: str
    folder: str
    """Workers import its modules from here; empty: it has none."""
    packages: PackageSet | None = None
    """The packages that its workers have; None: those of the agent."""


class EnvironmentFolders:
    """The prepared environments of one agent."""

    def __init__(self, cache_folder: str, limit_bytes: int, incarnation: int) -> None:
        """Make the folder of this agent, and remove those of dead ones.

        Args:
            cache_folder: the folder of the cache; it need not exist.
            limit_bytes: the most bytes of contents in the cache.
            incarnation: the agent's own.

        Raises:
            OSError: a folder cannot be made.
        """
        self.contents = ContentCache(cache_folder, limit_bytes)
        place = own_folder(os.path.join(cache_folder, RUNNING))
        _remove_stale(place)
        self._folder = os.path.join(place, f"{incarnation:016x}")
        os.mkdir(self._folder, 0o700)
        self._lock = _lock(self._folder)
        self.prepared: dict[str, PreparedEnvironment] = {}

    def prepare(self, name: str, manifest: bytes) -> PreparedEnvironment:
        """Write the modules of an environment.

        Raises:
            ContentsMissingError: contents are missing.
            PreparationError: it cannot be prepared.
        """
        known = self.prepared.get(name)
        if known is not None:
            return known
        if digest_of(manifest) != name:
            raise PreparationError("the manifest was changed on its way: its SHA-256 is not the environment's name")
        try:
            checked = read_manifest(manifest)
        except ManifestError as error:
            raise PreparationError(str(error)) from None
        try:
            prepared = self._build(name, checked)
        except OSError as error:
            raise PreparationError(f"{error.strerror}: {error.filename or self._folder}") from error
        self.prepared[name] = prepared
        self.contents.trim()
        return prepared

    def _build(self, name: str, manifest: Manifest) -> PreparedEnvironment:
        try:
            packages = None if manifest.packages is None else package_set_from(manifest.packages)
        except PackagesError as error:
            raise PreparationError(str(error)) from None
        folder = os.path.join(self._folder, name[:32])
        write_modules(manifest.modules, folder, self.contents.read)
        return PreparedEnvironment(name, folder, packages)

    def remove(self, name: str) -> None:
        """Remove the folder of an environment."""
        known = self.prepared.pop(name, None)
        if known is not None:
            shutil.rmtree(known.folder, ignore_errors=True)

    def close(self) -> None:
        """Remove all folders of this agent."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def write_modules(files: Iterable[ModuleFile], folder: str, read: Callable[[str], bytes | None]) -> None:
    """Write files into a new folder.

    Args:
        files: checked files.
        folder: what is there already is removed.
        read: returns a content by its digest; None: it is missing.

    Raises:
        ContentsMissingError: contents are missing. Nothing is left.
        OSError: a file cannot be written. Nothing is left.
    """
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    missing: dict[str, None] = {}
    made = {""}
    try:
        for file in files:
            content = read(file.digest)
            if content is None:
                missing[file.digest] = None
                continue
            parent = file.path.rpartition("/")[0]
            if parent not in made:
                os.makedirs(os.path.join(folder, *parent.split("/")), 0o700, exist_ok=True)
                made.add(parent)
            path = os.path.join(folder, *file.path.split("/"))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags, 0o700 if file.is_executable else 0o600)
            with open(descriptor, "wb") as opened:
                opened.write(content)
        if missing:
            raise ContentsMissingError(list(missing))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _lock(folder: str) -> int | None:
    """Lock a folder as long as this process lives. Returns the descriptor; None: another process has the lock."""
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_stale(place: str) -> None:
    """Remove the folders of agents that were killed."""
    with suppress(OSError):
        for name in os.listdir(place):
            folder = os.path.join(place, name)
            with suppress(OSError):
                lock = _lock(folder)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)
