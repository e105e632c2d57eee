from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system import packages, roots
from tests.system.machine import Machine
from tests.system.nspawn import Nspawn
from tests.system.requirements import reason_to_skip
from tests.system.service import Service

DEB, NEWER, ONE_FILE = "/packages/scheduler.deb", "/packages/newer.deb", "/packages/scaler_scheduler"


@pytest.fixture(scope="session")
def can_boot(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the tests if this machine cannot boot others."""
    reason = reason_to_skip()
    if reason:
        pytest.skip(reason)
    probe = Nspawn(roots.base(), tmp_path_factory.mktemp("probe") / "probe.log", {}, "/bin/true")
    status = probe.process.wait(60)
    probe.end()
    if status != 0:  # for example in a container without the rights
        pytest.skip(f"systemd-nspawn can't run anything here: {probe.log().strip()}")


@pytest.fixture(scope="session")
def built(can_boot: None, tmp_path_factory: pytest.TempPathFactory) -> packages.Packages:
    return packages.find(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def wheels(built: packages.Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels for pip in roots.python()."""
    if roots.minor_version(roots.python()) != sys.version_info[1]:
        pytest.skip("Debian's Python has another minor version than the Python of these tests")
    folder = tmp_path_factory.mktemp("wheels")
    packages.load_wheels(folder)
    return folder


@pytest.fixture
def boot(can_boot: None, tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """boot(root, {path: path inside}) starts a machine that ends with the test."""
    machines: list[Machine] = []

    def start(root: Path, binds: dict[Path, str]) -> Machine:
        machines.append(Machine(root, tmp_path / "console.log", binds))
        return machines[-1]

    yield start
    for machine in machines:
        machine.end()


@pytest.fixture
def machine(boot: Callable[..., Machine], built: packages.Packages) -> Machine:
    """A minimal Debian without Python. The packages are in /packages."""
    return boot(roots.base(), {built.one_file: ONE_FILE, built.deb: DEB, built.newer: NEWER})


@pytest.fixture
def service(machine: Machine) -> Service:
    return Service(machine, DEB)
