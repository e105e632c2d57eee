"""Finds and reads the files of a program's own modules."""

from __future__ import annotations

import importlib.machinery
import itertools
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from ..errors import ModulesError
from .manifest import (
    MAX_BYTES,
    MAX_FILES,
    ManifestError,
    ModuleFile,
    check_files,
    checked_path,
    digest_of,
    is_native,
)

MAX_ENTRIES = 200_000
"""The most entries of folders that are looked at."""

MAX_DEPTH = 64

MAX_SEARCHED = 10_000
"""The most entries that are looked at to find packages below a folder without modules. It may hold data."""

READ_ATTEMPTS = 3

FRESH_NS = 2_000_000_000
"""A file that was changed within this time may change again without a new time stamp: it is read at each look."""

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_SKIPPED_SUFFIXES = (".pyc", ".pyo", "~", ".swp")
_MODULE_SUFFIXES = (".py", *importlib.machinery.EXTENSION_SUFFIXES)

_Signature = tuple[int, int, int]


class ModuleReader:
    """Reads modules. Files that have not changed since the last time are not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Signature, str, bytes]] = {}
        """Signature, digest and content of files that were read, by their paths."""

    def read(self, paths: Sequence[str]) -> tuple[list[ModuleFile], dict[str, bytes]]:
        """Read modules.

        Args:
            paths: files of modules; folders of packages, with an `__init__.py`; other folders, whose modules and
                packages are taken.

        Returns:
            The files, sorted by their paths in the environment, and the contents by digest.

        Raises:
            ModulesError: modules cannot be read, or two of them have the same name.
        """
        search = _Search()
        found: dict[str, str] = {}
        """Where the files are, by their paths in the environment."""
        for given in paths:
            for path, place in search.files_of(given):
                if found.setdefault(path, place) != place:
                    raise ModulesError(f"{found[path]} and {place} are both the module file {path}: give one of them")
                if len(found) > MAX_FILES:
                    raise ModulesError(
                        f"{given} has more than {MAX_FILES:,} files of modules: give the packages and files one by one"
                    )
        files: list[ModuleFile] = []
        contents: dict[str, bytes] = {}
        known: dict[str, tuple[_Signature, str, bytes]] = {}
        size = 0
        for path, place in sorted(found.items()):
            signature, digest, content, is_executable = self._read(place)
            size += len(content)
            if size > MAX_BYTES:
                raise ModulesError(
                    f"the modules have more than {MAX_BYTES >> 20} MiB, reached at {place}: give the packages and "
                    "files one by one, and put data into objects or files"
                )
            files.append(ModuleFile(_checked(path, place), digest, is_executable))
            contents[digest] = content
            known[place] = (signature, digest, content)
        self._known = known
        try:
            check_files(files)
        except ManifestError as error:
            raise ModulesError(str(error)) from None
        return files, contents

    def _read(self, place: str) -> tuple[_Signature, str, bytes, bool]:
        """Return signature, digest and content of a file, and whether it is executable."""
        try:
            for _ in range(READ_ATTEMPTS):
                found = os.stat(place)
                known = self._known.get(place)
                is_executable = bool(found.st_mode & stat.S_IXUSR)
                if known is not None and known[0] == _signature(found) and not _is_fresh(found):
                    return (*known, is_executable)
                if found.st_size > MAX_BYTES:
                    raise ModulesError(f"{place} has {found.st_size >> 20} MiB, more than {MAX_BYTES >> 20} MiB in all")
                with open(place, "rb", buffering=0) as file:  # a buffer costs a quarter of the reading
                    content = file.read(found.st_size + 1)
                    after = os.fstat(file.fileno())
                if len(content) == found.st_size and _signature(after) == _signature(found):
                    return _signature(found), digest_of(content), content, is_executable
        except OSError as error:
            raise ModulesError(f"{place} cannot be read: {error.strerror}") from None
        raise ModulesError(f"{place} changes while it is read: upload the modules when it is complete")


def has_native_files(files: Iterable[ModuleFile]) -> bool:
    """Whether some of the files work on this platform alone."""
    return any(is_native(file.path) for file in files)


def upload_path(module: str) -> str:
    """Return the path that `Client(modules=[...])` must have to give a top-level module to the workers.

    Args:
        module: the module's file, or the folder of its package. A folder without `__init__.py` is a namespace package:
            an upload takes it with the folder around it.

    Returns:
        The path of a file or folder; empty: an upload leaves out this namespace package.
    """
    if not os.path.isdir(module) or os.path.isfile(os.path.join(module, "__init__.py")):
        return module
    return os.path.dirname(module) if is_uploaded(module) else ""


def left_out_text(folder: str) -> str:
    """Say what to do about a namespace package for which `upload_path` has no path."""
    return f"an upload leaves out {folder}: put an __init__.py into it, or copy the module to the hosts"


def is_uploaded(folder: str) -> bool:
    """Whether an upload of the folder around this one takes files of it."""
    search = _Search()
    try:
        return _is_package_name(folder) and any(True for _ in search.packages_of(os.path.abspath(folder)))
    except ModulesError:
        return False


class _Search:
    """Finds the files of modules, within bounds."""

    def __init__(self) -> None:
        self._entries = 0

    def files_of(self, given: str) -> Iterator[tuple[str, str]]:
        """Yield the files that a user names by one path: their paths in the environment, and where they are."""
        place = os.path.abspath(given)
        try:
            found = os.stat(place)
        except OSError as error:
            raise ModulesError(f"modules: {given}: {error.strerror}") from None
        name = os.path.basename(place)
        if stat.S_ISREG(found.st_mode):
            if not name.endswith(_MODULE_SUFFIXES):
                suffixes = ", ".join(_MODULE_SUFFIXES)
                raise ModulesError(f"modules: {given} is not a file of a module ({suffixes}): give its folder")
            if not _is_name(name):
                raise ModulesError(f"modules: {given} cannot be imported: its name is no name of a module")
            yield name, place
            return
        if not stat.S_ISDIR(found.st_mode):
            raise ModulesError(f"modules: {given} is neither a file nor a folder")
        if os.path.isfile(os.path.join(place, "__init__.py")):
            if not name.isidentifier():
                raise ModulesError(f"modules: the folder {name!r} cannot be imported: its name is no name of a package")
            yield from self._tree(place, name, ())
            return
        count = 0
        for entry in self._list(place):
            if self._is_file(entry):
                if entry.name.endswith(_MODULE_SUFFIXES) and _is_name(entry.name):
                    count += 1
                    yield entry.name, entry.path
            elif _is_package_name(entry.path):
                for package in self.packages_of(entry.path):
                    path = entry.name + package[len(entry.path) :].replace(os.sep, "/")
                    for each in self._tree(package, path, (_identity(place),)):
                        count += 1
                        yield each
        if not count:
            raise ModulesError(f"modules: the folder {given} has no modules and no packages")

    def packages_of(self, place: str) -> list[str]:
        """Return the packages of a folder: the folder itself, or the first ones below it.

        The folder is a package if it has modules, or packages with an `__init__.py`. Else each folder below it that has
        modules is a package of this namespace. None: it has no modules, or more than MAX_SEARCHED entries below it.
        """
        if self._has_modules(place):
            return [place]
        packages = []
        left = MAX_SEARCHED
        folders = [place]
        seen = {_identity(os.path.dirname(place))}
        for _ in range(MAX_DEPTH):
            below = []
            for folder in folders:
                if (here := _identity(folder)) in seen:
                    continue
                seen.add(here)
                entries = self._some(folder, left)
                left -= len(entries)
                if left <= 0:
                    return []
                entries = list(filter(_is_file_or_folder, entries))
                if any(self._is_file(entry) and entry.name.endswith(_MODULE_SUFFIXES) for entry in entries):
                    packages.append(folder)
                else:
                    below += [entry.path for entry in entries if entry.is_dir() and _is_package_name(entry.path)]
            folders = sorted(below)
        return sorted(packages)

    @staticmethod
    def _some(place: str, most: int) -> list[os.DirEntry[str]]:
        """Return at most so many entries of a folder. None: it cannot be read, and no module of it is imported."""
        try:
            with os.scandir(place) as scanned:
                return list(itertools.islice(scanned, most))
        except OSError:
            return []

    def _tree(self, place: str, path: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, str]]:
        """Yield all files of a package: packages read data files, too."""
        here = _identity(place)
        if here in above:
            raise ModulesError(f"modules: {place} is a link to a folder around it: a cycle of links")
        if len(above) > MAX_DEPTH:
            raise ModulesError(f"modules: {place} is more than {MAX_DEPTH} folders deep")
        for entry in self._list(place):
            if self._is_file(entry):
                if not entry.name.startswith(".") and not entry.name.endswith(_SKIPPED_SUFFIXES):
                    yield f"{path}/{entry.name}", entry.path
            elif not _is_skipped(entry.path):
                yield from self._tree(entry.path, f"{path}/{entry.name}", (*above, here))

    def _has_modules(self, place: str) -> bool:
        """Whether a folder without `__init__.py` is a namespace package: it has modules, or packages with them."""
        folders = []
        for entry in self._list(place):
            if self._is_file(entry):
                if entry.name.endswith(_MODULE_SUFFIXES):
                    return True
            elif _is_package_name(entry.path):
                folders.append(entry.path)
        return any(os.path.isfile(os.path.join(folder, "__init__.py")) for folder in folders)

    def _list(self, place: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder that are files or folders, sorted by name."""
        entries = []
        try:
            with os.scandir(place) as scanned:
                for entry in scanned:
                    self._entries += 1
                    if self._entries > MAX_ENTRIES:
                        raise ModulesError(
                            f"modules: more than {MAX_ENTRIES:,} files and folders at {place}: give the packages and "
                            "files one by one"
                        )
                    entries.append(entry)
        except OSError as error:
            raise ModulesError(f"modules: {place} cannot be read: {error.strerror}") from None
        return sorted(filter(_is_file_or_folder, entries), key=lambda entry: entry.name)

    @staticmethod
    def _is_file(entry: os.DirEntry[str]) -> bool:
        return entry.is_file()


def _is_name(file: str) -> bool:
    """Whether a file can be imported by its name."""
    return file.partition(".")[0].isidentifier()


def _is_file_or_folder(entry: os.DirEntry[str]) -> bool:
    """Leaves out sockets, pipes, devices and links to nothing."""
    try:
        return entry.is_file() or entry.is_dir()
    except OSError:  # a cycle of links
        return False


def _is_package_name(folder: str) -> bool:
    """Whether a folder may be a package: it can be imported by its name, and is none of those that are left out."""
    return os.path.basename(folder).isidentifier() and not _is_skipped(folder)


def _is_skipped(folder: str) -> bool:
    """Whether a folder is hidden, made by tools, or a virtual environment."""
    name = os.path.basename(folder)
    if name.startswith(".") or name in _SKIPPED_FOLDERS:
        return True
    return os.path.isfile(os.path.join(folder, "pyvenv.cfg"))


def _identity(folder: str) -> tuple[int, int]:
    try:
        found = os.stat(folder)
    except OSError as error:
        raise ModulesError(f"modules: {folder} cannot be read: {error.strerror}") from None
    return found.st_dev, found.st_ino


def _signature(found: os.stat_result) -> _Signature:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _is_fresh(found: os.stat_result) -> bool:
    return time.time_ns() - found.st_mtime_ns < FRESH_NS


def _checked(path: str, place: str) -> str:
    try:
        return checked_path(path)
    except ManifestError as error:
        raise ModulesError(f"modules: {place}: {error}") from None
