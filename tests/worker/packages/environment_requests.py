"""Requests to prepare environments, for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.wheel_files import make_source_archive

from scaler_client.packages.sources import PackageSource, read_packages
from scaler_worker.packages import installer
from scaler_worker.packages.launch import BOOTSTRAP, PreparedPackages
from scaler_worker.packages.preparation import Request, prepare

LIMIT_BYTES = 200 << 20
SECONDS = 60.0


def request_of(
    source: PackageSource,
    folder: Path,
    *,
    allowed: str = "locked",
    limit_bytes: int = LIMIT_BYTES,
    seconds: float = SECONDS,
    environ: Mapping[str, str] = os.environ,
    cancelled: int = -1,
) -> Request:
    """A request for packages whose contents are files, as an agent has them."""
    contents = folder / "contents"
    contents.mkdir(exist_ok=True)
    files = {}
    for sha256, content in source.contents.items():
        path = contents / sha256
        path.write_bytes(content if isinstance(content, bytes) else Path(content).read_bytes())
        files[sha256] = str(path)
    cache = str(folder / "cache")
    return Request(source.packages, files, allowed, cache, limit_bytes, seconds, dict(environ), cancelled)


@contextmanager
def prepared(request: Request) -> Iterator[PreparedPackages]:
    """Prepare packages in this process, and keep them in the cache meanwhile."""
    reader, writer = os.pipe()  # nothing is written: nobody cancels
    if request.cancelled < 0:
        request = replace(request, cancelled=reader)
    try:
        packages, locks = prepare(request)
        try:
            yield packages
        finally:
            for lock in locks:
                lock.release()
    finally:
        os.close(reader)
        os.close(writer)


def output_of(packages: PreparedPackages, code: str) -> str:
    """What a program prints that runs in an environment as a fork server does."""
    bootstrap = BOOTSTRAP.split("import runpy")[0]
    done = subprocess.run(
        [*packages.command, "-c", bootstrap + code, packages.runtime],
        env=packages.process_variables(os.environ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def requirements(folder: Path, text: str) -> PackageSource:
    """The packages of a requirements file."""
    path = folder / "requirements.txt"
    path.write_text(text)
    return read_packages(path)


def make_sdist(folder: Path, name: str, code: str) -> Path:
    """A source package that runs code when it is installed, and needs no other package for that."""
    backend = f"def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):\n    {code}\n"
    return Path(make_source_archive(folder, name, backend))


def own_index(folder: Path) -> dict[str, str]:
    """Variables of an agent whose installers know only this folder of packages."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(folder),
    }


def without_uv(_: Mapping[str, str]) -> str:
    """Stands for `find_uv` on a host without uv."""
    return ""


INSTALLERS = ["pip"] + (["uv"] if installer.find_uv(os.environ) else [])
OTHER_PYTHON = next((f"3.{number}" for number in (12, 13, 10, 14) if number != sys.version_info[1]), "")
