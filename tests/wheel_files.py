"""Tiny wheels and source archives, made by tests: no network is needed to install them."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Sequence


def make_wheel(
    folder: str | os.PathLike[str],
    name: str,
    version: str = "1.0",
    source: str = "",
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
) -> str:
    """Make a wheel of one module.

    Args:
        folder: where the wheel goes.
        name: of the package and of its module.
        version: of the package. The module has it as `VERSION`.
        source: further lines of the module.
        requires: names and specifiers of other packages.
        tag: Python, ABI and platform.

    Returns:
        The path of the wheel.
    """
    path = os.path.join(folder, f"{name}-{version}-{tag}.whl")
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents = {
        f"{name}.py": f"VERSION = {version!r}\n{source}",
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{each},,\n" for each in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in {**contents, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(each, (2020, 1, 1, 0, 0, 0)), content)
    return path


def make_source_archive(folder: str | os.PathLike[str], name: str, backend: str) -> str:
    """Make a source archive, which needs no other package to be built.

    Args:
        folder: where the archive goes.
        name: of the package, whose version is 1.0.
        backend: the source of its build backend.

    Returns:
        The path of the archive.
    """
    contents = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        f"[project]\nname = '{name}'\nversion = '1.0'\n",
        "backend.py": backend,
    }
    path = os.path.join(folder, f"{name}-1.0.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for each, content in contents.items():
            member = tarfile.TarInfo(f"{name}-1.0/{each}")
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return path
