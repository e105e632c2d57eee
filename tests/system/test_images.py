"""The images of scheduler, workers and exporter, built and run as Kubernetes would: another user, nowhere to write."""

from __future__ import annotations

import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system import roots
from tests.system.images import Image, Images
from tests.system.nspawn import Nspawn
from tests.system.packages import DIST, Packages
from tests.system.service import free_port
from tests.waiting import wait_until

from scaler_client import Client

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="needs buildah (Debian's package)"),
]

DOCKERFILES = roots.CHECKOUT / "packaging" / "container"
Run = Callable[..., Nspawn]


@pytest.fixture
def images(built: Packages, tmp_path: Path) -> Images:
    return Images(tmp_path / "images")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    containers: list[Nspawn] = []

    def start(image: Image, *arguments: str) -> Nspawn:
        log = tmp_path / f"{len(containers)}.log"
        environment = [f"--setenv={variable}" for variable in image.environment]
        user, group = image.user.split(":")
        become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
        command = ["--as-pid2", *become, *image.entry, *arguments]
        containers.append(Nspawn(image.root, log, {}, "--volatile=no", "--read-only", *environment, *command))
        return containers[-1]

    yield start
    for container in reversed(containers):
        container.end()


def test_they_are_built_and_run(images: Images, run: Run, tmp_path: Path) -> None:
    python = roots.python()
    if _minor_version(python) != sys.version_info[1]:
        pytest.skip("functions of one minor version of Python do not run on another's workers")
    images.take("debian:bookworm-slim", roots.base())
    # Debian's pip would leave the system's packages alone; the image that this stands for has nobody else's. What pip
    # would load is there: there may be no network in it.
    offline = "printf '[global]\\nno-index = true\\nfind-links = /loaded\\n' > /etc/pip.conf"
    images.take("python:3.11-slim", python, "rm -f /usr/lib/python3*/EXTERNALLY-MANAGED", offline)
    scheduler = images.build(DOCKERFILES / "scheduler.Dockerfile", "scaler-scheduler", DIST)
    wheels = tmp_path / "wheels"
    ours = [str(next(DIST.glob(f"{name}-*.whl"))) for name in ("scaler_client", "scaler_worker")]
    wanted = [f"{ours[0]}[exporter]", ours[1]]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels), *wanted], check=True)
    volume = ("--volume", f"{wheels}:/loaded:ro")
    workers = images.build(DOCKERFILES / "workers.Dockerfile", "scaler-workers", DIST, *volume)
    exporter = images.build(DOCKERFILES / "exporter.Dockerfile", "scaler-exporter", DIST, *volume)

    address = f"tcp://127.0.0.1:{free_port()}"
    there = run(scheduler, address)
    wait_until(lambda: f"address {address}" in there.log(), 60.0, "the scheduler")
    assert "PyPy" in there.log()
    cluster = run(workers, "-n", "2", address)
    with Client(address) as client:
        assert client.map(pow, [(value, 2) for value in range(20)]) == [value**2 for value in range(20)]
    cluster.end()
    wait_until(lambda: "has left" in there.log(), 60.0, "the agent's goodbye")
    port = free_port()
    run(exporter, "--port", str(port), f"tcp://127.0.0.1:{free_port()}")
    wait_until(
        lambda: "scaler_up 0.0" in _page(f"http://127.0.0.1:{port}/metrics"), 60.0, "metrics without a scheduler"
    )


def _page(address: str) -> str:
    """Empty while nobody answers."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.read().decode()  # type: ignore[no-any-return]
    except OSError:
        return ""


def _minor_version(root: Path) -> int:
    [library] = (root / "usr" / "lib").glob("python3.*")
    return int(library.name.removeprefix("python3."))
