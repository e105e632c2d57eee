"""`make install` and `make uninstall` into a temporary folder.

An environment takes half a minute of processor time. `SCALER_INSTALL_PYPY=1` makes the one of PyPy too, where the
scheduler runs; `make test-system` sets it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation.conftest import ROOT
from tests.integration.commands import Command, environment

from scaler_client import Client, __version__

PREFIX = "usr/local"
PROGRAMS = [
    f"scaler_{name}" for name in ("autoscaler", "client", "cluster", "exporter", "scheduler", "top", "ui", "worker")
]
UNITS = ("scaler-scheduler", "scaler-cluster", "scaler-exporter", "scaler-ui", "scaler-autoscaler")
CONFIGURATIONS = ("scheduler", "cluster", "exporter", "top", "ui", "autoscaler")
MINE = '# mine\nmemory_limit = "1G"\n'
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="units and wrappers are for Linux"),
]


def run(what: str, destination: Path, documents: Path, **variables: str) -> str:
    """The output of install.sh, which must succeed."""
    told = {"DESTDIR": str(destination), "BUILD": str(documents), "PYTHON": sys.executable, **variables}
    command = [ROOT / "packaging" / "install.sh", what]
    ran = subprocess.run(
        command, env={**environment(), **told}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=570
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def files(folder: Path) -> set[str]:
    """All files except those of the private environments."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return {name for name in found if not name.startswith(f"{PREFIX}/lib/scaler/p")}


def can_fetch() -> bool:
    """Whether pip can download distributions."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "cloudpickle",
    ]
    try:
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@pytest.fixture(scope="module")
def installed(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The installed files, moved to another folder. The tests run in this order."""
    if not can_fetch():
        pytest.skip("pip gets no packages here: an environment can't be made")
    folder = tmp_path_factory.mktemp("install")
    (folder / "first/etc/scaler").mkdir(parents=True)
    (folder / "first/etc/scaler/scheduler.toml").write_text(MINE)
    interpreters = {} if os.environ.get("SCALER_INSTALL_PYPY") else {"PYPY": "none"}
    said = run("install", folder / "first", documents, **interpreters)
    assert "/etc/scaler/scheduler.toml stays as it is" in said
    (folder / "first").rename(folder / "second")
    yield folder / "second"
    shutil.rmtree(folder)


def test_installed_files(installed: Path) -> None:
    share = f"{PREFIX}/share"
    assert files(installed) == {
        *(f"{PREFIX}/bin/{program}" for program in PROGRAMS),
        *(f"{share}/man/man1/{program}.1" for program in PROGRAMS),
        *(f"{share}/bash-completion/completions/{program}" for program in PROGRAMS),
        *(f"{share}/zsh/site-functions/_{program}" for program in PROGRAMS),
        *(f"{PREFIX}/lib/systemd/system/{unit}.service" for unit in UNITS),
        f"{PREFIX}/lib/sysusers.d/scaler.conf",
        f"{PREFIX}/lib/scaler/manifest",
        *(f"{folder}/{name}.toml" for folder in ("etc/scaler", f"{share}/scaler") for name in CONFIGURATIONS),
    }
    for unit in (installed / PREFIX / "lib/systemd/system").iterdir():
        (command,) = re.findall("^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
        assert command.split()[0] == f"/{PREFIX}/bin/{unit.stem.replace('-', '_')}"


def test_no_file_contains_the_build_folder(installed: Path) -> None:
    made = str(installed.parent / "first").encode()
    naming = [path for path in installed.rglob("*") if path.is_file() and made in path.read_bytes()]
    assert naming == []
    compiled = installed / PREFIX / "lib/scaler/python/lib"
    assert list(compiled.rglob("scaler_worker/agent/__pycache__/process.*.pyc")), (
        "services cannot compile modules later"
    )


def test_installed_commands_run(installed: Path, tmp_path: Path) -> None:
    for program in PROGRAMS:
        ran = subprocess.run(
            [installed / PREFIX / "bin" / program, "--version"],
            env=environment(PYTHONPATH=""),
            cwd="/",
            capture_output=True,
            text=True,
        )
        assert ran.stdout.startswith(f"{program} {__version__}, "), ran.stderr
    address = f"ipc://{tmp_path}/s"
    log, configuration = tmp_path / "log", installed / "etc/scaler"
    # Do not use the packages of the tests' environment.
    bare = {"PYTHONPATH": "", "SCALER_ADDRESS": address}
    scheduler = Command(
        [str(installed / PREFIX / "bin/scaler_scheduler"), "--config", str(configuration / "scheduler.toml")],
        log, **bare,
    )  # fmt: skip
    cluster = Command(
        [str(installed / PREFIX / "bin/scaler_cluster"), "-n", "1", "--config", str(configuration / "cluster.toml")],
        tmp_path / "cluster.log", **bare,
    )  # fmt: skip
    try:
        with Client(address) as client:
            assert client.submit(pow, 2, 10).result(60) == 1024
        has_pypy = (installed / PREFIX / "lib/scaler/pypy").is_dir()
        assert ("PyPy" if has_pypy else "CPython") in scheduler.log()
        assert cluster.stop() == 0 and scheduler.stop() == 0
    finally:
        cluster.end()
        scheduler.end()


def test_install_keeps_a_changed_configuration(installed: Path, documents: Path) -> None:
    folder = installed / "etc/scaler"
    assert (folder / "scheduler.toml").read_text() == MINE
    assert (folder / "cluster.toml").read_bytes() == (documents / "configuration/cluster.toml").read_bytes()
    said = run("uninstall", installed, documents)
    assert "scheduler.toml was changed" not in said, "install did not make it"
    assert files(installed) == {"etc/scaler/scheduler.toml"}
    assert (folder / "scheduler.toml").read_text() == MINE
    assert not (installed / "usr").exists()


def test_uninstall_keeps_a_changed_configuration(documents: Path, tmp_path: Path) -> None:
    """uninstall needs only the manifest of install, so nothing is installed here."""
    for name in ("scheduler.toml", "cluster.toml"):
        for folder in (tmp_path / "etc/scaler", tmp_path / PREFIX / "share/scaler"):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(documents / "configuration" / name, folder)
    changed = tmp_path / "etc/scaler/cluster.toml"
    changed.write_text(MINE)
    manifest = tmp_path / PREFIX / "lib/scaler/manifest"
    manifest.parent.mkdir(parents=True)
    noted = ["/etc/scaler/scheduler.toml", "/etc/scaler/cluster.toml"]
    noted += [f"/{PREFIX}/share/scaler/{name}.toml" for name in CONFIGURATIONS]
    manifest.write_text("".join(f"f {path}\n" for path in noted))
    assert "/etc/scaler/cluster.toml was changed, and stays" in run("uninstall", tmp_path, documents)
    assert files(tmp_path) == {"etc/scaler/cluster.toml"} and changed.read_text() == MINE


def test_uninstall_fails_if_nothing_is_installed(tmp_path: Path) -> None:
    command = [ROOT / "packaging" / "install.sh", "uninstall"]
    ran = subprocess.run(command, env={**os.environ, "DESTDIR": str(tmp_path)}, capture_output=True, text=True)
    assert ran.returncode == 1 and "nothing installed under" in ran.stderr
