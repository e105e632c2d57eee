"""Uploading modules: which files the tasks of a client import."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

from .environment import Environment
from .manifest import Manifest, this_platform
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


class ModuleUpload:
    """The modules of one client. It reads them again at each upload, as far as they have changed."""

    def __init__(self) -> None:
        self._reader = ModuleReader()
        self._lock = threading.Lock()
        self.paths: tuple[str, ...] = ()
        """The files and folders that were uploaded."""

    def read(self, paths: Iterable[str]) -> Environment:
        """Return the environment with these modules and those that were uploaded before.

        Args:
            paths: absolute paths of files and folders.

        Raises:
            ModulesError: they cannot be read.
        """
        with self._lock:
            all_paths = tuple(dict.fromkeys((*self.paths, *paths)))
            files, contents = self._reader.read(all_paths)
            self.paths = all_paths
        platform = this_platform() if has_native_files(files) else ""
        return Environment(Manifest(tuple(files)), contents, platform=platform)
