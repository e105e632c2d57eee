"""What is tested: the files that `make package` has built."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.system.roots import CHECKOUT

DIST = CHECKOUT / "packaging" / "dist"


@dataclass(frozen=True)
class Packages:
    """The one-file scheduler, Debian's package with it, and the same package under a higher version."""

    one_file: Path
    deb: Path
    newer: Path


def find(folder: Path) -> Packages:
    """The newest package in packaging/dist/; the one with the higher version is made of it, in `folder`."""
    debs = sorted(DIST.glob("scaler-scheduler_*_amd64.deb"), key=lambda path: path.stat().st_mtime)
    one_file = DIST / "scaler_scheduler"
    assert debs and one_file.exists(), f"no package in {DIST}: make package builds it"
    return Packages(one_file, debs[-1], _with_higher_version(debs[-1], folder))


def load_wheels(folder: Path) -> None:
    """Ours of the libraries, with the extras of what watches, and all that they need: machines have no network of their
    own to load them from. For the Python that these tests run in."""
    client, worker = (str(next(DIST.glob(f"{name}-*.whl"))) for name in ("scaler_client", "scaler_worker"))
    _output(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), f"{client}[ui,exporter]", worker)


def version_of(deb: Path) -> str:
    """As dpkg has it."""
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
