"""The packages of an environment as plain data: files named by their hash, and the version of Python.

This is the part `packages` of an environment's manifest. The client makes it, and the host agent checks it again:
it comes from outside.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PackagesError

REQUIREMENTS = "requirements"
PEX = "pex"
KINDS = (REQUIREMENTS, PEX)

REQUIREMENTS_FILE = "requirements.txt"
CONSTRAINTS_FILE = "constraints.txt"

MAX_FILES = 1_000
"""Files of one environment: the two texts, and wheels."""
MAX_FILE_BYTES = 8 << 30
"""Size of one file."""
MAX_TEXT_BYTES = 4 << 20
"""Size of `requirements.txt` or `constraints.txt`. A lock of 500 packages with all hashes has some 500 KB."""

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,254}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PYTHON = re.compile(r"3\.[0-9]{1,3}")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, order=True)
class PackageFile:
    """A file that the environment is made from."""

    name: str
    """The base name, without any folder."""
    sha256: str
    """64 hexadecimal digits."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class PackageSet:
    """The packages of an environment."""

    kind: str
    """`requirements`: the files are `requirements.txt`, perhaps `constraints.txt`, and wheels. `pex`: one PEX file."""
    python: str
    """The minor version of CPython, for example `3.11`."""
    files: tuple[PackageFile, ...]
    """Sorted by name, all names different."""

    def to_manifest(self) -> dict[str, Any]:
        """The value of `packages` in the manifest."""
        files = [[file.name, file.sha256, file.size] for file in self.files]
        return {"kind": self.kind, "python": self.python, "files": files}

    @property
    def key(self) -> str:
        """The hash of these packages: 64 hexadecimal digits."""
        text = json.dumps(self.to_manifest(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def file(self, name: str) -> PackageFile | None:
        """The file with this name."""
        return next((file for file in self.files if file.name == name), None)


def package_set_from(plain: Any) -> PackageSet:
    """Read the value of `packages` in a manifest that came from outside.

    Raises:
        PackagesError: it is not what `PackageSet.to_manifest` makes.
    """
    if not isinstance(plain, Mapping) or set(plain) != {"kind", "python", "files"}:
        raise PackagesError("packages of the environment: not an object with kind, python and files")
    kind, python, files = plain["kind"], plain["python"], plain["files"]
    if kind not in KINDS:
        raise PackagesError(f"packages of the environment: {_shown(kind)} is not one of {', '.join(KINDS)}")
    if not isinstance(python, str) or not _PYTHON.fullmatch(python):
        raise PackagesError(f"packages of the environment: {_shown(python)} is not a version of Python as in 3.11")
    if not isinstance(files, list) or not 1 <= len(files) <= MAX_FILES:
        raise PackagesError(f"packages of the environment: files must be a list of 1 to {MAX_FILES} files")
    read = tuple(_file_from(each) for each in files)
    names = [file.name.lower() for file in read]  # some file systems ignore the case
    if list(read) != sorted(read) or len(set(names)) != len(names):
        raise PackagesError("packages of the environment: the files are not sorted by different names")
    packages = PackageSet(kind, python, read)
    _check_files(packages)
    return packages


def _file_from(plain: Any) -> PackageFile:
    if not isinstance(plain, list) or len(plain) != 3:
        raise PackagesError(f"packages of the environment: {_shown(plain)} is not a name, a hash and a size")
    name, sha256, size = plain
    if not isinstance(name, str) or not is_file_name(name):
        raise PackagesError(f"packages of the environment: {_shown(name)} is not the name of a file")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise PackagesError(f"packages of the environment: {_shown(sha256)} is not a sha256 hash")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FILE_BYTES:
        raise PackagesError(f"packages of the environment: {_shown(size)} is not a size up to {MAX_FILE_BYTES} bytes")
    return PackageFile(name, sha256, size)


def _check_files(packages: PackageSet) -> None:
    if packages.kind == PEX:
        if len(packages.files) != 1:
            raise PackagesError("packages of the environment: a PEX file comes alone")
        return
    if packages.file(REQUIREMENTS_FILE) is None:
        raise PackagesError(f"packages of the environment: {REQUIREMENTS_FILE} is missing")
    for file in packages.files:
        if file.name in (REQUIREMENTS_FILE, CONSTRAINTS_FILE):
            if file.size > MAX_TEXT_BYTES:
                raise PackagesError(f"packages of the environment: {file.name} has more than {MAX_TEXT_BYTES} bytes")
        elif not file.name.endswith(".whl"):
            raise PackagesError(f"packages of the environment: {_shown(file.name)} is not a wheel (.whl)")


def is_file_name(name: str) -> bool:
    """Whether a text can be the name of a file of an environment: no folder, no leading dot or dash."""
    return _FILE_NAME.fullmatch(name) is not None


def hash_of_file(path: str) -> tuple[str, int]:
    """The sha256 of a file as hexadecimal digits, and its size in bytes.

    Raises:
        OSError: the file cannot be read.
    """
    hashed, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            hashed.update(chunk)
            size += len(chunk)
    return hashed.hexdigest(), size


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
