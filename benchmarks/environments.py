"""Environments of tasks: a program's own modules (`own_modules.py`); the first task of 20 packages from a folder of
wheels, beside the installer alone, and the first task of another program with the same packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from scaler_client import Client, LocalCluster
from scaler_worker.packages.installer import find_installer, install_command, installer_variables

from . import own_modules
from .figures import Figure, at_most
from .interpreters import scheduler_python
from .processes import PATIENCE_SECONDS

RUNS = 5
QUICK_RUNS = 1
PACKAGES = 20
MODULES = 10
"""In each package."""
LINES = 400
"""Of each module: some 10 KB."""
WORKERS = 2
MOST_SECONDS_BEYOND = 2.0
MOST_SECONDS_OF_ANOTHER = 1.0

PROGRAM = """
import sys, time
from scaler_client import Client
with Client(sys.argv[1], environment=sys.argv[2]) as client:
    client.submit(eval, "__import__('package3.module7').__name__").result(60)
    print(time.time())
"""


def measure(is_quick: bool) -> list[Figure]:
    return [*own_modules.figures_of_modules(is_quick), *_measure_packages(is_quick)]


def _measure_packages(is_quick: bool) -> list[Figure]:
    """Measure with wheels that no earlier run has installed."""
    alone, first, other = [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=WORKERS,
            scheduler_python=scheduler_python(),
            environments="locked",
            environment_cache=os.path.join(folder, "cache"),
        ) as cluster,
    ):
        for run in range(QUICK_RUNS if is_quick else RUNS):
            alone.append(_install_alone(Path(folder), make_wheels(Path(folder, f"alone{run}"), f"1.{run}")))
            wheels = make_wheels(Path(folder, f"wheels{run}"), f"2.{run}")
            first.append(_first_task(cluster, wheels))
            other.append(_another_program(cluster, wheels))
    beyond = [whole - part for whole, part in zip(first, alone)]
    what = f"{PACKAGES} packages from a folder of wheels"
    return [
        Figure("environments.installer", f"{what}: the installer alone", "s", alone),
        Figure("environments.first", f"{what}: from the client's start to the first result", "s", first),
        Figure(
            "environments.beyond", "the same, without the installer's time", "s", beyond, at_most(MOST_SECONDS_BEYOND)
        ),
        Figure(
            "environments.another",
            "another program with the same packages: from its start to the first result",
            "s",
            other,
            at_most(MOST_SECONDS_OF_ANOTHER),
        ),
    ]


def make_wheels(folder: Path, version: str) -> Path:
    """Make the wheels of the packages, all different from those of other versions."""
    folder.mkdir()
    for number in range(PACKAGES):
        name = f"package{number}"
        information = f"{name}-{version}.dist-info"
        module = "".join(f"value_{line} = {line * number}\n" for line in range(LINES))
        contents = {f"{name}/module{each}.py": module for each in range(MODULES)}
        contents[f"{name}/__init__.py"] = f"VERSION = {version!r}\n"
        contents[f"{information}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        contents[f"{information}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        contents[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{information}/RECORD"])
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in contents.items():
                archive.writestr(path, content)
    return folder


def _install_alone(folder: Path, wheels: Path) -> float:
    """What a person would type: an environment, and the packages in it."""
    venv, downloads = tempfile.mkdtemp(dir=folder), tempfile.mkdtemp(dir=folder)
    python = os.path.join(venv, "bin", "python")
    names = [path.name.split("-")[0] for path in wheels.iterdir()]
    command = install_command(
        find_installer(os.environ), python, ["--no-index", "--find-links", str(wheels), *names], is_locked=False
    )
    variables = installer_variables(os.environ, downloads, downloads, is_locked=False)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def _first_task(cluster: LocalCluster, wheels: Path) -> float:
    began = time.perf_counter()
    with Client(cluster, environment=wheels) as client:
        client.submit(eval, "__import__('package3.module7').__name__").result(PATIENCE_SECONDS)
        return time.perf_counter() - began


def _another_program(cluster: LocalCluster, wheels: Path) -> float:
    began = time.time()
    command = [sys.executable, "-c", PROGRAM, cluster.address, str(wheels)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
    return float(done.stdout) - began
