"""Tasks with packages that their client brings, with real schedulers, agents and installers, and without a network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.integration.commands import SCHEDULER_PYTHON
from tests.wheel_files import make_wheel

from scaler_client import Client, EnvironmentFailedError, LocalCluster, PackagesError

PATIENCE_SECONDS = 100.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    cache = tmp_path_factory.mktemp("cache") / "environments"
    with LocalCluster(
        n_workers=2, scheduler_python=SCHEDULER_PYTHON, environments="any", environment_cache=str(cache)
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def functions_travel_by_value() -> Iterator[None]:
    """Environments do not have the tests' own modules."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def version_of(name: str) -> Any:
    """The version of a package of a test, and where it is; what a worker says that lacks it."""
    import importlib

    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        return str(error), ""
    return module.VERSION, module.__file__


def wheel_folder(parent: Path, name: str, version: str, requires: list[str] | None = None) -> Path:
    folder = parent / f"{name}-{version}"
    folder.mkdir()
    make_wheel(folder, name, version, requires=requires or [])
    return folder


def test_clients_with_different_packages_beside_one_another(cluster: LocalCluster, tmp_path: Path) -> None:
    one, two = (wheel_folder(tmp_path, "apart", version) for version in ("1.0", "2.0"))
    with Client(cluster) as plain, Client(cluster, environment=one) as first:
        with Client(cluster, environment=str(two)) as second:
            futures = [client.submit(version_of, "apart") for client in (first, second, first, plain)]
            versions = [future.result(PATIENCE_SECONDS)[0] for future in futures]
            assert versions == ["1.0", "2.0", "1.0", "No module named 'apart'"]
            # What the host has installed is not there.
            assert second.submit(version_of, "pytest").result(PATIENCE_SECONDS)[0] == "No module named 'pytest'"


def test_an_environment_is_made_once(cluster: LocalCluster, tmp_path: Path) -> None:
    folder = wheel_folder(tmp_path, "once", "1.0")
    places = []
    for _ in range(2):
        with Client(cluster, environment=folder) as client:
            places.append(client.submit(version_of, "once").result(PATIENCE_SECONDS))
    assert places[0] == places[1] and places[0][0] == "1.0"


def test_modules_and_packages_together_also_in_child_tasks(cluster: LocalCluster, tmp_path: Path) -> None:
    folder = wheel_folder(tmp_path, "below", "3.0")
    program = tmp_path / "program"
    program.mkdir()
    (program / "above.py").write_text(
        "import below\nfrom scaler_client import Client\n\n\n"
        "def child():\n    return below.VERSION\n\n\n"
        "def parent():\n    with Client() as client:\n        return client.submit(child).result()\n"
    )
    code = (
        "import sys, above; from scaler_client import Client;"
        "client = Client(sys.argv[1], modules=['above.py'], environment=sys.argv[2]);"
        f"print(client.submit(above.parent).result({PATIENCE_SECONDS})); client.disconnect()"
    )
    # The program itself has the package, too: it imports the module.
    path = os.pathsep.join([str(folder / "below-3.0-py3-none-any.whl"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, cluster.address, str(folder)],
        cwd=program,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.stdout.strip() == "3.0", done.stderr


def test_a_broken_build_is_said_to_all_who_wait(cluster: LocalCluster, tmp_path: Path) -> None:
    folder = wheel_folder(tmp_path, "broken", "1.0", ["absent>=7"])
    with Client(cluster, environment=folder) as one, Client(cluster, environment=folder) as other:
        futures = [client.submit(version_of, "broken") for client in (one, other, one)]
        for future in futures:
            with pytest.raises(EnvironmentFailedError) as error:
                future.result(PATIENCE_SECONDS)
            assert "no host could prepare the environment" in str(error.value)
            assert "failed (exit code 1)" in str(error.value) and "absent" in str(error.value)
    with Client(cluster) as client:
        assert client.submit(version_of, "broken").result(PATIENCE_SECONDS)[0] == "No module named 'broken'"


def test_files_that_no_host_could_use_are_refused_at_once(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-e .\n")
    with pytest.raises(PackagesError, match=r"requirements.txt, line 1: '-e \.' is a folder of this machine"):
        Client(cluster, environment=tmp_path / "requirements.txt")
    with pytest.raises(TypeError, match="environment must be the path of a requirements file"):
        Client(cluster, environment=7)  # type: ignore[arg-type]


@pytest.mark.skipif(importlib.util.find_spec("pex") is None, reason="pex is not installed")
def test_workers_run_inside_a_pex_file(cluster: LocalCluster, tmp_path: Path) -> None:
    folder = wheel_folder(tmp_path, "packed", "4.0")
    path = str(tmp_path / "app.pex")
    options = ["--no-index", "-f", str(folder), "--pex-root", str(tmp_path / "root"), "--no-compile"]
    subprocess.run([sys.executable, "-m", "pex", "packed", "-o", path, *options], check=True)
    with Client(cluster, environment=path) as client:
        version, place = client.submit(version_of, "packed").result(PATIENCE_SECONDS)
        assert version == "4.0" and "pex" in place
