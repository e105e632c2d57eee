"""Uploading modules and packages: what the tasks of a client import."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import PackagesError
from ..packages.package_set import PackageSet
from ..protocol.messages import LEVEL_ANY, LEVEL_LOCKED, LEVEL_MODULES, Payload
from .environment import Environment
from .manifest import Manifest, digest_of, this_platform
from .module_files import ModuleReader, has_native_files


def checked_modules(modules: Any) -> tuple[str, ...]:
    """Check the argument `modules`. Returns absolute paths, each once.

    Raises:
        TypeError: it is not an iterable of paths.
    """
    if modules is None:
        return ()
    if isinstance(modules, (str, bytes, os.PathLike)) or not isinstance(modules, Iterable):
        raise TypeError(f'modules must be a list of files and folders, as in modules=["."], not {modules!r}')
    given = tuple(modules)
    for path in given:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"modules: {path!r} is not the path of a file or folder")
    return tuple(dict.fromkeys(os.path.abspath(os.fspath(path)) for path in given))


MAX_PACKAGE_BYTES = 1 << 30
"""The most bytes of wheels, or of a PEX file, that travel through the scheduler. Larger ones belong on an index."""


def checked_environment(environment: Any) -> str:
    """Check the argument `environment`. Returns an absolute path, or an empty text if there is none.

    Raises:
        TypeError: it is not a path.
    """
    if environment is None:
        return ""
    if not isinstance(environment, (str, os.PathLike)) or not os.fspath(environment):
        from ..packages.sources import TAKEN

        raise TypeError(f"environment must be the path of {TAKEN}, not {environment!r}")
    return os.path.abspath(os.fsdecode(environment))


@dataclass(frozen=True)
class _Packages:
    """Packages with their contents."""

    packages: PackageSet
    contents: dict[str, Payload]
    level: int


class ModuleUpload:
    """The modules and packages of one client. It reads modules again at each upload, as far as they have changed, and
    packages once.

    Args:
        packages: the absolute path that `environment` names; empty: no packages.
    """

    def __init__(self, packages: str = "") -> None:
        self._reader = ModuleReader()
        self._lock = threading.RLock()
        self._packages_path = packages
        self._packages: _Packages | None = None
        self.paths: tuple[str, ...] = ()
        """The files and folders that were uploaded."""

    def read(self, paths: Iterable[str]) -> Environment:
        """Return the environment with these modules and those that were uploaded before.

        Args:
            paths: absolute paths of files and folders.

        Raises:
            ModulesError: they cannot be read.
            PackagesError: the packages cannot be used.
        """
        with self._lock:
            if self._packages_path and self._packages is None:
                self._packages = _read_packages(self._packages_path)
            all_paths = tuple(dict.fromkeys((*self.paths, *paths)))
            files, contents = self._reader.read(all_paths)
            self.paths = all_paths
        platform = this_platform() if has_native_files(files) else ""
        packages = self._packages
        if packages is None:
            return Environment(Manifest(tuple(files)), contents, LEVEL_MODULES, platform)
        manifest = Manifest(tuple(files), packages.packages.to_manifest())
        return Environment(manifest, {**contents, **packages.contents}, packages.level, platform)


def _read_packages(path: str) -> _Packages:
    from ..packages.sources import read_packages  # not at the top: it imports the readers of all kinds of files

    source = read_packages(path)
    size = sum(file.size for file in source.packages.files)
    if size > MAX_PACKAGE_BYTES:
        text = f"more than {MAX_PACKAGE_BYTES >> 20} MiB in all: put them on an index, and name them in a lock file"
        raise PackagesError(f"environment: the files of {path} have {size >> 20} MiB, {text}")
    contents: dict[str, Payload] = {}
    for sha256, content in source.contents.items():
        contents[sha256] = _read_file(content, sha256) if isinstance(content, str) else content
    return _Packages(source.packages, contents, LEVEL_ANY if source.unlocked else LEVEL_LOCKED)


def _read_file(path: str, sha256: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise PackagesError(f"cannot read {path}: {error.strerror or error}") from None
    if digest_of(content) != sha256:
        raise PackagesError(f"{path} changes while it is read: try again when it is finished")
    return content
