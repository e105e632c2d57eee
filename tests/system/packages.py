"""The files under test, built by `make package`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.system.roots import CHECKOUT

DIST = CHECKOUT / "packaging" / "dist"


@dataclass(frozen=True)
class Packages:
    """The one-file scheduler, the Debian package, and the same package with a higher version."""

    one_file: Path
    deb: Path
    newer: Path


def find(folder: Path) -> Packages:
    """The newest package in packaging/dist/. The package with the higher version is made from it in `folder`."""
    debs = sorted(DIST.glob("scaler-scheduler_*_amd64.deb"), key=lambda path: path.stat().st_mtime)
    one_file = DIST / "scaler_scheduler"
    assert debs and one_file.exists(), f"no package in {DIST}: make package builds it"
    return Packages(one_file, debs[-1], _with_higher_version(debs[-1], folder))


def load_wheels(folder: Path) -> None:
    """Make wheels of the libraries with the monitors' extras and all dependencies, for the Python of the tests.

    Machines have no network to download them.
    """
    client, worker = (str(next(DIST.glob(f"{name}-*.whl"))) for name in ("scaler_client", "scaler_worker"))
    _output(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), f"{client}[ui,exporter]", worker)


def version_of(deb: Path) -> str:
    """The version of a package for dpkg."""
    return _output("dpkg-deb", "--field", str(deb), "Version").strip()


def _with_higher_version(deb: Path, folder: Path) -> Path:
    tree = folder / "tree"
    _output("dpkg-deb", "--raw-extract", str(deb), str(tree))
    control = tree / "DEBIAN" / "control"
    version = version_of(deb)
    control.write_text(control.read_text().replace(f"\nVersion: {version}\n", f"\nVersion: {version}+newer\n"))
    newer = folder / "newer.deb"
    _output("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(newer))
    assert version_of(newer) == f"{version}+newer"
    return newer


def _output(*command: str) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
