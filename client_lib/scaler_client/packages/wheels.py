"""Wheels of this machine: their names, and folders of them."""

from __future__ import annotations

import os
import re
import zipfile

from ..errors import PackagesError
from .package_set import MAX_FILES, is_file_name
from .requirements import Requirement, RequirementsText

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9.!+_]+)(?:-[0-9][A-Za-z0-9_.]*)?"
    r"-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+\.whl"
)
_SOURCES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip")


def normalized(name: str) -> str:
    """The name of a package as indexes compare it: `Foo_Bar` is `foo-bar`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_and_version(path: str) -> tuple[str, str]:
    """What the name of a wheel says, after a check that the file is one.

    Raises:
        PackagesError: the file is not a wheel, or its name cannot travel.
    """
    file_name = os.path.basename(path)
    found = _WHEEL.fullmatch(file_name)
    if found is None or not is_file_name(file_name):
        raise PackagesError(f"{path}: not the name of a wheel (NAME-VERSION-PYTHON-ABI-PLATFORM.whl)")
    if not zipfile.is_zipfile(path):
        raise PackagesError(f"{path}: not a wheel: the file is damaged, or still being written")
    return normalized(found["name"]), found["version"]


def read_wheel_folder(folder: str) -> tuple[RequirementsText, list[str]]:
    """The packages of a folder of wheels: exactly these versions, and no index.

    The folder may have the same version of a package for several platforms.

    Returns:
        The requirements, without hashes yet, and the paths of the wheels.

    Raises:
        PackagesError: there is no wheel, a package in two versions, a file that is not a wheel, or too many.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise PackagesError(f"cannot read {folder}: {error.strerror or error}") from None
    if "PEX-INFO" in names:
        raise PackagesError(f"{folder} is a loose PEX: make one file of it (pex --layout zipapp)")
    versions: dict[str, str] = {}
    paths = []
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(_SOURCES):
            raise PackagesError(f"{path} is a source package: build a wheel of it (pip wheel --no-deps) in this folder")
        if not name.endswith(".whl") or name.startswith("."):
            continue
        package, version = name_and_version(path)
        if versions.setdefault(package, version) != version:
            both = f"{versions[package]} and {version}"
            raise PackagesError(f"{folder} has {package} in two versions, {both}: leave one of them there")
        paths.append(path)
    if not paths:
        hint = "a folder of wheels is made by pip download or pip wheel; source code is sent with Client(modules=[...])"
        raise PackagesError(f"{folder} has no wheels (.whl): {hint}")
    if len(paths) >= MAX_FILES:
        raise PackagesError(f"{folder} has {len(paths)} wheels, more than {MAX_FILES - 2}: put them on an index")
    requirements = [Requirement(package, specifier=f"=={version}") for package, version in versions.items()]
    return RequirementsText(requirements, options=["--no-index"]), paths
