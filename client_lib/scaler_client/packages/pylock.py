"""Lock files in the format of PEP 751: `pylock.toml`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from ..errors import PackagesError
from .python_versions import allows, this_python
from .requirements import MODULES_HINT, Requirement, RequirementsText, parse_requirement, read_text

_HASHES = ("sha256", "sha384", "sha512")
_GROUP = re.compile(r"""\(?\s*["']([A-Za-z0-9._-]+)["'] in (dependency_groups|extras)\s*\)?""")


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        PackagesError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise PackagesError(f"{path} is not TOML: {error}") from None


def read_pylock(path: str) -> RequirementsText:
    """The packages of a `pylock.toml`. The host gets them from its own index, and accepts only the file's hashes.

    Raises:
        PackagesError: it is not a lock file, not for this Python, or has packages that no host could install.
    """
    lock = read_toml(path)
    version, packages = lock.get("lock-version"), lock.get("packages")
    if not isinstance(version, str) or not isinstance(packages, list):
        raise PackagesError(f"{path} is not a lock file of PEP 751: it has no lock-version or no packages")
    if version.split(".")[0] != "1":
        raise PackagesError(f"{path} has the lock-version {version!r}: only 1.x is known")
    required = lock.get("requires-python", "")
    if isinstance(required, str) and not allows(required, sys.version_info[:3]):
        raise PackagesError(f"{path} requires Python {required}: this is {this_python()}, and tasks run in the same")
    groups = lock.get("default-groups", [])
    found = RequirementsText()
    try:
        for package in packages:
            requirement = _requirement(package, path, set(groups))
            if requirement is not None:
                found.requirements.append(requirement)
    except (KeyError, TypeError, AttributeError) as error:
        raise PackagesError(f"{path} is not a lock file of PEP 751: {type(error).__name__} {error}") from None
    return found


def _requirement(package: Mapping[str, Any], path: str, groups: set[str]) -> Requirement | None:
    name = package["name"]
    where, folder = f"{path}, package {name!r}", os.path.dirname(path)
    marker = _marker(package.get("marker", ""), where, groups)
    if marker is None:
        return None
    if "directory" in package:
        text = f"is the folder {package['directory'].get('path')!r} of this machine: leave it out of the lock"
        raise PackagesError(f"{where} {text} (uv export --no-emit-project), and {MODULES_HINT}")
    if "vcs" in package:
        return _checked(_vcs_line(name, package["vcs"], where), marker, (), where)
    if "archive" in package:
        archive = package["archive"]
        if "url" not in archive:
            return _wheel(archive, marker, folder, where)
        subdirectory = f"#subdirectory={archive['subdirectory']}" if archive.get("subdirectory") else ""
        return _checked(f"{name} @ {archive['url']}{subdirectory}", marker, _hashes(archive), where)
    wheels, sdist = package.get("wheels", []), package.get("sdist")
    local = [each for each in wheels if "url" not in each and "path" in each]
    if local and len(local) == len(wheels) == 1:
        return _wheel(local[0], marker, folder, where)
    if local:
        raise PackagesError(f"{where} has several wheels of this machine: name their folder itself as environment")
    if sdist is not None and not wheels and "url" not in sdist:
        raise PackagesError(f"{where} is a source package of this machine: build a wheel of it (pip wheel --no-deps)")
    if "version" not in package:
        raise PackagesError(f"{where} has no version")
    hashes = [each for file in [*wheels, *([sdist] if sdist else [])] for each in _hashes(file)]
    return _checked(f"{name}=={package['version']}", marker, tuple(sorted(set(hashes))), where)


def _checked(line: str, marker: str, hashes: tuple[str, ...], where: str) -> Requirement:
    """Read the requirement through the same check as a line of a requirements file."""
    text = line + (f" ; {marker}" if marker else "") + "".join(f" --hash={each}" for each in hashes)
    return parse_requirement(text, where, lambda given: given)


def _vcs_line(name: str, vcs: Mapping[str, Any], where: str) -> str:
    if vcs.get("type") != "git" or "url" not in vcs:
        raise PackagesError(f"{where} comes from {vcs.get('type')}, and not from a git address: build a wheel of it")
    subdirectory = f"#subdirectory={vcs['subdirectory']}" if vcs.get("subdirectory") else ""
    return f"{name} @ git+{vcs['url']}@{vcs['commit-id']}{subdirectory}"


def _wheel(file: Mapping[str, Any], marker: str, folder: str, where: str) -> Requirement:
    path = os.path.normpath(os.path.join(folder, file["path"]))
    if not path.endswith(".whl"):
        raise PackagesError(f"{where} is {file['path']!r}, which is not a wheel: build one (pip wheel --no-deps)")
    if not os.path.isfile(path):
        raise PackagesError(f"{where}: there is no file {path}")
    return Requirement("", wheel=path, marker=marker, hashes=_hashes(file))


def _hashes(file: Mapping[str, Any]) -> tuple[str, ...]:
    hashes: Mapping[str, str] = file.get("hashes", {})
    return tuple(f"{name}:{hashes[name].lower()}" for name in _HASHES if name in hashes)[:1]


def _marker(marker: str, where: str, groups: set[str]) -> str | None:
    """The marker without the lock's own groups; None: the package is not installed by default."""
    found = _GROUP.fullmatch(marker)
    if found is not None:
        return "" if found[2] == "dependency_groups" and found[1] in groups else None
    if re.search(r"\b(extras|dependency_groups)\b", marker):
        raise PackagesError(f"{where} depends on extras or groups: export the lock for one choice of them")
    return marker
