"""What `Client(environment=...)` takes: a path becomes the packages of an environment, and the files to send."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import PackagesError
from .package_set import (
    CONSTRAINTS_FILE,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TEXT_BYTES,
    PEX,
    REQUIREMENTS,
    REQUIREMENTS_FILE,
    PackageFile,
    PackageSet,
    hash_of_file,
)
from .pex_file import check_pex, is_pex
from .pylock import read_pylock
from .python_versions import this_python
from .requirements import Requirement, RequirementsText, read_requirements
from .uv_lock import read_uv_lock
from .wheels import name_and_version, normalized, read_wheel_folder

_OTHER_FILES = {
    "pyproject.toml": "lock it (uv lock, or uv export -o pylock.toml, or pip lock), and name the lock file",
    "poetry.lock": "export it (poetry export -o requirements.txt), and name that file",
    "pdm.lock": "export it (pdm export -f pylock), and name that file",
    "Pipfile.lock": "export it (pipenv requirements --hash), and name that file",
    "environment.yml": "conda's environments are not supported; export the packages to requirements.txt",
    "environment.yaml": "conda's environments are not supported; export the packages to requirements.txt",
}
TAKEN = "a requirements file, a pylock.toml or uv.lock, a folder of wheels, or a PEX file"


@dataclass(frozen=True)
class PackageSource:
    """The packages of an environment, with the contents that hosts need."""

    packages: PackageSet
    contents: dict[str, bytes | str]
    """By sha256: the bytes, or the path of a file of this machine."""
    unlocked: str
    """Why hosts with `--environments locked` refuse these packages; empty: they take them."""


def read_packages(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> PackageSource:
    """Read what `Client(environment=...)` takes.

    Args:
        path: a requirements file, a `pylock.toml` or `uv.lock`, a folder of wheels, or a PEX file.
        environ: for variables in a requirements file, and for uv.

    Raises:
        PackagesError: it cannot be used. The text is one line that names the file, and says what to do.
    """
    given = os.fspath(path)
    if not isinstance(given, str) or not given:
        raise PackagesError(f"environment {path!r} is not a path: give {TAKEN}")
    name = os.path.basename(given)
    if os.path.isdir(given):
        return _from_wheel_folder(given)
    if not os.path.exists(given):
        raise PackagesError(f"environment: there is no {given}; it takes {TAKEN}")
    if not os.path.isfile(given):
        raise PackagesError(f"environment: {given} is not a file; it takes {TAKEN}")
    if name in _OTHER_FILES:
        raise PackagesError(f"environment: {given}: {_OTHER_FILES[name]}")
    if name.endswith(".pex") or is_pex(given):
        check_pex(given)
        file = _hashed(given)
        return PackageSource(PackageSet(PEX, this_python(), (file,)), {file.sha256: given}, "")
    if name.endswith((".whl", ".tar.gz", ".zip")):
        raise PackagesError(f"environment: {given} is one package: put it into a folder of wheels, and name the folder")
    if name == "uv.lock":
        return _source(read_uv_lock(given, environ))
    if fnmatch.fnmatch(name, "pylock.toml") or fnmatch.fnmatch(name, "pylock.*.toml"):
        return _source(read_pylock(given))
    if name.endswith((".toml", ".lock", ".yml", ".yaml", ".json", ".py", ".cfg")):
        raise PackagesError(f"environment: {given} is of no known kind; it takes {TAKEN}")
    return _source(read_requirements(given, environ))


def _from_wheel_folder(folder: str) -> PackageSource:
    text, paths = read_wheel_folder(folder)
    contents: dict[str, bytes | str] = {}
    hashes: dict[str, list[str]] = {}
    files = []
    for path in paths:
        file = _hashed(path)
        files.append(file)
        contents[file.sha256] = path
        hashes.setdefault(name_and_version(path)[0], []).append(f"sha256:{file.sha256}")
    locked = [replace(each, hashes=tuple(sorted(hashes[normalized(each.name)]))) for each in text.requirements]
    return _packed(RequirementsText(locked, options=text.options), files, contents)


def _source(text: RequirementsText) -> PackageSource:
    """Read the wheels that a text names by path, and name them as hosts see them."""
    contents: dict[str, bytes | str] = {}
    files: dict[str, PackageFile] = {}
    if any(each.wheel for each in text.constraints):
        raise PackagesError("environment: a constraint names a wheel of this machine: name it as a requirement")
    is_locked = not text.unlocked
    requirements = []
    for requirement in text.requirements:
        if requirement.wheel:
            path = requirement.wheel
            requirement, file = _with_wheel(requirement, is_locked)
            if files.setdefault(file.name, file) != file:
                raise PackagesError(f"environment: two different files are named {file.name}")
            contents[file.sha256] = path
        requirements.append(requirement)
    if not requirements:
        raise PackagesError("environment: there are no packages in it")
    return _packed(RequirementsText(requirements, text.constraints, text.options), list(files.values()), contents)


def _with_wheel(requirement: Requirement, is_locked: bool) -> tuple[Requirement, PackageFile]:
    path = requirement.wheel
    name_and_version(path)
    file = _hashed(path)
    sha256 = f"sha256:{file.sha256}"
    if any(each.startswith("sha256:") and each != sha256 for each in requirement.hashes):
        raise PackagesError(f"environment: {path} has another hash than its lock says: {sha256}")
    # With one hash, pip requires one of every package.
    return replace(requirement, wheel=file.name, hashes=(sha256,) if is_locked else ()), file


def _packed(text: RequirementsText, files: list[PackageFile], contents: dict[str, bytes | str]) -> PackageSource:
    for name, content in ((REQUIREMENTS_FILE, text.canonical()), (CONSTRAINTS_FILE, text.canonical_constraints())):
        data = content.encode()
        if not data and name == CONSTRAINTS_FILE:
            continue
        if len(data) > MAX_TEXT_BYTES:
            raise PackagesError(f"environment: the list of packages has more than {MAX_TEXT_BYTES >> 20} MiB")
        sha256 = hashlib.sha256(data).hexdigest()
        files.append(PackageFile(name, sha256, len(data)))
        contents[sha256] = data
    if len(files) > MAX_FILES:
        raise PackagesError(f"environment: {len(files)} files are more than {MAX_FILES}: put the wheels on an index")
    return PackageSource(PackageSet(REQUIREMENTS, this_python(), tuple(sorted(files))), contents, text.unlocked)


def _hashed(path: str) -> PackageFile:
    try:
        sha256, size = hash_of_file(path)
    except OSError as error:
        raise PackagesError(f"cannot read {path}: {error.strerror or error}") from None
    if size > MAX_FILE_BYTES:
        raise PackagesError(f"{path} has more than {MAX_FILE_BYTES >> 30} GiB: put it on an index")
    return PackageFile(os.path.basename(path), sha256, size)
