"""The manifest of an environment: which files it has. Its hash is the name of the environment.

Client and host agent use this module. A manifest that comes from elsewhere is checked as a whole before use.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import json
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = 1
MAX_FILES = 20_000
MAX_BYTES = 256 << 20
"""The most bytes of all modules of an environment. Data of this size belongs into objects or files."""

MAX_PATH_LENGTH = 1000  # characters
MAX_MANIFEST_BYTES = 64 << 20
_DIGITS = frozenset("0123456789abcdef")
_NATIVE_SUFFIXES = (*importlib.machinery.EXTENSION_SUFFIXES, ".so", ".pyd", ".dylib", ".dll")


class ManifestError(ValueError):
    """A manifest is malformed, or names a file outside of its folder."""


@dataclass(frozen=True, order=True)
class ModuleFile:
    """One file of an environment."""

    path: str
    """Relative to the folder that workers import from, with `/` between its parts."""
    digest: str
    """The SHA-256 of its content, in hex digits."""
    is_executable: bool = False


@dataclass(frozen=True)
class Manifest:
    """What an environment has."""

    modules: tuple[ModuleFile, ...] = ()
    """Sorted by path."""
    packages: Mapping[str, Any] | None = None
    """Packages that are to be installed; None: none."""

    def to_bytes(self) -> bytes:
        """The manifest as canonical JSON: the same bytes for the same content."""
        modules = [[file.path, file.digest, file.is_executable] for file in self.modules]
        content = {"format": FORMAT, "modules": modules, "packages": self.packages}
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @property
    def module_digests(self) -> list[str]:
        """The digests of the modules' contents, each once."""
        return list(dict.fromkeys(file.digest for file in self.modules))


def digest_of(content: bytes | bytearray | memoryview) -> str:
    """Return the name of a content, or of the environment with this manifest: its SHA-256 in hex digits."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(data: bytes) -> Manifest:
    """Read and check a manifest.

    Raises:
        ManifestError: it is malformed, or a path leaves the folder.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise ManifestError(f"a manifest of {len(data):,} bytes, more than {MAX_MANIFEST_BYTES:,}")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"the manifest is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ManifestError(f"the manifest does not have the format {FORMAT}: the other side has another version")
    rows, packages = content.get("modules"), content.get("packages")
    if not isinstance(rows, list) or not (packages is None or isinstance(packages, dict)):
        raise ManifestError("the manifest has no list of modules, or its packages are no object")
    files = []
    for row in rows:
        if not isinstance(row, list) or len(row) != 3 or not isinstance(row[2], bool):
            raise ManifestError(f"{row!r} is not a path, a SHA-256 and whether the file is executable")
        files.append(ModuleFile(checked_path(row[0]), checked_digest(row[1]), row[2]))
    check_files(files)
    return Manifest(tuple(files), packages)


def check_files(files: Iterable[ModuleFile]) -> None:
    """Check that the files can lie in one folder, sorted by path.

    Raises:
        ManifestError: a path occurs twice, is also a folder, or there are too many files.
    """
    before = ""
    paths: set[str] = set()
    folders: set[str] = set()
    for file in files:
        if file.path <= before:
            raise ManifestError(f"the paths of the manifest do not ascend at {file.path!r}")
        before = file.path
        paths.add(file.path)
        parts = file.path.split("/")
        folders.update("/".join(parts[:count]) for count in range(1, len(parts)))
    if len(paths) > MAX_FILES:
        raise ManifestError(f"{len(paths):,} files of modules, more than {MAX_FILES:,}")
    both = sorted(paths & folders)
    if both:
        raise ManifestError(f"{both[0]!r} is a file and a folder")


def checked_path(path: Any) -> str:
    """Return a path of a manifest, if it stays in its folder on every system.

    Raises:
        ManifestError: it does not.
    """
    if not isinstance(path, str) or not path or len(path) > MAX_PATH_LENGTH:
        raise ManifestError(f"{str(path)[:80]!r} is not a path of 1 to {MAX_PATH_LENGTH} characters")
    if not path.isprintable() or "\\" in path or ":" in path:
        raise ManifestError(f"the path {path!r} has a backslash, a colon or a character that cannot be printed")
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise ManifestError(f"the path {path!r} leaves the folder of the modules, or has an empty part")
    return path


def checked_digest(digest: Any) -> str:
    """Return a SHA-256 in hex digits.

    Raises:
        ManifestError: it is none.
    """
    if not isinstance(digest, str) or len(digest) != 64 or not set(digest) <= _DIGITS:
        raise ManifestError(f"{str(digest)[:80]!r} is not a SHA-256 in hex digits")
    return digest


def this_platform() -> str:
    """Return the platform of this process. Environments with native extensions name it."""
    return f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"


def is_native(path: str) -> bool:
    """Whether this file is a native extension or library, which works on one platform alone."""
    return path.endswith(_NATIVE_SUFFIXES) or ".so." in path
